#include "sources/error_text/log_lines.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/characters.h"

namespace faultline {
namespace {

constexpr std::size_t kPrefixReach = 320;  // no prefix is looked for beyond this

constexpr bool is_blank(char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; }
constexpr bool is_name(char c) { return is_digit(c) || is_upper(c) || is_lower(c) || c == '_' || c == '-' || c == '.'; }

// A vertical bar of a drawn frame, as three bytes of UTF-8.
std::size_t bar_length(std::string_view rest) {
  for (const std::string_view bar : {"\xE2\x94\x82", "\xE2\x95\x91", "\xE2\x94\x83"}) {
    if (rest.starts_with(bar)) return bar.size();
  }
  return 0;
}

std::size_t word_length(std::string_view rest) {
  std::size_t length = 0;
  while (length < rest.size() && !is_blank(rest[length])) ++length;
  return length;
}

bool is_level(std::string_view word) {
  static constexpr std::array<std::string_view, 8> kLevels = {"INFO",  "ERROR",    "WARNING", "WARN",
                                                              "DEBUG", "CRITICAL", "FATAL",   "TRACE"};
  return std::find(kLevels.begin(), kLevels.end(), word) != kLevels.end();
}

// "2024-11-20", "14:37:16,123", "2025-11-12T11:25:13.496Z", "06-05": digits and separators only.
bool is_time(std::string_view word) {
  if (word.size() < 5 || !is_digit(word[0])) return false;
  int separators = 0;
  for (const char c : word) {
    if (c == ':' || c == '-' || c == '/')
      ++separators;
    else if (!is_digit(c) && c != '.' && c != ',' && c != 'T' && c != 'Z' && c != '+')
      return false;
  }
  return separators >= 1;
}

bool is_month(std::string_view word) {
  static constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return std::find(kMonths.begin(), kMonths.end(), word) != kMonths.end();
}

// "2025-01-05 10:10:10,123", "Fri Apr 17 19:56:43 2026": a time and nothing else, in words.
bool is_all_time(std::string_view words) {
  static constexpr std::array<std::string_view, 10> kOfTimes = {"Mon", "Tue", "Wed", "Thu", "Fri",
                                                                "Sat", "Sun", "UTC", "AM",  "PM"};
  bool has_time = false;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (word.ends_with(',')) word.remove_suffix(1);
    const bool is_number = word.size() <= 4 && std::all_of(word.begin(), word.end(), is_digit);
    if (is_time(word))
      has_time = true;
    else if (!is_number && !is_month(word) && std::find(kOfTimes.begin(), kOfTimes.end(), word) == kOfTimes.end())
      return false;
  }
  return has_time;
}

struct Atom {
  std::size_t length = 0;  // 0: not part of a prefix
  bool names_writer = false;
};

Atom bracket_atom(std::string_view rest) {
  const std::size_t close = rest.substr(0, 72).find(']');
  if (close == std::string_view::npos) return {};
  const std::string_view inside = rest.substr(1, close - 1);
  const bool colon = close + 1 < rest.size() && (rest[close + 1] == ':' || rest[close + 1] == '<');
  std::size_t length = close + 1;
  if (colon && rest[close + 1] == ':') ++length;
  const bool digits = std::any_of(inside.begin(), inside.end(), is_digit);
  if (is_all_time(inside)) return {length, false};
  if (inside.find("rank") != std::string_view::npos || (colon && digits)) return {length, true};
  if (digits || is_level(inside)) return {length, false};
  return {};
}

Atom parenthesis_atom(std::string_view rest) {
  const std::size_t close = rest.substr(0, 120).find(')');
  if (close == std::string_view::npos) return {};
  const std::string_view inside = rest.substr(1, close - 1);
  if (inside.find("pid=") == std::string_view::npos && inside.find("rank") == std::string_view::npos) return {};
  return {close + 1, true};
}

// "rank0", "worker-1", "node3": how launchers and people mark the lines of one process.
bool names_rank(std::string_view word) {
  for (const std::string_view name : {"rank", "Rank", "RANK", "worker", "Worker", "node", "task", "proc"}) {
    if (!word.starts_with(name)) continue;
    word.remove_prefix(name.size());
    if (!word.empty() && (word[0] == '-' || word[0] == '_')) word.remove_prefix(1);
    return !word.empty() && word.size() <= 5 && std::all_of(word.begin(), word.end(), is_digit);
  }
  return false;
}

Atom word_atom(std::string_view rest) {
  const std::size_t length = word_length(rest);
  const std::string_view word = rest.substr(0, length);
  std::string_view bare = word;
  while (!bare.empty() && (bare.back() == ':' || bare.back() == '-' || bare.back() == ',')) bare.remove_suffix(1);
  if (is_time(bare) || is_level(bare) || word == "-") return {length, false};
  if (bare.empty()) return {};
  if (word.back() == ':' && word.size() >= 2 && word.size() <= 6 && std::all_of(bare.begin(), bare.end(), is_digit))
    return {length, true};
  if (word.back() == ':' && bare.size() >= 3 && std::all_of(bare.begin(), bare.end(), is_upper)) return {length, false};
  if (word.back() == ':' && names_rank(bare)) return {length, true};
  // A line of glog: "E0812 11:25:13.4 123 file.cc:33]", or of TensorFlow: "E tensorflow/.../cuda_driver.cc:924]".
  const bool letter = word[0] == 'I' || word[0] == 'W' || word[0] == 'E' || word[0] == 'F';
  if (letter && (length == 1 || (length == 5 && std::all_of(word.begin() + 1, word.end(), is_digit)))) {
    const std::size_t close = rest.substr(0, 240).find("] ");
    if (close != std::string_view::npos && is_digit(rest[close - 1])) return {close + 1, false};
    // pytest marks the lines of an error with "E   "
    if (length == 1 && rest.substr(1, 2) == "  ") return {length, false};
    return {};
  }
  // "name-1  | words" of docker compose.
  if (std::all_of(word.begin(), word.end(), is_name)) {
    std::size_t bar = length;
    while (bar < rest.size() && rest[bar] == ' ') ++bar;
    if (bar > length && bar + 1 < rest.size() && rest[bar] == '|' && rest[bar + 1] == ' ') return {bar + 1, true};
  }
  return {};
}

// "Apr 17 23:09:42 host program[123]: " of syslog.
Atom syslog_atom(std::string_view rest) {
  if (rest.size() < 4 || !is_month(rest.substr(0, 3)) || rest[3] != ' ') return {};
  const std::string_view head = rest.substr(0, 160);
  const std::size_t end = head.find("]: ");
  return end == std::string_view::npos ? Atom{} : Atom{end + 2, true};
}

}  // namespace

