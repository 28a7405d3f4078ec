#include "sources/error_text/ending.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/characters.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"
#include "sources/error_text/standing.h"
#include "sources/error_text/traceback.h"

namespace faultline {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kMostLines = 4000;
constexpr std::size_t kBefore = std::size_t{1} << 16;
constexpr std::string_view kHead = "Traceback (most recent call last)";

template <std::size_t kCount>
bool has_any(std::string_view line, const std::array<std::string_view, kCount>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return line.find(part) != std::string_view::npos; });
}

// Part of an error's text, or of what is printed once a program has ended.
bool is_about_errors(std::string_view body) {
  static constexpr std::array<std::string_view, 26> kParts = {"Error",         "error",
                                                              "ERROR",         "Exception",
                                                              "exception",     kHead,
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

bool is_other_writer(const std::string& tag, const std::string& other) {
  return !tag.empty() && !other.empty() && tag != other;
}

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
std::string lower_case(std::string_view line) {
  std::string lower(line);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

// "318/72115" of the last progress bar in the line, "| 318/72115 [01:25<…".
std::optional<std::pair<std::uint64_t, std::uint64_t>> bar_of(std::string_view line) {
  const std::size_t percent = line.find("%|");
  if (percent == std::string_view::npos) return std::nullopt;
  for (std::size_t slash = line.rfind('/'); slash != std::string_view::npos && slash > percent;
       slash = line.rfind('/', slash - 1)) {
    std::size_t begin = slash;
    while (begin > percent && is_digit(line[begin - 1])) --begin;
    const auto done = number_at(line, begin), all = number_at(line, slash + 1);
    if (begin < slash && done && all) return std::pair(*done, *all);
  }
  return std::nullopt;
}

// What training prints beside a number: how far it is, and how well it does.
constexpr std::array<std::string_view, 8> kCounters = {"epoch", "step",    "iter",   "iteration",
                                                       "batch", "episode", "sample", "trial"};
constexpr std::array<std::string_view, 8> kMeasures = {"loss", "acc", "accuracy", "eval",
                                                       "val",  "ppl", "reward",   "value"};

struct Counted {
  unsigned counters = 0, measures = 0;  // one bit for each word that has a number right behind it
  bool begins = false;                  // the line begins with one
  bool of_all = false;                  // and is "Epoch 2/3"
};

// "loss=8.3", "Epoch 2/2", "'train_loss': 0.3", "step 12"; not "--epoch 3", which is an option.
Counted counted_words(std::string_view lower) {
  Counted counted;
  for (std::size_t number = 0; number < kCounters.size() + kMeasures.size(); ++number) {
    const bool counts = number < kCounters.size();
    const std::string_view word = counts ? kCounters[number] : kMeasures[number - kCounters.size()];
    for (std::size_t at = lower.find(word); at != std::string_view::npos; at = lower.find(word, at + 1)) {
      std::size_t behind = at + word.size();
      if ((at > 0 && (is_word(lower[at - 1]) || lower[at - 1] == '-')) ||
          (behind < lower.size() && is_word(lower[behind]) && !is_digit(lower[behind])))
        continue;
      while (behind < lower.size() && std::string_view(" =:[('\"#_").find(lower[behind]) != std::string_view::npos)
        ++behind;
      if (behind == lower.size() || !is_digit(lower[behind])) continue;
      (counts ? counted.counters : counted.measures) |= 1u << number;
      const bool begins = lower.substr(0, at).find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
      const std::size_t end = lower.find_first_not_of("0123456789", behind);
      counted.begins |= begins;
      counted.of_all |= begins && end != std::string_view::npos && lower[end] == '/';
    }
  }
  return counted;
}

using Bars = std::map<std::uint64_t, std::uint64_t>;  // by how many there are in all: the most that were done

// What the log had shown before the message: a program that ends prints its bars once more, where they stood.
struct Before {
  Counted counted;
  Bars bars;
};

Before look_before(std::string_view text, std::size_t at) {
  Before before;
  const std::size_t stop = line_end(text, at, kLongestLine), from = stop > kBefore ? stop - kBefore : 0;
  const std::string_view above = text.substr(from, stop - from);
  before.counted = counted_words(lower_case(above));
  for (std::size_t percent = above.find("%|"); percent != std::string_view::npos;
       percent = above.find("%|", percent + 2)) {
    const auto bar =
        bar_of(above.substr(percent, std::min<std::size_t>(above.find_first_of("\r\n[", percent) - percent, 400)));
    if (bar) before.bars[bar->second] = std::max(before.bars[bar->second], bar->first);
  }
  return before;
}

bool is_prose(std::string_view body, std::string_view lower) {
  static constexpr std::array<std::string_view, 14> kParts = {
      " i ",    "i'm ",  "i've ",    " my ",     " me ", " you ",      " how ",
      "please", "thank", "does any", "any idea", " we ", " it still ", "still fail"};
  return body.ends_with("?") || lower.starts_with("i ") || lower.starts_with("my ") || has_any(lower, kParts);
}

bool is_work(std::string_view body, Before& before) {
  if (body.find("%|") != std::string_view::npos) {
    const auto bar = bar_of(body);
    if (!bar) return false;
    const auto known = before.bars.find(bar->second);
    const bool moves =
        known == before.bars.end() ? bar->first == bar->second && bar->second > 1 : bar->first > known->second;
    before.bars[bar->second] = bar->first;
    return moves;
  }
  const std::string lower = lower_case(body);
  if (is_prose(body, lower) || lower.find("fail") != std::string::npos) return false;
  static constexpr std::array<std::string_view, 17> kSaid = {
      "skipping",      "succeeded",        "retrying",          "trying again",      "try again with",
      "halving",       "recover from oom", "recovered",         "got prompt",        "model saved",
      "saved to",      "saved checkpoint", "saving checkpoint", "training finished", "training complete",
      "done training", "'train_runtime'"};
  if (has_any(lower, kSaid)) return true;
  const Counted counted = counted_words(lower);
  const bool is_short = std::count(lower.begin(), lower.end(), ' ') < 8;
  if (counted.measures != 0)
    return counted.counters != 0 || (counted.measures & (counted.measures - 1)) != 0 || before.counted.measures != 0;
  return is_short && counted.begins && (counted.of_all || (counted.counters & before.counted.counters) != 0);
}

// The program has ended, or another one was started.
bool is_end(std::string_view body) {
  static constexpr std::array<std::string_view, 14> kParts = {
      "exitcode", "xited with", "exit code",          "exit status", "estarting", "core dumped",      "Aborted",
      "SIGTERM",  "SIGKILL",    "Killing subprocess", "return code", "FAILED",    "ChildFailedError", "$ python"};
  return body.starts_with("$ ") || body.starts_with("% ") || body.starts_with(">>> ") || has_any(body, kParts);
}

}  // namespace

bool lives_on(std::string_view text, std::size_t from, const std::string& tag) {
  Before before = look_before(text, from);
  bool works = false;
  std::size_t lines = 0;
  for (std::size_t begin = line_end(text, from, text.size()) + 1; begin < text.size() && ++lines < kMostLines;) {
    const std::size_t end = line_end(text, begin, text.size());
    // Of a line that a progress bar has written over and over, the last state.
    std::string_view raw = text.substr(begin, end - begin);
    begin = end + 1;
    while (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
    if (const std::size_t over = raw.rfind('\r'); over != std::string_view::npos) raw.remove_prefix(over + 1);
    raw = raw.substr(0, kLongestLine);
    const LinePrefix prefix = split_prefix(raw);
    const std::string body = clean_line(raw.substr(prefix.length), kLongestLine);
    if (body.empty() || is_other_writer(tag, prefix.tag)) continue;
    if (is_end(body)) return false;
    if (body.starts_with("wandb")) continue;
    const bool indented = prefix.tag.empty() && !raw.empty() && (raw[0] == ' ' || raw[0] == '\t') &&
                          body.find("%|") == std::string::npos;  // source text, settings
    works = works || (!indented && is_work(body, before));
  }
  return works;
}

bool is_handled_at_end(std::string_view text, std::size_t from) {
  const std::size_t last = text.rfind(kHead);
  if (last == std::string_view::npos || last < from) return false;
  const std::size_t during = text.rfind("During handling of the above exception", last),
                    cause = text.rfind("The above exception was the direct cause", last);
  const bool linked =
      (during != std::string_view::npos && during > from) || (cause != std::string_view::npos && cause > from);
  if (!linked) return false;
  // Up to the first link nothing but the message's own lines.
  const std::size_t link = std::min(during > from ? during : last, cause > from ? cause : last);
  return !goes_on(text, from, line_begin(text, link, kLongestLine), {});
}

bool goes_on(std::string_view text, std::size_t from, std::size_t to, const std::string& tag) {
  bool in_traceback = false;
  std::size_t lines = 0;
  for (std::size_t begin = line_end(text, from, text.size()) + 1; begin < to && ++lines < kMostLines;) {
    const std::size_t end = std::min(line_end(text, begin, text.size()), to);
    const std::string_view raw = text.substr(begin, std::min(end - begin, kLongestLine));
    const LinePrefix prefix = split_prefix(raw);
    const std::string body = clean_line(raw.substr(prefix.length), kLongestLine);
    begin = end + 1;
    if (body.empty() || is_other_writer(tag, prefix.tag)) continue;
    if (body.find("During handling of the above exception") != std::string::npos) return true;
    if (body.find(kHead) != std::string::npos) in_traceback = true;
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

std::string last_exception(std::string_view text, std::size_t from, const std::string& tag) {
  static constexpr std::array<std::string_view, 10> kOfOthers = {
      "ChildFailedError", "CalledProcessError", "ProcessRaisedException", "ProcessExitedException",
      "RayTaskError",     "EngineDeadError",    "BrokenPipeError",        "ConnectionResetError",
      "DistBackendError", "KeyboardInterrupt"};
  const std::size_t head = text.rfind(kHead);
  if (head == std::string_view::npos || head < from) return {};
  if (is_other_writer(tag, split_prefix(text.substr(line_begin(text, head, kLongestLine), kLongestLine)).tag))
    return {};
  TracebackFrame frame, innermost;
  std::size_t lines = 0;
  for (std::size_t begin = line_end(text, head, kLongestLine) + 1; begin < text.size() && ++lines < 600;) {
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
    return trimmed(body, 160) +
           (innermost.file.empty() ? "" : " (" + innermost.file + ":" + std::to_string(innermost.line) + ")");
  }
  return {};
}

}  // namespace faultline
