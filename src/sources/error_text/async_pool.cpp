#include "sources/error_text/async_pool.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/characters.h"
#include "base/units.h"
#include "sources/bfc_dump/dump_line.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/text_limits.h"

namespace faultline {
namespace {

constexpr std::size_t kReach = std::size_t{256} << 10;  // around the message
constexpr std::size_t kMostSizes = 100'000;
constexpr std::size_t kTold = 5;
constexpr std::uint64_t kPoolUnit = 256;  // a request may be rounded up to it
constexpr std::size_t kMostPoolWriters = 256;
constexpr std::string_view kFreeAndTotal = "Free memory/Total memory: ";

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

// What one thread wrote; a program of several GPUs has one for each, and their lines are mixed.
struct AsyncPool {
  std::vector<LiveSize> sizes;
  std::optional<std::uint64_t> reserved, used, free, capacity;
  std::optional<std::uint64_t> asked,
      in_use;  // of the failure; by the statistics, which have a limit too, but it binds nothing
  bool in_histogram = false;
  std::size_t begin = 0;
};

std::map<std::string, AsyncPool> pools_in(std::string_view near) {
  std::map<std::string, AsyncPool> pools;
  std::string latest;  // who told of a failure
  bool in_statistics = false;
  for (std::size_t begin = 0; begin < near.size() && pools.size() < kMostPoolWriters;) {
    const std::size_t end = line_end(near, begin, near.size());
    const std::string_view raw = near.substr(begin, std::min(end - begin, kLongestLine));
    const std::size_t at = begin;
    begin = end + 1;
    const bool has_head = raw.find("Histogram of current allocation") != std::string_view::npos;
    const bool has_total =
        raw.find("CU_MEMPOOL_ATTR_") != std::string_view::npos || raw.find(kFreeAndTotal) != std::string_view::npos;
    const bool has_failure = raw.find("Async failed to allocate ") != std::string_view::npos;
    // "Stats: Limit:   3187671040", and below it "InUse:   2537565100" without a prefix
    const bool has_statistics = raw.find("Stats:") != std::string_view::npos;
    if (has_statistics) in_statistics = raw.find("async_allocator.cc") != std::string_view::npos;
    const std::size_t in_use = in_statistics ? raw.find("InUse: ") : std::string_view::npos;
    const bool has_in_use = in_use != std::string_view::npos && (in_use == 0 || !is_letter(raw[in_use - 1]));
    if (!has_head && !has_total && !has_failure && !has_in_use &&
        (pools.empty() || raw.find(", ") == std::string_view::npos))
      continue;
    const DumpWriter writer = writer_of(raw);
    std::string key = writer.tag + "/" + writer.thread;
    // the second line of a message has no prefix
    if (writer.thread.empty() && (has_total || has_in_use) && !latest.empty()) key = latest;
    if (has_failure) latest = key;
    if (!has_head && !has_total && !has_failure && !pools.contains(key)) continue;
    AsyncPool& pool = pools[key];
    if (has_failure) {
      pool = AsyncPool();
      pool.begin = at;
      pool.asked = number_after(raw, "Async failed to allocate ");
    }
    if (has_in_use) {
      const std::size_t digits = raw.find_first_of("0123456789", in_use);
      if (digits != std::string_view::npos) pool.in_use = number_at(raw, digits);
      continue;
    }
    if (has_head) {
      pool.sizes.clear();
      pool.in_histogram = true;
      pool.begin = at;
      continue;
    }
    const auto take = [&](std::string_view label, std::optional<std::uint64_t>& into) {
      if (const auto number = number_after(raw, label)) into = number;
    };
    take("CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: ", pool.reserved);
    take("CU_MEMPOOL_ATTR_USED_MEM_CURRENT: ", pool.used);
    take(kFreeAndTotal, pool.free);
    if (const std::size_t free = raw.find(kFreeAndTotal); free != std::string_view::npos) {
      const std::size_t slash = raw.find('/', free + kFreeAndTotal.size());
      if (slash != std::string_view::npos) pool.capacity = number_at(raw, slash + 1);
    }
    LiveSize size;
    std::string body = clean_line(raw.substr(split_prefix(raw).length), kLongestLine);
    // behind the prefix of whoever kept the log
    if (const std::size_t own = body.rfind("] "); own != std::string::npos) body.erase(0, own + 2);
    if (pool.in_histogram && pool.sizes.size() < kMostSizes && is_size_and_count(body, size))
      pool.sizes.push_back(size);
  }
  return pools;
}

// The one that the message's own thread wrote; of a message without a thread the last.
const AsyncPool* pool_of(const std::map<std::string, AsyncPool>& pools, std::string_view line) {
  const DumpWriter writer = writer_of(line);
  const auto own = pools.find(writer.tag + "/" + writer.thread);
  const auto tells = [](const AsyncPool& pool) { return pool.used || pool.free || pool.in_use || !pool.sizes.empty(); };
  if (own != pools.end() && tells(own->second)) return &own->second;
  const AsyncPool* last = nullptr;
  for (const auto& [key, pool] : pools) {
    if (tells(pool) && (last == nullptr || pool.begin >= last->begin)) last = &pool;
  }
  return last;
}

}  // namespace

void add_async_pool(std::string_view text, std::size_t at, ErrorMessage& message) {
  const std::size_t from = line_begin(text, at > kReach ? at - kReach : 0, kLongestLine);
  const std::string_view near = text.substr(from, 2 * kReach);
  if (message.pool.ends_with("_bfc")) return;
  if (near.find("CU_MEMPOOL_ATTR_") == std::string_view::npos &&
      near.find("Histogram of current allocation") == std::string_view::npos &&
      near.find("Async failed to allocate ") == std::string_view::npos)
    return;
  const std::map<std::string, AsyncPool> pools = pools_in(near);
  const std::size_t line = line_begin(text, at, kLongestLine);
  const AsyncPool* const pool = pool_of(pools, text.substr(line, line_end(text, at, kLongestLine) - line));
  if (pool == nullptr) return;
  if (pool->asked && message.requested &&
      (*pool->asked < message.requested->min || *pool->asked > message.requested->max + kPoolUnit))
    return;  // of another failure
  message.pool = kAsyncPool;
  const auto put = [](std::optional<ByteInterval>& number, std::optional<std::uint64_t> bytes) {
    if (bytes && !number) number = ByteInterval::exactly(*bytes);
  };
  put(message.live, pool->used ? pool->used : pool->in_use);
  put(message.reserved, pool->reserved);
  if (pool->reserved && pool->used && *pool->reserved >= *pool->used)
    put(message.cached, *pool->reserved - *pool->used);
  put(message.free, pool->free);
  put(message.capacity, pool->capacity);
  std::vector<LiveSize> sizes = pool->sizes;
  std::stable_sort(sizes.begin(), sizes.end(), [](const LiveSize& a, const LiveSize& b) { return a.all() > b.all(); });
  for (std::size_t told = 0; told < std::min(kTold, sizes.size()); ++told) {
    message.buffers.push_back({ByteInterval::exactly(sizes[told].all()),
                               std::to_string(sizes[told].count) +
                                   (sizes[told].count == 1 ? " buffer of " : " buffers of ") +
                                   format_bytes(sizes[told].bytes),
                               ""});
  }
}

}  // namespace faultline
