// What the names of TensorFlow's and JAX's pools tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace faultline {

// "GPU_3_bfc" and "GPU_collectivememory_3_bfc" → 3; another pool is of the host.
std::optional<std::uint16_t> gpu_of(std::string_view pool);

}  // namespace faultline
