// An operation that raised, as the trace tells it: OpBegin, a TensorNote for each operand, OpEnd with PyTorch's words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/lifetimes.h"
#include "rules/shapes.h"
#include "trace/trace.h"

namespace faultline {

// A tensor that the operation was given.
struct Given {
  Shape shape;
  std::string_view dtype;
  std::string_view argument;  // as the operation calls it: "mat1", "weight"; empty: not known
  std::string_view kind;  // what `name` names: "parameter", "buffer", "attribute", "variable"; empty: a module's path
  std::string_view name;  // as the program calls it
  std::string_view made_by;  // the operation
  StackId made_at;
  AllocationId allocation;  // 0: not on a device
  Shape whole;  // the shape its memory was made with, where that has as many elements: a view shows what became of it
  bool on_host() const { return allocation.value == 0; }
};

struct FailedOp {
  std::string_view op;  // "aten::mm"
  std::string_view words;
  StackId stack;
  std::uint16_t device = 0;
  std::uint32_t end = 0;  // its OpEnd
  std::vector<Given> operands;
  bool has_all_operands = true;
  bool is_last = false;  // after it the trace only lets go of memory: the program did not go on
};

// A layer whose parameters are of one type and whose input is of another.
struct Layer {
  std::string name;  // "Head.proj"
  std::string_view dtype;
  std::size_t input = 0;  // which operand
};
std::optional<Layer> layer_of(const FailedOp& failed);

// In the order of their ends. An operation that failed because one inside it failed with the same words is not told again.
std::vector<FailedOp> failed_operations(const Trace& trace, const Lifetimes& lifetimes, bool ended_in_order);

}  // namespace faultline
