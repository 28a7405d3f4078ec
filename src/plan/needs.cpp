#include "plan/needs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/units.h"
#include "facts/cut_loops.h"
#include "facts/facts.h"
#include "facts/growth.h"
#include "facts/usage.h"
#include "fmt/format.h"
#include "models/torch/driver.h"
#include "models/torch/segment_sizes.h"
#include "plan/rounds.h"
#include "sources/input.h"
#include "sources/statements.h"
#include "trace/framework.h"

namespace faultline {
namespace {

constexpr std::uint64_t kResolution = kTorchSmallSegment;  // all segments are multiples of it

// Of libraries that take memory from the driver (NCCL), by figures of a catalogue.
std::uint64_t outside_of(const Trace& trace, std::size_t slot) {
  const std::uint16_t index = trace.devices[slot].index;
  const auto said = trace.properties.find(index == 0 ? std::string("dry-run.outside_bytes")
                                                     : fmt::format("dry-run.outside_bytes.{}", index));
  if (said == trace.properties.end()) return 0;
  const Result<std::uint64_t> bytes = parse_bytes(said->second);
  return bytes ? *bytes : 0;
}

std::uint64_t context_of(const Trace& trace, std::size_t slot) {
  return read_statements(trace).planned_context_of(trace.devices[slot].index).value_or(0);
}

// The pool of TensorFlow or JAX, where the device has one.
std::optional<Framework> pool_of(const Trace& trace, std::size_t slot) {
  const bool has_pool = std::any_of(trace.heaps.begin(), trace.heaps.end(), [&](const Heap& heap) {
    return heap.kind == HeapKind::kBfc && heap.device == trace.devices[slot].index;
  });
  if (!has_pool) return std::nullopt;
  return pools_framework(trace) == Framework::kJax ? Framework::kJax : Framework::kTensorFlow;
}

double share_in(std::string_view text, double otherwise) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  return error == std::errc{} && share > 0 && share <= 1 ? share : otherwise;
}

bool is_share(std::string_view name) {
  return name == "XLA_CLIENT_MEM_FRACTION" || name == "XLA_PYTHON_CLIENT_MEM_FRACTION";
}

// With a pool of this limit, all that was served is served again; of what failed, `caught` may fail again.
bool pool_serves(const Trace& trace, std::size_t slot, const SettingChanges& changes, std::uint64_t limit_bytes,
                 std::uint64_t caught, EstimateEnd end) {
  ReplayOptions options;
  options.estimates = end;
  options.device = trace.devices[slot].index;
  for (const auto& change : changes) {
    if (!is_share(change.first)) options.changes.push_back(change);
  }
  options.changes.emplace_back("memory_limit", std::to_string(limit_bytes / kMiB));
  options.segment_budget_bytes = kBfcNoLimit;
  const Result<ReplayResult> result = replay(trace, options);
  if (!result) return false;
  const std::uint64_t failed_again = result->recorded_failures - result->recorded_failures_served;
  return result->failure_count == failed_again && failed_again <= caught;
}

std::optional<std::uint64_t> least_pool_bytes(const Trace& trace, std::size_t slot, const SettingChanges& changes,
                                              std::uint64_t allocated_bytes, std::uint64_t caught,
                                              EstimateEnd end = EstimateEnd::kLikely) {
  std::uint64_t too_little = 0, enough = (allocated_bytes / kResolution + 1) * kResolution;
  for (int tries = 0; !pool_serves(trace, slot, changes, enough, caught, end); ++tries) {
    if (tries == 6) return std::nullopt;
    too_little = enough;
    enough += (enough / 4 / kResolution + 1) * kResolution;
  }
  while (enough - too_little > kResolution) {
    const std::uint64_t middle = too_little + (enough - too_little) / 2 / kResolution * kResolution;
    (pool_serves(trace, slot, changes, middle, caught, end) ? enough : too_little) = middle;
  }
  return enough;
}

std::uint64_t failures_in(const Trace& trace) {
  return static_cast<std::uint64_t>(std::count_if(trace.events.begin(), trace.events.end(), [](const Event& event) {
    return event.kind == EventKind::kAllocFailed;
  }));
}

// Did requests fail that the program got over? All were, where it did not die of one, else all but the last.
bool caught_failures(const Trace& trace, bool died) {
  std::vector<std::uint32_t> failed;
  for (std::uint32_t at = 0; at < trace.events.size(); ++at) {
    if (trace.events[at].kind == EventKind::kAllocFailed) failed.push_back(at);
  }
  if (died && !failed.empty()) failed.pop_back();
  return std::any_of(failed.begin(), failed.end(), [&](std::uint32_t at) { return !is_served_after_all(trace, at); });
}

// What lines still keep of each round.
void add_growth(const Trace& trace, Needs& needs) {
  if (trace.events.empty()) return;
  const Facts facts(trace, {});
  const DeviceUsage& usage = facts.usage[needs.slot];
  const auto last = static_cast<std::uint32_t>(trace.events.size() - 1);
  for (const Growth& growth :
       find_growth(trace, facts.lifetimes, facts.stacks, facts.steps, facts.categories[needs.slot], usage.device, last,
                   usage.peak_allocated.allocated)) {
    if (growth.round_kind == kRoundsOfCutLoop || growth.rounds_by == RoundsBy::kUnknown || growth.let_go_later ||
        growth.rounds == 0)
      continue;
    needs.grows_bytes += growth.bytes_per_round;
    needs.rounds = std::max(needs.rounds, growth.rounds);
    needs.grows_by_steps = growth.rounds_by == RoundsBy::kSteps;
  }
}

// What a loop that was cut short takes to its end; where that is too much, or not known, memory grows.
void add_cut_loops(const Trace& trace, const ProcessSummary& run, std::uint64_t capacity_bytes, Needs& needs) {
  const std::optional<LoopGrowth> growth =
      growth_of_cut_loops(trace, run.rising, needs.slot, needs.room_on(capacity_bytes));
  if (!growth || !growth->matters(needs)) return;
  if (growth->loop.rounds == 0 || !growth->is_served()) {
    needs.grows_bytes = std::max<std::uint64_t>(1, growth->bytes_each);
    needs.grows_by_steps = false;
    needs.last_round = growth->last_served;
    return;
  }
  needs.segment_bytes = std::max(needs.segment_bytes, growth->segment_bytes_at_end);
  needs.most.segment_bytes = std::max(needs.most.segment_bytes, growth->segment_bytes_at_end);
}

std::size_t slot_of(const Trace& trace, std::uint16_t index) {
  const auto found = std::find_if(trace.devices.begin(), trace.devices.end(),
                                  [&](const Device& device) { return device.index == index; });
  return found == trace.devices.end() ? 0 : static_cast<std::size_t>(found - trace.devices.begin());
}

std::size_t deciding_device(const Trace& trace, const std::vector<DeviceUsage>& usages) {
  if (usages.size() < 2) return 0;
  const auto failed = std::find_if(trace.events.rbegin(), trace.events.rend(),
                                   [](const Event& event) { return event.kind == EventKind::kAllocFailed; });
  if (failed != trace.events.rend()) return slot_of(trace, failed->device);
  const auto share = [&](const DeviceUsage& usage) {
    const std::size_t slot = slot_of(trace, usage.device);
    const std::uint64_t reserved = usage.peak_reserved.reserved;
    const auto taken = static_cast<double>(reserved + (reserved != 0 ? context_of(trace, slot) : 0));
    return taken / static_cast<double>(std::max<std::uint64_t>(1, trace.devices[slot].capacity_bytes));
  };
  const auto fullest = std::max_element(
      usages.begin(), usages.end(), [&](const DeviceUsage& a, const DeviceUsage& b) { return share(a) < share(b); });
  return slot_of(trace, fullest->device);
}

void add_pool(const Trace& trace, std::uint64_t allocated_bytes, Needs& needs) {
  const auto told = trace.properties.find("dry-run.pool_share");
  if (told != trace.properties.end()) needs.share = share_in(told->second, 1);
  const auto grows = trace.properties.find("bfc.GPU_0_bfc.growth");
  needs.preallocates = grows != trace.properties.end() && grows->second == "false";
  needs.allocated_bytes = allocated_bytes;
  const std::uint64_t failures = failures_in(trace);
  needs.caught = failures - (needs.fits || failures == 0 ? 0 : 1);
  needs.segment_bytes =
      least_pool_bytes(trace, needs.slot, {}, allocated_bytes, needs.caught).value_or(needs.reserved_bytes);
  // The program got through on this device, which is then enough: limits are rounded.
  const std::uint64_t capacity_bytes = trace.devices[needs.slot].capacity_bytes;
  if (needs.fits && capacity_bytes != 0 && needs.needed_bytes() > capacity_bytes)
    needs.segment_bytes = std::min(static_cast<std::uint64_t>(static_cast<double>(capacity_bytes) * needs.share),
                                   capacity_bytes - std::min(capacity_bytes, needs.beside_bytes()));
}

// With room for all: how much is taken.
std::optional<NeedsEnd> taken_at(EstimateEnd end, const SettingChanges& changes, const Trace& trace,
                                 const Needs& needs) {
  ReplayOptions options;
  options.estimates = end;
  options.device = trace.devices[needs.slot].index;
  for (const auto& change : changes) {
    if (!needs.pool || !is_share(change.first)) options.changes.push_back(change);
  }
  if (needs.pool) options.changes.emplace_back("memory_limit", std::to_string(kBfcNoLimit / kMiB / 2));
  options.segment_budget_bytes = needs.pool ? kBfcNoLimit : kNoBudget;
  const Result<ReplayResult> result = replay(trace, options);
  if (!result) return std::nullopt;
  return NeedsEnd{0, result->peak_allocated_bytes, result->peak_reserved_bytes};
}

NeedsEnd end_of(EstimateEnd end, const SettingChanges& changes, const Trace& trace, const Needs& needs,
                const NeedsEnd& likely) {
  NeedsEnd found = taken_at(end, changes, trace, needs).value_or(likely);
  const std::optional<std::uint64_t> least =
      needs.pool ? least_pool_bytes(trace, needs.slot, changes, found.allocated_bytes, needs.caught, end)
      : caught_failures(trace, !needs.fits)
          ? std::nullopt
          : least_segment_bytes(trace, needs.slot, changes, found.reserved_bytes, end);
  // A replay serves what the program caught: then by how much more, or less, is taken.
  found.segment_bytes = least ? *least
                              : needs.segment_bytes + found.reserved_bytes -
                                    std::min(needs.segment_bytes + found.reserved_bytes, likely.reserved_bytes);
  return found;
}

}  // namespace

