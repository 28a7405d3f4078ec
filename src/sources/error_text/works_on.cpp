#include "sources/error_text/works_on.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/characters.h"
#include "base/hash.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"
#include "sources/error_text/plain_text.h"
#include "sources/error_text/quotation.h"
#include "sources/error_text/text_limits.h"
#include "sources/error_text/traceback.h"

namespace faultline {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
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
  unsigned counters = 0, measures = 0;                 // one bit for each word that has a number right behind it
  std::array<std::uint64_t, kCounters.size()> most{};  // of each counter
  bool begins = false;                                 // the line begins with one
  bool of_all = false;                                 // and is "Epoch 2/3"
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
      if (counts) counted.most[number] = std::max(counted.most[number], number_at(lower, behind).value_or(0));
      const bool begins = lower.substr(0, at).find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
      const std::size_t end = lower.find_first_not_of("0123456789", behind);
      counted.begins |= begins;
      counted.of_all |= begins && end != std::string_view::npos && lower[end] == '/';
    }
  }
  return counted;
}

using Bars = std::map<std::uint64_t, std::uint64_t>;  // by how many there are in all: the most that were done

// "job 42 took 3.1 s" → "job # took #.# s", and its whole numbers: lines of one form are written by one place of the program.
struct Form {
  std::string shape;
  std::vector<std::uint64_t> counts;
};

Form form_of(std::string_view body) {
  Form form;
  for (std::size_t at = 0; at < body.size() && form.shape.size() < 160;) {
    if (!is_digit(body[at])) {
      form.shape += body[at++];
      continue;
    }
    const bool is_part = at > 0 && (body[at - 1] == '.' || body[at - 1] == ':' || is_letter(body[at - 1]));
    std::size_t end = at;
    while (end < body.size() && is_digit(body[end])) ++end;
    const bool goes_on = end < body.size() && (body[end] == '.' || body[end] == ':' || is_letter(body[end]));
    form.shape += '#';
    if (!is_part && !goes_on) form.counts.push_back(number_at(body, at).value_or(0));
    at = end;
  }
  return form;
}

// "Query 3/12: prot_c", "[3/12] frame": how far a program is that goes through so many things. Its words and how many there are, and which one it is at.
struct Progress {
  std::string of;
  std::uint64_t at = 0;
};
std::optional<Progress> progress_of(std::string_view body) {
  if (body.starts_with('[') || body.starts_with('(')) body.remove_prefix(1);
  const std::size_t begin = body.find_first_of("0123456789");
  constexpr std::size_t kLongestName = 24;
  if (begin == std::string_view::npos || begin > kLongestName ||
      !std::all_of(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(begin),
                   [](char c) { return is_letter(c) || c == ' ' || c == '#'; }))
    return std::nullopt;
  const std::size_t slash = body.find_first_not_of("0123456789", begin);
  const auto at = number_at(body, begin);
  if (slash == std::string_view::npos || body[slash] != '/' || !at) return std::nullopt;
  const auto all = number_at(body, slash + 1);
  const std::size_t end = body.find_first_not_of("0123456789", slash + 1);
  if (!all || *at > *all || (end != std::string_view::npos && body[end] == '/')) return std::nullopt;  // a date
  return Progress{std::string(body.substr(0, begin)) + "/" + std::to_string(*all), *at};
}

// What the log had shown before the message: a program that ends prints its bars once more, where they stood.
struct Before {
  Counted counted;
  Bars bars;
  HashMap<std::string, std::vector<std::uint64_t>> forms;  // the largest counts that each had
  HashSet<std::string> lines;                              // those of these forms
  std::map<std::string, std::uint64_t> progress;           // how far it was
  std::vector<std::string> first;  // the text's first lines: a program that begins anew prints them again
};

// `"POST /generate HTTP/1.1" 500`: a server answers, so it is there.
bool is_answer(std::string_view body) {
  const std::size_t http = body.find(" HTTP/");
  if (http == std::string_view::npos) return false;
  static constexpr std::array<std::string_view, 6> kVerbs = {"GET /",    "POST /", "PUT /",
                                                             "DELETE /", "HEAD /", "PATCH /"};
  return has_any(body.substr(0, http), kVerbs);
}

