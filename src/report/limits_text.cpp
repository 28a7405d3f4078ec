#include "report/limits_text.h"

#include <fmt/format.h>

#include "base/units.h"
#include "plan/limits.h"

namespace faultline {

std::string broken_limits_text(const Plan& plan) {
  std::string text;
  if (plan.limits.budget && plan.limits.budget->over_bytes() != 0)
    text +=
        fmt::format(", {} over the budget", need_words(plan.limits.budget->over_bytes(), plan.limits.budget->at_least));
  if (plan.limits.comparison && plan.limits.comparison->is_too_much())
    text += fmt::format(", {} more than before", format_bytes(plan.limits.comparison->grown_bytes()));
  return text;
}

std::vector<std::pair<std::string_view, std::string>> limit_rows(const Plan& plan) {
  std::vector<std::pair<std::string_view, std::string>> rows;
  if (const auto& budget = plan.limits.budget) {
    const std::string needs = need_words(budget->needed_bytes, budget->at_least);
    rows.emplace_back(
        "budget", !budget->why_not.empty()
                      ? fmt::format("{}: not judged, for {}", format_bytes(budget->bytes), budget->why_not)
                  : budget->over_bytes() != 0
                      ? fmt::format("{}: it needs {}, {} too much", format_bytes(budget->bytes), needs,
                                    need_words(budget->over_bytes(), budget->at_least))
                      : fmt::format("{}: it needs {}{}, which leaves {}", format_bytes(budget->bytes),
                                    format_bytes(budget->needed_bytes), budget->at_least ? " as far as it was run" : "",
                                    format_bytes(budget->bytes - budget->needed_bytes)));
  }
  if (const auto& compared = plan.limits.comparison) {
    std::string text = fmt::format("{} in {}", format_bytes(compared->before_bytes), compared->base);
    if (!compared->why_not.empty())
      text += ": not judged, for " + compared->why_not;
    else if (compared->needed_bytes < compared->before_bytes)
      text += fmt::format(": {} less", format_bytes(compared->before_bytes - compared->needed_bytes));
    else if (compared->needed_bytes == compared->before_bytes)
      text += ": the same";
    else
      text +=
          fmt::format(": {} more, and {} more is allowed", format_bytes(compared->grown_bytes()), compared->allowed);
    for (const std::string& difference : compared->differences) text += "; " + difference;
    rows.emplace_back("before", std::move(text));
  }
  return rows;
}

}  // namespace faultline
