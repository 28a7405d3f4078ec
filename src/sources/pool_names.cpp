#include "sources/pool_names.h"

#include <array>
#include <charconv>

#include "base/units.h"

namespace faultline {

std::optional<std::uint16_t> gpu_of(std::string_view pool) {
  constexpr std::uint16_t kMostGpus = 4096;
  constexpr std::string_view kBegin = "GPU_", kEnd = "_bfc";
  if (!pool.starts_with(kBegin) || !pool.ends_with(kEnd) || pool.size() <= kBegin.size() + kEnd.size())
    return std::nullopt;
  std::string_view number = pool.substr(kBegin.size(), pool.size() - kBegin.size() - kEnd.size());
  if (const std::size_t last = number.rfind('_'); last != std::string_view::npos) number.remove_prefix(last + 1);
  std::uint16_t index = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (error != std::errc{} || end != number.data() + number.size() || index >= kMostGpus) return std::nullopt;
  return index;
}

PoolMemory memory_of(std::string_view pool) {
  const auto has = [&](std::string_view part) { return pool.find(part) != std::string_view::npos; };
  if (pool.empty() || gpu_of(pool)) return PoolMemory::kGpu;
  if (pool.ends_with("host_bfc") || has("cpu")) return PoolMemory::kHost;
  return pool.starts_with("PluggableDevice_") ? PoolMemory::kOtherDevice : PoolMemory::kUnknown;
}

PoolLimitVariable limit_variable_of(std::string_view pool) {
  struct Known {
    std::string_view pool;
    PoolLimitVariable variable;
  };
  static constexpr std::array kKnown = {
      Known{"mklcpu", {"TF_MKL_ALLOC_MAX_BYTES", 1, ""}},
      Known{"cpu", {"TF_CPU_BFC_MEM_LIMIT_IN_MB", kMiB, ""}},
      Known{"bfc_cpu_allocator_for_gpu", {"TF_CPU_BFC_MEM_LIMIT_IN_MB", kMiB, ""}},
      Known{"gpu_host_bfc",
            {"TF_GPU_HOST_MEM_LIMIT_IN_MB", kMiB, "before TensorFlow 1.14 it is TF_CUDA_HOST_MEM_LIMIT_IN_MB"}},
      Known{"cuda_host_bfc", {"TF_CUDA_HOST_MEM_LIMIT_IN_MB", kMiB, ""}},
      Known{"xla_gpu_host_bfc",
            {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB", 1024 * kMiB, "older releases of jaxlib do not have it"}}};
  for (const Known& known : kKnown) {
    if (known.pool == pool) return known.variable;
  }
  return {};
}

}  // namespace faultline
