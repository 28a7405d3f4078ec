// Frameworks have pools of the machine's own memory, too. A trace has such a memory as a device of this name: "host memory (cuda_host_bfc)".
#pragma once

#include <string>
#include <string_view>

namespace faultline {

inline constexpr std::string_view kHostMemoryWords = "host memory";

inline std::string host_memory_named(std::string_view pool) {
  return std::string(kHostMemoryWords) + " (" + std::string(pool) + ")";
}
inline bool is_host_memory(std::string_view device_name) { return device_name.starts_with(kHostMemoryWords); }

}  // namespace faultline