bool is_served(const Trace& trace, std::size_t slot, const SettingChanges& changes, std::uint64_t segment_bytes,
               EstimateEnd end) {
  ReplayOptions options;
  options.estimates = end;
  options.device = trace.devices[slot].index;
  options.changes = changes;
  options.segment_budget_bytes = segment_bytes;
  const Result<ReplayResult> result = replay(trace, options);
  return result && result->failure_count == 0;
}

std::optional<std::uint64_t> least_segment_bytes(const Trace& trace, std::size_t slot, const SettingChanges& changes,
                                                 std::uint64_t reserved_bytes, EstimateEnd end) {
  std::uint64_t enough = (reserved_bytes + kResolution - 1) / kResolution * kResolution, too_little = 0;
  if (!is_served(trace, slot, changes, enough, end)) {
    too_little = enough;
    enough += enough / 4 + 64 * kMiB;
    if (!is_served(trace, slot, changes, enough, end)) return std::nullopt;
  }
  while (enough - too_little > kResolution) {
    const std::uint64_t middle = too_little + (enough - too_little) / 2 / kResolution * kResolution;
    (is_served(trace, slot, changes, middle, end) ? enough : too_little) = middle;
  }
  return enough;
}

void add_ends(const SettingChanges& changes, const Trace& trace, Needs& needs) {
  if (!has_estimates(trace, trace.devices[needs.slot].index)) return;
  const NeedsEnd likely = taken_at(EstimateEnd::kLikely, changes, trace, needs)
                              .value_or(NeedsEnd{0, needs.allocated_bytes, needs.reserved_bytes});
  needs.is_estimated = true;
  needs.least = end_of(EstimateEnd::kLeast, changes, trace, needs, likely);
  needs.most = end_of(EstimateEnd::kMost, changes, trace, needs, likely);
  // an allocator may take less for larger requests, which are split otherwise
  needs.least.allocated_bytes = std::min(needs.least.allocated_bytes, needs.allocated_bytes);
  needs.most.allocated_bytes = std::max(needs.most.allocated_bytes, needs.allocated_bytes);
  needs.least.reserved_bytes = std::min(needs.least.reserved_bytes, needs.reserved_bytes);
  needs.most.reserved_bytes = std::max(needs.most.reserved_bytes, needs.reserved_bytes);
  needs.least.segment_bytes = std::min(needs.least.segment_bytes, needs.segment_bytes);
  needs.most.segment_bytes = std::max(needs.most.segment_bytes, needs.segment_bytes);
  const std::uint64_t capacity_bytes = trace.devices[needs.slot].capacity_bytes;
  if (capacity_bytes == 0 || needs.most_needed_bytes() <= capacity_bytes) return;
  // what is enough need not be the least that is: blocks lie otherwise
  if (!needs.pool && needs.segment_bytes <= capacity_bytes - std::min(capacity_bytes, needs.beside_bytes()) &&
      is_served(trace, needs.slot, changes, capacity_bytes - needs.beside_bytes(), EstimateEnd::kMost))
    needs.most.segment_bytes = capacity_bytes - needs.beside_bytes();
  else
    needs.fits = false;
}

