#include "sources/error_text/async_pool.h"

#include <algorithm>
#include <vector>

#include "base/characters.h"
#include "base/units.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/text_limits.h"

namespace faultline {
namespace {

constexpr std::size_t kReach = std::size_t{256} << 10;  // around the message
constexpr std::size_t kMostSizes = 100'000;
constexpr std::size_t kTold = 5;

struct LiveSize {
  std::uint64_t bytes = 0, count = 0;
  std::uint64_t all() const { return bytes * count; }
};

// "2147483648, 6", behind any prefix.
bool is_size_and_count(std::string_view body, LiveSize& size) {
  const std::size_t comma = body.find(", ");
  if (body.empty() || !is_digit(body[0]) || comma == std::string_view::npos) return false;
  if (body.find_first_not_of("0123456789, ;") != std::string_view::npos) return false;
  const auto bytes = number_at(body, 0), count = number_at(body, comma + 2);
  if (!bytes || !count || *bytes >= std::uint64_t{1} << 44 || *count >= std::uint64_t{1} << 18) return false;
  size = {*bytes, *count};
  return true;
}

std::vector<LiveSize> histogram(std::string_view near) {
  constexpr std::string_view kHead = "Histogram of current allocation";
  std::vector<LiveSize> sizes;
  const std::size_t head = near.rfind(kHead);
  if (head == std::string_view::npos) return sizes;
  std::size_t others = 0;
  for (std::size_t begin = line_end(near, head, near.size()) + 1;
       begin < near.size() && sizes.size() < kMostSizes && others < 20;) {
    const std::size_t end = line_end(near, begin, near.size());
    const std::string_view raw = near.substr(begin, std::min(end - begin, kLongestLine));
    const std::string body = clean_line(raw.substr(split_prefix(raw).length), kLongestLine);
    begin = end + 1;
    LiveSize size;
    if (is_size_and_count(body, size))
      sizes.push_back(size);
    else if (body.find("CU_MEMPOOL_ATTR") != std::string::npos)
      break;
    else
      ++others;
  }
  std::stable_sort(sizes.begin(), sizes.end(), [](const LiveSize& a, const LiveSize& b) { return a.all() > b.all(); });
  return sizes;
}

}  // namespace

void add_async_pool(std::string_view text, std::size_t at, ErrorMessage& message, Trace& trace) {
  const std::size_t from = at > kReach ? at - kReach : 0;
  const std::string_view near = text.substr(from, 2 * kReach);
  const auto number = [&](std::string_view label) { return number_after(near, label); };
  const auto reserved = number("CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: "),
             used = number("CU_MEMPOOL_ATTR_USED_MEM_CURRENT: ");
  const std::vector<LiveSize> sizes = histogram(near);
  if (!used && sizes.empty()) return;
  message.words["allocator"] = "cudaMallocAsync";
  const auto put = [&](const char* name, std::optional<std::uint64_t> bytes) {
    if (bytes) message.numbers.try_emplace(name, ByteInterval::exactly(*bytes));
  };
  put("allocated", used);
  put("reserved", reserved);
  if (reserved && used && *reserved >= *used) put("cached", *reserved - *used);
  constexpr std::string_view kFree = "Free memory/Total memory: ";
  if (const std::size_t free = near.find(kFree); free != std::string_view::npos) {
    put("free", number_at(near, free + kFree.size()));
    if (const std::size_t slash = near.find('/', free + kFree.size()); slash < free + kFree.size() + 24)
      put("capacity", number_at(near, slash + 1));
  }
  for (std::size_t told = 0; told < std::min(kTold, sizes.size()); ++told) {
    const std::string name = "error.buffer." + std::to_string(told + 1);
    trace.properties[name + "_bytes.min"] = trace.properties[name + "_bytes.max"] = std::to_string(sizes[told].all());
    trace.properties[name + ".what"] = std::to_string(sizes[told].count) +
                                       (sizes[told].count == 1 ? " buffer of " : " buffers of ") +
                                       format_bytes(sizes[told].bytes);
  }
}

}  // namespace faultline
