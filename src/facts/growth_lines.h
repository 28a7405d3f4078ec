// For facts/growth.cpp alone: what one line made and kept, in all and in each stretch of the time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "facts/lifetimes.h"
#include "trace/trace.h"

namespace faultline {

inline constexpr std::uint64_t kWarmUpSteps = 2;  // lazy state is made in the first steps

// What is worth telling.
inline std::uint64_t least_growth(std::uint64_t peak_bytes) {
  return std::max(std::uint64_t{1} << 20, peak_bytes / 200);
}

struct SizeCount {
  std::uint64_t size_bytes = 0, count = 0;
};

struct Tally {
  std::uint64_t made = 0;
  std::uint64_t kept = 0;
  std::uint64_t made_bytes = 0;
  std::uint64_t kept_bytes = 0;
  AllocationId oldest;
  std::uint32_t first = kNever;
  std::uint32_t last_made = 0;
  std::uint32_t last_kept = 0;
  std::uint64_t let_go_later = 0;
  std::uint64_t rounds_kept = 0;  // rounds that left something; without marks as kept
  std::size_t last_round = ~std::size_t{0};
  // of what it made and kept, results of one call counted once
  std::uint64_t calls = 0, calls_kept = 0;
  std::size_t last_call = 0, last_call_kept = 0;
  std::array<SizeCount, 4> sizes{};  // the first few of what it made
  bool has_more_sizes = false;

  void count_size(std::uint64_t size_bytes) {
    for (SizeCount& one : sizes) {
      if (one.count != 0 && one.size_bytes != size_bytes) continue;
      one = {size_bytes, one.count + 1};
      return;
    }
    has_more_sizes = true;
  }

  // How often the program came to the line. One that makes several tensors each time, of a size of their own, makes as many of each.
  std::uint64_t visits() const {
    std::uint64_t most = 0, least = ~std::uint64_t{0};
    for (const SizeCount& one : sizes) {
      if (one.count == 0) continue;
      most = std::max(most, one.count);
      least = std::min(least, one.count);
    }
    return !has_more_sizes && calls == made && most - least <= 1 ? most : calls;
  }
};

// About the same number in every stretch, or nearly.
inline bool steady(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> sorted = counts;
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t usual = sorted[sorted.size() / 2];
  const auto poor = std::count_if(counts.begin(), counts.end(), [&](std::int64_t count) { return count * 2 < usual; });
  return usual > 0 && poor * 5 <= std::ssize(counts);
}

// What one line left in each stretch.
struct Stretches {
  std::vector<std::int64_t> survivors;
  std::vector<std::int64_t> gained;  // made less let go
  std::vector<std::uint64_t> sizes;  // of the survivors, in order

  bool grow() const { return steady(survivors) && steady(gained) && gained.back() > 0; }
  bool everywhere() const { return *std::min_element(survivors.begin(), survivors.end()) > 0; }
  // Layers repeat a few sizes, and what a pass collects grows or shrinks along it; data does neither.
  bool vary() const {
    std::vector<std::uint64_t> sorted = sizes;
    std::sort(sorted.begin(), sorted.end());
    const auto distinct = std::unique(sorted.begin(), sorted.end()) - sorted.begin();
    std::size_t up = 0, down = 0;
    for (std::size_t at = 1; at < sizes.size(); ++at) {
      up += sizes[at] > sizes[at - 1];
      down += sizes[at] < sizes[at - 1];
    }
    return sizes.size() >= 16 && distinct * 2 >= std::ssize(sizes) && std::min(up, down) * 4 >= sizes.size();
  }
};

}  // namespace faultline
