// Puts a judgement into the form that is reported: findings as they are, and per device the account, the peaks, the curve and the model's proof.
#pragma once

#include <span>

#include "report/report.h"
#include "rules/judge.h"
#include "sources/input.h"

namespace faultline {

// One report of the whole input: judgements holds one for each part.
Report make_report(const Input& input, std::span<const Judgement> judgements);
Report make_report(const Trace& trace, const Judgement& judgement);

// Adds what a dry run found out; the changes it tried become tries of the out-of-memory finding.
void attach_plan(Report& report, Plan plan);

}  // namespace faultline
