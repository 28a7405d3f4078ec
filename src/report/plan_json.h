// A plan as part of the JSON report, and back. What is read back is a file that anybody may have changed: a field that is missing or of another kind
// leaves its default, and nothing else happens.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "plan/plan.h"

namespace faultline {

nlohmann::ordered_json plan_json(const Plan& plan);
nlohmann::ordered_json location_json(const Location& location);

nlohmann::ordered_json effects_json(const PlanEffects& effects);
PlanEffects effects_of(const nlohmann::ordered_json& json);

// The plan of a report.json; none where the text is no such report, or has no plan in it.
std::optional<Plan> plan_of_report(std::string_view report_text);

}  // namespace faultline
