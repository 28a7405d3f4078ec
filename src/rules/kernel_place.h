// How rules speak of what a kernel did: which line of whom, and which of its threads.
#pragma once

#include <string>

#include "facts/facts.h"
#include "rules/finding.h"

namespace faultline {

std::string kernel_words(const Trace& trace, StringId kernel);  // "Kernel add", "A kernel"

// The user's line: the kernel's own source where that is the user's, else where it was launched; the other stands beside it. The finding's location has the kernel.
void add_place(const Facts& facts, const KernelPlace& place, StackId launched, Finding& finding);
void set_launch_line(const Facts& facts, StackId launched, Finding& finding);
void add_thread_of(const KernelPlace& place, Finding& finding);

}  // namespace faultline
