#include "cli/plan_verdict.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_input.h"
#include "base/units.h"
#include "cli/plan_needs.h"
#include "fmt/format.h"
#include "report/modules.h"
#include "rules/describe.h"
#include "sources/source.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kTightShare = 0.05;  // of the capacity

// One note for each text, the most telling kinds first.
std::vector<PlanNote> notes_of(const Trace& trace) {
  const std::string prefix = "dry-run.note.";
  std::vector<PlanNote> notes;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  std::vector<std::uint64_t> other_lines;
  for (auto at = trace.properties.lower_bound(prefix); at != trace.properties.end() && at->first.starts_with(prefix); ++at) {
    const Result<nlohmann::json> parsed = parse_json(at->second);
    if (!parsed || !parsed->is_object()) continue;
    const nlohmann::json& json = *parsed;
    const auto text = [&](const char* name) { return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : std::string(); };
    const std::uint64_t count = json.contains("count") && json["count"].is_number_unsigned() ? json["count"].get<std::uint64_t>() : 1;
    const auto [place, is_new] = known.try_emplace({text("kind"), text("text")}, notes.size());
    if (is_new) {
      notes.push_back({text("kind"), text("text"), text("line"), count});
      other_lines.push_back(0);
    } else {
      notes[place->second].count += count;
      ++other_lines[place->second];
    }
  }
  for (std::size_t at = 0; at < notes.size(); ++at) {
    if (other_lines[at] != 0) notes[at].line += fmt::format(" and {} other line{}", other_lines[at], other_lines[at] == 1 ? "" : "s");
  }
  const auto rank = [](const PlanNote& note) { return note.kind == "mode" ? 0 : note.kind == "skipped" ? 1 : note.kind == "kernel" ? 2 : 3; };
  std::stable_sort(notes.begin(), notes.end(), [&](const PlanNote& a, const PlanNote& b) { return rank(a) < rank(b); });
  return notes;
}

// What the memory is made of at the peak, told from the whole run: the failure that an overcommitted run went past is left out.
void describe_peak(const JudgedRun& judged, Plan& plan) {
  const auto describe = [&](const Facts& facts) {
    const DeviceUsage& usage = facts.usage.front();
    plan.peak_allocated_bytes = usage.peak_allocated.allocated;
    plan.peak_reserved_bytes = usage.peak_reserved.reserved;
    const CategoryBytes live = facts.live_by_category(0, usage.peak_allocated.event);
    for (std::size_t at = 0; at < kCategoryCount; ++at) plan.live_at_peak.emplace_back(std::string(name_of(static_cast<Category>(at))), live[at]);
    plan.modules = modules_at(facts, 0, usage.peak_allocated.event);
  };
  const Facts& facts = *judged.judgement.facts;
  if (facts.usage.front().failures.empty()) return describe(facts);
  Result<Trace> again = load(judged.trace.source_path);
  if (!again || again->devices.empty()) return describe(facts);
  std::erase_if(again->events, [](const Event& event) { return event.kind == EventKind::kAllocFailed; });
  again->source_events = again->events.size();
  describe(Facts(*again, judged.judgement.held_bytes));
}

void describe_failure(const JudgedRun& judged, Plan& plan) {
  const Facts& facts = *judged.judgement.facts;
  const std::vector<UsageMoment>& failures = facts.usage.front().failures;
  if (failures.empty()) return;
  const std::uint32_t event = failures.back().event;
  plan.failed_at = whereabouts(facts, 0, event).location;
  if (facts.steps.ends.empty()) return;
  plan.failed_in_step = 1 + static_cast<std::uint64_t>(std::lower_bound(facts.steps.ends.begin(), facts.steps.ends.end(), event) - facts.steps.ends.begin());
}

bool is_tight(const Plan& plan) {
  const std::uint64_t spare = plan.spare_bytes();
  const bool sure = plan.gpu->context_source == to_string(FigureSource::kMeasured);
  return static_cast<double>(spare) < kTightShare * static_cast<double>(plan.gpu->capacity_bytes) || (!sure && spare < plan.gpu->context_bytes / 2);
}

// The program was over and its summary written when a signal ended the process: libraries can fall while they are unloaded.
bool fell_at_the_end(const DryRunResult& run, const ProcessSummary& main) {
  return run.status > 128 && run.status != 128 + SIGINT && main.ended_in_order;
}

