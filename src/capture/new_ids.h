// Ids in the order in which they are asked for, each once.
#pragma once

#include <atomic>
#include <cstdint>

#include "capture/trouble.h"

namespace faultline::capture {

class NewIds {
 public:
  explicit NewIds(std::uint32_t last = 0) : last_(last) {}
  // They do not begin again: where they are used up, recording ends, far enough from the end for all threads to see it.
  std::uint32_t next() {
    const std::uint32_t id = last_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (id >= kEnd) [[unlikely]]
      throw EndOfRecording{"the numbers for what it records are used up"};
    return id;
  }
  std::uint32_t given() const { return last_.load(std::memory_order_relaxed); }
  static constexpr std::uint32_t kEnd = 0xffff0000u;

 private:
  std::atomic<std::uint32_t> last_;
};

}  // namespace faultline::capture
