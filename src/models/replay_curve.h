// What a replay has reserved over time, on the axis of the recording: of every stretch of so many events the most.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace faultline {

class ReplayCurve {
 public:
  // From the first event on; a stretch is at least one event.
  ReplayCurve(std::uint64_t first, std::uint64_t stretch, std::size_t count)
      : first_(first), stretch_(stretch), reserved_bytes_(count) {}

  // Right after the event. Events come in their order, and what is not told of stays as it was.
  void note(std::uint64_t event, std::uint64_t reserved_bytes) {
    if (event >= first_) {
      fill_before(event);
      if (at_ < reserved_bytes_.size()) reserved_bytes_[at_] = std::max(reserved_bytes_[at_], reserved_bytes);
      next_ = event + 1;
    }
    now_bytes_ = reserved_bytes;
  }
  std::vector<std::uint64_t> take() {
    fill_before(first_ + stretch_ * reserved_bytes_.size());
    return std::move(reserved_bytes_);
  }

 private:
  // Up to the event it stayed as it was.
  void fill_before(std::uint64_t event) {
    const std::uint64_t from = std::max(next_, first_);
    for (at_ = (from - first_) / stretch_; at_ < reserved_bytes_.size() && first_ + at_ * stretch_ < event; ++at_)
      reserved_bytes_[at_] = std::max(reserved_bytes_[at_], now_bytes_);
    at_ = (event - first_) / stretch_;
  }

  std::uint64_t first_, stretch_;
  std::uint64_t next_ = 0;  // event
  std::uint64_t at_ = 0;
  std::uint64_t now_bytes_ = 0;
  std::vector<std::uint64_t> reserved_bytes_;
};

}  // namespace faultline
