// What stands below the caching allocator: the driver, which gives memory in segments or maps it behind reserved addresses.
//
// The model asks; an implementation answers from a recording (proof), from a byte budget (what-if), or notes the answers of another one.
#pragma once

#include <cstdint>
#include <optional>

#include "base/byte_range.h"
#include "models/torch/segment_addresses.h"
#include "trace/event.h"

namespace faultline {

// On whose behalf the driver is asked.
struct SegmentOwner {
  std::uint32_t arena = 0;
  StreamId stream;
  bool is_small = false;
};

class TorchDriver {
 public:
  virtual ~TorchDriver() = default;
  // A segment of this size, or nothing when the driver refuses. A recording may answer with another size.
  virtual std::optional<ByteRange> take(std::uint64_t size_bytes, const SegmentOwner& owner) = 0;
  virtual void give_back(ByteRange segment, const SegmentOwner& owner) = 0;
  // Addresses without memory, for an expandable segment that maps in steps of handle_bytes.
  virtual std::optional<ByteRange> reserve(std::uint64_t handle_bytes, const SegmentOwner& owner) = 0;
  virtual bool map(ByteRange range, const SegmentOwner& owner) = 0;
  virtual void unmap(ByteRange range, const SegmentOwner& owner) = 0;
};

// Gives nothing, and takes back without a word: for steps that are known to be right.
class SilentDriver : public TorchDriver {
 public:
  std::optional<ByteRange> take(std::uint64_t, const SegmentOwner&) override { return std::nullopt; }
  void give_back(ByteRange, const SegmentOwner&) override {}
  std::optional<ByteRange> reserve(std::uint64_t, const SegmentOwner&) override { return std::nullopt; }
  bool map(ByteRange, const SegmentOwner&) override { return false; }
  void unmap(ByteRange, const SegmentOwner&) override {}
};

inline constexpr std::uint64_t kNoBudget = 1ull << 60;
// What a replay's addresses are counted from: segments go downwards from here, as the real driver's do, expandable ones upwards.
inline constexpr std::uint64_t kFirstSegmentAddress = 0x7f0000000000;

// A driver with a budget. Segments lie where cudaMalloc would put them, so the addresses of a returned one may be handed out again; the addresses
// of an expandable segment are its own for good.
class BudgetDriver : public TorchDriver {
 public:
  // reservation_bytes: how many addresses an expandable segment gets; PyTorch takes 9/8 of the device's memory.
  BudgetDriver(std::uint64_t budget_bytes, std::uint64_t first_address, std::uint64_t reservation_bytes);
  // The same beside a layout that is already there: segments go below it, or high above it where there is no room below.
  BudgetDriver(std::uint64_t budget_bytes, ByteRange layout, std::uint64_t reservation_bytes);
  void set_in_use(std::uint64_t size_bytes) { in_use_bytes_ = size_bytes; }
  void set_budget(std::uint64_t size_bytes) { budget_bytes_ = size_bytes; }
  std::uint64_t budget_bytes() const { return budget_bytes_; }
  std::uint64_t in_use_bytes() const { return in_use_bytes_; }
  std::uint64_t left_bytes() const { return budget_bytes_ > in_use_bytes_ ? budget_bytes_ - in_use_bytes_ : 0; }
  // Memory that others take from the same budget, at addresses nobody asks for.
  bool charge(std::uint64_t size_bytes);
  void refund(std::uint64_t size_bytes) { in_use_bytes_ -= size_bytes; }

  std::optional<ByteRange> take(std::uint64_t size_bytes, const SegmentOwner& owner) override;
  void give_back(ByteRange segment, const SegmentOwner& owner) override;
  std::optional<ByteRange> reserve(std::uint64_t handle_bytes, const SegmentOwner& owner) override;
  bool map(ByteRange range, const SegmentOwner& owner) override;
  void unmap(ByteRange range, const SegmentOwner& owner) override;

 private:
  std::uint64_t budget_bytes_;
  SegmentAddresses segments_;
  std::uint64_t next_reservation_;
  std::uint64_t reservation_bytes_;
  std::uint64_t in_use_bytes_ = 0;
};

}  // namespace faultline
