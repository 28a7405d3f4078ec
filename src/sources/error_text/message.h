// What one error message says, before it becomes a trace.
//
// read_message is asked about every place where an anchor was found, in order; it answers with the message that stands there, or with
// nothing when the words are only talk about errors. A weak message is one that another, later message may explain better (a line that is
// not fatal by itself, or an error's bare name).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sources/error_text/anchors.h"
#include "sources/error_text/printed_bytes.h"
#include "sources/stated_error.h"

namespace faultline {

struct ErrorMessage : StatedError {
  bool weak = false;
  bool quoted = false;  // by an exception of another kind
  bool is_allocation() const { return row_of(kind).is_allocation; }
};

// The passage a reader works on: the words from the hit on, and the same in lower case.
struct ErrorPassage {
  std::string first_line(std::size_t length) const;  // trimmed
  std::string words;
  std::string lower;
  std::size_t first_line_length = 0;
  std::string before;  // up to 80 characters of the same line in front of the hit
  std::string tag;
};

std::optional<ErrorMessage> read_message(std::string_view text, const AnchorHit& hit);

// The readers by who wrote the message. Each gets only its own anchors.
std::optional<ErrorMessage> read_torch_message(Anchor anchor, const ErrorPassage& passage);
std::optional<ErrorMessage> read_cuda_message(Anchor anchor, const ErrorPassage& passage);
std::optional<ErrorMessage> read_library_message(Anchor anchor, const ErrorPassage& passage);
std::optional<ErrorMessage> read_framework_message(Anchor anchor, const ErrorPassage& passage);

// Whether words that can also be prose stand where a program puts an error: behind a colon or a bracket, or at the start of the line.
bool stands_as_message(const ErrorPassage& passage);
// Whether a status or an error's name stands where a report of a failure names it: "cuMemCreate(…) failed with error NAME", "cuBLAS error 3 (NAME)". `rest` is what stands behind the name on its line.
bool is_named_as_failure(const ErrorPassage& passage, std::string_view rest);
// The kind that a CUDA or HIP error string stands for ("misaligned address"), null when it is none of ours.
struct CudaPhrase {
  std::string_view text;  // lower case
  MessageKind kind;
};
const CudaPhrase* cuda_phrase_at(std::string_view lower);
// The first size in `words` at or after `from`, before `until`.
std::optional<ByteInterval> size_between(std::string_view words, std::size_t from, std::size_t until, SizeStyle style);
// Decimal digits at `at`, nullopt when there are none or too many.
std::optional<std::uint64_t> number_at(std::string_view words, std::size_t at);
// The number right behind the first `label`, where that stands before `reach`.
std::optional<std::uint64_t> number_after(std::string_view words, std::string_view label,
                                          std::size_t reach = std::string_view::npos);

// The sentence up to `length` characters, cut at a word.
std::string trimmed(std::string_view words, std::size_t length);

// A message with these words and nothing more.
ErrorMessage said(MessageKind kind, std::string_view maker, std::string text);
ErrorMessage said(MessageKind kind, Framework framework, std::string text);

}  // namespace faultline
