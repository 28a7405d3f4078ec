#include "sources/error_text/ending.h"

#include <algorithm>
#include <array>

#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"
#include "sources/error_text/quotation.h"
#include "sources/error_text/survey.h"
#include "sources/error_text/text_limits.h"
#include "sources/error_text/traceback.h"

namespace faultline {
namespace {

constexpr std::size_t kMostHeads = 256;  // tracebacks of other writers that are stepped over

// Part of an error's text, or of what is printed once a program has ended.
bool is_about_errors(std::string_view body) {
  static constexpr std::array<std::string_view, 26> kParts = {"Error",         "error",
                                                              "ERROR",         "Exception",
                                                              "exception",     kTracebackHead,
                                                              "failed",        "Failed",
                                                              "CUDA",          "Compile with",
                                                              "For debugging", "terminate called",
                                                              "what():",       "frame #",
                                                              "wandb",         "Aborted",
                                                              "core dumped",   "Assertion",
                                                              "PYTORCH_",      "raceback",
                                                              "Killed",        "If reserved",
                                                              "fragmentation", "killed",
                                                              "^^^",           "Triggered internally"};
  return has_any(body, kParts);
}

}  // namespace

Link link_to_end(std::string_view text, std::size_t from, const std::string& tag) {
  const std::size_t last = find_last(text, kTracebackHead);
  if (last == std::string_view::npos || last < from) return Link::kNone;
  const std::size_t during = text.find("During handling of the above exception", from),
                    cause = text.find("The above exception was the direct cause", from);
  const std::size_t link = std::min(during, cause);
  if (link == std::string_view::npos || link > last) return Link::kNone;
  // Up to the first link nothing but the message's own lines.
  if (goes_on(text, from, line_begin(text, link, kLongestLine), tag)) return Link::kNone;
  return during >= last ? Link::kCause : Link::kContext;  // by every link in between
}

bool goes_on(std::string_view text, std::size_t from, std::size_t to, const std::string& tag) {
  bool in_traceback = false;
  std::size_t lines = 0;
  for (std::size_t begin = line_end(text, from, text.size()) + 1; begin < to && ++lines < kMostLogLines;) {
    const std::size_t end = std::min(line_end(text, begin, text.size()), to);
    const std::string_view raw = text.substr(begin, std::min(end - begin, kLongestLine));
    const LinePrefix prefix = split_prefix(raw);
    const std::string body = clean_line(raw.substr(prefix.length), kLongestLine);
    begin = end + 1;
    if (body.empty() || is_other_writer(tag, prefix.tag)) continue;
    if (body.find("During handling of the above exception") != std::string::npos) return true;
    if (body.find(kTracebackHead) != std::string::npos) in_traceback = true;
    TracebackFrame frame;
    if (in_traceback) {  // its frames and their sources, up to the exception's own line
      if (is_exception_line(body)) in_traceback = false;
      continue;
    }
    const bool indented = prefix.tag.empty() && (raw[0] == ' ' || raw[0] == '\t');
    if (!indented && !is_about_errors(body) && !parse_frame(body, frame) &&
        body.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos)
      return true;
  }
  return false;
}

bool tells_same(const ErrorMessage& message, std::string_view exception) {
  static constexpr std::array<std::string_view, 5> kOfPool = {"RESOURCE_EXHAUSTED", "Resource exhausted",
                                                              "ResourceExhaustedError", "Out of memory", "OOM when"};
  static constexpr std::array<std::string_view, 7> kOfLibrary = {
      "Blas ", "BLAS", "cuBLAS", "cuDNN", "cudnn", "DNN library", "convolution algorithm"};
  if (is_of_pool(message)) return message.is_allocation() && has_any(exception, kOfPool);
  const Library library = row_of(message.kind).library;
  return (library == Library::kCublas || library == Library::kCudnn) && has_any(exception, kOfLibrary);
}

bool shows_no_exception(std::string_view text) {
  static constexpr std::array<std::string_view, 4> kRaised = {"RuntimeError", "ExhaustedError", "InternalError",
                                                              "MemoryError"};
  return !has_any(text, kRaised);
}

std::string LastException::words() const {
  return at.file.empty() ? said : said + " (" + at.file + ":" + std::to_string(at.line) + ")";
}

LastException last_exception(std::string_view text, std::size_t from, const std::string& tag) {
  static constexpr std::array<std::string_view, 10> kOfOthers = {
      "ChildFailedError", "CalledProcessError", "ProcessRaisedException", "ProcessExitedException",
      "RayTaskError",     "EngineDeadError",    "BrokenPipeError",        "ConnectionResetError",
      "DistBackendError", "KeyboardInterrupt"};
  std::size_t head = find_last(text, kTracebackHead), heads = 0;
  while (head != std::string_view::npos && head >= from && ++heads < kMostHeads &&
         is_other_writer(tag, split_prefix(text.substr(line_begin(text, head, kLongestLine), kLongestLine)).tag))
    head = head == 0 ? std::string_view::npos
                     : find_last(text.substr(0, head + kTracebackHead.size() - 1), kTracebackHead);
  if (head == std::string_view::npos || head < from || heads == kMostHeads) return {};
  TracebackFrame frame, innermost;
  std::size_t lines = 0;
  for (std::size_t begin = line_end(text, head, kLongestLine) + 1;
       begin < text.size() && ++lines < kMostTracebackLines;) {
    const std::size_t end = line_end(text, begin, text.size());
    const std::string_view raw = text.substr(begin, std::min(end - begin, kLongestLine));
    const LinePrefix prefix = split_prefix(raw);
    const std::string body = clean_line(raw.substr(prefix.length), kLongestLine);
    begin = end + 1;
    if (is_other_writer(tag, prefix.tag)) continue;
    if (parse_frame(body, frame) && (innermost.file.empty() || frame.file.find("-packages") == std::string::npos))
      innermost = frame;
    if (!is_exception_line(body)) continue;
    if (has_any(body, kOfOthers)) return {};
    return {trimmed(body, 160), innermost};
  }
  return {};
}

}  // namespace faultline
