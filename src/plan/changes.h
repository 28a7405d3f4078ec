// What would make it fit without running the program again: allocator settings by replay, and what no batch can change.
#pragma once

#include "plan/needs.h"
#include "plan/plan.h"
#include "trace/trace.h"

namespace faultline {

// The setting that helps most; none where none saves anything.
void add_settings(const Trace& trace, const Needs& needs, Plan& plan);

// Why a smaller batch cannot make it fit; empty where it might.
std::string why_no_batch_is_enough(const Plan& plan);

}  // namespace faultline
