// Whether a program worked on behind a message, and what shows it.
//
// The shape of the log shows it where it can: a counter, a progress bar or a loss that goes on, a line of the same form as one in front of the message with a number that has
// grown, an answer of a server, an exit status of 0. What remains is words ("skipping", "retrying"): those make it likely and no more.
// What people write below a pasted error, what launchers and trackers print of a program that has ended, and a program that was started anew do not count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace faultline {

enum class WorksOn : std::uint8_t { kNo, kByWords, kByShape };

// Of the writer of the message at `from`, up to the end of the text.
WorksOn works_on(std::string_view text, std::size_t from, const std::string& tag);
inline bool lives_on(std::string_view text, std::size_t from, const std::string& tag) {
  return works_on(text, from, tag) != WorksOn::kNo;
}

// Whether the message at `at` ended one request of a server (of HTTP, of a queue of jobs) rather than a program.
bool is_of_request(std::string_view text, std::size_t at);

}  // namespace faultline
