#include "sources/bfc_log/stack_text.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace faultline {
namespace {

constexpr std::size_t kLongestText = 64 * 1024;  // TensorFlow cuts at 15 KiB
constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostStacks = 200'000;

// What every request passes through says nothing about it.
bool is_way_to_allocator(std::string_view frame) {
  static constexpr std::array<std::string_view, 14> kWay = {"tsl::",
                                                            "absl::",
                                                            "std::",
                                                            "Eigen::",
                                                            "tensorflow::CurrentStackTrace",
                                                            "tensorflow::BFCAllocator::",
                                                            "tensorflow::Tensor::",
                                                            "tensorflow::TensorBuffer::",
                                                            "tensorflow::BufferBase::",
                                                            "tensorflow::Buffer<",
                                                            "tensorflow::OpKernelContext::",
                                                            "tensorflow::OpKernelConstruction::",
                                                            "tensorflow::core::RefCounted::",
                                                            "tensorflow::TypedAllocator::"};
  return std::any_of(kWay.begin(), kWay.end(), [&](std::string_view way) { return frame.starts_with(way); });
}

// From here outwards it is Python's interpreter, which has no names of the program's.
bool is_interpreter(std::string_view frame) {
  return frame.starts_with("_Py") || frame.starts_with("PyEval_") || frame.starts_with("PyObject_") ||
         frame.starts_with("Py_") || frame.starts_with("TFE_Py_");
}

}  // namespace

std::string short_name(std::string_view frame) {
  for (const std::string_view odd : {"operator", "lambda", "(anonymous", "'lambda"}) {
    if (frame.find(odd) != std::string_view::npos) return std::string(frame.substr(0, 200));
  }
  std::string name;
  std::size_t depth = 0;
  for (const char letter : frame) {
    if (letter == '(' && depth == 0) break;
    if (letter == '<') ++depth;
    if (depth == 0) name += letter;
    if (letter == '>' && depth != 0) --depth;
  }
  // a function template names what it returns before its own name
  if (const std::size_t space = name.rfind(' '); space != std::string::npos) name.erase(0, space + 1);
  return name;
}

std::string_view kernel_of_frame(std::string_view frame, std::string_view short_name) {
  const auto split = [](std::string_view text) {
    const std::size_t colons = text.rfind("::");
    return colons == std::string_view::npos ? std::pair(std::string_view{}, text)
                                            : std::pair(text.substr(0, colons), text.substr(colons + 2));
  };
  const auto [owner, method] = split(short_name);
  const std::string_view name = split(owner).second;
  const bool computes = method == "Compute" || method == "ComputeAsync";
  const bool is_made = method == name && frame.find("OpKernelConstruction*") != std::string_view::npos;
  return (computes || is_made) && !name.ends_with("Device") ? name : std::string_view{};
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
  std::string kernel;
  for (std::string_view rest = text_; !rest.empty() && frames.size() < kMostFrames;) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view frame = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t first = frame.find_first_not_of("\t \r");
    if (first == std::string_view::npos) continue;
    frame = frame.substr(first, frame.find_last_not_of("\t \r") - first + 1);
    if (frames.empty() && is_way_to_allocator(frame)) continue;
    if (is_interpreter(frame)) break;
    const std::string name = short_name(frame);
    if (frames.empty() && name.find("Device::") != std::string::npos) continue;  // the device makes it for somebody
    if (kernel.empty()) kernel = kernel_of_frame(frame, name);
    frames.push_back(trace_.stacks.intern_frame({trace_.strings.intern(name), {}, 0}));
  }
  Known known{trace_.stacks.intern(frames), {}, text_.find("\tPy_FinalizeEx\n") != std::string::npos};
  if (!kernel.empty()) {
    Tensor tensor;
    tensor.op = trace_.strings.intern(kernel);
    known.tensor = trace_.tensors.intern(tensor);
  }
  return known;
}

}  // namespace faultline
