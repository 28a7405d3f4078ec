// Where the machine's own libcuda.so.1 is.
#pragma once

#include <string>

namespace faultline::driver {

// Full path, or empty where there is none. Does not load it: what the dynamic loader would search is searched (LD_LIBRARY_PATH, then the usual places).
// A library of Faultline's own is never the answer.
std::string find_real_driver();

}  // namespace faultline::driver
