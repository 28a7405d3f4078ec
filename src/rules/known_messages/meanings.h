// What a message means that is known by its words alone, and what to do about it: a row for each kind.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "rules/finding.h"

namespace faultline {

struct Meaning {
  std::string_view kind, rule;
  Confidence confidence;
  std::string_view message;
  std::array<std::string_view, 4> tries;  // PROGRAM stands for the command
};
inline constexpr std::string_view kHost = "memory/host-memory", kDevice = "config/device-not-usable",
                                  kMemory = "memory/out-of-memory", kLaunch = "api/launch-error";
inline constexpr std::string_view kWatchHost =
    "Watch it while the program runs: free -h, or ps -o rss,cmd -C python; in a container the limit counts, not the "
    "machine: cat /sys/fs/cgroup/memory.max";
// Of interfaces and tools other than CUDA's runtime: MATLAB, Vulkan, OpenCL, ptxas, ROCm.
std::span<const Meaning> other_api_meanings();
// Of programs that people use: ollama, SGLang, TGI, accelerate, NVENC.
std::span<const Meaning> program_meanings();
// Null: no such kind.
const Meaning* meaning_of(std::string_view kind);

}  // namespace faultline
