#include "plan/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/given_size.h"
#include "base/units.h"
#include "rules/describe.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

// What a limit is compared with.
struct Need {
  std::uint64_t bytes = 0;
  bool at_least = false;
  std::string why_not;                            // there is no such number
  std::uint64_t least_bytes = 0, most_bytes = 0;  // where something is estimated
};

bool ran_to_no_end(const Plan& plan) {
  return plan.verdict == Verdict::kUnplanned || plan.verdict == Verdict::kProgramError ||
         plan.verdict == Verdict::kInterrupted;
}

Need need_of(const Plan& plan) {
  if (!plan.gpu && plan.need.filling) return {0, false, "what it needs depends on the GPU, and none was named (--gpu)"};
  Need need{
      std::max(plan.need.bytes, plan.growth.needed_at_end_bytes), !plan.is_known_in_all() || ran_to_no_end(plan), {}};
  // Of several GPUs the plan is about the one that has least to spare, which need not be the one that takes most.
  for (const PlanDevice& device : plan.devices) {
    if (device.index != plan.device && device.reserved_bytes != 0)
      need.bytes = std::max(need.bytes, plan.context_bytes + device.reserved_bytes);
  }
  need.most_bytes = std::max(need.bytes, plan.need.most_bytes);
  // what was not estimated stays: another GPU, what comes until the end
  need.least_bytes = plan.need.most_bytes == 0 || need.bytes != plan.need.bytes ? need.bytes : plan.need.least_bytes;
  return need;
}

// What was seen keeps the limit: may that be said of the program?
std::string why_not_kept(const Plan& plan, std::uint64_t limit_bytes) {
  if (plan.verdict == Verdict::kUnplanned) return "the program was not planned: " + plan.trouble.unplanned;
  if (ran_to_no_end(plan)) return "the program was not planned to its end";
  if (plan.need.is_least) return "the program ran out of memory, and what it needs in all is not known";
  if (plan.need.together_bytes > limit_bytes)
    return fmt::format(
        "its processes take up to {} together, each at its fullest, and whether that is at one moment is not known",
        format_bytes(plan.need.together_bytes));
  return {};
}

// The line of the program that holds most.
Location first_line(const std::vector<Holder>& holders) {
  for (const Holder& holder : holders) {
    if (!holder.location.file.empty()) return holder.location;
  }
  return {};
}

Finding limit_finding(std::string_view rule, const Plan& plan, std::vector<Holder> holders) {
  Finding finding;
  finding.rule = rule;
  finding.severity = Severity::kError;
  finding.confidence = Confidence::kLikely;
  finding.device = static_cast<std::uint16_t>(plan.device);
  finding.location = first_line(holders);
  finding.holders = std::move(holders);
  finding.fingerprint = fingerprint(rule, finding.location);
  return finding;
}

Finding over_budget(const Plan& plan, std::vector<Holder> holders) {
  const PlanBudget& budget = *plan.limits.budget;
  Finding finding = limit_finding(rule_name::kOverBudget, plan, std::move(holders));
  finding.message = fmt::format("The program needs {} and its budget is {}: {} too much.",
                                need_words(budget.needed_bytes, budget.at_least), format_bytes(budget.bytes),
                                need_words(budget.over_bytes(), budget.at_least));
  finding.bytes = budget.over_bytes();
  add_evidence(finding, "needed_bytes", budget.needed_bytes);
  add_evidence(finding, "budget_bytes", budget.bytes);
  add_evidence(finding, "context_bytes", plan.context_bytes);
  return finding;
}

Finding grown(const Plan& plan) {
  const PlanComparison& compared = *plan.limits.comparison;
  std::vector<Holder> holders;
  for (const PlanLineChange& line : compared.lines) {
    holders.push_back({line.now_bytes - std::min(line.now_bytes, line.before_bytes), line.count, line.category,
                       line.location,
                       fmt::format("{} then, {} now", format_bytes(line.before_bytes), format_bytes(line.now_bytes))});
  }
  Finding finding = limit_finding(rule_name::kGrown, plan, std::move(holders));
  finding.message = fmt::format("The program needs {}, which is {} more than the {} of {}; {} more is allowed.",
                                format_bytes(compared.needed_bytes), format_bytes(compared.grown_bytes()),
                                format_bytes(compared.before_bytes), compared.base, compared.allowed);
  if (finding.holders.empty())
    finding.memory =
        "No line holds more at the peak than it did: what grew is cache, gaps between tensors, or memory beside the "
        "allocator.";
  if (!compared.differences.empty())
    finding.memory += fmt::format("{}Not the program alone may have changed: {}.", finding.memory.empty() ? "" : " ",
                                  fmt::join(compared.differences, "; "));
  finding.bytes = compared.grown_bytes();
  add_evidence(finding, "needed_bytes", compared.needed_bytes);
  add_evidence(finding, "before_bytes", compared.before_bytes);
  add_evidence(finding, "allowed_bytes", compared.allowed_bytes);
  return finding;
}

std::string how_far(const Plan& plan) {
  return plan.run.stopped.empty() ? "to its end" : "and stopped " + plan.run.stopped;
}

// The interpreter lies elsewhere on another machine.
std::string command_words(const Plan& plan) {
  std::vector<std::string> words = plan.command;
  if (!words.empty()) words.front().erase(0, words.front().rfind('/') + 1);
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> differences_between(const Plan& before, const Plan& now) {
  std::vector<std::string> found;
  const auto compare = [&](std::string_view what, const std::string& then, const std::string& today) {
    if (!then.empty() && !today.empty() && then != today)
      found.push_back(fmt::format("{}{} then, {} now", what, then, today));
  };
  compare("", before.versions.framework, now.versions.framework);
  compare("Faultline ", before.versions.faultline, now.versions.faultline);
  compare("it was run ", how_far(before), how_far(now));
  compare("the command was ", command_words(before), command_words(now));
  if (before.run.how != now.run.how) found.push_back("one of the two was planned with real numbers (--real)");
  return found;
}

}  // namespace

