// What else a text tells of beside the message that is explained: errors of other writers, of other requests, lines and devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sources/error_text/survey.h"
#include "sources/error_text/traceback.h"
#include "sources/text_notes.h"

namespace faultline {

// Empty where the tag names no writer of a job.
LogWriter writer_of(std::string_view text, std::string_view tag);
bool is_installed(const TracebackFrame& frame);  // of a package, not of the program
std::uint64_t line_number(std::string_view text, std::size_t at);
// "line 12, train.py:40: CUDA out of memory …"
std::string place_words(std::string_view text, const Chosen& message);

struct OtherFailures {
  std::vector<std::string> told;  // at most four, each with its writer, place and words
  // how often the chosen error is told: another request, line or device is another error; 0: not known
  std::uint64_t times = 0;
};
OtherFailures other_failures(std::string_view text, const Survey& seen, const Chosen& chosen,
                             const std::vector<Chosen>& survived);

}  // namespace faultline
