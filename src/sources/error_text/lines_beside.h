// What other lines of a text add to its message: the tensor and the operation of a pool's failure, what the driver refused before it, whose processes are listed in it.
#pragma once

#include <string_view>

#include "sources/error_text/survey.h"
#include "sources/text_notes.h"

namespace faultline {

// Whether the call that failed asks for page-locked memory of the host.
bool names_pinned_call(std::string_view text, std::size_t at);
// What decides between the kinds of one message: the arena's provider, what the driver did next, the pool of the line beside it.
void settle_kind(std::string_view text, const Survey& seen, Chosen& chosen);
void add_lines_beside(std::string_view text, const Survey& seen, Chosen& chosen, TextNotes& notes);

}  // namespace faultline
