// How the words of an error stand in a text: as an exception's own message, or only quoted.
//
// A program's source, a test's name, a sentence that quotes an error, and an exception of another kind whose text repeats one all hold the words of a GPU error that did not happen there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace faultline {

// "KeyError: 'x'", "my.package.SomeException", "AssertionError".
bool is_exception_line(std::string_view body);

// An exception of Python or of the network that no GPU library raises: what its text says of a GPU is somebody's quotation.
bool is_unrelated_exception(std::string_view body);

// Whether an exception's line tells of the GPU or of memory, or only announces what follows it.
bool may_tell_of_gpu(std::string_view body);

enum class Quotation {
  kNone,    // somebody failed with it here
  kSource,  // a line of source text, a test's name, a sentence that quotes it: nobody failed with it here
  kQuoted,  // inside the message of an unrelated exception
};
Quotation quotation_of(std::string_view text, std::size_t at);

// The exception's line that ends the traceback whose head stands at `head`; empty where the text breaks off before.
struct ExceptionLine {
  std::string words;
  std::size_t begin = 0;  // of its line, in the text
};
ExceptionLine exception_of(std::string_view text, std::size_t head, const std::string& tag);

// Whether an unrelated traceback begins behind the message at `from`, before `to`: not linked with it as cause or context, and ending in an exception that does not tell of it.
bool is_followed_by_other(std::string_view text, std::size_t from, std::size_t to, const std::string& tag);

}  // namespace faultline
