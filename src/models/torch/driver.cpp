#include "models/torch/driver.h"

#include "base/units.h"

namespace faultline {

namespace {
constexpr std::uint64_t kAlignment = 2 * kMiB;
constexpr std::uint64_t kLastAddress = 1ull << 62;
}  // namespace

BudgetDriver::BudgetDriver(std::uint64_t budget_bytes, std::uint64_t first_address, std::uint64_t reservation_bytes)
    : budget_bytes_(budget_bytes), next_address_((first_address + kAlignment - 1) / kAlignment * kAlignment), reservation_bytes_(reservation_bytes) {}

std::optional<std::uint64_t> BudgetDriver::addresses(std::uint64_t size_bytes) {
  if (next_address_ >= kLastAddress || size_bytes > kLastAddress - next_address_) return std::nullopt;
  const std::uint64_t address = next_address_;
  next_address_ += (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return address;
}

std::optional<ByteRange> BudgetDriver::take(std::uint64_t size_bytes, const SegmentOwner&) {
  if (size_bytes > left_bytes()) return std::nullopt;
  const auto address = addresses(size_bytes);
  if (!address) return std::nullopt;
  in_use_bytes_ += size_bytes;
  return ByteRange::of(*address, size_bytes);
}

bool BudgetDriver::charge(std::uint64_t size_bytes) {
  if (size_bytes > left_bytes()) return false;
  in_use_bytes_ += size_bytes;
  return true;
}

void BudgetDriver::give_back(ByteRange segment, const SegmentOwner&) { refund(segment.size()); }

std::optional<ByteRange> BudgetDriver::reserve(std::uint64_t handle_bytes, const SegmentOwner&) {
  const std::uint64_t size_bytes = (reservation_bytes_ + handle_bytes - 1) / handle_bytes * handle_bytes;
  const auto address = addresses(size_bytes);
  if (!address) return std::nullopt;
  return ByteRange::of(*address, size_bytes);
}

bool BudgetDriver::map(ByteRange range, const SegmentOwner&) { return charge(range.size()); }

void BudgetDriver::unmap(ByteRange range, const SegmentOwner&) { refund(range.size()); }

}  // namespace faultline
