#include "plan/verdict.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <map>

#include "base/json_input.h"
#include "base/units.h"
#include "fmt/format.h"
#include "plan/growing.h"
#include "plan/modules.h"
#include "plan/phases.h"
#include "plan/plan_fields.h"
#include "rules/describe.h"
#include "rules/registry.h"
#include "trace/file_format.h"
#include "trace/framework.h"
#include "trace/marks.h"

namespace faultline {
namespace {

// One note for each text, the most telling kinds first.
std::vector<PlanNote> notes_of(const Trace& trace) {
  const std::string prefix = "dry-run.note.";
  std::vector<PlanNote> notes;
  std::vector<std::uint64_t> other_lines;
  for (auto at = trace.properties.lower_bound(prefix); at != trace.properties.end() && at->first.starts_with(prefix);
       ++at) {
    const Result<Json> json = parse_json<Json>(at->second);
    if (!json || !json->is_object()) continue;
    PlanNote note;
    read_json(*json, note);
    const auto known = std::find_if(notes.begin(), notes.end(), [&](const PlanNote& other) {
      return other.kind == note.kind && other.text == note.text;
    });
    if (known == notes.end()) {
      notes.push_back(std::move(note));
      other_lines.push_back(0);
    } else {
      known->count += note.count;
      ++other_lines[static_cast<std::size_t>(known - notes.begin())];
    }
  }
  for (std::size_t at = 0; at < notes.size(); ++at) {
    if (other_lines[at] != 0)
      notes[at].line += fmt::format(" and {} other line{}", other_lines[at], other_lines[at] == 1 ? "" : "s");
  }
  std::stable_sort(notes.begin(), notes.end(), [](const PlanNote& a, const PlanNote& b) { return a.kind < b.kind; });
  return notes;
}

void in_one_category(std::vector<std::pair<std::string, std::uint64_t>>& live) {
  std::uint64_t all_bytes = 0;
  for (const auto& [category, bytes] : live) all_bytes += bytes;
  live = {{std::string(name_of(Category::kOther)), all_bytes}};
}

// What the memory is made of at the peak.
void describe_peak(const Facts& facts, std::size_t slot, Plan& plan) {
  const UsageMoment& peak = facts.usage[slot].peak_allocated;
  plan.peak.allocated_bytes = peak.allocated;
  const CategoryBytes live = facts.live_by_category(slot, peak.event);
  for (std::size_t at = 0; at < kCategoryCount; ++at)
    plan.peak.live.emplace_back(std::string(name_of(static_cast<Category>(at))), live[at]);
  plan.peak.modules = modules_at(facts, slot, peak.event);
  if (!plan.pool.framework.empty()) {  // what is a variable of a model's is not known of a pool
    in_one_category(plan.peak.live);
    for (PlanModule& module : plan.peak.modules) in_one_category(module.live);
  }
  // what has a name of its own is not told as part of something else
  std::vector<std::pair<std::string, std::uint64_t>> named;
  for (const PlanModule& module : plan.peak.modules) {
    if (module.path != "(KV cache)" && module.path != "(DDP buckets)") continue;
    for (const auto& [category, bytes] : module.live) {
      for (auto& [name, all] : plan.peak.live) {
        if (name == category) all -= std::min(all, bytes);
      }
    }
    named.emplace_back(module.path.substr(1, module.path.size() - 2), module.bytes);
  }
  plan.peak.live.insert(plan.peak.live.end(), named.begin(), named.end());
}

// Each of several GPUs. A rank that uses one alone was planned in a process of its own, and the others are those of other ranks.
void describe_devices(const Facts& facts, std::size_t slot, bool is_rank, Plan& plan) {
  plan.device = facts.usage[slot].device;
  const auto used = std::count_if(facts.usage.begin(), facts.usage.end(),
                                  [](const DeviceUsage& usage) { return usage.peak_reserved.reserved != 0; });
  if (facts.usage.size() < 2 || (is_rank && used < 2)) return;
  for (const DeviceUsage& usage : facts.usage)
    plan.devices.push_back({usage.device, usage.peak_allocated.allocated, usage.peak_reserved.reserved});
}

// Steps that each of several optimizers has made by then: every one of them is marked as it steps.
std::uint64_t rounds_of_all_until(const Trace& trace, std::uint32_t event, std::uint64_t optimizers) {
  std::map<std::string_view, std::uint64_t> turns;
  for (std::uint32_t at = 0; at < event; ++at) {
    if (trace.events[at].kind != EventKind::kOpBegin) continue;
    const std::string_view text = trace.strings.at(StringId(trace.events[at].extra));
    if (text.starts_with(kTurnMark)) ++turns[text];
  }
  if (turns.size() < optimizers) return 0;
  return std::min_element(turns.begin(), turns.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

void describe_failure(const Facts& facts, std::size_t slot, Plan& plan) {
  const std::vector<UsageMoment>& failures = facts.usage[slot].failures;
  if (failures.empty()) return;
  const std::uint32_t event = failures.back().event;
  plan.failure.at = whereabouts(facts, slot, event).location;
  const auto next = std::lower_bound(facts.steps.ends.begin(), facts.steps.ends.end(), event);
  plan.failure.steps_before = static_cast<std::uint64_t>(next - facts.steps.ends.begin());
  // what comes between two steps is in none: evaluation after the last of an epoch
  const bool within = plan.failure.phase.empty() || plan.failure.phase == "training";
  if (plan.run.optimizers > 1) {  // the first of them marks a round when the others are still to come
    plan.failure.steps_before = rounds_of_all_until(facts.trace, event, plan.run.optimizers);
    if (within && !plan.has_unequal_optimizers() && plan.failure.steps_before < plan.run.least_turns)
      plan.failure.in_step = 1 + plan.failure.steps_before;
  } else if (next != facts.steps.ends.end() && within) {
    plan.failure.in_step = 1 + plan.failure.steps_before;
  }
}

// What plans the program on so many GPUs of the kind that was asked for.
std::string command_for(std::uint64_t gpus, const PlanQuestion& question) {
  const Gpu* const gpu = question.gpus.empty() ? nullptr : &question.gpus.front();
  const std::string name = gpu == nullptr      ? "T4"
                           : gpu->name.empty() ? std::to_string(gpu->capacity_bytes / kMiB) + "MiB"
                                               : std::string(gpu->name);
  return fmt::format("faultline plan --gpu {}x{} -- {}", gpus, name, fmt::join(question.command, " "));
}

// What could not be planned, in whichever process.
void describe_unplanned(const PlanQuestion& question, const DryRunResult& run, Plan& plan) {
  std::uint64_t allocations = 0;
  for (const ProcessSummary& process : run.processes) {
    allocations += process.allocations + process.failures;
    if (!plan.trouble.unplanned.empty() || process.unplanned.empty()) continue;
    plan.trouble.unplanned = process.unplanned;
    if (process.uses_gpus != 0)
      plan.trouble.unplanned += " To plan so many, type: " + command_for(process.uses_gpus, question);
    plan.trouble.unplanned_line = process.unplanned_line;
  }
  const ProcessSummary& main = *run.main();
  if (!plan.trouble.unplanned.empty() || allocations != 0 ||
      (!run.main()->ended_in_order && plan.peak.reserved_bytes != 0) || plan.peak.outside_bytes != 0 || main.exception)
    return;
  plan.trouble.nothing_seen = !main.stopped.empty() || run.status == 0;
  if (!main.stopped.empty()) {
    plan.trouble.unplanned = fmt::format(
        "nothing was seen on the GPU: the dry run stopped the program {}, and it had not used the GPU until then "
        "(--seconds 0 lets it run on)",
        main.stopped);
  } else if (run.status == 0) {
    plan.trouble.unplanned = "nothing was seen on the GPU: the program ran to its end without using it";
  }
}

// A trace that is not whole tells less than the program took.
void describe_losses(const Trace& trace, Plan& plan) {
  const auto lost = std::find_if(trace.lost.begin(), trace.lost.end(), [](const auto& counter) {
    return counter.second != 0 && (counter.first == kLostWriterStopped || counter.first == kLostDroppedRecords ||
                                   counter.first == kLostCutChunks || counter.first == kLostDamagedChunks);
  });
  if (lost == trace.lost.end() || !plan.trouble.unplanned.empty()) return;
  plan.trouble.unplanned = fmt::format(
      "the recording of the dry run is not whole ({} {}): the folder it is written to may be full; -o names another",
      lost->first, lost->second);
}

// Processes that ran at one time share the GPU. Each is counted at its fullest, which is the most that they can take together. One beside the process
// that is planned which another ended is known by what it took until then.
void describe_together(const std::vector<ProcessSummary>& processes, Plan& plan) {
  for (const ProcessSummary& at : processes) {
    const bool was_killed = !at.ended_in_order && &at != &processes.front();
    std::uint64_t bytes = 0, count = 0;
    for (const ProcessSummary& other : processes) {
      if (other.allocations == 0 || other.began_s > at.began_s || other.ended_s < at.began_s) continue;
      bytes += other.peak_reserved + plan.context_bytes;
      ++count;
    }
    if (count > 1 || was_killed) plan.need.together_bytes = std::max(plan.need.together_bytes, bytes);
    if (was_killed && at.failures != 0 && plan.trouble.unplanned.empty())
      plan.trouble.unplanned =
          "a process of the program ran out of memory before another ended it; what it would have needed is not known";
  }
  if (!plan.gpu || plan.failure.happened || plan.need.together_bytes <= plan.gpu->capacity_bytes ||
      !plan.trouble.unplanned.empty())
    return;
  const std::string who =
      plan.run.processes == 1
          ? "a process that another ended used the GPU, and with what ran beside it can"
          : fmt::format("{} processes used the GPU, and those that ran at one time", plan.run.processes);
  plan.trouble.unplanned = fmt::format(
      "{} take up to {} together, which is more than its {}; each was planned alone, and not whether they are at their "
      "fullest at the same moment",
      who, format_bytes(plan.need.together_bytes), format_bytes(plan.gpu->capacity_bytes));
}

// The program was over and its summary written when a signal ended the process: libraries can fall while they are unloaded.
bool fell_at_the_end(const DryRunResult& run, const ProcessSummary& main) {
  return run.status > 128 && run.status != 128 + SIGINT && main.ended_in_order;
}

// went_on: a run on a larger GPU has told what it needs in all.
Verdict verdict_on(const DryRunResult& run, const ProcessSummary& main, const Plan& plan, bool interrupted,
                   bool went_on) {
  if (main.died_of_memory()) {
    const bool may_fit = went_on && plan.gpu && plan.need.most_bytes != 0 && plan.need.limit_bytes == 0 &&
                         plan.need.least_bytes <= plan.gpu->capacity_bytes;
    return may_fit ? Verdict::kTight : Verdict::kDoesNotFit;
  }
  if (interrupted || !main.ended_in_order || run.status == 128 + SIGINT) return Verdict::kInterrupted;
  if (!plan.trouble.unplanned.empty()) return Verdict::kUnplanned;
  const bool failed = main.exception || (run.status != 0 && !fell_at_the_end(run, main));
  // after the dry run's own stop it is the stop that the program reports
  if (failed && main.stopped.empty()) return Verdict::kProgramError;
  if (!plan.gpu) return Verdict::kMeasured;
  if (plan.growth.until != 0 &&
      (plan.growth.needed_at_end_bytes == 0 || plan.growth.needed_at_end_bytes > plan.gpu->capacity_bytes))
    return Verdict::kFitsUntil;
  return is_tight(*plan.gpu, std::max(plan.whole_need(), plan.growth.needed_at_end_bytes)) ? Verdict::kTight
                                                                                           : Verdict::kFits;
}

// What is estimated, and how much is needed at both ends of it.
void describe_estimates(const Trace& trace, const Needs& needs, Plan& plan) {
  if (!needs.is_estimated) return;
  plan.need.least_bytes = needs.least_needed_bytes();
  plan.need.most_bytes = needs.most_needed_bytes();
  plan.peak.least = {needs.least.allocated_bytes, needs.least.reserved_bytes};
  plan.peak.most = {needs.most.allocated_bytes, needs.most.reserved_bytes};
  std::map<std::uint32_t, PlanEstimate> found;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kEstimate || event.device != trace.devices[needs.slot].index) continue;
    PlanEstimate& estimate = found[event.extra];
    ++estimate.count;
    estimate.largest_bytes = std::max(estimate.largest_bytes, event.size_bytes);
  }
  for (auto& [what, estimate] : found) {
    estimate.what = trace.strings.at(StringId(what));
    plan.need.estimates.push_back(std::move(estimate));
  }
  std::stable_sort(plan.need.estimates.begin(), plan.need.estimates.end(),
                   [](const PlanEstimate& a, const PlanEstimate& b) { return a.largest_bytes > b.largest_bytes; });
}

void describe_need(const PlannedRun& run, Plan& plan) {
  plan.context_bytes = run.needs.context_bytes;
  plan.need.limit_bytes = run.trace.devices[run.needs.slot].allowed_bytes;
  plan.peak.outside_bytes = run.needs.outside_bytes;
  plan.peak.reserved_bytes = run.needs.reserved_bytes;
  plan.need.taken_bytes = run.needs.taken_bytes();
  plan.need.bytes = run.needs.needed_bytes();
  describe_estimates(run.trace, run.needs, plan);
  if (run.needs.pool) {
    plan.pool.framework = file_name_of(*run.needs.pool);
    plan.pool.bytes = run.needs.segment_bytes;
    plan.pool.share = run.needs.share;
  }
}

// What is odd about how it ended, or which part of it was planned.
void add_notes_on_ends(const DryRunResult& first, const ProcessSummary& main, const PlannedRun& run, Plan& plan) {
  if (main.ranks > 1 && run.judgement.facts->usage.size() > 1 && plan.devices.empty()) {
    plan.notes.push_back({NoteKind::kMode,
                          fmt::format("each rank was planned as a process of its own; the one that needs most uses "
                                      "cuda:{} alone, the other GPUs are those of the other ranks",
                                      plan.device),
                          "", 1});
  }
  if (fell_at_the_end(first, *first.main())) {
    plan.notes.push_back(
        {NoteKind::kMode,
         fmt::format("signal {} ended the process when the program was already over; the plan is complete",
                     first.status - 128),
         "", 1});
  }
  if (plan.failure.happened && main.exception && !main.died_of_memory()) {
    const PlanException& other = *main.exception;
    const std::string words = other.message.substr(0, other.message.find('\n')).substr(0, 160);
    plan.notes.insert(
        plan.notes.begin(),
        {NoteKind::kMode,
         fmt::format("on a larger GPU, where it went on, the program ended with {}{}, which Faultline does not judge: "
                     "what it needs is counted until there",
                     other.type, words.empty() ? "" : ": " + words),
         other.location.file.empty() ? "" : fmt::format("{}:{}", other.location.file, other.location.line), 1});
  }
  if (plan.failure.happened && !plan.trouble.unplanned.empty())
    plan.notes.push_back({NoteKind::kMode, "not planned, and the program went on: " + plan.trouble.unplanned,
                          plan.trouble.unplanned_line, 1});
}

}  // namespace

Plan describe(const PlanQuestion& question, const DryRunResult& first, const DryRunResult& told, const PlannedRun& run,
              bool interrupted) {
  const ProcessSummary& as_asked = *first.main();
  const ProcessSummary& main = *told.main();
  const std::vector<ProcessSummary>& processes = told.processes;
  Plan plan;
  plan.command = question.command;
  plan.run.exit_status = first.status;
  if (question.names_gpu()) plan.gpu = plan_gpu(question.gpu_at(run.needs.slot));
  describe_devices(*run.judgement.facts, run.needs.slot, main.ranks > 1, plan);
  describe_need(run, plan);
  describe_peak(*run.judgement.facts, run.needs.slot, plan);
  plan.run.steps = main.steps;
  plan.run.optimizers = main.optimizers;
  plan.run.most_turns = main.most_turns;
  plan.run.least_turns = main.least_turns;
  plan.failure.happened = as_asked.died_of_memory();
  describe_phases(*run.judgement.facts, run.needs.slot,
                  main.steps != 0 || main.does("backward") || main.does("optimizer"), plan);
  if (plan.failure.happened) describe_failure(*run.judgement.facts, run.needs.slot, plan);
  plan.run.not_reached = main.not_reached;
  plan.failure.caught = as_asked.failures - std::min<std::uint64_t>(as_asked.failures, plan.failure.happened ? 1 : 0);
  plan.run.alike_from = main.alike_from;
  plan.growth.loop = main.loop;
  plan.run.stopped = main.stopped;
  plan.run.stopped_by = main.stopped_by;
  plan.run.stop_asked = (main.stopped_by == StoppedBy::kSteps && question.steps_asked) ||
                        (main.stopped_by == StoppedBy::kSeconds && question.seconds_asked);
  plan.versions.framework = as_asked.framework;
  plan.run.how = question.real ? "real" : "fake";
  plan.run.seconds = first.seconds;
  plan.run.operations = main.operations;
  plan.run.processes = static_cast<std::uint64_t>(
      std::count_if(processes.begin(), processes.end(), [](const ProcessSummary& s) { return s.allocations != 0; }));
  plan.run.processes = std::max<std::uint64_t>(plan.run.processes, 1);
  if (plan.run.stopped.empty() && as_asked.exception &&
      !(plan.failure.happened && is_out_of_memory(*as_asked.exception)))
    plan.trouble.exception = as_asked.exception;
  plan.effects = first.effects;
  describe_unplanned(question, first, plan);
  describe_losses(run.trace, plan);
  // of several GPUs it is not known which process used which at its fullest
  if (run.judgement.facts->usage.size() < 2) describe_together(first.processes, plan);
  if (!plan.failure.happened) describe_growth(run.judgement.findings, *run.judgement.facts, run.needs.slot, plan);
  if (!plan.failure.happened) describe_cut_loops(main, run, plan);
  plan.verdict = verdict_on(first, as_asked, plan, interrupted, &first != &told);
  if (plan.verdict == Verdict::kProgramError) plan.trouble.stand_in_line = as_asked.stand_in_line;
  plan.notes = notes_of(run.trace);
  plan.growth.is_there = std::any_of(
      run.judgement.findings.begin(), run.judgement.findings.end(),
      [](const Finding& finding) { return topic_of(finding) == Topic::kGrowth && !finding.number("limit_bytes"); });
  describe_limits(run.judgement.findings, *run.judgement.facts, run.needs.slot, plan);
  add_notes_on_ends(first, main, run, plan);
  plan.folder = question.folder;
  plan.trace = std::filesystem::path(main.trace).lexically_relative(plan.folder).string();
  if (!plan.gpu) {
    Needs whole = run.needs;
    whole.segment_bytes += plan.growth.needed_at_end_bytes > whole.needed_bytes()
                               ? plan.growth.needed_at_end_bytes - whole.needed_bytes()
                               : 0;
    plan.fits = fits_on_catalogue(whole);
  }
  return plan;
}

void weaken_failures(const Plan& plan, std::vector<Finding>& findings) {
  if (!plan.failure.happened || !plan.is_undecided()) return;
  for (Finding& finding : findings) {
    if (topic_of(finding) != Topic::kExhausted) continue;
    finding.severity = Severity::kWarning;
    finding.confidence = Confidence::kLikely;
    finding.message += " With what is estimated at its least every request is served.";
  }
}

}  // namespace faultline