LinePrefix split_prefix(std::string_view line) {
  line = line.substr(0, kPrefixReach);
  line = line.substr(0, line.find('\n'));
  LinePrefix prefix;
  std::size_t at = 0;
  for (int atoms = 0; atoms < 12; ++atoms) {
    while (at < line.size()) {
      const std::string_view rest = line.substr(at);
      if (const std::size_t escape = escape_length(rest))
        at += escape;
      else if (const std::size_t bar = bar_length(rest))
        at += bar;
      else if (is_blank(rest[0]) || rest[0] == '>' || rest[0] == '|')
        ++at;
      else
        break;
    }
    prefix.length = at;
    if (at >= line.size()) break;
    const std::string_view rest = line.substr(at);
    Atom atom;
    if (rest[0] == '[')
      atom = bracket_atom(rest);
    else if (rest[0] == '(')
      atom = parenthesis_atom(rest);
    else if (rest.starts_with("<stderr>:") || rest.starts_with("<stdout>:"))
      atom = {9, false};
    else if (atom = syslog_atom(rest); atom.length == 0)
      atom = word_atom(rest);
    if (atom.length == 0) break;
    if (atom.names_writer) prefix.tag += rest.substr(0, atom.length);
    at += atom.length;
  }
  return prefix;
}

bool is_runtime_line(std::string_view line, const LinePrefix& prefix) {
  static constexpr std::array<std::string_view, 11> kLabels = {
      "Limit: ",       "InUse: ",         "MaxInUse: ",         "NumAllocs: ",   "MaxAllocSize: ",    "Reserved: ",
      "PeakReserved:", "PeakAllocated: ", "LargestFreeBlock: ", "=== Source Lo", "Reported by CUDA: "};
  if (line.substr(0, prefix.length).find(".cc:") != std::string_view::npos) return true;
  line.remove_prefix(std::min(line.find_first_not_of(' ', prefix.length), line.size()));
  return std::any_of(kLabels.begin(), kLabels.end(), [&](std::string_view label) { return line.starts_with(label); });
}

