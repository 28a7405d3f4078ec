// Shared between the judgements: a finding with its place filled in, and the next commands in the words of this program.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rules/finding.h"
#include "sources/error_text/printed_bytes.h"
#include "trace/trace.h"

namespace faultline {

// A finding with rule, device, place and count set from the trace.
Finding finding_from(const Trace& trace, std::string rule);

// "python train.py", from the traceback's outermost file.
std::string program_of(const Trace& trace);
// "GPU 0", or "the GPU" where the message names none.
std::string device_of(const Trace& trace);

// A counter that the source kept ("count", "line"), 1 when it is missing or no number.
std::uint64_t counter_of(const Trace& trace, std::string_view name);

void add_evidence(Finding& finding, const std::string& name, std::uint64_t value);
void add_evidence(Finding& finding, const std::string& name, const std::optional<PrintedBytes>& bytes);
void add_evidence(Finding& finding, const std::string& name, std::string word);
void add_try(Finding& finding, std::string what);

// How to have the next failure recorded.
void add_recording_tries(const Trace& trace, Finding& finding);
void add_sanitizer_try(const Trace& trace, Finding& finding);

std::string shown(PrintedBytes bytes);  // "5.20 GiB"

void judge_out_of_memory(const Trace& trace, Finding& finding);
void judge_library(const Trace& trace, Finding& finding);
void judge_assertion(const Trace& trace, Finding& finding);
void judge_kernel_error(const Trace& trace, Finding& finding);

}  // namespace faultline
