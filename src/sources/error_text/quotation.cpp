#include "sources/error_text/quotation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/characters.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/text_limits.h"
#include "sources/error_text/traceback.h"

namespace faultline {
namespace {

std::string_view exception_name(std::string_view body) {
  const std::size_t end = body.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
  if (end != std::string_view::npos && body[end] != ':') return {};
  const std::string_view name = body.substr(0, end);
  return name.size() > 5 && (name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Interrupt"))
             ? name
             : std::string_view();
}

struct LineOfText {
  std::string body;
  std::string tag;
  bool indented = false;
};

LineOfText line_of(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view raw = text.substr(begin, std::min(end - begin, kLongestLine));
  const LinePrefix prefix = split_prefix(raw);
  const std::string_view front = raw.substr(0, prefix.length);
  return {clean_line(raw.substr(prefix.length), kLongestLine), prefix.tag,
          front.ends_with("  ") || front.ends_with('\t')};
}

// "src/alloc.cu:88:    throw …", as grep prints lines of sources.
std::string_view behind_place(std::string_view body) {
  const std::size_t colon = body.find(':');
  const std::size_t digits = colon == std::string_view::npos ? colon : body.find_first_not_of("0123456789", colon + 1);
  const bool names_file = colon < 200 && body.substr(0, colon).find('.') < colon &&
                          body.substr(0, colon).find(' ') == std::string_view::npos;
  if (!names_file || digits == std::string_view::npos || digits == colon + 1 || body[digits] != ':') return body;
  body.remove_prefix(digits + 1);
  while (body.starts_with(' ') || body.starts_with('\t')) body.remove_prefix(1);
  return body;
}

bool is_code(std::string_view body) {
  body = behind_place(body);
  while (!body.empty() && (body[0] == '+' || body[0] == '-' || body[0] == '>' || body[0] == ' ' || is_digit(body[0])))
    body.remove_prefix(1);
  static constexpr std::array<std::string_view, 23> kBegins = {
      "raise ",  "assert ",  "if ",    "elif ",         "except", "print(",   "return ", "//",
      "logger.", "logging.", "log.",   "warnings.warn", "with ",  "self.",    "throw ",  "TORCH_CHECK",
      "def ",    "class ",   "while ", "pytest.",       "std::",  "fprintf(", "printf("};
  return std::any_of(kBegins.begin(), kBegins.end(), [&](std::string_view begin) { return body.starts_with(begin); });
}

// A line of a list of changes, "- [Bugfix] … (#1234)", "* … by @name in https://…", or of a log of commits, "a1b2c3d fix(cuda): …".
bool is_change(std::string_view line) {
  while (line.starts_with(' ')) line.remove_prefix(1);
  while (line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
  const bool is_item = line.starts_with("- ") || line.starts_with("* ");
  if (is_item) line.remove_prefix(2);
  const std::size_t number = line.rfind("(#");
  const bool ends_in_number = line.ends_with(')') && number != std::string_view::npos &&
                              line.find_first_not_of("0123456789", number + 2) == line.size() - 1;
  if (is_item && (ends_in_number || line.find(" by @") != std::string_view::npos)) return true;
  const std::size_t hash = line.find_first_not_of("0123456789abcdef");
  if (hash >= 7 && hash <= 40 && hash < line.size() && line[hash] == ' ') line.remove_prefix(hash + 1);
  static constexpr std::array<std::string_view, 9> kTypes = {"fix",  "feat",   "docs",   "chore", "refactor",
                                                             "perf", "revert", "bugfix", "hotfix"};
  const auto type = std::find_if(kTypes.begin(), kTypes.end(), [&](std::string_view t) { return line.starts_with(t); });
  if (type == kTypes.end()) return false;
  line.remove_prefix(type->size());
  if (line.starts_with('(')) line.remove_prefix(std::min(line.find(')') + 1, line.size()));
  if (line.starts_with('!')) line.remove_prefix(1);
  return line.starts_with(": ");
}

// Behind a mark of quotation that opens after words, or that holds words of its own before the error's: a sentence about the error.
bool is_quoted_in_prose(std::string_view before, std::string_view behind) {
  for (const char mark : {'"', '`'}) {
    if (std::count(before.begin(), before.end(), mark) % 2 == 0 || behind.find(mark) == std::string_view::npos)
      continue;
    const std::size_t open = before.rfind(mark);
    std::string_view outside = before.substr(0, open), inside = before.substr(open + 1);
    while (!outside.empty() && outside.back() == ' ') outside.remove_suffix(1);
    static constexpr std::array<std::string_view, 9> kReports = {"with",  "rror",   "xception", "raised", "essage",
                                                                 "ailed", "Caught", "caught",   "what"};
    const bool reports =
        std::any_of(kReports.begin(), kReports.end(), [&](std::string_view word) { return outside.ends_with(word); });
    if (!outside.empty() && is_letter(outside.back()) && !reports) return true;
    // "My program says RuntimeError: …": words before the exception's name, none of them the end of a label.
    const std::size_t name = inside.find("Error");
    const std::string_view words =
        inside.substr(0, name == std::string_view::npos                      ? inside.size()
                         : inside.rfind(' ', name) == std::string_view::npos ? 0
                                                                             : inside.rfind(' ', name));
    if (std::count(words.begin(), words.end(), ' ') >= 2 && words.find(':') == std::string_view::npos &&
        words.find("rror") == std::string_view::npos)
      return true;
  }
  return false;
}

// The name under which a quoted string stands in a dictionary, a list of one, or a call: "on_oom" of `{"on_oom": "CUDA out …`, `on_oom='CUDA …`, `"retry": ["a", "CUDA …`. Empty: it stands under none.
std::string_view name_of_value(std::string_view before) {
  for (const char mark : {'"', '\''}) {
    if (std::count(before.begin(), before.end(), mark) % 2 == 0) continue;
    std::string_view outside = before.substr(0, before.rfind(mark));
    const auto strip = [&](std::string_view marks) {
      while (!outside.empty() && marks.find(outside.back()) != std::string_view::npos) outside.remove_suffix(1);
    };
    strip(" ");
    if (outside.ends_with(',')) outside = outside.substr(0, std::min(outside.rfind('['), outside.size()));
    strip(" [(");
    if (!outside.ends_with(':') && !outside.ends_with('=')) return {};
    strip(" :=\"'");
    const std::size_t begin = outside.find_last_of(" {,([\"'");
    return begin == std::string_view::npos ? outside : outside.substr(begin + 1);
  }
  return {};
}

// A setting that holds the words, and no report of them: "retry_on", "oom_pattern", or whatever a line of settings names.
bool is_setting(std::string_view body, std::string_view name) {
  if (name.empty()) return false;
  static constexpr std::array<std::string_view, 14> kReports = {"essage",   "msg", "MSG",      "rror",   "rr",
                                                                "xception", "exc", "raceback", "detail", "text",
                                                                "reason",   "log", "event",    "MESSAGE"};
  static constexpr std::array<std::string_view, 10> kBegins = {"on_",   "retry",  "ignore", "skip", "catch",
                                                               "allow", "expect", "known",  "if_",  "when"};
  static constexpr std::array<std::string_view, 6> kEnds = {"_on", "pattern", "match", "regex", "filter", "handler"};
  const bool names_setting =
      std::any_of(kBegins.begin(), kBegins.end(), [&](std::string_view begin) { return name.starts_with(begin); }) ||
      std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return name.ends_with(end); });
  static constexpr std::array<std::string_view, 12> kLines = {"config",  "Config",  "settings",   "Settings",
                                                              "args",    "Args",    "Namespace(", "hparams",
                                                              "options", "Options", "params",     "arameters"};
  const std::string_view front = body.substr(0, std::min(body.find_first_of(":={(") + 1, std::size_t{60}));
  return names_setting || (has_any(front, kLines) && !has_any(name, kReports));
}

// "Q: My job died with "…". What now?"
bool is_question(std::string_view body) { return body.ends_with('?') || body.starts_with("Q: "); }

// A quotation of a Markdown page, below words that call it an example: "If you get this, … For example:".
bool is_example(std::string_view text, std::size_t begin) {
  constexpr int kMostLines = 8;
  if (begin >= text.size() || text[begin] != '>') return false;
  for (int lines = 0; begin > 0 && lines < kMostLines; ++lines) {
    const std::size_t end = begin - 1;
    begin = line_begin(text, end, kLongestLine);
    const std::string above = lower_case(clean_line(text.substr(begin, end - begin), kLongestLine));
    if (above.empty() || above[0] == '>') continue;
    static constexpr std::array<std::string_view, 4> kExamples = {"example", "e.g.", "such as", "if you "};
    return above.ends_with(':') && has_any(above, kExamples);
  }
  return false;
}

// A comment of a program's source: the lines around it are code, or, where a block of C begins each with a star, more of the same.
bool is_in_comment(std::string_view text, std::size_t at) {
  constexpr int kMostLines = 20, kFewestLines = 5;
  const auto bare_line = [&](std::size_t begin, std::size_t end) {
    const std::string_view line = text.substr(begin, std::min(end - begin, kLongestLine));
    const std::size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t\r");
    return first == std::string_view::npos ? std::string_view() : line.substr(first, last - first + 1);
  };
  const auto is_comment = [](std::string_view line) {
    return line.starts_with('#') || line.starts_with("//") || line.starts_with("/*") || line == "*" ||
           line.starts_with("* ") || line.starts_with("*/");
  };
  const std::size_t own = line_begin(text, at, kLongestLine), own_end = line_end(text, at, kLongestLine);
  const std::string_view line = bare_line(own, own_end);
  if (!is_comment(line) || line.starts_with("#>")) return false;
  int code = 0, stars = 0, others = 0;
  const auto look = [&](std::string_view near) {
    if (near.empty()) return;
    static constexpr std::array<std::string_view, 10> kBegins = {"#include", "#define", "import ", "from ",  "def ",
                                                                 "class ",   "return",  "static ", "const ", "@"};
    const bool begins =
        std::any_of(kBegins.begin(), kBegins.end(), [&](std::string_view words) { return near.starts_with(words); });
    const bool ends = std::string_view(";{}(),[:\\").find(near.back()) != std::string_view::npos ||
                      near.ends_with("*/") || near.find(" = ") != std::string_view::npos;
    if (near == "*" || near.starts_with("* "))
      ++stars;
    else if (begins || (!is_comment(near) && ends))
      ++code;
    else if (!is_comment(near))
      ++others;
  };
  std::size_t begin = own;
  for (int lines = 0; lines < kMostLines && begin > 0; ++lines) {
    const std::size_t end = begin - 1;
    begin = line_begin(text, end, kLongestLine);
    look(bare_line(begin, end));
  }
  std::size_t end = own_end;
  for (int lines = 0; lines < kMostLines && end < text.size(); ++lines) {
    const std::size_t next = end + 1;
    end = line_end(text, std::min(next, text.size()), kLongestLine);
    if (next < text.size()) look(bare_line(next, end));
  }
  if (line.starts_with('*') && stars >= kFewestLines && stars > 2 * others) return true;
  return code >= kFewestLines && code > 2 * others;
}

// An example of a session with Python: its traceback has a line of dots for its frames.
bool is_doctest(std::string_view text, std::size_t begin) {
  const auto line_above = [&] {
    const std::size_t end = begin == 0 ? 0 : begin - 1;
    begin = line_begin(text, end, kLongestLine);
    const std::string line = clean_line(text.substr(begin, end - begin), kLongestLine);
    return line.substr(std::min(line.find_first_not_of(' '), line.size()));
  };
  return line_above() == "..." && line_above().starts_with(kTracebackHead);
}

// A line of a table of texts: its first line has the columns' names, "id,label,text".
bool is_row_of_table(std::string_view text, std::string_view before) {
  if (!before.ends_with('"') && before.find(",\"") == std::string_view::npos) return false;
  const std::string_view head = text.substr(0, std::min(text.find('\n'), kLongestLine));
  const auto commas = std::count(head.begin(), head.end(), ',');
  const bool is_head = std::all_of(
      head.begin(), head.end(), [](char c) { return is_letter(c) || c == '_' || c == ',' || c == '"' || c == '\r'; });
  const std::string_view columns = before.substr(0, before.find('"'));
  return is_head && commas > 0 && std::count(columns.begin(), columns.end(), ',') <= commas && columns.ends_with(',');
}

}  // namespace

bool is_exception_line(std::string_view body) { return !exception_name(body).empty(); }

bool is_unrelated_exception(std::string_view body) {
  std::string_view name = exception_name(body);
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
  static constexpr std::array<std::string_view, 30> kNames = {"AssertionError",
                                                              "ValueError",
                                                              "KeyError",
                                                              "TypeError",
                                                              "AttributeError",
                                                              "NameError",
                                                              "UnboundLocalError",
                                                              "IndexError",
                                                              "LookupError",
                                                              "ZeroDivisionError",
                                                              "FileNotFoundError",
                                                              "FileExistsError",
                                                              "PermissionError",
                                                              "IsADirectoryError",
                                                              "NotADirectoryError",
                                                              "NotImplementedError",
                                                              "ImportError",
                                                              "ModuleNotFoundError",
                                                              "SyntaxError",
                                                              "IndentationError",
                                                              "UnicodeDecodeError",
                                                              "UnicodeEncodeError",
                                                              "JSONDecodeError",
                                                              "ConnectionError",
                                                              "ConnectionRefusedError",
                                                              "HTTPError",
                                                              "URLError",
                                                              "TimeoutError",
                                                              "EOFError",
                                                              "RecursionError"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool may_tell_of_gpu(std::string_view body) {
  if (body.ends_with(':')) return true;
  static constexpr std::array<std::string_view, 23> kParts = {"CUDA",
                                                              "HIP",
                                                              "emory",
                                                              "MEMORY",
                                                              "CUBLAS",
                                                              "cuDNN",
                                                              "CUDNN",
                                                              "NCCL",
                                                              "Xla",
                                                              "JaxRuntimeError",
                                                              "XLA",
                                                              "RESOURCE_EXHAUSTED",
                                                              "ResourceExhausted",
                                                              "OOM",
                                                              "Caught",
                                                              "root error",
                                                              "INTERNAL",
                                                              "Cuda",
                                                              "cuda runtime",
                                                              "GPU",
                                                              "device-side",
                                                              "EngineDead",
                                                              "ailed to"};
  return has_any(body, kParts);
}

Quotation quotation_of(std::string_view text, std::size_t at) {
  const std::size_t begin = line_begin(text, at, kLongestLine), end = line_end(text, at, kLongestLine);
  const LineOfText line = line_of(text, begin, end);
  const std::string before = clean_line(text.substr(begin, at - begin), kLongestLine);
  const std::string_view behind = text.substr(at, end - at);
  const bool quoted = before.find_first_of("\"'`#") != std::string::npos;
  if (!is_exception_line(line.body) && quoted && is_code(line.body)) return Quotation::kSource;
  if (line.body.find("::") != std::string::npos &&
      (line.body.find(" PASSED") != std::string::npos || line.body.find(" SKIPPED") != std::string::npos ||
       line.body.find(" XFAIL") != std::string::npos))
    return Quotation::kSource;
  if (line.body.starts_with("PASSED ") || is_change(text.substr(begin, std::min(end - begin, kLongestLine))))
    return Quotation::kSource;
  TracebackFrame frame;
  if (line.body.starts_with("--") && line.body.find("> ") < 12 && quoted) return Quotation::kSource;  // IPython's arrow
  if (begin > 0 && line.indented && !is_exception_line(line.body)) {
    const LineOfText above = line_of(text, line_begin(text, begin - 1, kLongestLine), begin - 1);
    if (above.body.starts_with("File \"") && parse_frame(above.body, frame)) return Quotation::kSource;
  }
  if (quoted && !is_exception_line(line.body) && is_setting(line.body, name_of_value(before)))
    return Quotation::kSource;
  if (is_example(text, begin) || (quoted && is_question(line.body))) return Quotation::kSource;
  if (is_doctest(text, begin) || is_in_comment(text, at) || (quoted && is_row_of_table(text, before)))
    return Quotation::kSource;
  // JAX raises a ValueError of its own status.
  const bool is_status = line.body.find("Error: RESOURCE_EXHAUSTED: ") != std::string::npos;
  if (is_unrelated_exception(line.body) && !is_status) return Quotation::kQuoted;
  return is_quoted_in_prose(before, behind) && !is_exception_line(line.body) ? Quotation::kSource : Quotation::kNone;
}

ExceptionLine exception_of(std::string_view text, std::size_t head, const std::string& tag) {
  std::size_t lines = 0;
  for (std::size_t begin = line_end(text, head, kLongestLine) + 1;
       begin < text.size() && ++lines < kMostTracebackLines;) {
    const std::size_t end = line_end(text, begin, text.size());
    const LineOfText line = line_of(text, begin, end);
    const std::size_t at = std::exchange(begin, end + 1);
    if (!tag.empty() && !line.tag.empty() && line.tag != tag) continue;
    if (!line.indented && is_exception_line(line.body)) return {line.body, at};
  }
  return {};
}

bool is_followed_by_other(std::string_view text, std::size_t from, std::size_t to, const std::string& tag) {
  // a head that begins before `to`
  const std::string_view near = text.substr(0, std::min(to, from + kLookAheadBytes) + kTracebackHead.size() - 1);
  std::size_t head = near.find(kTracebackHead, from);
  const auto is_other_writer = [&](std::size_t at) {
    const std::string other = line_of(text, line_begin(text, at, kLongestLine), line_end(text, at, kLongestLine)).tag;
    return !tag.empty() && !other.empty() && other != tag;
  };
  while (head != std::string_view::npos && is_other_writer(head)) head = near.find(kTracebackHead, head + 1);
  if (head == std::string_view::npos) return false;
  const std::string_view between = text.substr(from, head - from);
  if (between.find("During handling of the above exception") != std::string_view::npos ||
      between.find("The above exception was the direct cause") != std::string_view::npos)
    return false;
  const std::string exception = exception_of(text, head, tag).words;
  return !exception.empty() && !may_tell_of_gpu(exception);
}

}  // namespace faultline
