#include "rules/judge.h"

#include <algorithm>
#include <future>

#include "base/units.h"
#include "rules/rule.h"
#include "trace/recorded_part.h"

namespace faultline {
namespace {

void prove(const Trace& trace, Judgement& judgement) {
  for (const Device& device : trace.devices) {
    ReplayOptions options;
    options.proof = true;
    options.device = device.index;
    options.held_bytes = &judgement.held_bytes;
    Result<ReplayResult> proof = replay(trace, options);
    judgement.no_proof_because.push_back(proof ? "" : proof.error().what);
    judgement.proofs.push_back(proof ? std::optional<ReplayResult>(std::move(*proof)) : std::nullopt);
  }
}

// Empty: the rule can be asked.
std::string what_it_lacks(const Rule& rule, const Trace& trace, const Statements& statements) {
  if (rule.reads_messages && statements.error) return {};
  // a text may hold a map of a pool
  if (statements.message_only && (rule.beyond_messages.empty() || rule.needs == 0 || !trace.can(rule.needs)))
    return "a recording";
  if (trace.can(rule.needs)) return {};
  return "it needs " + describe_capabilities(rule.needs & ~trace.capabilities) + ", which this input does not have";
}

// Of everything that a message cannot show, what one reads about such a failure for.
void add_beyond_message(const Trace& trace, Judgement& judgement) {
  for (const Rule& rule : all_rules()) {
    const auto is_near = [&](const Finding& finding) {
      return group_of(finding.rule) == group_of(rule.name) && topic_of(finding) != Topic::kMachine;
    };
    if (rule.beyond_messages.empty() || (rule.needs != 0 && trace.can(rule.needs)) ||
        std::none_of(judgement.findings.begin(), judgement.findings.end(), is_near))
      continue;
    judgement.not_judged.push_back({rule.name, std::string(rule.beyond_messages), true});
  }
}

// What happens at the driver's boundary and on the GPU is in no allocator's history; and where it is, kernels' accesses are not looked at one by one.
void add_unshown(const Trace& trace, const Statements& statements, Judgement& judgement) {
  const auto was_caught = [](const Event& event) {
    return event.kind == EventKind::kViolation || event.kind == EventKind::kFault;
  };
  const bool sees_accesses = trace.can(kAccesses) || std::any_of(trace.events.begin(), trace.events.end(), was_caught);
  for (const Rule& rule : all_rules()) {
    if (!rule.reads_driver || (rule.reads_messages && statements.error)) continue;
    if (!statements.shows_calls) {
      judgement.not_judged.push_back(
          {rule.name,
           !statements.placed_by_model
               ? "an allocator's own history does not show faults, launches, copies or the driver's frees; faultline "
                 "run does"
           : !rule.beyond_dry_runs.empty()
               ? std::string(rule.beyond_dry_runs)
               : "nothing ran on a GPU: a dry run has no faults, and no launches, copies or frees of the driver",
           true});
    } else if (statements.is_recorded && !sees_accesses && rule.reads_accesses) {
      judgement.not_judged.push_back(
          {rule.name, "kernels' accesses are not checked one by one; only what the GPU reports as a fault is seen",
           true});
    }
  }
}

// What came after the end of a recording was not seen; of it nothing is judged.
void add_unrecorded(const Trace& trace, const Statements& statements, Judgement& judgement) {
  const RecordedPart part = recorded_part(trace);
  for (const Rule& rule : all_rules()) {
    if (!rule.at_the_end.empty() && statements.is_recorded && !statements.ending.exited && part.all)
      judgement.not_judged.push_back(
          {rule.name, std::string(rule.at_the_end) +
                          ": the process did not come to exit() (it was killed by a signal, by _exit() "
                          "or by exec), or its end was not recorded"});
  }
  if (part.all_calls) return;
  for (const Rule& rule : all_rules()) {
    if (rule.topic == Topic::kLimit) continue;
    if (!part.all)
      judgement.not_judged.push_back({rule.name, "what the process did after its recording ended, " + part.because});
    else if (rule.reads_calls)
      judgement.not_judged.push_back(
          {rule.name, "launches, copies and waits that are not recorded from a moment on, " + part.because});
  }
}

// Nobody reads ten thousand findings of one rule, and whoever made a recording that has them does not mean them to be read.
void keep_in_bounds(const Rule& rule, std::size_t before, Judgement& judgement) {
  constexpr std::size_t kMostFindings = 10'000;
  const std::size_t made = judgement.findings.size() - before;
  if (made <= kMostFindings) return;
  judgement.findings.resize(before + kMostFindings);
  judgement.not_judged.push_back({rule.name, format_count(made - kMostFindings) + " findings beyond the first " +
                                                 format_count(kMostFindings) + " are left out"});
}

}  // namespace

bool comes_before(const Finding& a, const Finding& b) {
  const bool a_ended = topic_of(a) == Topic::kEnding, b_ended = topic_of(b) == Topic::kEnding;
  return a_ended != b_ended ? a_ended : a.severity < b.severity;
}

Judgement judge(const Trace& trace) { return judge(trace, read_statements(trace)); }

Judgement judge(const Trace& trace, const Statements& statements) {
  Judgement judgement;
  judgement.statements = statements;
  // The proof tells block sizes; the facts that do not need them are derived meanwhile.
  judgement.held_bytes.resize(trace.allocation_count + std::size_t{1});
  std::future<void> proving = std::async(std::launch::async, [&] { prove(trace, judgement); });
  judgement.facts = std::make_unique<Facts>(trace, judgement.held_bytes, [&] { proving.get(); });
  Case subject(trace, judgement.statements, *judgement.facts, judgement.proofs);
  for (const Rule& rule : all_rules()) {
    if (rule.judge == nullptr) continue;
    const std::string lacks = what_it_lacks(rule, trace, statements);
    if (lacks.empty()) {
      const std::size_t before = judgement.findings.size();
      rule.judge(subject, judgement.findings, judgement.not_judged);
      keep_in_bounds(rule, before, judgement);
    } else if (!statements.message_only) {
      judgement.not_judged.push_back({rule.name, lacks, (rule.needs & ~trace.capabilities & ~kTensors) == 0});
    }
  }
  if (statements.message_only)
    add_beyond_message(trace, judgement);
  else
    add_unshown(trace, statements, judgement);
  add_unrecorded(trace, statements, judgement);
  // What broke comes before what explains it: rules run in that order, so within one severity the order of the rules stays.
  std::stable_sort(judgement.findings.begin(), judgement.findings.end(), comes_before);
  for (std::uint32_t id = 0; Finding & finding : judgement.findings) finding.id = ++id;
  return judgement;
}

}  // namespace faultline
