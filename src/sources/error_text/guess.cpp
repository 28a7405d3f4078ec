#include "sources/error_text/guess.h"

#include <algorithm>
#include <array>

#include "base/characters.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/quotation.h"
#include "sources/error_text/text_limits.h"
#include "sources/error_text/traceback.h"

namespace faultline {
namespace {

constexpr std::size_t kMostGuesses = 20000;  // lines that are looked at more closely
constexpr std::size_t kLongestGuess = 400;

// As a word of its own: not "hip" in "ship", nor "error" in "errors=0".
std::size_t find_word(std::string_view lower, std::string_view word, bool whole, std::size_t from = 0) {
  const auto joins = [](char c) { return is_lower(c) || is_digit(c) || c == '_'; };
  for (std::size_t at = lower.find(word, from); at != std::string_view::npos; at = lower.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !joins(lower[at - 1])) && (!whole || end == lower.size() || !joins(lower[end]))) return at;
  }
  return std::string_view::npos;
}
template <std::size_t kCount>
bool has_word(std::string_view lower, const std::array<std::string_view, kCount>& words, bool whole) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return find_word(lower, word, whole) != std::string_view::npos; });
}

bool names_gpu(std::string_view lower) {
  static constexpr std::array<std::string_view, 15> kBegins = {"cuda",      "cumem", "cuctx",   "custream", "culaunch",
                                                               "hipmalloc", "gpu",   "vram",    "nvenc",    "nvdec",
                                                               "optix",     "d3d1",  "directx", "geforce",  "radeon"};
  static constexpr std::array<std::string_view, 14> kWhole = {
      "npu",   "xpu",          "wgpu",          "webgpu",          "hip",      "rocm",  "vulkan", "opencl",
      "metal", "video memory", "device memory", "graphics memory", "directml", "nvidia"};
  return has_word(lower, kBegins, false) || has_word(lower, kWhole, true) ||
         find_word(lower, "device out of memory", true) != std::string_view::npos || lower.find(".cu at line ") < 200;
}

// "out of memory in step.cu at line 33": the macro of CUDA's books, which prints the error, its file and its line.
bool is_of_macro(std::string_view lower, std::size_t says) {
  const std::size_t place = lower.find(" in ");
  const std::size_t at = place == std::string_view::npos ? place : lower.find(" at line ", place);
  return (says == 0 || lower.starts_with("an ")) && at != std::string_view::npos && at + 9 < lower.size() &&
         lower.find_first_not_of("0123456789", at + 9) == std::string_view::npos && lower.find(' ', place + 4) == at &&
         lower.substr(place, at - place).find(".cu") != std::string_view::npos;
}

// "CUDA error at solve.cu:1352 - out of memory"
bool follows_a_place(std::string_view before) {
  if (!before.ends_with(" - ")) return false;
  before.remove_suffix(3);
  const std::size_t last = before.find_last_not_of("0123456789");
  return last != std::string_view::npos && last + 1 < before.size() && before[last] == ':';
}

// Where the words that say it begin; npos: it does not say so.
std::size_t says_full(std::string_view lower) {
  static constexpr std::array<std::string_view, 19> kSays = {"out of memory",
                                                             "out of video memory",
                                                             "out of gpu memory",
                                                             "out of device memory",
                                                             "out of vram",
                                                             "ran out of vram",
                                                             "not enough memory",
                                                             "not enough vram",
                                                             "not enough gpu memory",
                                                             "insufficient memory",
                                                             "insufficient vram",
                                                             "not enough video memory",
                                                             "insufficient gpu memory",
                                                             "memory exhausted",
                                                             "out of available memory",
                                                             "outofmemory",
                                                             "erroroutofmemory",
                                                             "cuda oom on device",
                                                             "gpu oom on device"};
  std::size_t first = std::string_view::npos;
  for (const std::string_view words : kSays) first = std::min(first, find_word(lower, words, true));
  if (first != std::string_view::npos) return first;
  // "cudaMalloc failed", "failed to allocate 4 GiB of VRAM", "GPU memory allocation failed"
  static constexpr std::array<std::string_view, 7> kAllocates = {
      "cudamalloc",        "cumemalloc",     "hipmalloc",      "memory allocation",
      "device allocation", "gpu allocation", "vram allocation"};
  static constexpr std::array<std::string_view, 4> kFails = {"failed", "failure", "error 2", "returned 2"};
  static constexpr std::array<std::string_view, 8> kNot = {
      "failed to allocate", "could not allocate", "cannot allocate",  "unable to allocate",
      "can't allocate",     "couldn't allocate",  "error allocating", "failed allocating"};
  if (has_word(lower, kAllocates, false) && has_word(lower, kFails, false)) {
    for (const std::string_view words : kAllocates) first = std::min(first, find_word(lower, words, false));
    return first;
  }
  if (lower.find("memory") != std::string_view::npos || lower.find("vram") != std::string_view::npos ||
      lower.find("bytes") != std::string_view::npos || lower.find("buffer") != std::string_view::npos) {
    for (const std::string_view words : kNot) first = std::min(first, find_word(lower, words, true));
  }
  return first;
}