bool is_prose(std::string_view body, std::string_view lower) {
  static constexpr std::array<std::string_view, 14> kParts = {
      " i ",    "i'm ",  "i've ",    " my ",     " me ", " you ",      " how ",
      "please", "thank", "does any", "any idea", " we ", " it still ", "still fail"};
  return body.ends_with("?") || lower.starts_with("i ") || lower.starts_with("my ") || has_any(lower, kParts);
}

// A line that a program at work may write: neither about an error, nor source text, nor somebody's words.
bool may_be_work(std::string_view body) {
  static constexpr std::array<std::string_view, 12> kOthers = {
      "rror", "xception", "raceback", "File \"", "fail", "Fail", "FAIL", "CUDA", "^^^", "frame #", "wandb", "MiB /"};
  TracebackFrame frame;
  return !has_any(body, kOthers) && !body.starts_with("--") && !parse_frame(body, frame) &&
         !is_prose(body, lower_case(body));
}

void look_at_lines(std::string_view above, bool from_start, Before& before) {
  for (std::size_t begin = 0; begin < above.size();) {
    const std::size_t end = std::min(above.find('\n', begin), above.size());
    const std::string_view raw = above.substr(begin, std::min(end - begin, kLongestLine));
    begin = end + 1;
    const LinePrefix prefix = split_prefix(raw);
    const std::string body = clean_line(raw.substr(prefix.length), kLongestLine);
    if (body.empty() || (!raw.empty() && raw[0] == ' ') || is_runtime_line(raw, prefix) || !may_be_work(body)) continue;
    const bool is_known = std::find(before.first.begin(), before.first.end(), body) != before.first.end();
    if (from_start && !is_known && before.first.size() < 3 && body.size() >= 12 && !is_answer(body))
      before.first.push_back(body);
    if (const auto progress = progress_of(body)) {
      std::uint64_t& most = before.progress[progress->of];
      most = std::max(most, progress->at);
    }
    const Form form = form_of(body);
    if (form.shape == body || before.lines.size() >= kMostLogLines) continue;  // without a number
    before.lines.insert(body);
    std::vector<std::uint64_t>& most = before.forms[form.shape];
    most.resize(std::max(most.size(), form.counts.size()));
    for (std::size_t at = 0; at < form.counts.size(); ++at) most[at] = std::max(most[at], form.counts[at]);
  }
}

Before look_before(std::string_view text, std::size_t at) {
  Before before;
  const std::size_t stop = line_end(text, at, kLongestLine), from = stop > kLookBackBytes ? stop - kLookBackBytes : 0;
  const std::string_view above = text.substr(from, stop - from);
  look_at_lines(
      text.substr(from, line_begin(text, at, kLongestLine) - std::min(from, line_begin(text, at, kLongestLine))),
      from == 0, before);
  before.counted = counted_words(lower_case(above));
  for (std::size_t percent = above.find("%|"); percent != std::string_view::npos;
       percent = above.find("%|", percent + 2)) {
    const auto bar =
        bar_of(above.substr(percent, std::min<std::size_t>(above.find_first_of("\n[", percent) - percent, 400)));
    if (bar) before.bars[bar->second] = std::max(before.bars[bar->second], bar->first);
  }
  return before;
}

// What a program prints of its whole run once it ends, as a "finally" does; "Trial 5 finished" is of a part.
bool is_summary(std::string_view lower, const Counted& counted) {
  static constexpr std::array<std::string_view, 18> kWords = {
      "best",    "final",    "total",   "summary", "overall", "average", "elapsed",     "ended",   "aborted",
      "stopped", "stopping", "crashed", "last ",   "took ",   "history", "interrupted", "exiting", "result"};
  static constexpr std::array<std::string_view, 2> kOfParts = {"finished", "done"};
  return has_any(lower, kWords) || (!counted.begins && has_any(lower, kOfParts));
}

// Whether the counter that the line begins with has counted on.
bool begins_beyond(std::string_view lower, const Counted& known) {
  lower = lower.substr(std::min(lower.find_first_of("abcdefghijklmnopqrstuvwxyz"), lower.size()));
  for (std::size_t at = 0; at < kCounters.size(); ++at) {
    if (!lower.starts_with(kCounters[at])) continue;
    const std::size_t number = lower.find_first_not_of(" =:[#_", kCounters[at].size());
    if (number == std::string_view::npos || number == kCounters[at].size()) continue;
    const auto count = number_at(lower, number);
    if (count && (known.counters >> at & 1u) != 0) return *count > known.most[at];
  }
  return false;
}

