#include "facts/growth_in_place.h"

#include <algorithm>
#include <cmath>

#include "facts/growth_lines.h"
#include "facts/heap_uses.h"

namespace faultline {
namespace {

struct Line {
  std::uint64_t count = 0;
  std::size_t last_round = 0;
  std::uint64_t first_bytes = 0;
  std::uint64_t last_bytes = 0;
  std::uint64_t least_rise = ~std::uint64_t{0};
  std::uint32_t first_event = 0;
  AllocationId last;
  bool fits = true;  // one a round, alive when the round ends, larger than the one before
};

}  // namespace

std::vector<Growth> find_growth_in_place(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks,
                                         std::uint16_t device, const std::vector<std::uint32_t>& marks,
                                         std::uint64_t peak_bytes) {
  const HeapUses uses(trace);
  const std::size_t rounds = marks.size() - kWarmUpSteps;
  std::vector<Line> lines(trace.stacks.size());
  // in the earlier half of the rounds and in the later
  std::vector<std::pair<std::uint64_t, std::uint64_t>> made(trace.stacks.size());
  lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (birth.device != device || birth.has(kPreexisting) || !uses.is_program(birth.heap) ||
        life.born <= marks[kWarmUpSteps - 1] || life.born > marks.back())
      return;
    const auto round =
        static_cast<std::size_t>(std::lower_bound(marks.begin(), marks.end(), life.born) - marks.begin()) -
        kWarmUpSteps;
    if (round < rounds / 2) made[birth.stack.index()].first += birth.size_bytes;
    if (round >= rounds - rounds / 2) made[birth.stack.index()].second += birth.size_bytes;
    Line& line = lines[birth.stack.index()];
    if (line.count == 0) line.first_bytes = birth.size_bytes, line.first_event = life.born;
    line.fits = line.fits && round == line.count && life.released > marks[round + kWarmUpSteps] &&
                (line.count == 0 || birth.size_bytes > line.last_bytes);
    if (line.fits && line.count != 0) line.least_rise = std::min(line.least_rise, birth.size_bytes - line.last_bytes);
    line.last_bytes = birth.size_bytes;
    line.last = id;
    ++line.count;
  });
  std::vector<Growth> found;
  std::uint64_t earlier = 0, later = 0;  // of everything else
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const Line& line = lines[index];
    const StackId stack(static_cast<std::uint32_t>(index));
    if (line.fits && line.count == rounds && stacks.program(stack).value != 0) {
      if (line.last_bytes < least_growth(peak_bytes)) continue;
      Growth growth;
      growth.program = stacks.program(stack);
      growth.rounds = rounds;
      growth.stacks = {{stack, line.last, 1, line.last_bytes}};
      growth.kept_bytes = line.last_bytes;
      growth.kept_count = 1;
      growth.bytes_per_round = (line.last_bytes - line.first_bytes) / (rounds - 1);
      growth.least_bytes = line.least_rise;
      growth.first_event = line.first_event;
      growth.in_place = true;
      found.push_back(std::move(growth));
      continue;
    }
    earlier += made[index].first;
    later += made[index].second;
  }
  // Longer sequences make everything larger: those are no leak.
  if (later > earlier + earlier / 100) return {};
  return found;
}

namespace {

struct Joined {
  std::uint64_t count = 0, rises = 0, first_bytes = 0, last_bytes = 0, least_rise = ~std::uint64_t{0};
  std::uint64_t kept_count = 0, kept_bytes = 0;
  std::uint32_t first_event = 0, last_event = 0, last_released = 0;
  AllocationId last;
  bool fits = true;  // never smaller than the one before, which is there until this one is
};

}  // namespace

std::vector<Growth> find_growth_by_joining(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks,
                                           std::uint16_t device, std::uint32_t end, std::uint64_t peak_bytes) {
  constexpr std::uint64_t kLeastRises = 16;
  const HeapUses uses(trace);
  std::vector<Joined> lines(trace.stacks.size());
  lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (birth.device != device || birth.has(kPreexisting) || !uses.is_program(birth.heap) || life.born > end) return;
    Joined& line = lines[birth.stack.index()];
    const Tensor& tensor = trace.tensors.at(TensorId(birth.extra));
    line.fits = line.fits && trace.strings.at(tensor.op) == "aten::cat" && birth.size_bytes >= line.last_bytes &&
                (line.count == 0 || line.last_released > life.born);
    if (!line.fits) return;
    if (line.count == 0) line.first_bytes = birth.size_bytes, line.first_event = life.born;
    if (line.count != 0 && birth.size_bytes > line.last_bytes) {
      ++line.rises;
      line.least_rise = std::min(line.least_rise, birth.size_bytes - line.last_bytes);
    }
    ++line.count;
    line.last_bytes = birth.size_bytes;
    line.last_event = life.born;
    line.last_released = life.released;
    line.last = id;
    if (life.released <= end) return;
    ++line.kept_count;
    line.kept_bytes += birth.size_bytes;
  });
  std::vector<Growth> found;
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const Joined& line = lines[index];
    const StackId stack(static_cast<std::uint32_t>(index));
    const bool goes_on = line.last_event >= line.first_event + (end - line.first_event) / 4 * 3;
    // of each layer's there is one, or in a round that is not over two
    if (!line.fits || line.rises < kLeastRises || !goes_on || line.kept_count == 0 ||
        line.kept_count * kLeastRises > 2 * (line.count + kLeastRises) || line.kept_bytes < least_growth(peak_bytes) ||
        stacks.program(stack).value == 0)
      continue;
    Growth growth;
    growth.program = stacks.program(stack);
    growth.rounds = line.rises + 1;
    growth.rounds_by = RoundsBy::kSizes;
    growth.round_kind = "rounds";
    growth.stacks = {{stack, line.last, line.kept_count, line.kept_bytes}};
    growth.kept_bytes = line.kept_bytes;
    growth.kept_count = line.kept_count;
    growth.bytes_per_round = line.kept_count * (line.last_bytes - line.first_bytes) / line.rises;
    growth.least_bytes = line.kept_count * line.least_rise;
    growth.first_event = line.first_event;
    growth.in_place = true;
    found.push_back(std::move(growth));
  }
  return found;
}

}  // namespace faultline
