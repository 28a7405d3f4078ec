// What would make it fit: allocator settings by replay, changes to the program by running it again with them.
#pragma once

#include "models/gpus.h"
#include "plan/dry_run.h"
#include "plan/needs.h"
#include "plan/plan.h"
#include "trace/trace.h"

namespace faultline {

// The setting that helps most; none where none saves anything.
void add_settings(const Trace& trace, const Needs& needs, Plan& plan);

// Why a smaller batch cannot make it fit; empty where it might.
std::string why_no_batch_is_enough(const Plan& plan);

// Of a program that trains: those that the program does not have already, and where none is enough alone those that help together. as_run: what the program left without them.
void add_changes(const Reruns& reruns, const ProcessSummary& as_run, const Gpu& gpu, Plan& plan);

}  // namespace faultline
