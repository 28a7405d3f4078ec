// What a scene names once: texts, places and stacks. Each is taken over from the trace when something that is kept needs it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "view/scene.h"

namespace faultline::view {

class SceneTables {
 public:
  // Both must outlive the tables.
  SceneTables(const Facts& facts, Scene& scene);

  // 0 where there is none, or no room for another.
  std::uint32_t stack(StackId stack);
  std::uint32_t place(FrameId frame);
  std::uint32_t text(const std::string& text);
  std::uint32_t tensor(TensorId tensor);  // "float32[8,1024,768] · aten::mm · GPT.head"

 private:
  std::uint32_t node(StackId stack);
  // false: the scene's words are enough already
  bool has_room(std::size_t bytes);

  const Facts& facts_;
  Scene& scene_;
  std::vector<std::uint32_t> nodes_;   // by StackId
  std::vector<std::uint32_t> places_;  // by FrameId
  std::vector<std::uint32_t> tensors_;
  std::map<std::string, std::uint32_t> texts_;
  std::set<StringId> paths_;  // counted already
  std::size_t word_bytes_ = 0;
};

}  // namespace faultline::view
