#include "sources/written_report/written_report.h"

#include <algorithm>
#include <string_view>

#include "base/json_input.h"

namespace faultline {
namespace {

constexpr std::size_t kLargestReport = std::size_t{64} << 20;

// Takes a token from the beginning, and the blanks before it.
bool take(std::string_view& text, std::string_view token) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

}  // namespace

bool looks_like_report(std::span<const std::uint8_t> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return take(text, "{") && take(text, "\"schema\"") && take(text, ":") && take(text, "\"faultline.report/1\"");
}

Result<Input> read_report(ByteStream& stream, const std::string&) {
  Result<std::string> text = stream.read_all(kLargestReport);
  if (!text) return text.error();
  if (Status whole = check_json(*text); !whole)
    return Error{"this report of Faultline's is not whole: " + whole.error().message(), {}, {}};
  Input input{Trace()};
  input.report = std::move(*text);
  return input;
}

}  // namespace faultline
