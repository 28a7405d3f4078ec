#include "sources/error_text/traceback.h"

#include <algorithm>
#include <charconv>
#include <deque>

#include "sources/error_text/log_lines.h"
#include "sources/error_text/quotation.h"
#include "sources/error_text/text_limits.h"

namespace faultline {
namespace {

constexpr std::size_t kReach = std::size_t{1} << 20;  // bytes looked at above or below the message
constexpr std::size_t kMostFrames = 512;
constexpr std::size_t kLongestOneLine = std::size_t{1} << 16;
constexpr std::string_view kHead = "Traceback (most recent call last)";

bool take_number(std::string_view text, std::size_t& at, std::uint32_t& number) {
  const char* const begin = text.data() + at;
  const auto [stop, code] = std::from_chars(begin, text.data() + text.size(), number);
  if (code != std::errc{}) return false;
  at += static_cast<std::size_t>(stop - begin);
  return true;
}

// The name in ", in forward(self, x)" or " in forward"; empty when none is written.
std::string function_after(std::string_view rest) {
  // the colon is pytest's: "test_a.py:12: in test_it"
  if (rest.starts_with(',') || rest.starts_with(':')) rest.remove_prefix(1);
  if (!rest.starts_with(" in ")) return {};
  rest.remove_prefix(4);
  return std::string(rest.substr(0, std::min(rest.find_first_of("( "), rest.size())));
}

// "cell [12]" of "Cell In[12]", "Input In [12]" and "<ipython-input-12-3f2b>"; empty for anything else.
std::string cell_name(std::string_view file) {
  for (const std::string_view begin :
       {"Cell In[", "Cell In [", "Input In [", "In [", "<ipython-input-", "/tmp/ipython-input-"}) {
    if (!file.starts_with(begin)) continue;
    const std::size_t end = file.find_first_not_of("0123456789", begin.size());
    // a hash, no number of a cell
    if (begin.starts_with("/tmp") && (end == std::string_view::npos || file[end] != '-')) return {};
    const std::string_view number = file.substr(begin.size(), end == std::string_view::npos ? end : end - begin.size());
    return number.empty() || number.size() > 9 ? std::string() : "cell [" + std::string(number) + "]";
  }
  return {};
}

// "path.py:12" with its path and line, from the start of `text`.
bool take_path_and_line(std::string_view text, std::size_t& at, TracebackFrame& frame) {
  const std::size_t dot = text.find(".py:", at);
  if (dot == std::string_view::npos) return false;
  std::size_t behind = dot + 4;
  if (!take_number(text, behind, frame.line)) return false;
  frame.file = text.substr(at, dot + 3 - at);
  at = behind;
  return true;
}

struct Line {
  std::string body;
  std::string tag;
  bool indented = false;
};

Line line_at(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view raw = text.substr(begin, std::min(end - begin, kLongestLine));
  const LinePrefix prefix = split_prefix(raw);
  return {clean_line(raw.substr(prefix.length), kLongestLine), prefix.tag,
          raw.substr(0, prefix.length).ends_with("  ")};
}

// "----> 3 train()": IPython's arrow at the line of the frame above it.
std::uint32_t arrow_line(std::string_view line) {
  const std::size_t dashes = line.find_first_not_of('-');
  std::uint32_t number = 0;
  if (dashes == 0 || dashes == std::string_view::npos || line.substr(dashes, 2) != "> ") return 0;
  std::size_t at = line.find_first_not_of(' ', dashes + 1);
  return at != std::string_view::npos && take_number(line, at, number) ? number : 0;
}

// A frame whose line stands only at the arrow below it: "<ipython-input-12-3f…> in <cell line: 3>()", "/usr/lib/x.py in f(a)", "Input In [12], in f()".
bool parse_frame_head(std::string_view line, std::uint32_t arrow, TracebackFrame& frame) {
  frame = {};
  std::size_t in = line.find(" in ");
  if (in == std::string_view::npos || in == 0 || line.find('(', in) == std::string_view::npos) {
    if (in == std::string_view::npos || !line.ends_with("<module>")) return false;
  }
  std::string_view file = line.substr(0, in), function = line.substr(in + 4);
  if (file.ends_with(',')) file.remove_suffix(1);
  if (const std::string cell = cell_name(file); !cell.empty())
    frame.file = cell;
  else if (file.ends_with(".py") && file.find_first_of(" \"") == std::string_view::npos)
    frame.file = file;
  else
    return false;
  frame.line = arrow;
  constexpr std::string_view kCell = "<cell line: ";
  if (function.starts_with(kCell)) {
    std::size_t at = kCell.size();
    if (arrow == 0) take_number(function, at, frame.line);
    frame.function = "<module>";
  } else {
    frame.function = function.substr(0, function.find_first_of("( "));
  }
  return frame.line != 0;
}

bool same_writer(const std::string& mine, const std::string& other) {
  return mine.empty() || other.empty() || mine == other;
}

}  // namespace

bool parse_frame(std::string_view line, TracebackFrame& frame) {
  frame = {};
  std::size_t at = 0;
  // What a logger puts before each line is not always known.
  if (const std::size_t quoted = line.find("File \""); quoted != std::string_view::npos && quoted < 200)
    line.remove_prefix(quoted);
  // Where the file's name begins, what ends it, and how much of that belongs to it.
  struct Form {
    std::string_view begin, end;
    std::size_t skip, keep;
  };
  for (const Form& form :
       {Form{"File \"", "\", line ", 6, 0}, Form{"Cell In[", "], line ", 0, 1}, Form{"Input In [", "], line ", 0, 1}}) {
    if (!line.starts_with(form.begin)) continue;
    const std::size_t end = line.find(form.end, form.skip);
    if (end == std::string_view::npos) return false;
    frame.file = line.substr(form.skip, end + form.keep - form.skip);
    at = end + form.end.size();
    if (!take_number(line, at, frame.line)) return false;
    if (const std::string cell = cell_name(frame.file); !cell.empty()) frame.file = cell;
    frame.function = function_after(line.substr(at));
    return true;
  }
  if (line.starts_with("File ")) {
    at = 5;
    if (!take_path_and_line(line, at, frame)) return false;
    frame.function = function_after(line.substr(at));
    return true;
  }
  // rich draws "path.py:12 in f" inside a frame.
  if (!take_path_and_line(line, at, frame) || frame.file.find(' ') != std::string::npos) return false;
  frame.function = function_after(line.substr(at));
  return !frame.function.empty();
}

namespace {

// A traceback whose line ends were lost stands on the message's own line.
std::vector<TracebackFrame> frames_before(std::string_view text, std::size_t at) {
  std::vector<TracebackFrame> frames;
  const std::size_t begin = line_begin(text, at, kLongestOneLine);
  const std::string line = clean_line(text.substr(begin, at - begin), kLongestOneLine);
  TracebackFrame frame;
  for (std::size_t file = line.find("File \""); file != std::string::npos && frames.size() < kMostFrames;
       file = line.find("File \"", file + 6)) {
    if (parse_frame(std::string_view(line).substr(file, 1000), frame)) frames.push_back(frame);
  }
  return frames;
}

// pytest marks the lines of an error with "E" and tells its place below: "tests/test_a.py:17: OutOfMemoryError". Frames further out stand above as "path.py:12: ".
std::vector<TracebackFrame> pytest_frames(std::string_view text, std::size_t at) {
  const std::size_t own = line_begin(text, at, kLongestLine);
  if (!text.substr(own).starts_with("E  ")) return {};
  std::deque<TracebackFrame> frames;
  int lines = 0;
  for (std::size_t begin = line_end(text, at, kReach) + 1; begin < text.size() && ++lines < 40;) {
    const std::size_t end = line_end(text, begin, kLongestLine);
    const std::string line = clean_line(text.substr(begin, end - begin), kLongestLine);
    begin = end + 1;
    if (line.empty() || line.starts_with("E ")) continue;
    TracebackFrame frame;
    std::size_t behind = 0;
    if (!take_path_and_line(line, behind, frame) || line.compare(behind, 2, ": ") != 0 ||
        !is_exception_line(std::string_view(line).substr(behind + 2)))
      return {};
    frames.push_back(std::move(frame));
    break;
  }
  lines = 0;
  for (std::size_t end = own; end > 0 && ++lines < static_cast<int>(kMostTracebackLines) && !frames.empty();) {
    const std::size_t begin = line_begin(text, end - 1, kLongestLine);
    const std::string line = clean_line(text.substr(begin, end - begin), kLongestLine);
    end = begin;
    if (line.starts_with("____") || line.starts_with("====")) break;
    TracebackFrame frame;
    std::size_t behind = 0;
    if (take_path_and_line(line, behind, frame) && std::string_view(line).substr(behind) == ":")
      frames.push_front(std::move(frame));
  }
  return {frames.begin(), frames.end()};
}

// The exception of the next traceback asks for another size than the message: it is another failure.
bool is_followed_by_other_request(std::string_view text, std::size_t at, const std::string& tag) {
  constexpr std::string_view kAsked = "Tried to allocate ";
  const auto asked_in = [&](std::string_view line) {
    const std::size_t size = line.find(kAsked);
    if (size == std::string_view::npos) return std::string_view();
    line.remove_prefix(size + kAsked.size());
    return line.substr(0, line.find_first_of("(.", line.find(' ')));
  };
  const std::string_view own = asked_in(text.substr(at, line_end(text, at, kLongestLine) - at));
  const std::size_t head = own.empty() ? std::string_view::npos : text.substr(0, at + kReach).find(kHead, at);
  if (head == std::string_view::npos) return false;
  const std::string exception = exception_of(text, head, tag).words;
  const std::string_view other = asked_in(exception);
  return !other.empty() && other != own;
}

}  // namespace

std::vector<TracebackFrame> traceback_at(std::string_view text, std::size_t at, const std::string& tag) {
  if (std::vector<TracebackFrame> frames = frames_before(text, at); !frames.empty()) return frames;
  if (std::vector<TracebackFrame> frames = pytest_frames(text, at); !frames.empty()) return frames;
  // Upwards from the message to the head of its traceback.
  std::deque<TracebackFrame> above;
  const std::size_t lowest = at > kReach ? at - kReach : 0;
  std::size_t end = line_begin(text, at, kLongestLine);
  int silent_lines = 0;
  bool head_seen = false;
  std::uint32_t arrow = 0;  // the latest one below
  const bool is_exception = is_exception_line(line_at(text, end, line_end(text, at, kLongestLine)).body);
  while (end > lowest && above.size() < kMostFrames && silent_lines < 400) {
    const std::size_t begin = line_begin(text, end - 1, kLongestLine);
    const Line line = line_at(text, begin, end);
    end = begin;
    if (!same_writer(tag, line.tag)) continue;
    TracebackFrame frame;
    if (const std::uint32_t number = arrow_line(line.body)) arrow = number;
    if (parse_frame(line.body, frame) || parse_frame_head(line.body, arrow, frame)) {
      arrow = 0;
      above.push_front(std::move(frame));
      silent_lines = 0;
      continue;
    }
    head_seen = line.body.find(kHead) != std::string::npos;
    // What a worker thread raised, told inside the traceback of the program that waited for it: without a line of the program's own, go on above.
    if (head_seen && line.body.find("Original Traceback") != std::string::npos &&
        std::all_of(above.begin(), above.end(),
                    [](const TracebackFrame& f) { return f.file.find("-packages") != std::string::npos; }))
      continue;
    if (head_seen) break;
    // Frames belong to this message only if it stands right below them: a source line or a few in between, no other exception's text.
    if (line.body.find("During handling of the above exception") != std::string::npos) break;
    if (line.body.find("The above exception was the direct cause") != std::string::npos) break;
    if (!line.indented && is_exception_line(line.body) && !line.body.ends_with(':') &&
        line.body.find(": Caught ") == std::string::npos &&
        (!above.empty() || is_exception || !may_tell_of_gpu(line.body) || is_unrelated_exception(line.body)))
      break;
    ++silent_lines;
    if (above.empty() && silent_lines > 60) break;
  }
  if (!above.empty()) return {above.begin(), above.end()};
  if (head_seen) return {};

  // Some programs print the message first and the traceback below it, which ends in the same.
  if (is_followed_by_other(text, at, text.size(), tag) || is_followed_by_other_request(text, at, tag)) return {};
  std::vector<TracebackFrame> below;
  bool inside = false;
  int lines = 0;
  for (std::size_t begin = line_end(text, at, kReach) + 1;
       begin < text.size() && begin < at + kReach && below.size() < kMostFrames;) {
    const std::size_t stop = line_end(text, begin, kLongestLine);
    const Line line = line_at(text, begin, stop);
    begin = stop + 1;
    if (!same_writer(tag, line.tag)) continue;
    TracebackFrame frame;
    if (parse_frame(line.body, frame)) {
      inside = true;
      lines = 0;
      below.push_back(std::move(frame));
    } else if (!inside && line.body.find(kHead) != std::string::npos) {
      inside = true;
      lines = 0;
    } else if (++lines > (inside ? 6 : 12)) {
      break;
    }
  }
  return below;
}

TracebackFrame defined_at(std::string_view text, std::size_t at) {
  constexpr std::size_t kReach = 4096, kPlaceReach = 400;
  constexpr std::string_view kPlace = "(defined at ";
  TracebackFrame frame;
  const std::string_view behind = text.substr(std::min(at, text.size()), kReach);
  const std::size_t node = behind.find("[[node ");
  if (node == std::string_view::npos) return frame;
  const std::string_view words = behind.substr(node + 7, kPlaceReach);
  const std::size_t place = words.find(kPlace);
  if (place == std::string_view::npos || words.substr(0, place).find("]]") != std::string_view::npos) return frame;
  const std::string_view inside = words.substr(place + kPlace.size(), words.find(')', place) - place - kPlace.size());
  const std::size_t colon = inside.rfind(':');
  std::uint32_t line = 0;
  if (colon == std::string_view::npos || colon == 0) return frame;
  const auto [end, error] = std::from_chars(inside.data() + colon + 1, inside.data() + inside.size(), line);
  if (error != std::errc{} || inside.find('\n') != std::string_view::npos) return frame;
  frame.file = inside.substr(0, colon);
  frame.line = line;
  frame.function = words.substr(0, words.find_first_of(" \n"));
  return frame;
}

}  // namespace faultline
