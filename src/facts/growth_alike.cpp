#include "facts/growth_alike.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace faultline {

bool rounds_are_alike(const Trace& trace, const HeapUses& uses, const Lifetimes& lifetimes, std::uint16_t device,
                      StackId kept, std::uint32_t first, std::uint32_t last, std::uint32_t end) {
  constexpr std::uint64_t kNothing = 0, kFactor = 0x9e3779b97f4a7c15;
  HashMap<std::uint64_t, std::uint64_t> times;  // by what a round made
  std::uint64_t rounds = 0, made = kNothing, rounds_since_other = 0;
  bool keeps_other = false;
  for (std::uint32_t index = first + 1; index <= last; ++index) {
    const Event& event = trace.events[index];
    if (event.kind != EventKind::kAlloc || event.device != device || event.has(kFailed) || !uses.is_program(event.heap))
      continue;
    if (event.stack == kept) {
      // The last round's variables are still there; what an earlier one left is kept too.
      if (keeps_other && ++rounds_since_other > 1) return false;
      ++rounds;
      ++times[std::exchange(made, kNothing)];
      continue;
    }
    const Tensor& tensor = trace.tensors.at(TensorId(event.extra));
    const bool is_loaded =
        trace.strings.at(tensor.op) == "aten::_to_copy" && trace.strings.at(tensor.operands).ends_with("@cpu");
    if (is_loaded || event.allocation.value == 0) return false;
    keeps_other |= lifetimes.of(event.allocation).released > end;
    made = (made * kFactor + event.stack.value + 1) * kFactor + event.size_bytes;
  }
  std::uint64_t most = 0;
  for (const auto& [what, count] : times) {
    if (what != kNothing) most = std::max(most, count);
  }
  return rounds != 0 && most * 10 >= rounds * 9;
}

}  // namespace faultline
