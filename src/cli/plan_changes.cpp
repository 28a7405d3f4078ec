#include "cli/plan_changes.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/options.h"
#include "cli/plan_needs.h"
#include "fmt/format.h"
#include "sources/source.h"

namespace faultline::cli {
namespace {

using Changes = std::map<std::string, std::string>;

// Autocast in bfloat16 is native from compute capability 8.0 on.
std::string autocast_type(const Gpu& gpu) { return gpu.compute_major >= 8 ? "bfloat16" : "float16"; }

std::string instruction(const std::string& change, const std::string& value) {
  if (change == "autocast") {
    return "Call the model under torch.autocast(\"cuda\", dtype=torch." + value + ")" + (value == "float16" ? " (float16 also wants a GradScaler, which the dry run did not have)" : "");
  }
  if (change == "checkpoint") return "Wrap the repeated layers in torch.utils.checkpoint.checkpoint(…, use_reentrant=False)";
  if (change == "foreach") return "Make the optimizer with foreach=False";
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

std::vector<Changes> single_changes(const Attempts& attempts) {
  const ProcessSummary& baseline = attempts.baseline;
  std::vector<Changes> all;
  if (!baseline.does("autocast")) all.push_back({{"autocast", autocast_type(attempts.job.request.gpu)}});
  if (!baseline.does("checkpoint")) all.push_back({{"checkpoint", "true"}});
  if (baseline.does("foreach")) all.push_back({{"foreach", "false"}});
  if (baseline.does("set_to_none=False")) all.push_back({{"set_to_none", "true"}});
  return all;
}

PlanChange described(const Changes& changes, const DryRunResult& run, const DryRunRequest& request) {
  PlanChange change;
  change.kind = "program";
  change.what = instruction(changes);
  const Needed needed = needed_by(run, request);
  change.needed_bytes = needed.bytes;
  change.fits = needed.fits;
  change.why_not = needed.problem;
  change.tried = needed.problem.empty();
  if (!change.tried) return change;
  for (const auto& [name, value] : changes) {
    const auto done = run.main()->changes.find(name);
    if (done == run.main()->changes.end()) {
      change.tried = change.fits = false;
      change.why_not = name == "checkpoint" ? "the model has no repeated layers that it was found in" : "there was nothing to change";
      return change;
    }
    if (name == "checkpoint") change.detail = done->second;
  }
  return change;
}

std::vector<PlanChange> try_all(const Attempts& attempts, const std::vector<Changes>& candidates) {
  std::vector<DryRunJob> jobs;
  for (const Changes& changes : candidates) {
    DryRunJob job = attempts.job;
    job.request.changes = changes;
    job.request.overcommit = true;
    job.folder = attempts.job.folder + "/tries/" + folder_name(changes);
    jobs.push_back(std::move(job));
  }
  const std::vector<DryRunResult> results = run_quietly(attempts.parts, jobs, attempts.input);
  std::vector<PlanChange> changes;
  for (std::size_t at = 0; at < results.size(); ++at) changes.push_back(described(candidates[at], results[at], jobs[at].request));
  return changes;
}

}  // namespace

Needed needed_by(const DryRunResult& run, const DryRunRequest& request) {
  Needed needed;
  const ProcessSummary* main = run.main();
  if (main == nullptr || !main->ended_in_order || main->trace.empty()) {
    needed.problem = std::string("the program did not run to its end") + (run.folder.empty() ? "" : " (see log.txt in its folder)");
    return needed;
  }
  if (main->exception) {
    needed.problem = fmt::format("the program then fails with {}: {}", main->exception->type, main->exception->message.substr(0, main->exception->message.find('\n')));
  }
  const Gpu& gpu = request.gpu;
  std::uint64_t beside = gpu.context_bytes;
  std::optional<std::uint64_t> least;
  if (Result<Trace> trace = load(main->trace)) {
    beside += peak_outside_bytes(*trace);
    least = least_segment_bytes(*trace, {}, main->peak_reserved);
  }
  // The trace of an attempt is large and told everything.
  std::error_code ignored;
  std::filesystem::remove(main->trace, ignored);
  needed.bytes = beside + least.value_or(main->peak_reserved);
  needed.fits = needed.problem.empty() && (main->needed_capacity == 0 ? main->failures == 0 : main->needed_capacity <= gpu.capacity_bytes);
  return needed;
}

void add_settings(const Attempts& attempts, Plan& plan) {
  const SettingsSearch search{plan.needed_bytes, plan.gpu->capacity_bytes, plan.context_bytes + plan.peak_outside_bytes, plan.peak_reserved_bytes};
  for (PlanChange& change : try_settings(attempts.judged.trace, search)) plan.changes.push_back(std::move(change));
}

void add_changes(const Attempts& attempts, Plan& plan) {
  const std::vector<Changes> singles = single_changes(attempts);
  if (singles.empty()) return;
  hint(fmt::format("trying {} change{} to the program", singles.size(), singles.size() == 1 ? "" : "s"));
  std::vector<PlanChange> tried = try_all(attempts, singles);
  Changes together, main_two;
  bool any_fits = std::any_of(plan.changes.begin(), plan.changes.end(), [](const PlanChange& change) { return change.fits; });
  for (std::size_t at = 0; at < singles.size(); ++at) {
    any_fits = any_fits || tried[at].fits;
    if (!tried[at].tried || tried[at].needed_bytes >= plan.needed_bytes) continue;
    const auto& [name, value] = *singles[at].begin();
    together[name] = value;
    if (name == "autocast" || name == "checkpoint") main_two[name] = value;
  }
  plan.changes.insert(plan.changes.end(), tried.begin(), tried.end());
  if (any_fits || interrupted()) return;
  std::vector<Changes> combinations;
  if (main_two.size() == 2) combinations.push_back(main_two);
  if (together.size() > 1 && together != main_two) combinations.push_back(together);
  if (combinations.empty()) return;
  hint("trying them together");
  tried = try_all(attempts, combinations);
  plan.changes.insert(plan.changes.end(), tried.begin(), tried.end());
}

}  // namespace faultline::cli
