#include "plan/leaks.h"

#include <algorithm>

#include "base/units.h"
#include "facts/cut_loops.h"
#include "fmt/format.h"
#include "plan/rounds.h"
#include "rules/registry.h"

namespace faultline {
namespace {

bool is_leak_of(const Plan& plan, const Finding& finding) {
  return topic_of(finding) == Topic::kGrowth && finding.device == plan.device;
}

// What all that has no limit takes more in each step, or round.
struct Pace {
  double bytes_each = 0, seen = 0;
};

Pace pace_of(const Plan& plan, const std::vector<Finding>& findings) {
  Pace pace;
  pace.seen = static_cast<double>(plan.run.steps);
  for (const Finding& finding : findings) {
    if (!is_leak_of(plan, finding) || finding.number("limit_bytes") || finding.number(kCutLoopRounds)) continue;
    const auto rounds = static_cast<double>(finding.number("steps").value_or(0));
    const auto each = static_cast<double>(finding.number("bytes_per_step").value_or(0));
    if (plan.run.steps == 0) pace.seen = std::max(pace.seen, rounds);
    // a line may be reached several times in a step
    pace.bytes_each += plan.run.steps == 0 ? each : each * std::max(1.0, rounds / static_cast<double>(plan.run.steps));
  }
  return pace;
}

std::uint64_t full_at(const Plan& plan, const Pace& pace, const PlanGpu& gpu) {
  if (plan.gpu && plan.growth.until != 0) return plan.growth.until;
  const std::uint64_t needed = plan.whole_need() - std::min(plan.whole_need(), plan.context_bytes) + gpu.context_bytes;
  const auto spare = static_cast<double>(gpu.capacity_bytes > needed ? gpu.capacity_bytes - needed : 0);
  return static_cast<std::uint64_t>(pace.seen + spare * plan.pool.share / pace.bytes_each);
}

// The named GPU, else the smallest that have room, each a good deal larger than the one before.
std::vector<PlanGpu> gpus_to_tell(const Plan& plan) {
  constexpr std::size_t kMost = 3;
  if (plan.gpu) return {*plan.gpu};
  std::vector<PlanGpu> gpus;
  for (const PlanFit& fit : plan.fits) {
    if (gpus.size() == kMost) break;
    if (fit.fits && (gpus.empty() || fit.gpu.capacity_bytes / 5 > gpus.back().capacity_bytes / 4))
      gpus.push_back(fit.gpu);
  }
  return gpus;
}

// " At this rate Tesla T4 (14.56 GiB) would be full at about step 1,524, NVIDIA L4 (22.03 GiB) at about 2,390."
std::string when_full(const Plan& plan, const Pace& pace) {
  if (pace.bytes_each < 1) return {};
  std::string text;
  for (const PlanGpu& gpu : gpus_to_tell(plan)) {
    const std::string name = plan.gpu ? gpu.name : fmt::format("{} ({})", gpu.name, format_bytes(gpu.capacity_bytes));
    text += text.empty()
                ? fmt::format(" At this rate {} would be full at about {} ", name, plan.run.steps ? "step" : "round")
                : fmt::format(", {} at about ", name);
    text += format_count(full_at(plan, pace, gpu));
  }
  return text.empty() ? text : text + ".";
}

std::string own_loop_ends(const Plan& plan) {
  return fmt::format(
      " The program's own loop ({}, {} rounds) ends before that fills the GPU: {}when about {} of the {} are needed.",
      plan.growth.loop.where, format_count(plan.growth.loop.rounds),
      plan.growth.loop.steps == 0 ? "" : "at about step " + format_count(plan.growth.loop.steps) + ", ",
      format_bytes(plan.growth.needed_at_end_bytes), format_bytes(plan.gpu->capacity_bytes));
}

std::string cut_short(const Plan& plan) {
  return fmt::format(
      " The dry run cut the loop short ({}{}); the rounds that it left out come from the model of the allocator.",
      plan.growth.loop.where,
      plan.growth.loop.rounds == 0 ? "" : ", " + format_count(plan.growth.loop.rounds) + " rounds");
}

}  // namespace

void weigh_leaks(const Plan& plan, std::vector<Finding>& findings) {
  constexpr std::uint64_t kSmall = 20;  // of the GPU's parts
  const Pace pace = pace_of(plan, findings);
  const bool loop_ends =
      plan.growth.until != 0 && plan.growth.needed_at_end_bytes != 0 && plan.verdict == Verdict::kFits;
  const bool ended = plan.run.stopped.empty() && (plan.verdict == Verdict::kFits || plan.verdict == Verdict::kMeasured);
  for (Finding& finding : findings) {
    if (topic_of(finding) != Topic::kGrowth) continue;
    const bool proved = finding.confidence == Confidence::kProved && finding.number("bytes_per_step") &&
                        finding.severity != Severity::kNote;
    if (plan.growth.until != 0) {  // what fills the GPU is all that grows
      for (Evidence& one : finding.evidence) {
        if (one.name == "steps_until_full")
          one.value = static_cast<std::int64_t>(plan.growth.until - std::min(plan.growth.until, plan.run.steps));
      }
    }
    const bool in_cut_loop = finding.number(kCutLoopRounds) && is_leak_of(plan, finding);
    if (in_cut_loop && is_full_in_cut_loop(plan)) {
      finding.severity = Severity::kError;
      finding.message += cut_short(plan);
    } else if (loop_ends) {
      finding.severity = proved ? Severity::kWarning : Severity::kNote;
      finding.message += own_loop_ends(plan);
    } else if (ended && plan.gpu && finding.severity != Severity::kNote &&
               finding.bytes * kSmall <= plan.gpu->capacity_bytes) {
      finding.severity = proved ? Severity::kWarning : Severity::kNote;
      finding.message += " The program ran to its end with it, and " + format_bytes(plan.spare_bytes()) + " was left.";
    } else if (ended && !plan.gpu && proved) {
      finding.severity = Severity::kWarning;
      finding.message += " The program ran to its end with it.";
    }
    const bool is_told =
        plan.verdict == Verdict::kFits || plan.verdict == Verdict::kTight || plan.verdict == Verdict::kMeasured;
    if (proved && is_told && is_leak_of(plan, finding)) finding.message += when_full(plan, pace);
  }
}

}  // namespace faultline
