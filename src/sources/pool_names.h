// What the names of TensorFlow's and JAX's pools tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace faultline {

// "GPU_3_bfc" and "GPU_collectivememory_3_bfc" → 3; another pool is of the host, of another kind of device, or unknown.
std::optional<std::uint16_t> gpu_of(std::string_view pool);

// The memory that a pool serves. A map without its name is taken for the GPU's.
enum class PoolMemory : std::uint8_t {
  kGpu,
  kOtherDevice,  // "PluggableDevice_0_bfc"
  kHost,         // "gpu_host_bfc", "bfc_cpu_allocator_for_gpu", "mklcpu"
  kUnknown,      // "mlu_3_bfc": its name does not tell
};
PoolMemory memory_of(std::string_view pool);

// The variable that says how much a pool of the host may take; empty: none is known.
struct PoolLimitVariable {
  std::string_view name;
  std::uint64_t unit_bytes = 0;
  std::string_view remark;  // "before TensorFlow 1.14 …"
};
PoolLimitVariable limit_variable_of(std::string_view pool);

}  // namespace faultline
