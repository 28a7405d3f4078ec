#include "plan/filling.h"

#include <string>

#include "rules/registry.h"

namespace faultline {
namespace {

constexpr std::uint64_t kToldLessShare = 8;  // of the capacity
constexpr double kLeastFollowed = 0.5;       // of what it is told less
constexpr double kLeastFull = 0.5;           // of the capacity; a program that takes less asks for other reasons

// The program once more, told that the GPU has so much less.
DryRunResult told_of_less(std::uint64_t less, const PlanQuestion& question, const Plan& plan, const Reruns& reruns) {
  const std::vector<DryRunResult> again = reruns.run(
      {{"tries/less-free", question.command, {{"less_free", std::to_string(less)}}, {}, plan.steps_to_repeat(), 0}});
  return again.empty() ? DryRunResult{} : again.front();
}

}  // namespace

void learn_sizing(const PlanQuestion& question, const DryRunResult& first, bool may_again, const Reruns& reruns,
                  PlannedRun& run) {
  Plan& plan = run.plan;
  const ProcessSummary& main = *first.main();
  if (main.asked_free_line.empty() || plan.gpu || plan.verdict != Verdict::kMeasured) return;
  const std::uint64_t shown = shown_gpus({}).front().gpu.capacity_bytes, less = shown / 2;
  std::uint64_t took_less = 0;
  if (may_again && first.working_seconds() <= kLongestToRepeat && !reruns.interrupted()) {
    reruns.tell(
        "the program asks how much memory there is; running it once more and telling it of less, to learn whether it "
        "sizes itself by that");
    const DryRunResult again = told_of_less(less, question, plan, reruns);
    const ProcessSummary* other = again.main();
    if (other != nullptr && other->ended_in_order && other->peak_reserved == main.peak_reserved) return;
    if (other != nullptr && other->peak_reserved < main.peak_reserved)
      took_less = main.peak_reserved - other->peak_reserved;
  }
  plan.need.filling = PlanFilling{main.asked_free_line, less, took_less};
  plan.fits.clear();  // on each of them it would take something else
}

void learn_filling(const PlanQuestion& question, const DryRunResult& first, const Reruns& reruns, PlannedRun& run) {
  Plan& plan = run.plan;
  const ProcessSummary& main = *first.main();
  if (main.asked_free_line.empty() || !plan.gpu || plan.is_undecided() || first.working_seconds() > kLongestToRepeat ||
      (plan.verdict != Verdict::kFits && plan.verdict != Verdict::kTight) ||
      static_cast<double>(plan.need.bytes) < kLeastFull * static_cast<double>(plan.gpu->capacity_bytes))
    return;
  const std::uint64_t less = plan.gpu->capacity_bytes / kToldLessShare;
  reruns.tell(
      "the program asks how much memory is free; running it once more and telling it of less, to learn whether it "
      "fills what there is");
  const DryRunResult again = told_of_less(less, question, plan, reruns);
  const ProcessSummary* other = again.main();
  if (other == nullptr || !other->ended_in_order || other->exception || !other->unplanned.empty() ||
      other->peak_reserved >= main.peak_reserved)
    return;
  const std::uint64_t took_less = main.peak_reserved - other->peak_reserved;
  if (static_cast<double>(took_less) < kLeastFollowed * static_cast<double>(less)) return;
  plan.need.filling = PlanFilling{main.asked_free_line, less, took_less};
  std::erase_if(run.judgement.findings, [&](const Finding& finding) {
    return topic_of(finding) == Topic::kGrowth && finding.bytes >= took_less;  // that is what it fills the GPU with
  });
  if (plan.verdict == Verdict::kTight) plan.verdict = Verdict::kFits;
}

}  // namespace faultline
