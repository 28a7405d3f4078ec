#include "trace/calls.h"

namespace faultline {
namespace {

class Mixer {
 public:
  Mixer& add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15ull;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  Mixer& add(const Extent3& extent) { return add(extent[0]).add(extent[1]).add(extent[2]); }
  Mixer& add(const std::vector<LaunchArgument>& arguments) {
    for (const LaunchArgument& argument : arguments) add(argument.offset_bytes).add(argument.address);
    return *this;
  }
  std::size_t hash() const { return static_cast<std::size_t>(hash_); }

 private:
  std::uint64_t hash_ = 0x2545F4914F6CDD1Dull;
};

}  // namespace

std::size_t hash_of(const Launch& launch) {
  return Mixer().add(launch.kernel.value).add(launch.grid).add(launch.block).add(launch.shared_bytes).add(launch.graph).add(launch.arguments).hash();
}

std::size_t hash_of(const Copy& copy) {
  return Mixer().add(copy.source).add(copy.width_bytes).add(copy.height).add(copy.depth).add(copy.source_pitch_bytes).add(copy.destination_pitch_bytes).hash();
}

std::size_t hash_of(const Fault& fault) {
  return Mixer().add(fault.what.value).add(fault.kernel.value).add(fault.pc).add(fault.block_index).add(fault.thread_index).add(fault.parameters).hash();
}

}  // namespace faultline
