// Puts a judgement into the form that is reported: findings as they are, and per device the account, the peaks, the curve and the model's proof.
#pragma once

#include <functional>

#include "report/report.h"
#include "rules/judge.h"
#include "sources/input.h"

namespace faultline {

// Judges every part of the input: one report of the whole. `visit` sees each part and its judgement, which is gone afterwards.
using VisitPart = std::function<void(const InputPart& part, const Judgement& judgement)>;
Report make_report(const Input& input, const VisitPart& visit = {});
Report make_report(const Trace& trace, const Judgement& judgement);

// Adds what a dry run found out; the changes it tried become tries of the out-of-memory finding.
void attach_plan(Report& report, Plan plan);

}  // namespace faultline
