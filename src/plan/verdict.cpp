#include "plan/verdict.h"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/json_input.h"
#include "fmt/format.h"
#include "plan/modules.h"
#include "plan/plan_fields.h"
#include "rules/describe.h"
#include "sources/source.h"

namespace faultline {
namespace {

constexpr double kTightShare = 0.05;  // of the capacity

// One note for each text, the most telling kinds first.
std::vector<PlanNote> notes_of(const Trace& trace) {
  const std::string prefix = "dry-run.note.";
  std::vector<PlanNote> notes;
  std::vector<std::uint64_t> other_lines;
  for (auto at = trace.properties.lower_bound(prefix); at != trace.properties.end() && at->first.starts_with(prefix); ++at) {
    const Result<Json> json = parse_json<Json>(at->second);
    if (!json || !json->is_object()) continue;
    PlanNote note;
    read_json(*json, note);
    const auto known = std::find_if(notes.begin(), notes.end(), [&](const PlanNote& other) { return other.kind == note.kind && other.text == note.text; });
    if (known == notes.end()) {
      notes.push_back(std::move(note));
      other_lines.push_back(0);
    } else {
      known->count += note.count;
      ++other_lines[static_cast<std::size_t>(known - notes.begin())];
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
void describe_peak(const PlannedRun& run, Plan& plan) {
  const auto fill = [&](const Facts& facts) {
    const UsageMoment& peak = facts.usage.front().peak_allocated;
    plan.peak_allocated_bytes = peak.allocated;
    const CategoryBytes live = facts.live_by_category(0, peak.event);
    for (std::size_t at = 0; at < kCategoryCount; ++at) plan.live_at_peak.emplace_back(std::string(name_of(static_cast<Category>(at))), live[at]);
    plan.modules = modules_at(facts, 0, peak.event);
  };
  if (run.judgement.facts->usage.front().failures.empty()) return fill(*run.judgement.facts);
  Result<Trace> again = load(run.trace.source_path);
  if (!again || again->devices.empty()) return fill(*run.judgement.facts);
  std::erase_if(again->events, [](const Event& event) { return event.kind == EventKind::kAllocFailed; });
  again->source_events = again->events.size();
  fill(Facts(*again, run.judgement.held_bytes));
}

void describe_failure(const Facts& facts, Plan& plan) {
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

Verdict verdict_on(const DryRunResult& run, const ProcessSummary& main, const Plan& plan, bool interrupted) {
  if (main.died_of_memory()) return Verdict::kDoesNotFit;
  if (interrupted || !main.ended_in_order || run.status == 128 + SIGINT) return Verdict::kInterrupted;
  if (main.exception || (run.status != 0 && !fell_at_the_end(run, main))) return Verdict::kProgramError;
  if (!plan.gpu) return Verdict::kMeasured;
  return is_tight(plan) ? Verdict::kTight : Verdict::kFits;
}

}  // namespace

Plan describe(const PlanQuestion& question, const DryRunResult& first, const DryRunResult& told, const PlannedRun& run, bool interrupted) {
  const ProcessSummary& as_asked = *first.main();
  const ProcessSummary& main = *told.main();
  const std::vector<ProcessSummary>& processes = told.processes;
  Plan plan;
  plan.command = question.command;
  plan.exit_status = first.status;
  if (question.gpu) plan.gpu = plan_gpu(*question.gpu);
  plan.context_bytes = run.needs.context_bytes;
  plan.limit_bytes = run.trace.devices.front().allowed_bytes;
  plan.peak_outside_bytes = run.needs.outside_bytes;
  plan.peak_reserved_bytes = run.needs.reserved_bytes;
  plan.taken_bytes = run.needs.taken_bytes();
  plan.needed_bytes = run.needs.needed_bytes();
  describe_peak(run, plan);
  plan.failed = as_asked.died_of_memory();
  if (plan.failed) describe_failure(*run.judgement.facts, plan);
  plan.caught_failures = as_asked.failures - std::min<std::uint64_t>(as_asked.failures, plan.failed ? 1 : 0);
  plan.steps = main.steps;
  plan.stopped = main.stopped;
  plan.how = question.real ? "real" : "fake";
  plan.seconds = first.seconds;
  plan.operations = main.operations;
  plan.processes = static_cast<std::uint64_t>(std::count_if(processes.begin(), processes.end(), [](const ProcessSummary& s) { return s.allocations != 0; }));
  plan.processes = std::max<std::uint64_t>(plan.processes, 1);
  if (!plan.failed) plan.exception = as_asked.exception;
  plan.effects = first.effects;
  plan.verdict = verdict_on(first, as_asked, plan, interrupted);
  plan.notes = notes_of(run.trace);
  if (fell_at_the_end(first, as_asked)) {
    plan.notes.push_back({"mode", fmt::format("signal {} ended the process when the program was already over; the plan is complete", first.status - 128), "", 1});
  }
  if (plan.failed && main.exception && !main.died_of_memory()) {
    plan.notes.push_back({"mode", fmt::format("on a larger GPU the program ended with {}: what it needs is counted until there", main.exception->type), "", 1});
  }
  plan.folder = question.folder;
  plan.trace = std::filesystem::path(main.trace).lexically_relative(plan.folder).string();
  if (!plan.gpu) plan.fits = fits_on_catalogue(run.needs);
  return plan;
}

}  // namespace faultline
