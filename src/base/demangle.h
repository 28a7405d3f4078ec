// C++ names as people write them. A mangled name of 300 bytes can stand for one of gigabytes (each part may repeat all that stood before it), and names come
// from inputs: what grows beyond bounds stays as it was.
#pragma once

#include <string>
#include <string_view>

namespace faultline {

// The name itself where it is no mangled one, or stands for more than 16 KiB.
std::string demangled(std::string_view name);

}  // namespace faultline
