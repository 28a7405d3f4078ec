// Calls that reach other processes: signals, tracing, their memory and limits. What is watched too may be reached; to all others nothing is done. And calls
// that would take a process out of the watch's sight.
#pragma once

#include "confine/asked.h"

namespace faultline::confine {

// `who`: a process as kill() has it, where 0 and below mean groups and everybody; `signal`: number of the argument.
Decision kill_call(const Asked& call);
// To one process or thread, named by the first argument.
Decision signal_call(const Asked& call, int signal);
Decision signal_by_descriptor_call(const Asked& call);

// Changes one process, named by this argument: nothing but a watched one may be.
Decision reach_call(const Asked& call, int process);
Decision reach_by_descriptor_call(const Asked& call);
Decision priority_call(const Asked& call);

// Who is sent a signal when a descriptor is ready: to nobody else can one be sent so.
Decision owned_call(const Asked& call);
// The machine's clock may be read. `setting`: the argument that says what is to be set.
Decision clock_call(const Asked& call, int setting);

// A child that asks not to be traced is traced all the same.
Decision clone_call(const Asked& call);
Decision clone_with_arguments_call(const Asked& call);

// Whether a program may be looked at is not for it to say: it is told what it wants to hear.
Decision dumpable_call(const Asked& call);
Decision rights_call(const Asked& call);

}  // namespace faultline::confine
