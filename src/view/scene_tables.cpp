#include "view/scene_tables.h"

#include "base/safe_text.h"
#include "facts/stack_facts.h"

namespace faultline::view {
namespace {

constexpr std::size_t kMostTexts = 20'000;
constexpr std::size_t kLongestWords = 240;
constexpr std::size_t kLongestPath = 1024;
constexpr std::size_t kMostWordBytes = 1 << 20;

}  // namespace

PlaceKind kind_of_place(std::string_view file) {
  if (!is_library_file(file)) return PlaceKind::kOwn;
  return is_native_file(file) ? PlaceKind::kNative : PlaceKind::kLibrary;
}

SceneTables::SceneTables(const Facts& facts, Scene& scene)
    : facts_(facts),
      scene_(scene),
      nodes_(facts.trace.stacks.size()),
      places_(facts.trace.stacks.frame_count()),
      tensors_(facts.trace.tensors.size()) {
  scene.places.resize(1);
  scene.stacks.resize(1);
  scene.texts.resize(1);
}

std::uint32_t SceneTables::place(FrameId frame) {
  std::uint32_t& known = places_[frame.index()];
  if (known == 0 && frame.value != 0) {
    const Trace& trace = facts_.trace;
    const Frame& from = trace.stacks.frame(frame);
    const bool is_new_path = paths_.insert(from.file).second;
    if (!has_room(trace.strings.at(from.function).size() + (is_new_path ? trace.strings.at(from.file).size() : 0)))
      return 0;
    known = static_cast<std::uint32_t>(scene_.places.size());
    scene_.places.push_back({shown(trace.strings.at(from.file), kLongestPath),
                             shown(trace.strings.at(from.function), kLongestWords), from.line,
                             kind_of_place(trace.strings.at(from.file))});
  }
  return known;
}

bool SceneTables::has_room(std::size_t bytes) {
  if (word_bytes_ + bytes > kMostWordBytes) return false;
  word_bytes_ += bytes;
  return true;
}

// Callers come before those they call, so a stack costs what it does not share with others.
std::uint32_t SceneTables::node(StackId stack) {
  std::vector<StackId> missing;
  for (; stack.value != 0 && nodes_[stack.index()] == 0; stack = facts_.trace.stacks.parent(stack))
    missing.push_back(stack);
  std::uint32_t at = nodes_[stack.index()];
  if (scene_.stacks.size() + missing.size() > kMostStackNodes) return 0;
  for (; !missing.empty(); missing.pop_back()) {
    const StackId from = missing.back();
    const StackId line = facts_.stacks.line(from);
    scene_.stacks.push_back({at, place(facts_.trace.stacks.frame_id(from)),
                             line.value == 0 ? 0 : place(facts_.trace.stacks.frame_id(line))});
    at = nodes_[from.index()] = static_cast<std::uint32_t>(scene_.stacks.size() - 1);
  }
  return at;
}

std::uint32_t SceneTables::stack(StackId stack) { return stack.value == 0 ? 0 : node(stack); }

std::uint32_t SceneTables::text(const std::string& text) {
  if (text.empty()) return 0;
  const std::string harmless = shown(text, kLongestWords);
  if (const auto at = texts_.find(harmless); at != texts_.end()) return at->second;
  if (scene_.texts.size() >= kMostTexts || !has_room(harmless.size())) return 0;
  scene_.texts.push_back(harmless);
  return texts_[harmless] = static_cast<std::uint32_t>(scene_.texts.size() - 1);
}

std::uint32_t SceneTables::tensor(TensorId tensor) {
  std::uint32_t& known = tensors_[tensor.index()];
  if (known != 0 || tensor.value == 0) return known;
  const Trace& trace = facts_.trace;
  const Tensor& from = trace.tensors.at(tensor);
  std::string words;
  const auto add = [&](std::string_view word) {
    if (!word.empty()) words += (words.empty() ? "" : " · ") + std::string(word);
  };
  std::string shape(trace.strings.at(from.dtype));
  if (!from.shape.empty() || !shape.empty()) {
    shape += '[';
    for (std::size_t at = 0; at < from.shape.size(); ++at)
      shape += (at == 0 ? "" : ",") + std::to_string(from.shape[at]);
    add(shape + ']');
  }
  add(trace.strings.at(from.op));
  add(trace.strings.at(from.name));
  return known = text(words);
}

}  // namespace faultline::view
