// One finding on the terminal, top-down: rule and one sentence, where, which memory, allocated at, freed at, who holds it, why we believe
// it, what to try, the page to read. A line of the user's own program always stands before a line inside a library.
#pragma once

#include <vector>

#include "report/page.h"
#include "report/report.h"

namespace faultline {

// Findings with one fingerprint. The first member, the worst, speaks for all.
struct FindingGroup {
  std::vector<const Finding*> members;
  const Finding& first() const { return *members.front(); }
  std::uint64_t count() const;
  std::uint64_t size_bytes() const;
};

// Worst first, otherwise in the order given. A finding without a fingerprint is its own group.
std::vector<FindingGroup> group_findings(const std::vector<Finding>& findings);

// The line to look at: the user's own where one is known.
const Location& place_to_look(const Finding& finding);

struct FindingDetail {
  bool brief = false;         // what happened, where, why, and the first thing to try
  bool every_line = false;    // all holders, callers, numbers and tries, also those that a replay refuted
  bool name_devices = false;  // more than one device is in the report
  bool plan_told = false;     // a plan stands above: what it tried is not told again
};
void print_finding(Page& page, const FindingGroup& group, const FindingDetail& detail);

// The rule and the line to look at, for a list of what is not told in full.
std::string finding_line(const Page& page, const FindingGroup& group);

// Rows of who holds memory: bytes, how many, what, where.
void print_holders(Page& page, std::string_view label, const std::vector<Holder>& holders, bool every_line);

}  // namespace faultline
