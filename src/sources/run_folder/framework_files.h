// What TensorFlow's and JAX's Python side leaves of a process, each read by the source that knows it, and put together:
//
//   tensors-PID.txt                 its tensors over time, as a trace (run/tensor_log.py)
//   failure-PID.txt                 the traceback of what ended it, or of what nobody caught, as Python prints it
//   pool-PID_POOL.MICROSECONDS      a map of a pool, one for each request that it refused (TF_BFC_MEMORY_DUMP)
//   jax-PID-oom-MICROSECONDS.prof   JAX's arrays when its memory ran out
//   jax-PID-MICROSECONDS.prof       the same at other moments (run/jax_looks.py)
//
// The failure is told once, by what knows most of it: tensors with their lines, else the map with what the message asked for, else the message.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sources/input.h"

namespace faultline {

struct FrameworkFiles {
  std::string tensors, failure;
  std::vector<std::string> maps, profiles;
  bool empty() const { return tensors.empty() && failure.empty() && profiles.empty() && maps.empty(); }
};

// A file of this kind: the process it is of, and its place in `files`; empty: it is of another kind.
std::string take_framework_file(const std::string& path, std::map<std::string, FrameworkFiles>& files);

// `driver`: what the recorder saw of this process, or null; a failure that is in it is not told again. What could not be read is counted.
std::vector<InputPart> framework_parts(const FrameworkFiles& files, const std::string& name, const Trace* driver,
                                       std::map<std::string, std::uint64_t>& lost);

}  // namespace faultline
