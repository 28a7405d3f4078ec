#include "report/plan_summary.h"

#include <fmt/format.h>

#include "base/units.h"
#include "report/limits_text.h"
#include "report/needs_text.h"

namespace faultline {

static std::string verdict_words(const Plan& plan) {
  switch (plan.verdict) {
    case Verdict::kFits:
    case Verdict::kTight:
      if (plan.is_undecided())
        return "may not fit: needs " + needed_text(plan) + ", and the GPU has " +
               format_bytes(plan.gpu->capacity_bytes) + beside_verdict(plan);
      return fmt::format("fits{}{}, {} to spare", plan.verdict == Verdict::kTight ? " tightly" : "",
                         plan.run.stopped.empty() ? "" : " as far as it was run", format_bytes(plan.spare_bytes())) +
             beside_verdict(plan);
    case Verdict::kFitsUntil:
      return fmt::format("fits until about {} {}", unit_text(plan), format_count(plan.growth.until));
    case Verdict::kUnplanned: return "not planned: " + plan.trouble.unplanned;
    case Verdict::kDoesNotFit:
      return (plan.missing_bytes() == 0 ? std::string("does not fit")
                                        : fmt::format("does not fit, {} too little", missing_text(plan))) +
             (plan.run.interrupted ? " (the plan was stopped by a signal)" : "");
    case Verdict::kMeasured:
      if (plan.need.filling)
        return "what it needs depends on the GPU, and none was named (--gpu)" + beside_verdict(plan);
      return "needs " + needed_text(plan) + beside_verdict(plan);
    case Verdict::kProgramError:
      return std::string(plan.trouble.stand_in_line.empty()
                             ? "the program failed by itself"
                             : "the program failed, maybe for a number that a dry run does not compute") +
             (plan.trouble.exception ? " (" + plan.trouble.exception->type + ")" : "");
    case Verdict::kInterrupted: return "the program was stopped";
  }
  return {};
}

std::string summary_of(const Plan& plan) { return verdict_words(plan) + broken_limits_text(plan); }

}  // namespace faultline