PlanBudget judge_budget(const Plan& plan, std::uint64_t bytes) {
  Need need = need_of(plan);
  const bool both_sides = need.why_not.empty() && need.least_bytes <= bytes && need.most_bytes > bytes;
  PlanBudget budget{bytes, need.bytes, need.at_least, std::move(need.why_not)};
  if (both_sides) {
    budget.why_not = fmt::format("it needs {} to {}: part of that is estimated", format_bytes(need.least_bytes),
                                 format_bytes(need.most_bytes));
    return budget;
  }
  if (budget.why_not.empty() && budget.over_bytes() == 0) budget.why_not = why_not_kept(plan, bytes);
  return budget;
}

Result<AllowedGrowth> parse_allowed_growth(std::string_view text) {
  if (!text.ends_with('%')) {
    Result<std::uint64_t> bytes = parse_size(text);
    if (!bytes)
      return Error{"'" + std::string(text) + "' is neither a share nor a size", {}, "Write for example 5% or 200MiB."};
    return AllowedGrowth{format_bytes(*bytes), 0, *bytes};
  }
  std::string_view number = text.substr(0, text.size() - 1);
  while (number.ends_with(' ')) number.remove_suffix(1);
  double percent = 0;
  const auto [stop, code] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (code != std::errc() || stop != number.data() + number.size() || !std::isfinite(percent) || percent < 0 ||
      percent > 1e6)
    return Error{"'" + std::string(text) + "' is no share", {}, "Write for example 5% or 200MiB."};
  return AllowedGrowth{fmt::format("{:g} %", percent), percent / 100, 0};
}

std::string why_no_base(const Plan& plan, const std::vector<Gpu>& gpus) {
  if (ran_to_no_end(plan))
    return "that plan did not come to the program's end (" + std::string(name_of(plan.verdict)) +
           "), so what the program needed then is not known";
  if (plan.need.is_least) return "that plan ended at an out-of-memory, so what the program needed then is not known";
  if (const Need need = need_of(plan); !need.why_not.empty()) return "of that plan it holds: " + need.why_not;
  if (plan.need.bytes == 0) return "it does not say what the program needed";
  if (!plan.gpu && gpus.empty()) return {};
  for (const Gpu& gpu : gpus) {
    const PlanGpu now = plan_gpu(gpu);
    if (!plan.gpu || plan.gpu->name != now.name || plan.gpu->capacity_bytes != now.capacity_bytes) continue;
    if (plan.gpu->context_bytes == now.context_bytes) return {};
    return fmt::format("it was planned with {} for the CUDA context, and this is with {} (--context)",
                       format_bytes(plan.gpu->context_bytes), format_bytes(now.context_bytes));
  }
  // GPUs of one name have several sizes
  const bool tells_sizes = plan.gpu && !gpus.empty() && plan.gpu->name == plan_gpu(gpus.front()).name;
  const bool tells_bytes =
      tells_sizes && format_bytes(plan.gpu->capacity_bytes) == format_bytes(gpus.front().capacity_bytes);
  const auto words = [&](const PlanGpu& gpu) {
    if (!tells_sizes) return gpu.name;
    return fmt::format("{} with {}", gpu.name,
                       tells_bytes ? format_count(gpu.capacity_bytes) + " bytes" : format_bytes(gpu.capacity_bytes));
  };
  return fmt::format("it was planned for {}, and this is for {}: what a program takes differs from GPU to GPU",
                     plan.gpu ? words(*plan.gpu) : "no named GPU",
                     gpus.empty() ? "no named GPU" : words(plan_gpu(gpus.front())));
}

PlanComparison compare_with_base(const PlanBase& base, const Plan& plan, std::vector<PlanLineChange> grown_lines,
                                 const AllowedGrowth& allowed) {
  const Plan& before = base.plan;
  Need need = need_of(plan);
  PlanComparison compared;
  compared.base = base.path;
  compared.before_bytes = need_of(before).bytes;
  compared.needed_bytes = need.bytes;
  compared.allowed = allowed.words;
  compared.allowed_bytes =
      allowed.bytes + static_cast<std::uint64_t>(std::min(allowed.share * static_cast<double>(compared.before_bytes),
                                                          static_cast<double>(1ULL << 60)));
  compared.differences = differences_between(before, plan);
  compared.lines = std::move(grown_lines);
  compared.why_not = std::move(need.why_not);
  if (compared.why_not.empty() && !compared.is_too_much())
    compared.why_not = why_not_kept(plan, compared.before_bytes + compared.allowed_bytes);
  return compared;
}

void judge_limits(const Plan& plan, const std::vector<Holder>& holders, std::vector<Finding>& findings) {
  if (plan.limits.budget && plan.limits.budget->over_bytes() != 0) findings.push_back(over_budget(plan, holders));
  if (plan.limits.comparison && plan.limits.comparison->is_too_much()) findings.push_back(grown(plan));
}

std::string need_words(std::uint64_t bytes, bool at_least) {
  return (at_least ? "at least " : "") + format_bytes(bytes);
}

bool has_unjudged_limit(const Plan& plan) {
  return (plan.limits.budget && !plan.limits.budget->why_not.empty()) ||
         (plan.limits.comparison && !plan.limits.comparison->why_not.empty());
}

}  // namespace faultline
