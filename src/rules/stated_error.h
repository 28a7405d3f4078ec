// A finding made of a message: its place, its counts and its words, in the same form as a finding made of a recording.
#pragma once

#include <string>
#include <string_view>

#include "rules/rule.h"

namespace faultline {

// The traceback around the message; a recording beside it has stacks of its own, none of which is the message's.
StackId stack_of(const Case& subject);
// With device, place and count set; proved until something else is said.
Finding begin_stated(const Case& subject, std::string_view rule);
// Adds what the message itself is, and the fingerprint.
void finish_stated(const Case& subject, Finding& finding);

// What the text tells around the message, where a text is all there is; else nothing.
const TextNotes& notes_of(const Case& subject);
// Whether another program than one of PyTorch wrote it, or stands around it.
bool is_of_other(const StatedError& stated);
// The one number for a size of the message: as it was printed, or, where its unit is left open, the least that it can be.
std::uint64_t stated_bytes(ByteInterval bytes);
// A size of the message as evidence: one number, or, where the text leaves its unit open, both bounds ("requested_at_least_bytes").
void add_stated_bytes(Finding& finding, std::string_view name, ByteInterval bytes);

// "python train.py", by the file in which the traceback begins; a stand-in where it begins in the middle of a program, or there is none.
std::string program_words(const Case& subject);
// Whether the PyTorch of this text is known to be older than that: by the version that it names, by its Python, or by the wording of its message.
bool is_torch_before(const StatedError& stated, unsigned major, unsigned minor);
// "GPU 0", or "the GPU" where the message names none; an NPU is called so.
std::string device_words(const Case& subject);

}  // namespace faultline
