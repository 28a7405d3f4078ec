#include "plan/settle.h"

#include <algorithm>

#include "facts/libraries.h"
#include "plan/limits.h"
#include "rules/judge.h"
#include "rules/registry.h"

namespace faultline {
namespace {

// Where it fits with room, waste of memory is good to know and no more; so is anything in code that is not the program's.
void weigh(const Plan& plan, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  // What a larger GPU kept is not what this one would; and pools have no settings that PyTorch's allocator could ignore.
  if (plan.verdict == Verdict::kDoesNotFit)
    std::erase_if(findings, [](const Finding& finding) { return rule_named(finding.rule).depends_on_room; });
  if (!plan.pool.framework.empty())
    std::erase_if(not_judged, [](const NotJudged& one) { return rule_named(one.rule).topic == Topic::kSettings; });
  const bool runs = has_room(plan.verdict);
  for (Finding& finding : findings) {
    // The program caught it and went on: it costs what was skipped, but the program runs.
    if (runs && ran_out_of_memory(finding)) finding.severity = Severity::kWarning;
    if (plan.verdict != Verdict::kFits || finding.severity != Severity::kWarning) continue;
    const Topic topic = topic_of(finding);
    const bool of_a_library =
        topic != Topic::kGrowth && is_library_file(finding.location.file) && finding.call_path.empty();
    if (topic == Topic::kWaste || of_a_library) finding.severity = Severity::kNote;
  }
  std::stable_sort(findings.begin(), findings.end(), comes_before);
}

// A leak that held more than the request that failed is the cause, the failure what came of it: it is told first, the largest before the others.
void put_cause_first(std::vector<Finding>& findings) {
  const auto failure = std::find_if(findings.begin(), findings.end(), ran_out_of_memory);
  if (failure == findings.end()) return;
  const auto explains = [requested = failure->bytes, device = failure->device](const Finding& finding) {
    return topic_of(finding) == Topic::kGrowth && finding.severity == Severity::kError && finding.device == device &&
           finding.number("full_at_step").value_or(0) > 2 &&
           static_cast<std::uint64_t>(finding.number("kept_when_full_bytes").value_or(0)) >= requested;
  };
  std::stable_partition(findings.begin(), findings.end(), explains);
}

}  // namespace

void settle_findings(const Plan& plan, const std::vector<Holder>& holders, std::vector<Finding>& findings,
                     std::vector<NotJudged>& not_judged) {
  std::uint32_t last = 0;
  for (const Finding& finding : findings) last = std::max(last, finding.id);
  judge_limits(plan, holders, findings);
  for (Finding& finding : findings) {
    if (finding.id == 0) finding.id = ++last;
  }
  weigh(plan, findings, not_judged);
  if (plan.failure.happened) put_cause_first(findings);
  const auto failure = std::find_if(findings.begin(), findings.end(),
                                    [](const Finding& finding) { return topic_of(finding) == Topic::kExhausted; });
  if (failure == findings.end()) return;
  for (Try& advice : tries_of(plan)) failure->tries.push_back(std::move(advice));
}

}  // namespace faultline
