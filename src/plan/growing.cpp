#include "plan/growing.h"

#include <algorithm>
#include <array>

#include "base/units.h"
#include "facts/cut_loops.h"
#include "fmt/format.h"
#include "plan/rounds.h"
#include "rules/registry.h"

namespace faultline {
namespace {

// What is held at the end of each step.
std::vector<double> live_at_steps(const Facts& facts, std::size_t slot) {
  const std::vector<std::uint32_t>& ends = facts.steps.ends;
  std::vector<double> live(ends.size() + 1, 0.0);
  const auto step_of = [&](std::uint32_t event) {
    return static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), event) - ends.begin());
  };
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (birth.device != facts.usage[slot].device || !facts.uses.is_program(birth.heap)) return;
    const auto bytes = static_cast<double>(facts.lifetimes.held_bytes(id));
    live[step_of(life.born)] += bytes;
    if (life.released != kNever) live[step_of(life.released)] -= bytes;
  });
  for (std::size_t at = 1; at < live.size(); ++at) live[at] += live[at - 1];
  live.pop_back();
  return live;
}

// Over the later half of the steps, what is made once being in the earlier one, and over the middle of them. Steps need not be alike (two optimizers take turns, every tenth is
// followed by an evaluation), so the lowest of a quarter is compared with the lowest of the next.
struct GrowthPerStep {
  double late = 0, middle = 0;
};

GrowthPerStep growth_per_step(const Facts& facts, std::size_t slot) {
  const std::vector<double> live = live_at_steps(facts, slot);
  const std::size_t steps = live.size();
  if (steps < 4) return {};
  std::array<std::size_t, 3> lowest{};  // of the second, third and fourth quarter
  for (std::size_t quarter = 1; quarter < 4; ++quarter) {
    const auto begin = live.begin() + static_cast<std::ptrdiff_t>(quarter * steps / 4),
               end = live.begin() + static_cast<std::ptrdiff_t>((quarter + 1) * steps / 4);
    lowest[quarter - 1] = static_cast<std::size_t>(std::min_element(begin, end) - live.begin());
  }
  const auto between = [&](std::size_t from, std::size_t to) {
    return (live[to] - live[from]) / static_cast<double>(to - from);
  };
  return {between(lowest[1], lowest[2]), between(lowest[0], lowest[1])};
}

// With so much more allocated.
std::uint64_t need_with(const Plan& plan, double more_bytes) {
  const auto whole = static_cast<std::uint64_t>(static_cast<double>(plan.whole_need()) + more_bytes);
  if (plan.pool.framework.empty()) return whole;
  const double pool = static_cast<double>(plan.pool.bytes) + more_bytes;
  return std::max(whole, static_cast<std::uint64_t>(pool / plan.pool.share));
}

// The steps that were not run, where the last two were alike: PyTorch reserves more for what they keep than what it has.
std::optional<RoundsToCome> steps_to_come(const Facts& facts, std::size_t slot, const Plan& plan) {
  const std::vector<std::uint32_t>& ends = facts.steps.ends;
  if (!plan.pool.framework.empty() || plan.run.optimizers > 1 || ends.size() < 3 || ends.size() != plan.run.steps)
    return std::nullopt;
  return RoundsToCome::of(facts.trace, {ends[ends.size() - 3], ends[ends.size() - 2], ends.back()}, slot);
}

}  // namespace