std::uint64_t Needs::needed_with(std::uint64_t segments) const {
  const auto whole_of = [](std::uint64_t part_bytes, double part) {
    return static_cast<std::uint64_t>(static_cast<double>(part_bytes) / part);
  };
  const std::uint64_t needed = std::max(beside_bytes() + segments, whole_of(segments, share));
  if (!preallocates || outside_bytes == 0 || share >= 1) return needed;
  return std::max(needed, whole_of(beside_bytes(), 1 - share));
}

std::uint64_t Needs::room_on(std::uint64_t capacity_bytes) const {
  return std::min(static_cast<std::uint64_t>(static_cast<double>(capacity_bytes) * share),
                  capacity_bytes - std::min(capacity_bytes, beside_bytes()));
}

Needs needs_of(const Trace& trace, bool fits) {
  const std::vector<DeviceUsage> usages = measure_usage(trace, Lifetimes(trace, {}), HeapUses(trace));
  const std::size_t slot = deciding_device(trace, usages);
  const DeviceUsage& usage = usages[slot];
  Needs needs;
  needs.slot = slot;
  needs.context_bytes = context_of(trace, slot);
  needs.outside_bytes = usage.peak_outside_bytes + outside_of(trace, slot);
  needs.reserved_bytes = usage.peak_reserved.reserved;
  needs.segment_bytes = needs.reserved_bytes;
  needs.fits = fits;
  needs.pool = pool_of(trace, slot);
  if (needs.pool) {
    add_pool(trace, usage.peak_allocated.allocated, needs);
    add_ends({}, trace, needs);
    return needs;
  }
  if (!caught_failures(trace, !fits))
    needs.segment_bytes = least_segment_bytes(trace, slot, {}, needs.reserved_bytes)
                              .value_or(needs.reserved_bytes);  // a replay would serve what was caught, too
  const std::uint64_t capacity_bytes = trace.devices[slot].capacity_bytes;
  if (fits && capacity_bytes > needs.beside_bytes())
    needs.segment_bytes = std::min(needs.segment_bytes, capacity_bytes - needs.beside_bytes());
  needs.allocated_bytes = usage.peak_allocated.allocated;
  add_ends({}, trace, needs);
  return needs;
}

