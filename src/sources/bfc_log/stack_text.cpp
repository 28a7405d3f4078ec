#include "sources/bfc_log/stack_text.h"

#include <algorithm>
#include <array>
#include <vector>

namespace faultline {
namespace {

constexpr std::size_t kLongestText = 64 * 1024;  // TensorFlow cuts at 15 KiB
constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostStacks = 200'000;

// What every request passes through says nothing about it.
bool is_allocators_own(std::string_view frame) {
  static constexpr std::array<std::string_view, 4> kOwn = {
      "tsl::CurrentStackTrace", "tsl::BFCAllocator::", "tensorflow::CurrentStackTrace", "tensorflow::BFCAllocator::"};
  return std::any_of(kOwn.begin(), kOwn.end(), [&](std::string_view own) { return frame.starts_with(own); });
}

// From here outwards it is Python's interpreter, which has no names of the program's.
bool is_interpreter(std::string_view frame) {
  return frame.starts_with("_Py") || frame.starts_with("PyEval_") || frame.starts_with("PyObject_") ||
         frame.starts_with("Py_") || frame.starts_with("TFE_Py_");
}

}  // namespace

std::string_view kernel_of_frame(std::string_view frame) {
  std::size_t end = frame.find("::Compute(");
  if (end == std::string_view::npos) end = frame.find("::ComputeAsync(");
  if (end == std::string_view::npos) return {};
  std::string_view name = frame.substr(0, end);
  if (!name.empty() && name.back() == '>') {
    std::size_t depth = 0, at = name.size();
    while (at > 0) {
      --at;
      if (name[at] == '>') ++depth;
      if (name[at] == '<' && --depth == 0) break;
    }
    name = name.substr(0, at);
  }
  if (const std::size_t colons = name.rfind("::"); colons != std::string_view::npos) name = name.substr(colons + 2);
  return name.ends_with("Device") ? std::string_view{} : name;
}

void StackTexts::add(std::string_view line) {
  if (text_.size() + line.size() < kLongestText) {
    text_.append(line);
    text_ += '\n';
  }
}

const StackTexts::Known& StackTexts::end() {
  static constexpr Known kNone{};
  if (text_.empty()) return kNone;
  const std::uint64_t hash = hash_bytes(text_.data(), text_.size());
  const auto found = known_.find(hash);
  if (found != known_.end()) return found->second;
  if (known_.size() >= kMostStacks) {
    ++cut_;
    return kNone;
  }
  return known_.emplace(hash, read()).first->second;
}

StackTexts::Known StackTexts::read() const {
  std::vector<FrameId> frames;
  std::string_view kernel;
  for (std::string_view rest = text_; !rest.empty() && frames.size() < kMostFrames;) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view frame = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t first = frame.find_first_not_of("\t \r");
    if (first == std::string_view::npos) continue;
    frame = frame.substr(first, frame.find_last_not_of("\t \r") - first + 1);
    if (is_allocators_own(frame)) continue;
    if (is_interpreter(frame)) break;
    if (kernel.empty()) kernel = kernel_of_frame(frame);
    frames.push_back(trace_.stacks.intern_frame({trace_.strings.intern(frame), {}, 0}));
  }
  Known known{trace_.stacks.intern(frames), {}};
  if (!kernel.empty()) {
    Tensor tensor;
    tensor.op = trace_.strings.intern(kernel);
    known.tensor = trace_.tensors.intern(tensor);
  }
  return known;
}

}  // namespace faultline
