// What a scene names once: texts, places and stacks. Each is taken over from the trace when something that is kept needs it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "view/scene.h"

namespace faultline::view {

class SceneTables {
 public:
  // Both must outlive the tables.
  SceneTables(const Facts& facts, Scene& scene);

  // 0 where the stack is empty, or there is no room for another; a line that stands alone is tried then.
  std::uint32_t stack(StackId stack);
  std::uint32_t place(FrameId frame);
  std::uint32_t text(const std::string& text);
  std::uint32_t tensor(TensorId tensor);  // "float32[8,1024,768] · aten::mm · GPT.head"

 private:
  std::uint32_t node(StackId stack);

  const Facts& facts_;
  Scene& scene_;
  std::vector<std::uint32_t> nodes_;   // by StackId
  std::vector<std::uint32_t> places_;  // by FrameId
  std::vector<std::uint32_t> tensors_;
  std::map<std::string, std::uint32_t> texts_;
};

}  // namespace faultline::view
