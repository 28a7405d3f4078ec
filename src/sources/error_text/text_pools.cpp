#include "sources/error_text/text_pools.h"

#include <algorithm>

#include "sources/error_text/log_lines.h"
#include "sources/pool_names.h"

namespace faultline {
namespace {

constexpr std::uint64_t kUnit = 256;  // requests are rounded up to it

// Whether the dump may be about a request of that size, as far as both were rounded.
bool is_about(const PoolDump& dump, const ErrorMessage& message) {
  const auto& stated = message.requested;
  if (!stated || (!dump.rounded && !dump.asked)) return true;
  const ByteInterval wanted = dump.rounded
                                  ? ByteInterval{*dump.rounded - std::min(*dump.rounded, kUnit), *dump.rounded}
                                  : ByteInterval{dump.asked->min - std::min(dump.asked->min, kUnit), dump.asked->max};
  return stated->min <= wanted.max && stated->max >= wanted.min;
}

bool names(const ErrorMessage& message, const PoolDump& dump) {
  return !dump.allocator.empty() && message.pool == dump.allocator;
}

// Whether the dump can be of the failure that the message tells of: neither its pool nor its size is another.
bool agrees(const PoolDump& dump, const ErrorMessage& message) {
  const std::string& named = message.pool;
  if (!named.empty() && !dump.allocator.empty() && named != dump.allocator) return false;
  const auto gpu = gpu_of(dump.allocator);
  if (named.empty() && message.device && gpu && *gpu != *message.device) return false;
  return is_about(dump, message);
}

}  // namespace

std::optional<Chosen> TextPools::stand_in(std::string_view text) const {
  if (found_.dumps.empty()) return std::nullopt;
  const PoolDump& last = found_.dumps.back();
  Chosen chosen;
  chosen.begin = chosen.again = last.begin;
  chosen.times = 1;
  chosen.message = said(MessageKind::kOutOfMemory, pool_owner(text, last.begin),
                        last.allocator.empty() ? std::string("a map of a memory pool, without the message above it")
                                               : "BFCAllocator dump for " + last.allocator);
  chosen.message.tag = last.writer;
  return chosen;
}

void TextPools::adopt(Survey& seen) const {
  const auto adopt = [&](ErrorMessage& message) {
    if (message.kind == MessageKind::kHostAlloc &&
        std::any_of(found_.dumps.begin(), found_.dumps.end(),
                    [&](const PoolDump& dump) { return names(message, dump); }))
      message.kind = MessageKind::kOutOfMemory;
  };
  if (seen.first) adopt(seen.first->message);
  if (seen.first_weak) adopt(seen.first_weak->message);
  for (Chosen& chosen : seen.all) adopt(chosen.message);
}

TakenPools TextPools::take(std::string_view text, ErrorMessage& message, std::size_t at) {
  TakenPools taken;
  // CUDA's own pool, which has statistics of the same words and no map
  if (const std::string& named = message.pool; named == "cudaMallocAsync" || named.starts_with("gpu_async_"))
    return taken;
  if (found_.dumps.empty() || message.benign || !(is_of_pool(message) || message.framework == Framework::kNone) ||
      !message.is_allocation())
    return taken;
  PoolDump* own = nullptr;
  // Of this writer; one that is named or of this size before others, and of those the last in front of the message, else the first behind it.
  const auto rank = [&](const PoolDump& dump) {
    const bool before = dump.begin <= at;
    return std::tuple(names(message, dump), is_about(dump, message), before,
                      before ? dump.begin : text.size() - dump.begin);
  };
  for (PoolDump& dump : found_.dumps) {
    if (is_other_writer(dump.writer, message.tag) || !agrees(dump, message)) continue;
    if (own == nullptr || rank(dump) > rank(*own)) own = &dump;
  }
  not_taken_ = found_.dumps.size();
  // of each other pool what lies nearest; where the message has no map, that of another failure of its pool too
  const std::size_t origin = own == nullptr ? at : own->begin;
  const std::string writer = own == nullptr ? message.tag : own->writer;
  const auto distance = [&](const PoolDump& dump) {
    return dump.begin > origin ? dump.begin - origin : origin - dump.begin;
  };
  std::vector<PoolDump*> nearest;
  for (PoolDump& dump : found_.dumps) {
    if (is_other_writer(dump.writer, writer) || dump.allocator.empty() || !dump.has_map() ||
        (own != nullptr && dump.allocator == own->allocator))
      continue;
    const auto same = std::find_if(nearest.begin(), nearest.end(),
                                   [&](const PoolDump* other) { return other->allocator == dump.allocator; });
    if (same == nearest.end())
      nearest.push_back(&dump);
    else if (distance(dump) < distance(**same))
      *same = &dump;
  }
  if (own != nullptr) nearest.push_back(own);
  not_taken_ -= nearest.size();
  for (PoolDump* dump : nearest) {
    if (dump != own) taken.pools.push_back(std::move(*dump));
  }
  if (own == nullptr) return taken;
  taken.has_own = true;
  // A map whose head is cut: what names it in the message keeps it from being taken for the GPU's.
  if (const std::string& named = message.pool; own->allocator.empty() && memory_of(named) == PoolMemory::kHost)
    own->allocator = named;
  if (!message.requested) {
    if (own->rounded)
      message.requested = ByteInterval::exactly(*own->rounded);
    else if (own->asked)
      message.requested = *own->asked;
  } else if (!own->asked) {
    own->asked = message.requested;
  }
  taken.pools.push_back(std::move(*own));
  if (const auto gpu = gpu_of(taken.pools.back().allocator)) message.device = *gpu;
  return taken;
}

}  // namespace faultline