// A program that was stopped while memory grew with every step: about the last step for which there is room, the context counted.
void describe_growth(const std::vector<Finding>& findings, const Facts& facts, std::size_t slot, Plan& plan) {
  if (!plan.gpu || plan.run.stopped.empty()) return;
  double bytes_each = 0, rounds_seen = 0, filling_bytes = 0;
  for (const Finding& finding : findings) {
    if (topic_of(finding) != Topic::kGrowth || finding.device != facts.usage[slot].device ||
        finding.number(kCutLoopRounds))
      continue;
    // what has a limit, and room up to it, grows no further
    if (finding.severity == Severity::kNote && finding.number("limit_bytes")) {
      const std::int64_t limit = *finding.number("limit_bytes"), kept = finding.number("kept_bytes").value_or(0);
      filling_bytes += static_cast<double>(limit > kept ? limit - kept : 0);
      continue;
    }
    // what is made anew, larger each time, is there twice while it is
    const std::int64_t kept_each = finding.number("bytes_per_step").value_or(0);
    const auto rounds = static_cast<double>(finding.number("steps").value_or(0)),
               each = static_cast<double>(finding.number("needed_more_per_step_bytes").value_or(kept_each));
    rounds_seen = std::max(rounds_seen, rounds);
    // a line may be reached several times in a step
    bytes_each += plan.run.steps != 0 ? each * std::max(1.0, rounds / static_cast<double>(plan.run.steps)) : each;
  }
  if (bytes_each <= 0) {  // all that is kept has a limit
    if (filling_bytes > 0) plan.growth.needed_at_end_bytes = need_with(plan, filling_bytes);
    return;
  }
  constexpr double kEven = 1.25;   // growth that differs by less is the same
  constexpr double kFarOff = 2.5;  // what is reserved for what is kept is not so much more
  constexpr std::uint64_t kMostSteps = 1'000'000;
  const GrowthPerStep measured = growth_per_step(facts, slot);
  double slowest = 0;
  if (plan.run.steps != 0 && measured.late > 0) {
    bytes_each = measured.late;
    const auto [less, more] = std::minmax(measured.late, measured.middle);
    if (less > 0 && plan.run.steps >= 16 && more > kEven * less) slowest = less, bytes_each = more;
  }
  const double seen = plan.run.steps != 0 ? static_cast<double>(plan.run.steps) : rounds_seen;
  plan.growth.unit = plan.run.steps != 0 ? "step" : "round";
  const std::uint64_t room_bytes = plan.room_to_grow(plan.gpu->capacity_bytes, plan.whole_need(), plan.pool.share);
  const double spare = std::max(0.0, static_cast<double>(room_bytes) - filling_bytes);
  const std::uint64_t beside = plan.context_bytes + plan.peak.outside_bytes,
                      segment_room = plan.gpu->capacity_bytes - std::min(plan.gpu->capacity_bytes, beside);
  plan.growth.until = static_cast<std::uint64_t>(seen + spare / bytes_each);
  if (slowest > 0) plan.growth.until_latest = static_cast<std::uint64_t>(seen + spare / slowest);
  if (plan.run.steps == 0 &&
      plan.growth.loop.begun != 0) {  // as much in each of the rounds that are to come as in those before
    const auto begun = static_cast<double>(plan.growth.loop.begun), all = static_cast<double>(plan.growth.loop.rounds);
    const double to_come = std::max(0.0, all - begun) / begun * seen * bytes_each;
    if (to_come < spare) plan.growth.needed_at_end_bytes = need_with(plan, to_come + filling_bytes);
    return;
  }
  const std::optional<RoundsToCome> rest = steps_to_come(facts, slot, plan);
  if (rest && slowest == 0) {
    const auto served = static_cast<double>(rest->served_with(
        static_cast<std::uint64_t>(std::max(0.0, static_cast<double>(segment_room) - filling_bytes)), kMostSteps));
    // the last step need not be like those that keep something
    if (served * kFarOff >= spare / bytes_each && served <= spare / bytes_each * kEven)
      plan.growth.until = plan.run.steps + static_cast<std::uint64_t>(served);
  }
  if (plan.run.steps == 0 || plan.growth.loop.steps == 0 || plan.growth.loop.steps > plan.growth.until) return;
  const double to_come = std::max(0.0, static_cast<double>(plan.growth.loop.steps) - seen) * bytes_each;
  plan.growth.needed_at_end_bytes = need_with(plan, to_come + filling_bytes);
  if (rest && slowest == 0) {
    const std::uint64_t segments =
        rest->segment_bytes_after(plan.growth.loop.steps - std::min(plan.growth.loop.steps, plan.run.steps));
    const std::uint64_t whole = plan.context_bytes + plan.peak.outside_bytes + segments;
    if (whole > plan.growth.needed_at_end_bytes && whole <= plan.gpu->capacity_bytes)
      plan.growth.needed_at_end_bytes = whole + static_cast<std::uint64_t>(filling_bytes);
  }
}

// A loop that was cut short while memory rose in it: what it takes to its end, by the model of the allocator.
void describe_cut_loops(const ProcessSummary& main, const PlannedRun& run, Plan& plan) {
  if (plan.run.stopped.empty() || main.rising.empty() ||
      (plan.growth.until != 0 && plan.growth.needed_at_end_bytes == 0))
    return;
  const auto has_limit = [](const Finding& finding) {
    return finding.number(kCutLoopRounds) && finding.number("limit_bytes") && finding.severity == Severity::kNote;
  };
  if (std::any_of(run.judgement.findings.begin(), run.judgement.findings.end(), has_limit)) return;
  const std::uint64_t room_bytes = plan.gpu ? run.needs.room_on(plan.gpu->capacity_bytes) : 0;
  const std::optional<LoopGrowth> growth = growth_of_cut_loops(run.trace, main.rising, run.needs.slot, room_bytes);
  if (!growth || !growth->matters(run.needs)) return;
  plan.growth.loop = {growth->loop.where, growth->loop.rounds, 0, growth->loop.begun};
  plan.growth.unit = "round";
  plan.growth.until = growth->last_served;
  plan.growth.until_latest = 0;
  plan.growth.needed_at_end_bytes =
      growth->segment_bytes_at_end == 0
          ? 0
          : std::max(run.needs.most_needed_bytes(), run.needs.needed_with(growth->segment_bytes_at_end));
}

// What is still to come of what has a limit.
void describe_limits(const std::vector<Finding>& findings, const Facts& facts, std::size_t slot, Plan& plan) {
  for (const Finding& finding : findings) {
    if (topic_of(finding) != Topic::kGrowth || finding.device != facts.usage[slot].device || plan.run.stopped.empty())
      continue;
    const std::int64_t limit = finding.number("limit_bytes").value_or(0),
                       kept = finding.number("kept_bytes").value_or(0);
    if (limit <= kept || finding.severity != Severity::kNote) continue;
    plan.notes.push_back({NoteKind::kMode,
                          fmt::format("what is kept here has a limit and was not full: full it takes about {} more, "
                                      "which fit beside what is needed",
                                      format_bytes(static_cast<std::uint64_t>(limit - kept))),
                          fmt::format("{}:{}", finding.location.file, finding.location.line), 1});
  }
}

}  // namespace faultline
