#include "dryrun/machine.h"

namespace faultline {

void DryRunMachine::add_device(const DeviceSpec& spec) {
  const auto index = static_cast<std::uint16_t>(devices_.size());
  if (index == 0) first_spec_ = spec;
  streams_.emplace(std::pair(index, std::uint64_t{0}), StreamId(static_cast<std::uint32_t>(tables_.streams.size())));
  devices_.push_back(std::make_unique<DryRunDevice>(spec, index, recorder_, tables_));
  for (const auto& device : devices_) device->know_streams();
}

StreamId DryRunMachine::stream(std::uint32_t device, std::uint64_t handle) {
  const auto index = static_cast<std::uint16_t>(device < devices_.size() ? device : 0);
  const auto [at, fresh] =
      streams_.try_emplace(std::pair(index, handle), static_cast<std::uint32_t>(tables_.streams.size()));
  if (fresh) {
    tables_.streams.push_back({index, handle});
    recorder_.keep(recorder_.writer().define_stream(at->second, tables_.streams.back()));
    for (const auto& each : devices_) each->know_streams();
  }
  return at->second;
}

void DryRunMachine::free(AllocationId allocation, StackId stack) {
  for (const auto& device : devices_) {
    if (device->free(allocation, stack)) return;
  }
}

void DryRunMachine::set_overcommit(bool on) {
  for (const auto& device : devices_) device->set_overcommit(on);
}

TorchFinalState DryRunMachine::state() const {
  TorchFinalState all;
  for (const auto& device : devices_) {
    TorchFinalState state = device->state();
    const auto first = static_cast<std::uint32_t>(all.blocks.size());
    for (FinalSegment& segment : state.segments) segment.first_block += first;
    all.segments.insert(all.segments.end(), state.segments.begin(), state.segments.end());
    all.blocks.insert(all.blocks.end(), state.blocks.begin(), state.blocks.end());
    all.allocations.insert(all.allocations.end(), state.allocations.begin(), state.allocations.end());
  }
  return all;
}

}  // namespace faultline