Verdict verdict_of(const DryRunResult& first, const ProcessSummary& main, const Plan& plan) {
  if (main.died_of_memory()) return Verdict::kDoesNotFit;
  if (interrupted() || !main.ended_in_order || first.status == 128 + SIGINT) return Verdict::kInterrupted;
  if (main.exception || (first.status != 0 && !fell_at_the_end(first, main))) return Verdict::kProgramError;
  if (!plan.gpu) return Verdict::kMeasured;
  return is_tight(plan) ? Verdict::kTight : Verdict::kFits;
}

}  // namespace

PlanGpu plan_gpu(const Gpu& gpu) {
  const std::string name = gpu.name.empty() ? describe(gpu) : std::string(gpu.full_name);
  return {name, gpu.capacity_bytes, std::string(to_string(gpu.capacity_source)), gpu.context_bytes, std::string(to_string(gpu.context_source))};
}

Result<std::unique_ptr<JudgedRun>> judge_run(const std::string& trace_path, bool endless) {
  Result<Trace> trace = load(trace_path);
  if (!trace) return Error{trace.error().message(trace_path), {}, {}};
  if (trace->devices.empty()) return Error{trace_path + ": it has no device", {}, {}};
  auto judged = std::make_unique<JudgedRun>();
  judged->trace = std::move(*trace);
  if (endless) judged->trace.devices.front().capacity_bytes = 0;
  judged->judgement = judge(judged->trace);
  judged->outside_bytes = peak_outside_bytes(judged->trace);
  return judged;
}

Plan make_plan(const VerdictInput& input, const JudgedRun& judged) {
  const DryRunResult& told = input.overcommitted != nullptr ? *input.overcommitted : *input.first;
  const ProcessSummary& first = *input.first->main();
  const ProcessSummary& main = *told.main();
  Plan plan;
  plan.command = input.command;
  plan.exit_status = input.first->status;
  if (input.gpu) plan.gpu = plan_gpu(*input.gpu);
  plan.context_bytes = input.context_bytes;
  plan.limit_bytes = judged.trace.devices.front().allowed_bytes;
  plan.peak_outside_bytes = judged.outside_bytes;
  describe_peak(judged, plan);
  const std::uint64_t beside = plan.context_bytes + plan.peak_outside_bytes;
  plan.taken_bytes = plan.peak_reserved_bytes + beside;
  plan.needed_bytes = least_segment_bytes(judged.trace, {}, plan.peak_reserved_bytes).value_or(plan.peak_reserved_bytes) + beside;
  plan.failed = first.died_of_memory();
  if (plan.failed) describe_failure(judged, plan);
  plan.caught_failures = first.failures - std::min<std::uint64_t>(first.failures, plan.failed ? 1 : 0);
  plan.steps = main.steps;
  plan.stopped = main.stopped;
  plan.how = input.real ? "real" : "fake";
  plan.seconds = input.first->seconds;
  plan.operations = main.operations;
  plan.processes = static_cast<std::uint64_t>(std::count_if(told.processes.begin(), told.processes.end(), [](const ProcessSummary& s) { return s.allocations != 0; }));
  plan.processes = std::max<std::uint64_t>(plan.processes, 1);
  plan.exception = first.died_of_memory() ? std::nullopt : first.exception;
  plan.effects = input.first->effects;
  plan.verdict = verdict_of(*input.first, first, plan);
  plan.notes = notes_of(judged.trace);
  if (fell_at_the_end(*input.first, first)) {
    plan.notes.push_back({"mode", fmt::format("signal {} ended the process when the program was already over; the plan is complete", input.first->status - 128), "", 1});
  }
  if (plan.failed && main.exception && !main.died_of_memory()) {
    plan.notes.push_back({"mode", fmt::format("on a larger GPU the program ended with {}: what it needs is counted until there", main.exception->type), "", 1});
  }
  plan.folder = input.folder;
  plan.trace = fs::path(judged.trace.source_path).lexically_relative(input.folder).string();
  if (!plan.gpu) plan.fits = fits_on_catalogue(judged.trace, plan.peak_outside_bytes);
  return plan;
}

}  // namespace faultline::cli
