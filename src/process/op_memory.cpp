#include "process/op_memory.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/units.h"
#include "fmt/format.h"

namespace faultline::process {
namespace {

constexpr std::array<std::string_view, 20> kTypes = {
    "float64",         "float32",    "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "complex64",       "complex128", "int64",   "int32",    "int16",         "int8",
    "uint8",           "bool",       "uint16",  "uint32",   "uint64",        "float8_e4m3fnuz",
    "float8_e5m2fnuz", "complex32"};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A product of whole numbers and OPERAND.DIMENSION.
bool is_size(const std::string& text) {
  for (const std::string& factor : split(text, '*')) {
    const std::vector<std::string> parts = split(factor, '.');
    if (parts.size() > 2 || !std::all_of(parts.begin(), parts.end(), is_number)) return false;
  }
  return true;
}

Error wrong(const std::string& text, const std::string& why) {
  return Error{
      fmt::format("'{}': {}; for example my::op=64MiB,like=0 or my::op=0,shape=0.0x2*0.1x64,dtype=float16", text, why),
      {},
      {}};
}

Status add_part(const std::string& part, const std::string& text, OperationMemory& told) {
  const std::size_t equals = part.find('=');
  const std::string name = part.substr(0, equals), value = equals == std::string::npos ? "" : part.substr(equals + 1);
  if (name == "like") {
    if (!is_number(value)) return wrong(text, "like= takes the number of an operand, from 0");
    told.results.push_back({std::stoull(value), {}, {}});
  } else if (name == "shape") {
    OperationResult result;
    result.shape = split(value, 'x');
    if (!std::all_of(result.shape.begin(), result.shape.end(), is_size))
      return wrong(text, "shape= takes sizes with x between them, each a product of numbers and OPERAND.DIMENSION");
    told.results.push_back(std::move(result));
  } else if (name == "dtype") {
    if (told.results.empty()) return wrong(text, "dtype= stands behind the like= or shape= that it belongs to");
    if (std::find(kTypes.begin(), kTypes.end(), value) == kTypes.end())
      return wrong(text, "'" + value + "' is no type of PyTorch's, such as float16");
    told.results.back().dtype = value;
  } else {
    return wrong(text, "'" + part + "' is none of like=, shape=, dtype=");
  }
  return Ok{};
}

}  // namespace

Result<std::vector<OperationMemory>> operations_memory(const std::vector<std::string>& texts) {
  std::vector<OperationMemory> all;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    OperationMemory told;
    told.name = text.substr(0, equals);
    const std::size_t colons = told.name.find("::");
    if (equals == std::string::npos || colons == 0 || colons == std::string::npos || colons + 2 == told.name.size())
      return wrong(text, "an operation's name is NAMESPACE::NAME, with = and a size behind it");
    const std::vector<std::string> parts = split(text.substr(equals + 1), ',');
    Result<std::uint64_t> bytes = parts.front() == "0" ? Result<std::uint64_t>(0) : parse_bytes(parts.front());
    if (!bytes) return wrong(text, bytes.error().message());
    told.scratch_bytes = *bytes;
    for (std::size_t at = 1; at < parts.size(); ++at) {
      if (Status added = add_part(parts[at], text, told); !added) return added.error();
    }
    all.push_back(std::move(told));
  }
  return all;
}

}  // namespace faultline::process
