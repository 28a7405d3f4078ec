#include "sources/error_text/other_errors.h"

#include <array>

#include "sources/error_text/log_lines.h"

namespace faultline {
namespace {

constexpr auto kOthers = std::to_array<OtherError>({
    {"has been modified by an inplace operation",
     "this is a tensor that backward needs and that was changed in place meanwhile",
     "torch.autograd.set_detect_anomaly(True) names the line of the forward pass; replace x += y by x = x + y, or "
     "clone() before the change."},
    {"Trying to backward through the graph a second time",
     "this is backward called twice over one graph, whose kept values the first call has freed",
     "Detach what is carried from one step to the next (hidden.detach()), add up losses and call backward once; "
     "retain_graph=True keeps the graph, and its memory with it."},
    {"Expected more than 1 value per channel when training",
     "this is batch normalisation in training with a single value for each channel",
     "The last batch has one sample: DataLoader(drop_last=True), a larger batch, or model.eval() for inference."},
    {"element 0 of tensors does not require grad", "this is backward on a tensor that depends on nothing to train",
     "Look for torch.no_grad(), .detach(), .item() or frozen parameters between the model and the loss."},
    {"Segmentation fault", "this is a segmentation fault: code on the CPU touched host memory that it may not",
     "python -X faulthandler … prints the Python lines where it happened; an extension or library of another "
     "version is the usual reason."},
    {"Signal 11 (SIGSEGV)", "this is a segmentation fault: code on the CPU touched host memory that it may not",
     "python -X faulthandler … prints the Python lines where it happened; an extension or library of another "
     "version is the usual reason."},
});

}  // namespace

const OtherError* other_error(std::string_view text) {
  const OtherError* last = nullptr;
  std::size_t at = 0;
  for (const OtherError& other : kOthers) {
    const std::size_t found = find_last(text, other.words);
    if (found == std::string_view::npos || (last != nullptr && found < at)) continue;
    last = &other;
    at = found;
  }
  return last;
}

}  // namespace faultline