std::size_t escape_length(std::string_view text) {
  if (text.empty() || text[0] != '\x1b') return 0;
  if (text.size() < 2 || text[1] != '[') return 1;
  for (std::size_t at = 2; at < text.size() && at < 40; ++at) {
    if (text[at] >= '@' && text[at] <= '~') return at + 1;
    if (text[at] < ' ') return 2;
  }
  return 2;
}

std::string lower_case(std::string_view line) {
  std::string lower(line);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

std::string clean_line(std::string_view line, std::size_t limit) {
  std::string clean;
  for (std::size_t at = 0; at < line.size() && at < limit;) {
    if (const std::size_t escape = escape_length(line.substr(at))) {
      at += escape;
      continue;
    }
    const char c = line[at++];
    clean += is_blank(c) ? ' ' : c;
  }
  while (!clean.empty() && clean.back() == ' ') clean.pop_back();
  return clean;
}

std::size_t line_begin(std::string_view text, std::size_t at, std::size_t limit) {
  at = std::min(at, text.size());
  const std::size_t lowest = at > limit ? at - limit : 0;
  while (at > lowest && text[at - 1] != '\n') --at;
  return at;
}

std::size_t line_end(std::string_view text, std::size_t at, std::size_t limit) {
  const std::size_t end = text.substr(0, at + std::min(limit, text.size() - std::min(at, text.size()))).find('\n', at);
  return end == std::string_view::npos ? std::min(text.size(), at + limit) : end;
}

std::size_t find_last(std::string_view text, std::string_view words) {
  if (words.empty() || text.size() < words.size()) return std::string_view::npos;
  std::size_t left = text.size() - words.size() + 1;  // places that it may begin at
  while (left > 0) {
    const void* const found = ::memrchr(text.data(), words[0], left);
    if (found == nullptr) return std::string_view::npos;
    left = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    if (text.substr(left, words.size()) == words) return left;
  }
  return std::string_view::npos;
}

Neighbourhood neighbourhood(std::string_view text, std::size_t at) {
  constexpr std::size_t kHeadBytes = std::size_t{256} << 10, kAroundBytes = std::size_t{1} << 20;
  if (text.size() <= 4 * kAroundBytes) return {{}, at};
  const std::size_t from = at > kAroundBytes ? at - kAroundBytes : 0;
  return {std::string(text.substr(0, kHeadBytes)) + std::string(text.substr(from, 2 * kAroundBytes)),
          kHeadBytes + (at - from)};
}

Passage passage_from(std::string_view text, std::size_t at, const std::string& tag, std::size_t limit) {
  Passage passage;
  bool first_line = true;
  const auto end_first_line = [&] {  // whatever blanks it ends in
    passage.first_line_length = passage.words.size() - (passage.words.ends_with(' ') ? 1 : 0);
    first_line = false;
  };
  const std::size_t stop = std::min(text.size(), at + limit * 16);
  while (at < stop && passage.words.size() < limit) {
    const std::string_view rest = text.substr(at, stop - at);
    if (const std::size_t escape = escape_length(rest)) {
      at += escape;
      continue;
    }
    const char c = rest[0];
    if (c != '\n') {
      ++at;
      if (const std::size_t bar = bar_length(rest)) {
        at += bar - 1;
        continue;
      }
      if (!is_blank(c))
        passage.words += c;
      else if (!passage.words.empty() && passage.words.back() != ' ')
        passage.words += ' ';
      continue;
    }
    if (first_line) end_first_line();
    if (!passage.words.empty() && passage.words.back() != ' ') passage.words += ' ';
    ++at;
    // Lines of other writers are stepped over whole.
    while (at < stop) {
      const LinePrefix prefix = split_prefix(text.substr(at, stop - at));
      const std::size_t end = line_end(text, at, stop - at);
      if (tag.empty() || prefix.tag.empty() || prefix.tag == tag) {
        at += std::min(prefix.length, end - at);
        break;
      }
      at = end + 1;
    }
  }
  if (first_line) end_first_line();
  return passage;
}

}  // namespace faultline
