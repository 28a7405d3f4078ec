// What ended the program, and what it had survived before: of several messages in one text.
//
// An error that a kernel left behind ends all work with CUDA, so nothing survives it. Anything else was survived where its own writer's log goes on behind it: a line that is
// neither part of an error nor of its traceback, or another exception raised while it was being handled.
#pragma once

#include <string>
#include <string_view>

#include "sources/error_text/message.h"
#include "sources/error_text/traceback.h"

namespace faultline {

// Whether the exception tells of the same failure as the message, in other words: a pool's, or a library's that could not start.
bool tells_same(const ErrorMessage& message, std::string_view exception);
bool shows_no_exception(std::string_view text);

// Whether the log of this writer goes on between the message at `from` and `to`.
bool goes_on(std::string_view text, std::size_t from, std::size_t to, const std::string& tag);

// How the exception at `from` is linked with the text's last one, with nothing of the program's own in between: it was being handled when that one was raised, or that one was raised from it.
enum class Link { kNone, kContext, kCause };
Link link_to_end(std::string_view text, std::size_t from, const std::string& tag);

// The exception of the last traceback behind `from`, where it tells of something else than what launchers say about others; empty where there is none.
struct LastException {
  std::string said;   // "KeyError: 'x'"
  TracebackFrame at;  // its innermost line outside installed packages
  bool empty() const { return said.empty(); }
  std::string words() const;  // "KeyError: 'x' (train.py:9)"
};
LastException last_exception(std::string_view text, std::size_t from, const std::string& tag);

}  // namespace faultline
