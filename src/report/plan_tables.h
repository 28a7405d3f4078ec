// The tables and lists of a plan's page: what fills the memory, where it fits, what the program did to files.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "report/page.h"

namespace faultline {

std::string live_text(const std::vector<std::pair<std::string, std::uint64_t>>& live);  // "6.00 GiB activations + …"
void print_modules(Page& page, const Plan& plan, bool verbose);
// The GPUs around the border between too small and large enough; all of them for those who ask.
void print_fits(Page& page, const Plan& plan, bool verbose);
void print_effects(Page& page, const PlanEffects& effects);

// "a number was read (train.py:15, 3 times)".
std::string note_text(const Page& page, const PlanNote& note);
void print_notes(Page& page, const Plan& plan, bool verbose);

}  // namespace faultline
