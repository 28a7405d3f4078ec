// The release of the machine's NVIDIA driver, from names and files, and what it means for GPU core dumps.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace faultline::process {

// "libcuda.so.535.104.05" → "535.104.05"; empty where the name does not tell.
std::string release_in_name(const std::string& file_name);
// The same from the first line of /proc/driver/nvidia/version.
std::string module_release_in(const std::string& line);
std::string module_release();                             // of the module that is loaded; empty: none, or not shown
std::string library_release(const std::string& libcuda);  // of the file that the path leads to; empty: not told

// The first that takes CUDA_COREDUMP_GENERATION_FLAGS, with CUDA 12.5; older ones write all of the GPU's memory. The library decides, the module only
// where the library's name tells nothing.
inline constexpr int kFirstReleaseWithLightDumps = 555;
inline constexpr int kFirstCudaWithLightDumps = 12050;
inline constexpr std::uint64_t kSpaceForCoreDump = 512 * kMiB;
int release_number(const std::string& release);  // "535.104.05" → 535; 0: not known

}  // namespace faultline::process