// A line of training: one that goes on from those before, not one that tells again how far they came.
bool is_new_work(const std::string& body, const std::string& lower, const Counted& counted, Before& before) {
  const unsigned known = counted.counters & before.counted.counters;
  // "Trial 5 finished … Best is trial 3": what it begins with is new, whatever it tells of the whole run beside it.
  if (counted.begins && known != 0 && begins_beyond(lower, before.counted)) return true;
  if (is_summary(lower, counted)) return false;
  for (std::size_t at = 0; at < kCounters.size(); ++at) {
    if ((known >> at & 1u) != 0 && counted.most[at] > before.counted.most[at]) return true;
  }
  const Form form = form_of(body);
  const bool is_other = before.lines.insert(body).second;
  const bool is_known = !before.forms.emplace(form.shape, form.counts).second;
  if (is_known) return is_other;  // one place of the program writes on
  return counted.begins && known == 0;
}

WorksOn shown_by(const std::string& body, Before& before) {
  const auto by_shape = [](bool shown) { return shown ? WorksOn::kByShape : WorksOn::kNo; };
  if (body.find("%|") != std::string_view::npos) {
    const auto bar = bar_of(body);
    if (!bar) return WorksOn::kNo;
    const auto known = before.bars.find(bar->second);
    const bool moves =
        known == before.bars.end() ? bar->first == bar->second && bar->second > 1 : bar->first > known->second;
    before.bars[bar->second] = bar->first;
    return by_shape(moves);
  }
  if (is_answer(body)) return WorksOn::kByShape;
  const std::string lower = lower_case(body);
  if (is_prose(body, lower) || lower.find("fail") != std::string::npos) return WorksOn::kNo;
  const Counted counted = counted_words(lower);
  const bool is_short = std::count(lower.begin(), lower.end(), ' ') < 8;
  const bool is_training =
      counted.measures != 0
          ? counted.counters != 0 || (counted.measures & (counted.measures - 1)) != 0 || before.counted.measures != 0
          : is_short && counted.begins && (counted.of_all || (counted.counters & before.counted.counters) != 0);
  if (is_training) return by_shape(is_new_work(body, lower, counted, before));
  if (may_be_work(body)) {
    if (const auto progress = progress_of(body)) {
      const auto known = before.progress.find(progress->of);
      if (known != before.progress.end() && progress->at > known->second) return WorksOn::kByShape;
    }
    const Form form = form_of(body);
    const auto known = before.forms.find(form.shape);
    for (std::size_t at = 0; known != before.forms.end() && at < form.counts.size(); ++at) {
      if (form.counts[at] > known->second[at]) return WorksOn::kByShape;
    }
  }
  static constexpr std::array<std::string_view, 21> kSaid = {
      "server is listening", "startup complete",  "ready to roll",     "runner started",    "skipping",
      "succeeded",           "retrying",          "trying again",      "try again with",    "halving",
      "recover from oom",    "recovered",         "got prompt",        "model saved",       "saved to",
      "saved checkpoint",    "saving checkpoint", "training finished", "training complete", "done training",
      "'train_runtime'"};
  return has_any(lower, kSaid) && !lower.starts_with("skipping registering") ? WorksOn::kByWords : WorksOn::kNo;
}

// "CUDA error: out of memory (ignored: falling back to CPU offload)": the line that tells of it says what became of it, and the log goes on.
WorksOn said_beside(std::string_view text, std::size_t at) {
  static constexpr std::array<std::string_view, 10> kSaid = {"ignored",   "ignoring",     "falling back", "fallback to",
                                                             "fell back", "trying again", "retrying",     "skipping",
                                                             "skipped",   "continuing"};
  const std::size_t begin = line_begin(text, at, kLongestLine), end = line_end(text, at, kLongestLine);
  const std::string_view line = text.substr(begin, end - begin);
  const std::string body = clean_line(line.substr(split_prefix(line).length), kLongestLine);
  const bool goes_on = text.substr(std::min(end, text.size())).find_first_not_of(" \t\r\n") != std::string_view::npos;
  return goes_on && !is_exception_line(body) && has_any(lower_case(text.substr(at, end - at)), kSaid)
             ? WorksOn::kByWords
             : WorksOn::kNo;
}

