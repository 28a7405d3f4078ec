#include "trace/calls.h"

namespace faultline {
namespace {

class Mixer {
 public:
  Mixer& add(std::uint64_t value) {
    hash_ = hash_onto(hash_, value);
    return *this;
  }
  Mixer& add(std::uint32_t high, std::uint32_t low) { return add(std::uint64_t{high} << 32 | low); }
  Mixer& add(const Extent3& extent) { return add(extent[0], extent[1]).add(extent[2]); }
  Mixer& add(const std::vector<LaunchArgument>& arguments) {
    add(arguments.size());
    for (const LaunchArgument& argument : arguments) add(argument.offset_bytes).add(argument.address);
    return *this;
  }
  Mixer& add(const KernelPlace& place) {
    add(place.kernel.value, place.has_thread ? 1u : 0u)
        .add(place.file.value, place.line)
        .add(place.function.value)
        .add(place.pc)
        .add(place.pc_offset);
    return add(place.grid).add(place.block).add(place.block_index).add(place.thread_index);
  }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = hash_secret().a;
};

}  // namespace

std::uint64_t hash_of(const Launch& launch) {
  return Mixer()
      .add(launch.kernel.value, launch.graph)
      .add(launch.grid)
      .add(launch.block)
      .add(launch.shared_bytes)
      .add(launch.arguments)
      .hash();
}

std::uint64_t hash_of(const Copy& copy) {
  const auto ends =
      static_cast<std::uint32_t>(static_cast<unsigned>(copy.source_side) << 16 |
                                 static_cast<unsigned>(copy.destination_side) << 8 | (copy.asynchronous ? 1u : 0u));
  return Mixer()
      .add(copy.source)
      .add(copy.source_device, ends)
      .add(copy.width_bytes)
      .add(copy.height, copy.depth)
      .add(copy.source_pitch_bytes)
      .add(copy.destination_pitch_bytes)
      .hash();
}

std::uint64_t hash_of(const Fault& fault) {
  Mixer mixer;
  mixer.add(static_cast<const KernelPlace&>(fault))
      .add(fault.what.value, fault.reported_by.value)
      .add(fault.code, fault.instruction.value);
  mixer.add(fault.lanes, fault.is_store ? 1u : 0u).add(fault.parameters).add(fault.addresses.size());
  for (const std::uint64_t address : fault.addresses) mixer.add(address);
  return mixer.hash();
}

std::uint64_t hash_of(const Violation& violation) {
  return Mixer()
      .add(static_cast<const KernelPlace&>(violation))
      .add(static_cast<std::uint32_t>(violation.kind), static_cast<std::uint32_t>(violation.access))
      .hash();
}

}  // namespace faultline