// Where a code of CUDA's runtime and driver stands, "error 2", "status: 700".
std::size_t says_code(std::string_view lower, std::string_view number) {
  static constexpr std::array<std::string_view, 5> kApi = {"cuda", "cumem", "cuctx", "custream", "culaunch"};
  if (!has_word(lower, kApi, false)) return std::string_view::npos;
  for (const std::string_view word : {"exit", "nvcc", "compil", "make", "ptxas", "return code"}) {
    if (lower.find(word) != std::string_view::npos) return std::string_view::npos;
  }
  static constexpr std::array<std::string_view, 12> kCodes = {"error ",  "error: ", "error=",   "error #",
                                                              "code ",   "code: ",  "code=",    "status=",
                                                              "status ", "err=",    "status: ", "returned ("};
  std::size_t first = std::string_view::npos;
  for (const std::string_view code : kCodes) {
    const std::string words = std::string(code) + std::string(number);
    const std::size_t at = find_word(lower, words, true);
    if (at == std::string_view::npos) continue;
    const std::size_t end = at + words.size();
    if (end < lower.size() && (lower[end] == '.' || lower[end] == '/') && end + 1 < lower.size() &&
        is_digit(lower[end + 1]))
      continue;
    first = std::min(first, at);
  }
  return first;
}

// What a kernel did, where the line says it by a code or in words: the kind of the fault, and where its words begin.
struct SaidFault {
  MessageKind kind = MessageKind::kNone;
  std::size_t at = std::string_view::npos;
};
SaidFault says_fault(std::string_view lower) {
  struct Fault {
    MessageKind kind;
    std::string_view code;
    std::array<std::string_view, 2> words;
  };
  static constexpr std::array<Fault, 3> kFaults = {
      Fault{MessageKind::kIllegalAddress, "700", {"illegal memory access", "illegal address"}},
      Fault{MessageKind::kMisalignedAddress, "716", {"misaligned address", "misaligned_address"}},
      Fault{MessageKind::kLaunchFailure, "719", {"unspecified launch failure", "launch_failed"}}};
  for (const Fault& fault : kFaults) {
    std::size_t at = says_code(lower, fault.code);
    for (const std::string_view words : fault.words) at = std::min(at, find_word(lower, words, true));
    if (at != std::string_view::npos) return {fault.kind, at};
  }
  return {};
}

// The line says what the program does about it.
bool goes_on(std::string_view lower) {
  static constexpr std::array<std::string_view, 4> kGoesOn = {" fall back to ", "falling back to ", ", skipping ",
                                                              ", retrying "};
  return has_any(lower, kGoesOn);
}