// "exited with code 0": it ended, and well.
bool ended_well(std::string_view body) {
  for (const std::string_view words :
       {"exitcode", "exit code", "exit status", "return code", "xited with code", "xited with"}) {
    const std::size_t at = body.find(words);
    if (at == std::string_view::npos) continue;
    const std::size_t number = body.find_first_not_of(" :=()", at + words.size());
    if (number != std::string_view::npos && body[number] == '0' &&
        (number + 1 == body.size() || !is_digit(body[number + 1])))
      return true;
  }
  return false;
}

// The program has ended, or another one was started.
bool is_end(std::string_view body) {
  static constexpr std::array<std::string_view, 14> kParts = {
      "exitcode", "xited with", "exit code",          "exit status", "estarting", "core dumped",      "Aborted",
      "SIGTERM",  "SIGKILL",    "Killing subprocess", "return code", "FAILED",    "ChildFailedError", "$ python"};
  return body.starts_with("$ ") || body.starts_with("% ") || body.starts_with(">>> ") || has_any(body, kParts);
}

}  // namespace

WorksOn works_on(std::string_view text, std::size_t from, const std::string& tag) {
  Before before = look_before(text, from);
  WorksOn shown = said_beside(text, from), shown_before = WorksOn::kNo;
  constexpr std::size_t kAnew = 2;  // so many of its first lines, and the program was begun anew
  std::set<std::string> again;
  std::size_t lines = 0;
  for (std::size_t begin = line_end(text, from, text.size()) + 1; begin < text.size() && lines < kMostLogLines;) {
    const std::size_t end = line_end(text, begin, text.size());
    std::string_view raw = text.substr(begin, end - begin);
    begin = end + 1;
    // Of a line that a progress bar has written over and over, the last state.
    if (raw.ends_with(kOverwritten) && raw.find("%|") != std::string_view::npos) continue;
    ++lines;
    raw = raw.substr(0, kLongestLine);
    const LinePrefix prefix = split_prefix(raw);
    const std::string body = clean_line(raw.substr(prefix.length), kLongestLine);
    if (body.empty() || is_other_writer(tag, prefix.tag)) continue;
    if (ended_well(body)) return WorksOn::kByShape;
    if (is_end(body)) return WorksOn::kNo;
    if (body.starts_with("wandb") || is_runtime_line(raw, prefix)) continue;
    if (std::find(before.first.begin(), before.first.end(), body) != before.first.end()) {
      if (again.empty()) shown_before = shown;
      again.insert(body);
      if (again.size() >= kAnew) return shown_before;
    }
    const bool indented = prefix.tag.empty() && !raw.empty() && (raw[0] == ' ' || raw[0] == '\t') &&
                          body.find("%|") == std::string::npos;  // source text, settings
    if (!indented) shown = std::max(shown, shown_by(body, before));
  }
  return shown;
}

bool is_of_request(std::string_view text, std::size_t at) {
  static constexpr std::array<std::string_view, 22> kServers = {"/uvicorn/",
                                                                "/starlette/",
                                                                "/fastapi/",
                                                                "/flask/",
                                                                "/werkzeug/",
                                                                "/gunicorn/",
                                                                "/aiohttp/",
                                                                "/tornado/",
                                                                "/django/",
                                                                "/gradio/",
                                                                "/streamlit/",
                                                                "/celery/",
                                                                "/rq/worker",
                                                                "/grpc/",
                                                                "/litserve/",
                                                                "/bentoml/",
                                                                "/ts/service",
                                                                "Exception in ASGI application",
                                                                "Exception on /",
                                                                "Error completing request",
                                                                "Exception during processing",
                                                                " 500 Internal Server Error"};
  constexpr std::size_t kAbove = 16384, kBelow = 4096;
  const std::size_t begin = at > kAbove ? at - kAbove : 0;
  std::string_view near = text.substr(begin, at - begin);
  if (const std::size_t head = near.rfind(kTracebackHead); head != std::string_view::npos) {
    const std::size_t above = head > 600 ? head - 600 : 0;  // what announces the traceback
    near.remove_prefix(above);
  }
  if (has_any(near, kServers)) return true;
  std::size_t lines = 0;
  const std::string_view below = text.substr(at, kBelow);
  for (std::size_t line = below.find('\n'); line != std::string_view::npos && ++lines <= 12;
       line = below.find('\n', line + 1)) {
    const std::string_view rest = below.substr(line + 1, below.find('\n', line + 1) - line - 1);
    if (is_answer(rest) && rest.find(" 50") != std::string_view::npos) return true;
    if (rest.find("500 Internal Server Error") != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace faultline
