#include "sources/error_text/text_pools.h"

#include <algorithm>

#include "sources/error_text/log_lines.h"
#include "sources/pool_names.h"

namespace faultline {
namespace {

constexpr std::uint64_t kUnit = 256;  // requests are rounded up to it

// Whether the dump may be about a request of that size.
bool is_about(const PoolDump& dump, const ErrorMessage& message) {
  const auto stated = message.numbers.find("requested");
  if (stated == message.numbers.end() || (!dump.rounded && !dump.asked)) return true;
  const ByteInterval wanted =
      dump.rounded ? ByteInterval{*dump.rounded - std::min(*dump.rounded, kUnit), *dump.rounded} : *dump.asked;
  return stated->second.min <= wanted.max && stated->second.max >= wanted.min;
}

// "by allocator bfc_cpu_allocator_for_gpu", "Allocator (GPU_0_bfc)".
bool names(const ErrorMessage& message, const PoolDump& dump) {
  if (dump.allocator.empty()) return false;
  const auto word = message.words.find("allocator");
  return (word != message.words.end() && word->second == dump.allocator) ||
         message.text.find("by allocator " + dump.allocator) != std::string::npos;
}

}  // namespace

std::optional<Chosen> TextPools::stand_in(std::string_view text) const {
  if (found_.dumps.empty()) return std::nullopt;
  const PoolDump& last = found_.dumps.back();
  Chosen chosen;
  chosen.begin = chosen.again = last.begin;
  chosen.times = 1;
  chosen.message = said("out-of-memory", pool_owner(text, last.begin),
                        last.allocator.empty() ? std::string("a map of a memory pool, without the message above it")
                                               : "BFCAllocator dump for " + last.allocator);
  chosen.message.tag = last.writer;
  return chosen;
}

void TextPools::adopt(Survey& seen) const {
  const auto adopt = [&](ErrorMessage& message) {
    if (message.kind == "host-alloc" && std::any_of(found_.dumps.begin(), found_.dumps.end(),
                                                    [&](const PoolDump& dump) { return names(message, dump); }))
      message.kind = "out-of-memory";
  };
  if (seen.first) adopt(seen.first->message);
  if (seen.first_weak) adopt(seen.first_weak->message);
  for (Chosen& chosen : seen.all) adopt(chosen.message);
}

std::vector<PoolDump> TextPools::take(std::string_view text, ErrorMessage& message, std::size_t at) {
  std::vector<PoolDump> pools;
  if (found_.dumps.empty() || message.words.contains("benign") || !(is_of_pool(message) || message.framework.empty()) ||
      !message.is_allocation())
    return pools;
  PoolDump* own = nullptr;
  // Of this writer; one that is named or of this size before others, and of those the last in front of the message, else the first behind it.
  const auto rank = [&](const PoolDump& dump) {
    const bool before = dump.begin <= at;
    return std::tuple(names(message, dump), is_about(dump, message), before,
                      before ? dump.begin : text.size() - dump.begin);
  };
  for (PoolDump& dump : found_.dumps) {
    if (is_other_writer(dump.writer, message.tag)) continue;
    if (own == nullptr || rank(dump) > rank(*own)) own = &dump;
  }
  not_taken_ = found_.dumps.size();
  if (own == nullptr) return pools;
  // of each other pool what lies nearest
  const auto distance = [&](const PoolDump& dump) {
    return dump.begin > own->begin ? dump.begin - own->begin : own->begin - dump.begin;
  };
  std::vector<PoolDump*> nearest;
  for (PoolDump& dump : found_.dumps) {
    if (is_other_writer(dump.writer, own->writer) || dump.allocator == own->allocator || dump.allocator.empty() ||
        !dump.has_map())
      continue;
    const auto same = std::find_if(nearest.begin(), nearest.end(),
                                   [&](const PoolDump* other) { return other->allocator == dump.allocator; });
    if (same == nearest.end())
      nearest.push_back(&dump);
    else if (distance(dump) < distance(**same))
      *same = &dump;
  }
  nearest.push_back(own);
  not_taken_ -= nearest.size();
  const auto requested = message.numbers.find("requested");
  if (requested == message.numbers.end()) {
    if (own->rounded)
      message.numbers["requested"] = ByteInterval::exactly(*own->rounded);
    else if (own->asked)
      message.numbers["requested"] = *own->asked;
  } else if (!own->asked) {
    own->asked = requested->second;
  }
  for (PoolDump* dump : nearest) pools.push_back(std::move(*dump));
  if (const auto gpu = gpu_of(pools.back().allocator)) message.device = *gpu;
  return pools;
}

}  // namespace faultline
