#include "models/torch/driver.h"

#include <algorithm>

#include "base/units.h"

namespace faultline {

namespace {
constexpr std::uint64_t kAlignment = 2 * kMiB;
constexpr std::uint64_t kLastAddress = 1ull << 62;
constexpr std::uint64_t kSegmentRoom = 64 * kTiB;  // addresses that segments should have

std::uint64_t aligned(std::uint64_t address) { return (address + kAlignment - 1) / kAlignment * kAlignment; }

ByteRange room_beside(ByteRange layout) {
  if (layout.begin > kSegmentRoom) return {kAlignment, layout.begin};
  return {aligned(layout.end), std::max(kFirstSegmentAddress, layout.end + kSegmentRoom)};
}
}  // namespace

BudgetDriver::BudgetDriver(std::uint64_t budget_bytes, std::uint64_t first_address, std::uint64_t reservation_bytes)
    : BudgetDriver(budget_bytes, ByteRange{first_address, first_address}, reservation_bytes) {}

BudgetDriver::BudgetDriver(std::uint64_t budget_bytes, ByteRange layout, std::uint64_t reservation_bytes)
    : budget_bytes_(budget_bytes),
      segments_(room_beside(layout)),
      next_reservation_(aligned(std::max(room_beside(layout).end, layout.end))),
      reservation_bytes_(reservation_bytes) {}

std::optional<ByteRange> BudgetDriver::take(std::uint64_t size_bytes, const SegmentOwner&) {
  if (size_bytes > left_bytes()) return std::nullopt;
  const auto address = segments_.take(size_bytes);
  if (!address) return std::nullopt;
  in_use_bytes_ += size_bytes;
  return ByteRange::of(*address, size_bytes);
}

bool BudgetDriver::charge(std::uint64_t size_bytes) {
  if (size_bytes > left_bytes()) return false;
  in_use_bytes_ += size_bytes;
  return true;
}

void BudgetDriver::give_back(ByteRange segment, const SegmentOwner&) {
  segments_.give_back(segment);
  refund(segment.size());
}

std::optional<ByteRange> BudgetDriver::reserve(std::uint64_t handle_bytes, const SegmentOwner&) {
  const std::uint64_t size_bytes = (reservation_bytes_ + handle_bytes - 1) / handle_bytes * handle_bytes;
  if (next_reservation_ >= kLastAddress || size_bytes > kLastAddress - next_reservation_) return std::nullopt;
  const ByteRange range = ByteRange::of(next_reservation_, size_bytes);
  next_reservation_ = aligned(range.end);
  return range;
}

bool BudgetDriver::map(ByteRange range, const SegmentOwner&) { return charge(range.size()); }

void BudgetDriver::unmap(ByteRange range, const SegmentOwner&) { refund(range.size()); }

}  // namespace faultline
