// Who asked the driver: the library behind a stack, by the module of its innermost frame that is not CUDA's own runtime.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace faultline {

// "cuBLAS", "NCCL", "PyTorch", or a module's own name; "the program" for the user's own code; empty where the stack does not tell.
std::string library_of(const Trace& trace, StackId stack);

// The same for questions about every event: each stack is looked at once, however deep it is.
class StackLibraries {
 public:
  explicit StackLibraries(const Trace& trace);
  // Equal for stacks of one library.
  StringId file(StackId stack) const { return files_[stack.index()]; }
  std::string of(StackId stack) const;

 private:
  const Trace& trace_;
  std::vector<StringId> files_;  // by stack: the file that names its library; empty where none does
};

// A header of the CUDA toolkit, of a library made of headers that comes with it (thrust, cub, cccl), or of the C++ library, wherever it was installed; also what nvcc writes around a
// launch. Its lines are compiled into the user's program and are not the user's.
bool is_toolkit_file(std::string_view path);

// What stands behind "site-packages/" or "dist-packages/" in a path, with either slash; empty where nothing was installed there.
std::string_view installed_part(std::string_view path);

// The same of one file, a module or a source; empty for what only passes calls on (CUDA's runtime, the C library, Python itself).
std::string library_of_file(std::string_view path);

}  // namespace faultline
