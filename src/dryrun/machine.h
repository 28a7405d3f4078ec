// The devices of one dry run: each with an allocator of its own, all in one trace.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "dryrun/device.h"

namespace faultline {

class DryRunMachine {
 public:
  explicit DryRunMachine(Recorder& recorder) : recorder_(recorder) {}  // without a device
  DryRunMachine(const DeviceSpec& first, Recorder& recorder) : recorder_(recorder) { add_device(first); }

  void add_device(const DeviceSpec& spec);
  std::uint32_t device_count() const { return static_cast<std::uint32_t>(devices_.size()); }
  DryRunDevice& device(std::uint32_t index) { return *devices_[index < devices_.size() ? index : 0]; }
  const DeviceSpec& first_spec() const { return first_spec_; }

  StreamId stream(std::uint32_t device, std::uint64_t handle);
  StreamId known(StreamId id) const { return id.index() < tables_.streams.size() ? id : StreamId{}; }
  void free(AllocationId allocation, StackId stack);
  void set_overcommit(bool on);
  bool made(AllocationId id) const { return id.value != 0 && id.value <= tables_.last_allocation; }
  TorchFinalState state() const;  // of all devices

 private:
  Recorder& recorder_;
  DryRunTables tables_;
  DeviceSpec first_spec_;
  std::vector<std::unique_ptr<DryRunDevice>> devices_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, StreamId> streams_;  // by device and handle
};

}  // namespace faultline
