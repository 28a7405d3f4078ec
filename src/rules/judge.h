// Judging a trace: proofs, facts, rules, in that order. The one way from a trace to findings.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "facts/facts.h"
#include "models/replay.h"
#include "rules/finding.h"
#include "sources/statements.h"
#include "trace/trace.h"

namespace faultline {

struct Judgement {
  std::vector<std::optional<ReplayResult>> proofs;  // per Trace::devices
  std::vector<std::string> no_proof_because;        // likewise; empty where there is one
  std::vector<std::uint64_t> held_bytes;            // by allocation id: what the models say each allocation took
  std::unique_ptr<Facts> facts;
  Statements statements;
  std::vector<Finding> findings;  // errors, warnings, notes; within one the failure before what explains it
  std::vector<NotJudged> not_judged;
};

// The trace must outlive the judgement.
Judgement judge(const Trace& trace);
Judgement judge(const Trace& trace, const Statements& statements);

// The order to read findings in: what ended the program first, then by severity.
bool comes_before(const Finding& a, const Finding& b);

}  // namespace faultline
