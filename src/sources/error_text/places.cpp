#include "sources/error_text/places.h"

#include <algorithm>
#include <array>

#include "sources/error_text/ending.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/other_failures.h"
#include "sources/error_text/text_limits.h"

namespace faultline {
namespace {

bool has_installed_only(const std::vector<TracebackFrame>& frames) {
  return std::all_of(frames.begin(), frames.end(), is_installed);
}

// What starts programs: its own lines are nobody's.
bool is_launcher(const TracebackFrame& frame) {
  static constexpr std::array<std::string_view, 9> kNames = {"/bin/torchrun", "/bin/accelerate", "/bin/deepspeed",
                                                             "/bin/vllm",     "/bin/ray",        "/bin/composer",
                                                             "/bin/litgpt",   "/bin/tune",       "accelerate.exe"};
  return has_any(frame.file, kNames);
}

// The few lines that pip writes to start a package's program: "/home/u/.local/bin/ai-models", which calls what is installed.
bool is_console_script(const std::vector<TracebackFrame>& frames) {
  if (frames.size() < 2 || frames[0].function != "<module>" || !is_installed(frames[1])) return false;
  const std::string& file = frames[0].file;
  const std::size_t slash = file.find_last_of("/\\");
  if (slash == std::string::npos) return false;
  const bool is_bin = file.substr(0, slash).ends_with("bin") || file.substr(0, slash).ends_with("Scripts");
  return (is_bin && file.find('.', slash) == std::string::npos) || file.find(".exe") != std::string::npos;
}

// Of TensorFlow, Keras or JAX themselves: where they noticed what the program had done.
bool is_of_framework(const TracebackFrame& frame) {
  std::string file = frame.file;
  std::replace(file.begin(), file.end(), '\\', '/');
  static constexpr std::array<std::string_view, 6> kPackages = {
      "-packages/tensorflow/", "-packages/tensorflow_core/", "-packages/keras/",
      "-packages/jax/",        "-packages/jaxlib/",          "-packages/tensorflow_estimator/"};
  return has_any(file, kPackages);
}

// The traceback that ends in the message, or in the same message told again, where the first has none.
std::vector<TracebackFrame> traceback_of(std::string_view text, std::size_t at, std::size_t again,
                                         const std::string& tag) {
  std::vector<TracebackFrame> frames = traceback_at(text, at, tag);
  if (again <= at || !has_installed_only(frames)) return frames;
  std::vector<TracebackFrame> later = traceback_at(text, again, tag);
  return has_installed_only(later) ? frames : later;
}

// "Caused by op 'conv2/Conv2D', defined at:" and its frames: TensorFlow 1 tells behind the message where the operation was made.
std::vector<TracebackFrame> made_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kMark = "Caused by op '", kAt = "defined at:";
  const std::string_view near = text.substr(at, kLookBackBytes);
  const std::size_t mark = near.find(kMark);
  if (mark == std::string_view::npos || near.substr(mark, 600).find(kAt) == std::string_view::npos) return {};
  std::vector<TracebackFrame> frames;
  std::size_t lines = 0, silent = 0;
  for (std::size_t begin = line_end(near, mark, kLongestLine) + 1;
       begin < near.size() && ++lines < 2 * kMostTracebackLines && silent < 3;) {
    const std::size_t end = line_end(near, begin, kLongestLine);
    const std::string_view raw = near.substr(begin, end - begin);
    begin = end + 1;
    TracebackFrame frame;
    ++silent;
    if (!parse_frame(clean_line(raw.substr(split_prefix(raw).length), kLongestLine), frame)) continue;
    frames.push_back(std::move(frame));
    silent = 0;
  }
  return frames;
}

}  // namespace

std::size_t disguise_of(std::string_view text, const Chosen& chosen) {
  constexpr std::string_view kWords = "Dst tensor is not initialized";
  if (!is_of_pool(chosen.message) || !chosen.message.is_allocation()) return std::string_view::npos;
  const std::size_t at = text.substr(chosen.begin, kLookAheadBytes).find(kWords);
  return at == std::string_view::npos ? at : chosen.begin + at;
}

std::vector<TracebackFrame> frames_of(std::string_view text, const Chosen& chosen, std::size_t at, std::size_t again) {
  const ErrorMessage& message = chosen.message;
  std::vector<TracebackFrame> frames = traceback_of(text, at, again, message.tag);
  std::erase_if(frames, is_launcher);
  if (is_console_script(frames)) frames.erase(frames.begin());
  if (const std::size_t disguise = frames.empty() ? disguise_of(text, chosen) : std::string_view::npos;
      disguise != std::string_view::npos)
    frames = traceback_at(text, disguise, message.tag);
  // Keras puts its sentence below the exception's first line.
  if (const std::size_t said = text.substr(0, chosen.begin).rfind("Exception encountered when calling");
      frames.empty() && message.kind == MessageKind::kOperandsKeras &&
      chosen.begin - std::min(said, chosen.begin) < 500)
    frames = traceback_at(text, std::min(said, chosen.begin), message.tag);
  // What ended in another exception's words has that one's place.
  if (frames.empty()) {
    if (const LastException last = last_exception(text, chosen.begin, message.tag);
        !last.at.file.empty() && tells_same(message, last.said))
      frames = {last.at};
  }
  if (!is_of_pool(message)) return frames;
  // A graph's operation fails far from the line that made it.
  if (std::vector<TracebackFrame> made = made_at(text, at); !has_installed_only(made)) return made;
  if (!has_installed_only(frames)) return frames;
  if (TracebackFrame made = defined_at(text, std::max(at, again)); !made.file.empty()) return {made};
  while (!frames.empty() && is_of_framework(frames.back())) frames.pop_back();
  return frames;
}

}  // namespace faultline