Result<Needs> needs_of(const DryRunResult& rerun, const Plan& as_is, std::uint64_t many) {
  const ProcessSummary* main = rerun.main();
  if (main == nullptr && rerun.log.empty() && rerun.seconds == 0) return Error{"it could not be started", {}, {}};
  if (rerun.interrupted) return Error{"a signal stopped the plan while it ran", {}, {}};
  if (rerun.out_of_time) return Error{"it was not finished in the time that a run has", {}, {}};
  if (main == nullptr || !main->ended_in_order || main->trace.empty())
    return Error{
        "the program did not run to its end" + (rerun.log.empty() ? std::string() : " (see " + rerun.log + ")"),
        {},
        {}};
  const Result<Trace> trace = load(main->trace);
  std::error_code ignored;
  std::filesystem::remove(main->trace, ignored);
  if (main->exception) {
    return Error{fmt::format("the program then fails with {}: {}", main->exception->type,
                             main->exception->message.substr(0, main->exception->message.find('\n'))),
                 {},
                 {}};
  }
  for (const ProcessSummary& process : rerun.processes) {
    if (!process.unplanned.empty()) return Error{"something could then not be planned: " + process.unplanned, {}, {}};
  }
  if (main->stopped.empty() && rerun.status != 0 && rerun.status < 128)
    return Error{fmt::format("the program then ends with status {}", rerun.status), {}, {}};
  // A smaller batch makes more rounds of the same data: more steps than the program as it is made are far enough, and the phases behind its loop are asked for below.
  if (!main->stopped.empty() && main->steps * many < as_is.steps_to_repeat())
    return Error{fmt::format("the dry run of it was stopped {}, before it had come as far as the program as it is",
                             main->stopped),
                 {},
                 {}};
  // steps that were seen are counted above; without any it must at least be past what failed
  if (as_is.need.is_least && as_is.run.steps == 0 && main->stopped_by == StoppedBy::kSeconds &&
      main->operations < as_is.run.operations)
    return Error{fmt::format("the dry run of it was stopped {}, before the request that fails in the program as it is",
                             main->stopped),
                 {},
                 {}};
  for (const PlanPhase& phase : as_is.run.phases) {
    // Inference is named so by what did not come later; a run that leaves no phases at all is none of ours.
    if (phase.name == "inference" || main->phases.empty()) continue;
    if (std::find(main->phases.begin(), main->phases.end(), phase.name) == main->phases.end())
      return Error{"the dry run of it did not come to a phase of the program as it is: " + phase.name, {}, {}};
  }
  if (!trace || trace->devices.empty()) return Error{"what the program left could not be read", {}, {}};
  Needs needs = needs_of(*trace, main->failures == 0);
  if (as_is.growth.is_there) add_growth(*trace, needs);
  if (!main->stopped.empty() && as_is.gpu) add_cut_loops(*trace, *main, as_is.gpu->capacity_bytes, needs);
  return needs;
}

