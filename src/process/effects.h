// What a confined program would have done to the machine, as its keeper leaves it in a file and `plan` reads it for the report.
#pragma once

#include <string>

#include "base/result.h"
#include "confine/confined_program.h"
#include "plan/plan.h"

namespace faultline::process {

Status write_effects(const std::string& path, const confine::Effects& effects);
// Names below the working folder are given from there, and come first. A file that is not there, or is not whole, tells of nothing.
PlanEffects read_effects(const std::string& path);

}  // namespace faultline::process
