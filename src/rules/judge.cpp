#include "rules/judge.h"

#include <algorithm>
#include <future>

#include "base/units.h"
#include "rules/error_text/error_text.h"
#include "rules/rule.h"
#include "sources/error_text/error_text.h"
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

// What came after the end of a recording was not seen; of it nothing is judged.
void add_unrecorded(const Trace& trace, Judgement& judgement) {
  const RecordedPart part = recorded_part(trace);
  if (part.all_calls) return;
  for (const Rule& rule : all_rules()) {
    if (!part.all) judgement.not_judged.push_back({std::string(rule.name), "what the process did after its recording ended, " + part.because});
    else if (rule.reads_calls) judgement.not_judged.push_back({std::string(rule.name), "launches, copies and waits that are not recorded from a moment on, " + part.because});
  }
}

// Nobody reads ten thousand findings of one rule, and whoever made a recording that has them does not mean them to be read.
void keep_in_bounds(const Rule& rule, std::size_t before, Judgement& judgement) {
  constexpr std::size_t kMostFindings = 10'000;
  const std::size_t made = judgement.findings.size() - before;
  if (made <= kMostFindings) return;
  judgement.findings.resize(before + kMostFindings);
  judgement.not_judged.push_back({std::string(rule.name), format_count(made - kMostFindings) + " findings beyond the first " + format_count(kMostFindings) + " are left out"});
}

}  // namespace

Judgement judge(const Trace& trace) {
  Judgement judgement;
  if (trace.source_kind == kErrorTextSource) {
    judge_error_text(trace, judgement.findings, judgement.not_judged);
  } else {
    // The proof tells block sizes; the facts that do not need them are derived meanwhile.
    judgement.held_bytes.resize(trace.allocation_count + std::size_t{1});
    std::future<void> proving = std::async(std::launch::async, [&] { prove(trace, judgement); });
    judgement.facts = std::make_unique<Facts>(trace, judgement.held_bytes, [&] { proving.get(); });
    Case subject(trace, *judgement.facts, judgement.proofs);
    for (const Rule& rule : all_rules()) {
      if (trace.can(rule.needs)) {
        const std::size_t before = judgement.findings.size();
        rule.judge(subject, judgement.findings, judgement.not_judged);
        keep_in_bounds(rule, before, judgement);
      } else {
        judgement.not_judged.push_back({std::string(rule.name), "it needs " + describe_capabilities(rule.needs & ~trace.capabilities) + ", which this input does not have"});
      }
    }
  }
  add_unrecorded(trace, judgement);
  // What broke comes before what explains it: rules run in that order, so within one severity the order of the rules stays.
  std::stable_sort(judgement.findings.begin(), judgement.findings.end(), [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return judgement;
}

}  // namespace faultline
