#include "plan/changes.h"

#include <algorithm>
#include <map>

#include "base/units.h"
#include "facts/categories.h"
#include "fmt/format.h"
#include "models/search.h"

namespace faultline {
namespace {

// of what is needed, and a tenth of what is missing; less is no reason to change a setting that is not enough
constexpr double kWorthSaying = 0.01;

using Changes = std::map<std::string, std::string>;

// Autocast in bfloat16 is native from compute capability 8.0 on.
std::string autocast_type(const Gpu& gpu) { return gpu.compute_major >= 8 ? "bfloat16" : "float16"; }

std::string instruction(const std::string& change, const std::string& value) {
  if (change == "autocast") {
    return "Call the model under torch.autocast(\"cuda\", dtype=torch." + value +
           ") (the model only, the loss outside" +
           (value == "float16" ? "; float16 also wants a GradScaler in training, which the dry run did not have)"
                               : ")");
  }
  if (change == "checkpoint")
    return "Wrap the repeated layers in torch.utils.checkpoint.checkpoint(…, use_reentrant=False)";
  if (change == "foreach") return "Make the optimizer with foreach=False";
  if (change == "no_grad") return "Call the model under torch.no_grad(): the program never calls backward";
  return "Call optimizer.zero_grad(set_to_none=True)";
}

std::string instruction(const Changes& changes) {
  std::string text;
  for (const auto& [change, value] : changes) {
    std::string one = instruction(change, value);
    if (!text.empty()) one[0] = static_cast<char>(one[0] - 'A' + 'a');
    text += (text.empty() ? "" : ", and ") + one;
  }
  return text;
}

std::string folder_name(const Changes& changes) {
  std::string name;
  for (const auto& [change, value] : changes) name += (name.empty() ? "" : "+") + change;
  return name;
}

// For the user who waits: "torch.autocast; activation checkpointing".
std::string names_of(const std::vector<Changes>& candidates) {
  std::string text;
  for (const Changes& changes : candidates) {
    std::string one;
    for (const auto& [change, value] : changes)
      one += (one.empty() ? "" : " with ") + std::string(change == "autocast"     ? "torch.autocast"
                                                         : change == "checkpoint" ? "activation checkpointing"
                                                         : change == "foreach"    ? "an optimizer with foreach=False"
                                                         : change == "no_grad"    ? "torch.no_grad()"
                                                                                  : "zero_grad(set_to_none=True)");
    text += (text.empty() ? "" : "; ") + one;
  }
  return text;
}

std::uint64_t at_peak(const Plan& plan, Category category) {
  const auto found = std::find_if(plan.live_at_peak.begin(), plan.live_at_peak.end(),
                                  [&](const auto& part) { return part.first == name_of(category); });
  return found == plan.live_at_peak.end() ? 0 : found->second;
}

// Most changes are those of training: without backward they have nothing to act on.
bool trains(const Plan& plan, const ProcessSummary& as_run) {
  return plan.steps != 0 || as_run.does("backward") || at_peak(plan, Category::kGradients) != 0 ||
         at_peak(plan, Category::kOptimizer) != 0;
}

std::vector<Changes> single_changes(const Plan& plan, const ProcessSummary& as_run, const Gpu& gpu) {
  std::vector<Changes> all;
  if (!trains(plan, as_run)) {
    // Of a program that was stopped it is not known whether it goes on to train.
    if (plan.stopped.empty() && as_run.does("graph")) all.push_back({{"no_grad", "true"}});
    return all;
  }
  if (!as_run.does("autocast")) all.push_back({{"autocast", autocast_type(gpu)}});
  if (!as_run.does("checkpoint")) all.push_back({{"checkpoint", "true"}});
  if (as_run.does("foreach")) all.push_back({{"foreach", "false"}});
  if (as_run.does("set_to_none=False")) all.push_back({{"set_to_none", "true"}});
  return all;
}

PlanChange described(const Changes& changes, const DryRunResult& run, const Plan& plan) {
  PlanChange change{"program", instruction(changes), {}, false, false, 0, {}};
  const Result<Needs> needs = needs_of(run, plan);
  if (!needs) {
    change.why_not = needs.error().what;
    return change;
  }
  change.needed_bytes = needs->needed_bytes();
  for (const auto& [name, value] : changes) {
    const auto done = run.main()->changes.find(name);
    if (done == run.main()->changes.end()) {
      change.why_not = name == "checkpoint" ? "the model has no repeated layers that it was found in"
                                            : "there was nothing to change";
      return change;
    }
    if (name == "checkpoint") change.detail = done->second;
  }
  change.tried = true;
  change.fits = needs->fits;
  return change;
}

std::vector<PlanChange> try_all(const Reruns& reruns, const Plan& plan, const std::vector<Changes>& candidates) {
  std::vector<Attempt> attempts;
  for (const Changes& changes : candidates)
    attempts.push_back({"tries/" + folder_name(changes), plan.command, changes, {}, plan.steps_to_repeat()});
  const std::vector<DryRunResult> results = reruns.run(attempts);
  std::vector<PlanChange> tried;
  for (std::size_t at = 0; at < results.size(); ++at) tried.push_back(described(candidates[at], results[at], plan));
  return tried;
}

}  // namespace

void add_settings(const Trace& trace, const Needs& needs, Plan& plan) {
  std::optional<PlanChange> best;
  for (const SettingChanges& changes : sensible_settings(trace)) {
    const std::optional<Needs> under = needs_under(changes, trace, needs);
    if (!under || (best && under->needed_bytes() >= best->needed_bytes)) continue;
    const PlanChange change{
        "setting", "Set PYTORCH_CUDA_ALLOC_CONF=" + written(changes), {}, true, under->fits, under->needed_bytes(), {}};
    const std::uint64_t saved = plan.saved_bytes(change);
    if (saved > (change.fits
                     ? 0
                     : std::max(static_cast<std::uint64_t>(kWorthSaying * static_cast<double>(plan.needed_bytes)),
                                plan.missing_bytes() / 10)))
      best = change;
  }
  if (best) plan.changes.push_back(std::move(*best));
}

std::string why_no_batch_is_enough(const Plan& plan) {
  const std::uint64_t lasting = at_peak(plan, Category::kParameters) + at_peak(plan, Category::kOptimizer);
  if (!plan.gpu || plan.context_bytes + lasting <= plan.gpu->capacity_bytes) return {};
  return fmt::format(
      "none is small enough: parameters and the optimizer's state alone take {}, and with the context's {} that is "
      "more than {}",
      format_bytes(lasting), format_bytes(plan.context_bytes), format_bytes(plan.gpu->capacity_bytes));
}

void add_changes(const Reruns& reruns, const ProcessSummary& as_run, const Gpu& gpu, Plan& plan) {
  const std::vector<Changes> singles = single_changes(plan, as_run, gpu);
  if (singles.empty()) return;
  reruns.tell("trying changes to the program: " + names_of(singles));
  std::vector<PlanChange> tried = try_all(reruns, plan, singles);
  Changes together, main_two;
  bool any_fits =
      std::any_of(plan.changes.begin(), plan.changes.end(), [](const PlanChange& change) { return change.fits; });
  for (std::size_t at = 0; at < singles.size(); ++at) {
    any_fits = any_fits || tried[at].fits;
    if (plan.saved_bytes(tried[at]) == 0) continue;
    const auto& [name, value] = *singles[at].begin();
    together[name] = value;
    if (name == "autocast" || name == "checkpoint") main_two[name] = value;
  }
  plan.changes.insert(plan.changes.end(), tried.begin(), tried.end());
  if (any_fits || reruns.interrupted()) return;
  std::vector<Changes> combinations;
  if (main_two.size() == 2) combinations.push_back(main_two);
  if (together.size() > 1 && together != main_two) combinations.push_back(together);
  if (combinations.empty()) return;
  reruns.tell("trying changes together: " + names_of(combinations));
  tried = try_all(reruns, plan, combinations);
  plan.changes.insert(plan.changes.end(), tried.begin(), tried.end());
}

}  // namespace faultline
