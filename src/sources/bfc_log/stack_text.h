// The stacks of the log: C++ names, one a line, innermost first, cut where they are long. The same text is the same stack, so each is read once.
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
    TensorId tensor;  // its operation: the kernel that is being computed; 0: none is
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

// "FillOp" of "tensorflow::FillOp<Eigen::ThreadPoolDevice, float, int>::Compute(tensorflow::OpKernelContext*)"; empty: it is no kernel's.
std::string_view kernel_of_frame(std::string_view frame);

}  // namespace faultline
