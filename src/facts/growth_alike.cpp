#include "facts/growth_alike.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "facts/from_host.h"

namespace faultline {

AlikeRounds alike_rounds(const Trace& trace, const HeapUses& uses, const Lifetimes& lifetimes, std::uint16_t device,
                         StackId kept, std::uint32_t first, std::uint32_t last, std::uint32_t end) {
  constexpr std::uint64_t kNothing = 0;
  AlikeRounds found;
  HashMap<std::uint64_t, std::uint64_t> times;    // by what a round made
  HashMap<std::uint64_t, std::uint64_t> seen_in;  // a line and a size: the last round that made it
  std::uint64_t made = kNothing, keeping_others = 0, last_keeping = 0;
  std::uint64_t count = 0, last_count = 0, rises = 0;  // of what a round makes
  for (std::uint32_t index = first; index <= last; ++index) {
    const Event& event = trace.events[index];
    if (event.kind != EventKind::kAlloc || event.device != device || event.has(kFailed) || !uses.is_program(event.heap))
      continue;
    if (event.allocation.value == 0) return {};
    const bool stays = lifetimes.of(event.allocation).released > end;
    if (event.stack == kept && stays) {
      if (found.rounds != 0) ++times[made];
      rises += found.rounds++ > 1 && count > last_count;
      made = kNothing;
      last_count = std::exchange(count, 0);
      continue;
    }
    if (found.rounds == 0) continue;
    found.load |= is_from_host(trace, event);
    if (stays && last_keeping != found.rounds) last_keeping = found.rounds, ++keeping_others;
    ++count;
    const std::uint64_t what = hash_onto(hash_number(event.stack.value), event.size_bytes);
    if (std::uint64_t& round = seen_in[what]; round != found.rounds) made += what, round = found.rounds;
  }
  // Of the last round the variables are still there, of one of the first what is made once (a library's workspace).
  found.keep_others = keeping_others > 2 && keeping_others * 10 > found.rounds;
  std::uint64_t most = 0;
  for (const auto& [what, often] : times) {
    if (what != kNothing) most = std::max(most, often);
  }
  // What makes more in every round goes over all that was kept: it is needed.
  found.alike = found.rounds > 1 && most * 10 >= (found.rounds - 1) * 9 && rises * 10 < (found.rounds - 1) * 8;
  return found;
}

}  // namespace faultline
