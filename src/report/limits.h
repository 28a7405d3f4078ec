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
#include "report/report.h"

namespace faultline {

// The rules of a plan's limits, which no trace is judged by.
inline constexpr std::string_view kOverBudgetRule = "memory/over-budget", kGrownRule = "memory/grown";

PlanBudget judge_budget(const Plan& plan, std::uint64_t bytes);

// How much more: a share of what it was, or bytes.
struct AllowedGrowth {
  std::string words;  // as it was asked for
  double share = 0;
  std::uint64_t bytes = 0;
};
Result<AllowedGrowth> parse_allowed_growth(std::string_view text);  // "5%", "200MiB"

// Why nothing can be compared with it, whatever the program does now: it is no plan, or one of another GPU; empty: it can.
std::string why_no_base(const Report& base, const std::vector<Gpu>& gpus);

// report: its devices, without the plan.
PlanComparison compare_with_base(const Report& base, const Report& report, const Plan& plan,
                                 const AllowedGrowth& allowed);

// The findings of limits that are broken.
void add_limits(Report& report, const Plan& plan);

// In words: ", 1.20 GiB over the budget"; empty where no limit is broken.
std::string broken_limits_text(const Plan& plan);
// For the page: each limit that was set and what came of it.
std::vector<std::pair<std::string_view, std::string>> limit_rows(const Plan& plan);
// A limit was set and could not be judged.
bool has_unjudged_limit(const Plan& plan);

}  // namespace faultline
