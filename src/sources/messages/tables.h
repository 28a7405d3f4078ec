// The tables of kinds and of programs, by their files; kinds.cpp joins them. What several rows say stands here once.
#pragma once

#include "sources/messages/programs.h"

namespace faultline {

std::span<const KindRow> cuda_kinds();
std::span<const KindRow> host_memory_kinds();
std::span<const KindRow> host_ended_kinds();
std::span<const KindRow> device_kinds();
std::span<const KindRow> gpu_memory_kinds();
std::span<const KindRow> serving_kinds();
std::span<const KindRow> launch_kinds();
std::span<const KindRow> operand_kinds();
std::span<const Program> learning_programs();
std::span<const Program> other_programs();

constexpr MessageTry of_torch(const char* words) { return {words, Suits::kTorch}; }
constexpr MessageTry of_torch_since_2_1(const char* words) { return {words, Suits::kTorchSince21}; }
constexpr MessageTry without_number(const char* words) { return {words, Suits::kWithoutNumber}; }

inline constexpr MessageTry kWatchHost =
    "Watch it while the program runs: free -h, or ps -o rss,cmd -C python; in a container the limit counts, not the "
    "machine: cat /sys/fs/cgroup/memory.max";
inline constexpr MessageTry kFewerWorkers = of_torch(
    "Each DataLoader worker holds its own copy of what Python touches: fewer num_workers, a smaller prefetch_factor, "
    "data in arrays or on disk instead of lists of Python objects.");

}  // namespace faultline
