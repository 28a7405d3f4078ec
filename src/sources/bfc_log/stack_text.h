// The stacks of the log: C++ names, one a line, innermost first, cut where they are long. The same text is the same stack, so each is read once. What every request
// passes through on its way to the allocator is left out, so the innermost frame is who asked: a kernel, as a rule.
#pragma once

#include <string>
#include <string_view>

#include "base/hash.h"
#include "trace/trace.h"

namespace faultline {

class StackTexts {
 public:
  explicit StackTexts(Trace& trace) : trace_(trace) {}

  struct Known {
    StackId stack;
    TensorId tensor;       // its operation: the kernel that is being made or computed; 0: none is
    bool at_exit = false;  // Python's interpreter is ending
  };
  void begin() { text_.clear(); }
  void add(std::string_view line);  // with its end
  const Known& end();
  bool is_empty() const { return text_.empty(); }
  std::uint64_t stacks_cut() const { return cut_; }

 private:
  Known read() const;

  Trace& trace_;
  std::string text_;
  std::uint64_t cut_ = 0;
  HashMap<std::uint64_t, Known> known_;  // by the text's hash
};

// "tensorflow::FillOp::Compute" of "tensorflow::FillOp<Eigen::ThreadPoolDevice, float, int>::Compute(tensorflow::OpKernelContext*)": as a person would name it.
std::string short_name(std::string_view frame);
// "FillOp" of that, computed or being made; empty: it is no kernel's.
std::string_view kernel_of_frame(std::string_view frame, std::string_view short_name);

}  // namespace faultline