// An error is reported: by a label, an exception's name, a level, or how a program says that it ends.
bool reports_error(std::string_view raw, std::string_view body, std::string_view lower, std::size_t says) {
  if (is_exception_line(body)) return true;
  static constexpr std::array<std::string_view, 9> kLabels = {
      "error:", "error]", "fatal:", "fatal]", "panic:", "failed:", "failure:", "exception:", "what():"};
  if (std::any_of(kLabels.begin(), kLabels.end(),
                  [&](std::string_view label) { return lower.find(label) != std::string_view::npos; }))
    return true;
  const std::string_view front =
      raw.substr(0, std::min(raw.size() - std::min(raw.size(), body.size()) + 48, raw.size()));
  for (const std::string_view level :
       {"ERROR", "FATAL", "CRITICAL", "Error ", "[E]", "(EE)", "Fatal", "PANIC", "ERR "}) {
    if (front.find(level) != std::string_view::npos) return true;
  }
  static constexpr std::array<std::string_view, 10> kFails = {
      "failed", "fatal", "could not", "cannot", "unable to", "aborting", "failure", "exception", "terminat", "error"};
  // "[solver.cu:311] cudaMalloc(&flux, n) -> out of memory": what a call came to, and nothing behind it
  static constexpr std::array<std::string_view, 3> kCalls = {"cudamalloc", "cumem", "hipmalloc"};
  const std::string_view call = lower.substr(0, std::min(says, lower.size()));
  if (has_word(call, kCalls, false) && call.find('(') != std::string_view::npos &&
      (call.ends_with("-> ") || call.ends_with(": ") || call.ends_with("= ")) &&
      lower.substr(says).find(' ', std::string_view("out of memory").size()) == std::string_view::npos)
    return true;
  // "renderer: out of video memory": what went wrong, behind who says it
  // "Out of GPU memory: requested 812MB"
  static constexpr std::array<std::string_view, 4> kAsked = {"memory: requested ", "memory: need", "vram: requested ",
                                                             "memory: tried to "};
  if (has_any(lower.substr(says), kAsked)) return true;
  // "WARNING: ran out of memory on the GPU, skipping this batch"
  if (goes_on(lower) && lower.find("ran out of ") != std::string_view::npos) return true;
  if (is_of_macro(lower, says)) return true;
  const bool in_front = lower.rfind(": ", says) != std::string_view::npos || follows_a_place(lower.substr(0, says));
  const bool is_quoted = says > 0 && body[says - 1] == '"';
  return lower.substr(says).starts_with("error ") || lower.substr(0, says).ends_with("error ") ||
         (has_word(lower, kFails, false) && (in_front || says < 40 || is_quoted));
}

// "thread #0 failed with error \"out of memory\"": the words themselves are quoted, and end the line.
bool quotes_only_words(std::string_view body, std::size_t says) {
  return says > 0 && body[says - 1] == '"' && body.find('"') == says - 1 && body.find('"', says) == body.size() - 1;
}

// What people write about errors: sentences, documentation, lists of changes.
bool is_talk(std::string_view body, std::string_view lower, std::size_t says, bool is_marked) {
  if (body.ends_with('?') || body.ends_with(';') || body.ends_with('{') || body.ends_with('|')) return true;
  // an option that a program's help explains
  if (lower.size() > 2 && lower[0] == '-' && (lower[1] == '-' || lower[2] == ' ' || lower[2] == ',')) return true;
  for (const std::string_view begin :
       {"#",   "- ", "* ", "+ ", "| ", "> ", "//", "/*", "<",  "if ", "case ", "1. ", "2. ",
        "3. ", "\"", "'",  "`",  "{",  "@",  ":",  "$ ", "..", "!",   "note",  "tip", "hint"}) {
    if (lower.starts_with(begin)) return true;
  }
  static constexpr std::array<std::string_view, 57> kParts = {
      "docs: ",       "feat: ",        "fix: ",   "chore: ",   "describe",       "explain",   " you ",     "you ",
      " your ",       " if ",          " when ",  " i ",       " my ",           " we ",      " may ",     " might ",
      " should ",     " would ",       " can ",   "could be",  " usually",       " often ",   " e.g",      " such as ",
      "to avoid",     " avoid ",       " means ", " fix ",     "fixed ",         "fixes ",    "handle ",   "handling ",
      "instead of",   "no longer",     "prevent", "test_",     "::test",         " passed",   "expected",  "please ",
      "how to",       " because ",     " errors", "_error",    "out_of_memory_", "-error",    "0 error",   "no error",
      "not an error", "without error", " =0",     " 0 failed", "no allocation",  "no memory", "no out of", "http",
      "\xe2\x86\x92"};
  std::string refused(lower);  // "cannot go on" is none of the words of advice
  for (std::size_t at = refused.find(" can not "); at != std::string::npos; at = refused.find(" can not "))
    refused.replace(at, 9, " cannot ");
  if (has_any(std::string_view(refused), kParts)) return true;
  // quoted; a line of a log may name something in quotes beside its words
  const bool in_quotes = std::count(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(says), '"') % 2 != 0;
  return std::count(body.begin(), body.end(), '`') > 1 ||
         (std::count(body.begin(), body.end(), '"') > 1 && (in_quotes || !is_marked) && !quotes_only_words(body, says));
}

// "exit status 0", "oom_errors=0": the words are counted or set, not reported.
bool is_setting_or_count(std::string_view lower, std::size_t says) {
  const std::string_view behind = lower.substr(says, 60);
  const std::size_t equal = behind.find('=');
  return equal != std::string_view::npos && equal + 1 < behind.size() && behind.substr(equal, 2) == "=0";
}

