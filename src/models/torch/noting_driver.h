// A driver that writes down what it is asked: every segment taken or given back, every map and unmap, as events of the driver's heap.
//
// It stands between the model and the driver that answers. Whoever makes a trace from the model's doings (a what-if, a dry run) derives from it
// and says where events go; begin() names the event on whose behalf the next calls come.
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "models/torch/driver.h"
#include "trace/event.h"

namespace faultline {

class NotingDriver : public TorchDriver {
 public:
  NotingDriver(TorchDriver& below, std::uint16_t device, HeapId driver_heap)
      : below_(below), device_(device), driver_heap_(driver_heap) {}

  // The event whose time, stack and thread the next driver calls get.
  void begin(const Event& cause) { cause_ = cause; }

  std::optional<ByteRange> take(std::uint64_t size_bytes, const SegmentOwner& owner) override;
  void give_back(ByteRange segment, const SegmentOwner& owner) override;
  std::optional<ByteRange> reserve(std::uint64_t handle_bytes, const SegmentOwner& owner) override {
    return below_.reserve(handle_bytes, owner);
  }
  bool map(ByteRange range, const SegmentOwner& owner) override;
  void unmap(ByteRange range, const SegmentOwner& owner) override;

 protected:
  virtual void note(const Event& event) = 0;
  virtual AllocationId new_id() = 0;
  const Event& cause() const { return cause_; }
  // A segment that was there before: its Free will name this id.
  void know_segment(std::uint64_t address, AllocationId id) { segment_ids_[address] = id; }

 private:
  Event driver_event(EventKind kind, ByteRange range, const SegmentOwner& owner) const;

  TorchDriver& below_;
  std::uint16_t device_;
  HeapId driver_heap_;
  Event cause_;
  HashMap<std::uint64_t, AllocationId> segment_ids_;  // plain segments by address
};

}  // namespace faultline
