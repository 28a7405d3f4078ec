#include "report/phases_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace faultline {

void print_phases(Page& page, const Plan& plan) {
  if (plan.run.phases.size() < 2 && plan.run.not_reached.empty()) return;
  page.blank();
  page.paragraph(0, "Phases, each at its fullest", Style::kStrong);
  int columns = 0;
  for (const PlanPhase& phase : plan.run.phases) columns = std::max(columns, display_width(page.clean(phase.name)));
  const auto fullest =
      std::max_element(plan.run.phases.begin(), plan.run.phases.end(),
                       [](const PlanPhase& a, const PlanPhase& b) { return a.allocated_bytes < b.allocated_bytes; });
  for (auto phase = plan.run.phases.begin(); phase != plan.run.phases.end(); ++phase) {
    const std::string head = fmt::format("  {}  {}  ", pad_right(page.clean(phase->name), columns),
                                         pad_left(format_bytes(phase->allocated_bytes), 10));
    // where it is fullest, by a run that went on, need not be where it fails
    const bool fails = phase->name == plan.failure.phase;
    const bool elsewhere =
        fails && phase->location.known() && plan.failure.at.known() &&
        (phase->location.file != plan.failure.at.file || phase->location.line != plan.failure.at.line);
    const int room = (page.width() - display_width(head) - 12) / (elsewhere ? 2 : 1);
    std::string place = phase->location.known() ? page.place(phase->location, room) : "";
    if (fails) place += place.empty() ? "" : ", ";
    if (fails) place += elsewhere ? "fails at " + page.place(plan.failure.at, room) : "fails here";
    page.line({{head, phase == fullest ? Style::kStrong : Style::kPlain}, {place, Style::kDim}});
  }
  for (const std::string& what : plan.run.not_reached)
    page.item(page.dot(), "Not reached: " + page.clean(what) + "; what it takes is not known.");
}

}  // namespace faultline
