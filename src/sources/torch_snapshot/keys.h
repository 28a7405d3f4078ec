// The dictionary keys that PyTorch's snapshots use, all versions together. One list: names, numbers and look-up come from it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace faultline::torch_snapshot {

// The ones that make a dict what it is come first in their group; keys marked "ignored" are known and carry nothing we use.
// clang-format off
#define FAULTLINE_SNAPSHOT_KEYS(X)                                                                                     \
  X(action) X(addr) X(device_free) X(size) X(stream) X(time_us) X(compile_context) X(user_metadata) X(pool_id)         \
  X(frames) X(forward_frames) X(filename) X(name) X(line) X(fx_node_op) X(fx_node_name) X(fx_node_target)              \
  X(fx_original_trace) X(blocks) X(device) X(address) X(total_size) X(allocated_size) X(active_size)                   \
  X(requested_size) X(segment_type) X(segment_pool_id) X(is_expandable) X(state) X(history) X(real_size)               \
  X(cpp_frames) X(stage) X(segments) X(device_traces) X(allocator_settings) X(external_annotations)
// clang-format on

enum class Key : std::uint8_t {
  kUnknown,
#define FAULTLINE_KEY(name) k_##name,
  FAULTLINE_SNAPSHOT_KEYS(FAULTLINE_KEY)
#undef FAULTLINE_KEY
      kCount
};
inline constexpr std::size_t kKeyCount = static_cast<std::size_t>(Key::kCount);

inline constexpr std::array<std::string_view, kKeyCount> kKeyNames = {"",
#define FAULTLINE_KEY(name) #name,
                                                                      FAULTLINE_SNAPSHOT_KEYS(FAULTLINE_KEY)
#undef FAULTLINE_KEY
};

}  // namespace faultline::torch_snapshot
