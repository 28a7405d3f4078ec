#include "plan/make_plan.h"

#include <algorithm>

#include "base/units.h"
#include "facts/cut_loops.h"
#include "fmt/format.h"
#include "plan/changes.h"
#include "plan/filling.h"
#include "plan/jointly.h"
#include "plan/leaks.h"
#include "plan/ranks.h"
#include "plan/remedies.h"
#include "plan/rounds.h"
#include "plan/vary.h"
#include "plan/verdict.h"
#include "plan/where.h"
#include "rules/describe.h"
#include "rules/registry.h"
#include "sources/input.h"
#include "sources/run_folder/layout.h"

namespace faultline {
namespace {

// A run that died of memory is run again on a device that grows, to learn how much it needs in all; what it caught before fails again. It can be told in the first run's place where it
// reached the request that had failed.
std::optional<DryRunResult> run_overcommitted(const PlanQuestion& question, const DryRunResult& first,
                                              const Reruns& reruns) {
  const std::optional<PlanException>& end = first.main()->exception;
  reruns.tell(
      fmt::format("out of memory{}{}; running it once more on a larger GPU, to learn how much it needs",
                  question.names_gpu() ? fmt::format(" on {}", plan_gpu(question.gpu_at(0)).name) : "",
                  end && !end->location.file.empty() ? fmt::format(", at {}", short_place(end->location)) : ""));
  DryRunResult again = std::move(reruns
                                     .run({{std::string(layout::kLarger),
                                            question.command,
                                            {},
                                            {},
                                            0,
                                            std::max<std::uint64_t>(first.main()->failures, 1) - 1}})
                                     .front());
  const ProcessSummary* main = again.main();
  const bool came_as_far =
      main != nullptr && !main->trace.empty() &&
      (main->operations >= first.main()->operations ||
       (!main->ended_in_order && main->allocations > first.main()->allocations));  // killed: its trace tells
  if (came_as_far) return again;
  const std::string how = again.interrupted                           ? "was stopped by a signal"
                          : main != nullptr && !main->stopped.empty() ? "was stopped " + main->stopped + ","
                                                                      : "ended";
  reruns.tell(fmt::format(
      "the second run {} before the request that had failed, so how much it needs in all is not known", how));
  return std::nullopt;
}

// What grows with every round and was not seen to its end.
void learn_growth(PlannedRun& run) {
  Plan& plan = run.plan;
  double bytes = 0, rounds_seen = 0;
  for (const Finding& finding : run.judgement.findings) {
    if (plan.run.stopped.empty() || topic_of(finding) != Topic::kGrowth || finding.number("limit_bytes") ||
        finding.number(kCutLoopRounds) || finding.device != run.judgement.facts->usage[run.needs.slot].device)
      continue;
    const auto rounds = static_cast<double>(finding.number("steps").value_or(0));
    const auto each = static_cast<double>(finding.number("bytes_per_step").value_or(0));
    rounds_seen = std::max(rounds_seen, rounds);
    bytes += each * (plan.run.steps != 0 ? std::max(1.0, rounds / static_cast<double>(plan.run.steps)) : 1.0);
  }
  plan.growth.bytes_a_round = static_cast<std::uint64_t>(bytes);
  plan.growth.rounds = plan.run.steps != 0 ? plan.run.steps : static_cast<std::uint64_t>(rounds_seen);
}

// One result for which no GPU of this size has room, of operands that are small.
const Finding* larger_than_gpu(const PlannedRun& run) {
  for (const Finding& finding : run.judgement.findings) {
    if (rule_named(finding.rule).of_one_result && finding.confidence == Confidence::kProved &&
        run.plan.failure.happened && run.plan.gpu && finding.bytes > run.plan.gpu->capacity_bytes)
      return &finding;
  }
  return nullptr;
}

// What is known to pile up until the GPU is full, and without which there is room: a smaller program only fails later.
const Finding* leak_that_fills(const PlannedRun& run) {
  const Plan& plan = run.plan;
  for (const Finding& finding : run.judgement.findings) {
    if (topic_of(finding) == Topic::kGrowth && finding.severity == Severity::kError &&
        finding.confidence == Confidence::kProved && finding.number("full_at_step") && plan.failure.happened &&
        plan.gpu && finding.device == plan.device &&
        plan.most_needed() <= plan.gpu->capacity_bytes + std::min(finding.bytes, plan.most_needed()))
      return &finding;
  }
  return nullptr;
}

// Of a program with a leak only what keeps no graphs.
void try_against_leak(const Reruns& reruns, const ProcessSummary& told, const Finding& leak, Plan& plan) {
  ProcessSummary graphs = told;
  std::erase_if(graphs.offers, [](const Offer& offer) { return !offer.answers; });
  add_remedies(reruns, graphs, plan, {});
  if (plan.fits_with_something()) return;
  plan.tried.skipped = fmt::format(
      "No other change was tried: without the {} that pile up (memory/leak) it needs {}, which fits; --try tries them.",
      format_bytes(leak.bytes), format_bytes(plan.need.bytes - std::min(plan.need.bytes, leak.bytes)));
}

void try_what_helps(const PlanQuestion& question, const DryRunResult& first, const ProcessSummary& told,
                    const Reruns& reruns, PlannedRun& run) {
  Plan& plan = run.plan;
  const bool in_cut_loop = is_full_in_cut_loop(plan);
  const bool fails = plan.verdict == Verdict::kDoesNotFit || plan.is_undecided() || in_cut_loop;
  // it did not come to its end: nothing can be said of changes to it
  if (!fails && !has_room(plan.verdict) && plan.verdict != Verdict::kFitsUntil) {
    if (!question.vary.empty()) {
      plan.tried.vary.emplace().name = question.vary;
      plan.tried.vary->why_not = "it was not searched for, because the program does not run to its end as it is";
    }
    return;
  }
  const bool wants_changes = fails || question.try_changes;
  const bool wants_search = fails || !question.vary.empty();
  learn_growth(run);
  // no setting ends the growth; and a replay of a recording that ends at the failure says nothing of what would follow
  if (wants_changes && !in_cut_loop && !plan.need.is_least) add_settings(run.trace, run.needs, plan);
  limit_settings_by_growth(plan);
  if (!wants_changes && !wants_search) return;
  if (const Finding* blown_up = larger_than_gpu(run);
      blown_up != nullptr && fails && !question.try_changes && question.vary.empty()) {
    const std::string better = blown_up->tries.empty() ? "Make it in parts." : blown_up->tries.front().what;
    plan.tried.skipped =
        fmt::format("{} Nothing else was tried, because one result of {} is larger than the GPU; --try tries changes.",
                    better, format_bytes(blown_up->bytes));
    if (!plan.need.is_least) add_where(plan);
    return;
  }
  if (fails && reruns.say_verdict) reruns.say_verdict(plan);
  const bool takes_long = first.working_seconds() > kLongestToRepeat && !question.try_changes;
  if (takes_long && (wants_changes || question.vary.empty()))
    plan.tried.skipped = fmt::format("The program took {:.0f} s and was not run again with changes; --try does.",
                                     first.working_seconds());
  if (const Finding* leak = leak_that_fills(run);
      leak != nullptr && fails && !question.try_changes && question.vary.empty()) {
    if (!takes_long) try_against_leak(reruns, told, *leak, plan);
    return;  // no GPU is large enough for long
  }
  if (const std::string why_not = why_no_batch_is_enough(plan); fails && question.vary.empty() && !why_not.empty()) {
    PlanVary& vary = plan.tried.vary.emplace();
    vary.name = "batch size";
    vary.why_not = why_not;
  }
  const bool searches = wants_search && !plan.tried.vary && (!takes_long || !question.vary.empty());
  const auto search = [&] { add_search(reruns, question.vary, told, plan); };
  if (searches && (!wants_changes || takes_long || !question.vary.empty())) search();
  if (wants_changes && !takes_long) {
    add_remedies(reruns, told, plan, searches && !plan.tried.vary ? search : std::function<void()>());
    if (fails && plan.tried.vary && plan.tried.vary->why_not.empty()) add_jointly(reruns, told, plan);
  }
  if (fails && !plan.need.is_least && !(in_cut_loop && plan.growth.needed_at_end_bytes == 0)) add_where(plan);
}

}  // namespace

std::string nothing_planned(const PlanQuestion& question, const DryRunResult& first) {
  for (const ProcessSummary& process : first.processes) {
    const Unsupported& unsupported = process.unsupported;
    if (unsupported.why.empty()) continue;
    if (unsupported.of == Unsupported::kFolder)
      return fmt::format("nothing was planned: {}. Give another folder with -o, or make room there", unsupported.why);
    const bool real_helps = !question.real && unsupported.of == Unsupported::kProgram;
    return "this program cannot be dry-run: " + unsupported.why +
           (real_helps ? ". --real runs it with real numbers instead, which is slower" : "");
  }
  const ProcessSummary* main = first.main();
  if (main != nullptr && !main->trace.empty()) return {};
  if ((first.interrupted || first.out_of_time) && first.import_trouble.is_under_way)
    return "nothing was planned: PyTorch was still being imported";
  if (const std::string& why = first.import_trouble.why; !why.empty())
    return "nothing was planned: " + why + (first.status > 128 ? fmt::format(" (signal {})", first.status - 128) : "");
  return fmt::format(
      "nothing was planned: {} did not import PyTorch, JAX or TensorFlow{}", question.command.front(),
      first.status != 0 ? fmt::format(" and ended with status {}", first.status) : " (or is no Python program)");
}

Result<std::unique_ptr<PlannedRun>> make_plan(const PlanQuestion& question, const DryRunResult& first,
                                              const Reruns& reruns) {
  const bool may_again = question.may_run_again && !first.effects.input_was_cut;
  if (first.effects.input_was_cut)
    reruns.tell("the program is not run again: not all that it read from standard input could be kept");
  std::optional<DryRunResult> overcommitted;
  if (first.main()->died_of_memory() && may_again && !reruns.interrupted())
    overcommitted = run_overcommitted(question, first, reruns);
  const DryRunResult& told = overcommitted ? *overcommitted : first;

  const std::string& path = told.main()->trace;
  Result<Trace> trace = load(path);
  if (!trace) return Error{trace.error().message(path), {}, {}};
  if (trace->devices.empty()) return Error{path + ": it has no device", {}, {}};
  auto run = std::make_unique<PlannedRun>();
  run->trace = std::move(*trace);
  if (!question.names_gpu()) run->trace.devices.front().capacity_bytes = 0;  // it had no end
  run->judgement = judge(run->trace);
  run->needs = needs_of(run->trace, !first.main()->died_of_memory());
  run->plan = describe(question, first, told, *run, first.interrupted);
  run->plan.need.is_least = run->plan.failure.happened && (!overcommitted || overcommitted->interrupted);
  weaken_failures(run->plan, run->judgement.findings);
  weigh_leaks(run->plan, run->judgement.findings);
  learn_sizing(question, first, may_again && !question.no_try, reruns, *run);
  if (question.names_gpu() && !question.no_try && may_again && !reruns.interrupted()) {
    learn_filling(question, first, reruns, *run);
    try_what_helps(question, first, *told.main(), reruns, *run);
    if (first.working_seconds() <= kLongestToRepeat || question.try_changes) add_ranks(reruns, *told.main(), run->plan);
  }
  run->plan.run.interrupted = reruns.interrupted();
  return run;
}

}  // namespace faultline
