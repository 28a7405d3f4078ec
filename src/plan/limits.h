// Limits that somebody sets on what a program may need: a budget (plan --budget), and an earlier plan of it that it may outgrow by so much (--compare).
//
// What is compared is what a plan says that the program needs: the smallest GPU on which all its requests are served, the CUDA context and what is taken
// beside PyTorch's allocator included, the cache given back where that helps. So a budget of 14 GiB is kept by what runs on a GPU that has 14 GiB.
// A limit that is broken is a finding (memory/over-budget, memory/grown), with the lines that hold the memory; one that could not be judged says why, and
// is never taken for one that is kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/gpus.h"
#include "plan/plan.h"

namespace faultline {

PlanBudget judge_budget(const Plan& plan, std::uint64_t bytes);

// How much more: a share of what it was, or bytes.
struct AllowedGrowth {
  std::string words;  // as it was asked for
  double share = 0;
  std::uint64_t bytes = 0;
};
Result<AllowedGrowth> parse_allowed_growth(std::string_view text);  // "5%", "200MiB"

// Why nothing can be compared with it, whatever the program does now: it is one of another GPU, or came to no end; empty: it can.
std::string why_no_base(const Plan& plan, const std::vector<Gpu>& gpus);

// An earlier plan, and the file it was read from.
struct PlanBase {
  const Plan& plan;
  const std::string& path;
};
// grown_lines: those that hold more at the peak than they did there.
PlanComparison compare_with_base(const PlanBase& base, const Plan& plan, std::vector<PlanLineChange> grown_lines,
                                 const AllowedGrowth& allowed);

// The findings of limits that are broken. holders: who holds the memory of the plan's GPU at its peak.
void judge_limits(const Plan& plan, const std::vector<Holder>& holders, std::vector<Finding>& findings);

std::string need_words(std::uint64_t bytes, bool at_least);  // "at least 1.20 GiB"
// A limit was set and could not be judged.
bool has_unjudged_limit(const Plan& plan);

}  // namespace faultline