std::uint64_t steps_of_trial(const Plan& as_is, std::uint64_t many) {
  constexpr std::uint64_t kLeast = 3, kLeastOfSeveral = 2;
  if (as_is.run.steps == 0) return as_is.steps_to_repeat();
  const std::uint64_t steps = std::max(kLeast, as_is.steps_to_repeat());
  // what grows does so with the batches, and shows in as many steps as before
  return many <= 1 || as_is.growth.is_there ? steps : std::max(kLeastOfSeveral, (steps + many - 1) / many);
}

std::optional<Needs> needs_under(const SettingChanges& changes, const Trace& trace, const Needs& as_run) {
  const std::optional<std::uint64_t> least =
      as_run.pool ? least_pool_bytes(trace, as_run.slot, changes, as_run.allocated_bytes, as_run.caught)
                  : least_segment_bytes(trace, as_run.slot, changes, as_run.reserved_bytes);
  if (!least) return std::nullopt;
  Needs needs = as_run;
  for (const auto& [name, value] : changes) {
    if (is_share(name)) needs.share = share_in(value, needs.share);
    if (name == "XLA_PYTHON_CLIENT_PREALLOCATE") needs.preallocates = value == "true";
  }
  needs.segment_bytes = *least;
  needs.is_estimated = false;
  needs.fits = needs.needed_bytes() <= trace.devices[as_run.slot].capacity_bytes;
  return needs;
}

std::vector<PlanFit> fits_on_catalogue(const Needs& needs) {
  std::vector<PlanFit> fits;
  for (const GpuEntry& entry : gpu_catalogue()) {
    Needs there = needs;
    there.context_bytes = entry.gpu.context_bytes;
    if (needs.pool == Framework::kTensorFlow)
      there.context_bytes = tensorflow_context_bytes({entry.gpu.capacity_bytes, entry.gpu.compute_major});
    const bool fits_at_most = there.most_needed_bytes() <= entry.gpu.capacity_bytes;
    fits.push_back({plan_gpu(entry.gpu), fits_at_most,
                    !fits_at_most && there.is_estimated && there.least_needed_bytes() <= entry.gpu.capacity_bytes});
  }
  std::stable_sort(fits.begin(), fits.end(),
                   [](const PlanFit& a, const PlanFit& b) { return a.gpu.capacity_bytes < b.gpu.capacity_bytes; });
  return fits;
}

}  // namespace faultline