bool may_hold(std::string_view line) {
  static constexpr std::array<std::string_view, 13> kWords = {"Cuda",    "emory",    "EMORY",   "alloc", "Alloc",
                                                              "VRAM",    "vram",     "cuda",    "CUDA",  "llegal",
                                                              "ILLEGAL", "cuStream", "cuLaunch"};
  return has_any(line, kWords);
}

// A log's own mark of an error, in front of the words.
bool is_marked(std::string_view raw) {
  static constexpr std::array<std::string_view, 6> kLevels = {"[Error]", "[error]", "ERROR", "FATAL", "[E]", "/error]"};
  return has_any(raw.substr(0, 120), kLevels);
}

// Words that have readers of their own, who took them for talk: an error only where the line is marked as one and goes on as one.
bool is_read_as_talk(std::string_view raw, std::string_view lower, std::size_t says) {
  static constexpr std::array<std::string_view, 4> kRead = {"cuda error: ", "hip error: ", "cuda error: an ",
                                                            "hip error: an "};
  const std::string_view before = lower.substr(0, std::min(says, lower.size()));
  std::string_view behind = lower.substr(before.size());
  const bool is_bare = behind.starts_with("out of memory") && (before.ends_with("cuda ") || before.ends_with("hip "));
  if (!is_bare &&
      std::none_of(kRead.begin(), kRead.end(), [&](std::string_view read) { return before.ends_with(read); }))
    return false;
  for (const std::string_view words :
       {"out of memory", "illegal memory access was encountered", "misaligned address", "unspecified launch failure"}) {
    if (behind.starts_with(words)) behind.remove_prefix(words.size());
  }
  const bool is_whole = behind.empty() || behind.starts_with(":") || behind.starts_with(" error:") ||
                        behind.starts_with(" (") || behind.starts_with(" at ");
  const bool reports = is_marked(raw) || before.starts_with("cuda error ") || before.starts_with("cuda error:");
  return !is_whole || !reports;
}

std::optional<ErrorMessage> guess_at(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view raw = text.substr(begin, std::min(end - begin, kLongestLine));
  const LinePrefix prefix = split_prefix(raw);
  const std::string body = clean_line(raw.substr(prefix.length), kLongestLine);
  if (body.size() < 12 || body.size() > kLongestGuess) return std::nullopt;
  const std::string lower = lower_case(body);
  if (!names_gpu(lower) && !names_gpu(lower_case(raw.substr(0, prefix.length)))) return std::nullopt;
  const SaidFault fault = says_fault(lower);
  const std::size_t says = std::min({says_full(lower), says_code(lower, "2"), fault.at});
  if (says == std::string_view::npos || is_talk(body, lower, says, is_marked(raw)) || is_setting_or_count(lower, says))
    return std::nullopt;
  if (is_read_as_talk(raw, lower, says)) return std::nullopt;
  if (!reports_error(raw, body, lower, says)) return std::nullopt;
  if (quotation_of(text, begin + prefix.length) != Quotation::kNone) return std::nullopt;
  static constexpr std::array<std::string_view, 3> kOfHost = {"mallochost", "hostalloc", "hostmalloc"};
  const bool is_fault = fault.kind != MessageKind::kNone;
  const bool of_host = !is_fault && has_any(lower, kOfHost);  // page-locked memory
  ErrorMessage message = said(of_host    ? MessageKind::kHostPinned
                              : is_fault ? fault.kind
                                         : MessageKind::kOutOfMemory,
                              "", trimmed(body, 300));
  message.tag = prefix.tag;
  message.weak = true;
  if (!of_host) message.guessed = true;
  if (goes_on(lower)) message.benign = true;
  const std::size_t size = lower.find_first_of("0123456789");
  if (size != std::string::npos && !is_fault) {
    if (const auto bytes = size_between(lower, size, lower.size(), SizeStyle::kTorch)) message.requested = *bytes;
  }
  return message;
}

}  // namespace

std::optional<Chosen> guess_of(std::string_view text) {
  std::optional<Chosen> last;
  std::size_t looks = 0;
  for (std::size_t begin = 0; begin < text.size() && looks < kMostGuesses;) {
    const std::size_t end = line_end(text, begin, text.size());
    if (may_hold(text.substr(begin, std::min(end - begin, kLongestLine)))) {
      ++looks;
      if (auto message = guess_at(text, begin, end)) last = Chosen{std::move(*message), begin, begin, 1};
    }
    begin = end + 1;
  }
  return last;
}

}  // namespace faultline
