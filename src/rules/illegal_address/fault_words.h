// The plain words of each kind of fault, and the rule that it belongs to: the same whether the hardware, the driver or a message told of it.
#pragma once

#include <string>
#include <string_view>

#include "trace/fault_kind.h"

namespace faultline {

struct FaultWords {
  std::string_view rule;
  std::string_view sentence;      // continues "kernel K …"
  std::string_view advice;        // may be empty
  bool of_access = false;         // it touched the wrong memory, or may have: the address is what to look for
  std::string_view usually = {};  // what is behind it most often, where nothing more is known
  std::string_view with_torch =
      {};  // what is to be added where the kernel may be PyTorch's; `usually` is no whole sentence then
};
const FaultWords& words_of(FaultKind kind);

// One of PyTorch's kernels that check an index, by its name.
bool checks_index(std::string_view kernel);

// What names the kernel, its line and the address.
std::string core_dump_advice();

}  // namespace faultline
