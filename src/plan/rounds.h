// The rest of a loop that was cut short: its last round, made again and again by the allocator's model. What PyTorch then reserves is more than what stays alive.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/dry_run.h"
#include "plan/needs.h"
#include "trace/trace.h"

namespace faultline {

class RoundsToCome {
 public:
  // marks: events at which rounds begin, three at least; the last is where the next would have begun. Nothing where the last two rounds are not alike: other
  // requests, or something is let go that is older than the round before.
  static std::optional<RoundsToCome> of(const Trace& trace, const std::vector<std::uint32_t>& marks, std::size_t slot);

  // Of `most` rounds more: how many are all served with so many bytes in segments.
  std::uint64_t served_with(std::uint64_t segment_bytes, std::uint64_t most) const;
  // The fewest bytes in segments that serve so many rounds more.
  std::uint64_t segment_bytes_after(std::uint64_t rounds) const;

 private:
  struct Request {
    Event event;
    std::uint32_t made = 0;  // the allocation, counted in its round
    bool of_round_before = false;
  };

  RoundsToCome() = default;
  Trace with(std::uint64_t rounds) const;
  std::uint64_t most_rounds() const;
  std::uint64_t replayed_after(std::uint64_t rounds) const;
  double bytes_each() const;  // beyond those that are replayed

  Trace begun_;  // to the end of the last round
  std::size_t slot_ = 0;
  std::vector<Request> round_;
  std::vector<AllocationId> last_;  // what the last round made
};

// What is needed where a loop goes on that the dry run ended while memory rose in it.
struct LoopGrowth {
  RisingLoop loop;
  std::uint64_t bytes_each = 0;            // that stay, on average
  std::uint64_t last_served = 0;           // about the last round that the device has room for; 0: it has no end
  std::uint64_t segment_bytes_at_end = 0;  // 0: how many rounds there are is not known
  bool is_served() const { return last_served == 0 || (loop.rounds != 0 && last_served >= loop.rounds); }
  // A number that is kept of each round (a loss, 512 bytes) is no matter.
  bool matters(const Needs& needs) const;
};

// Is the GPU full before a loop ends that was cut short? That may be helped as what fails is; where each step keeps something, the leak is to be mended.
bool is_full_in_cut_loop(const Plan& plan);

// Of several loops the one of which most is needed. room_bytes: for segments, 0: without end.
std::optional<LoopGrowth> growth_of_cut_loops(const Trace& trace, const std::vector<RisingLoop>& loops,
                                              std::size_t slot, std::uint64_t room_bytes);

}  // namespace faultline
