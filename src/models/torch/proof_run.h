// The proof's inside: see models/torch/proof.h for what it does, proof_run.cpp for how runs of driver calls are explained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/torch/proof.h"

namespace faultline {

class TorchProof {
 public:
  TorchProof(const TorchRecording& recording, const RecordedTorchSettings& recorded,
             std::vector<std::uint64_t>* held_bytes);
  TorchProofResult run();

 private:
  static constexpr std::size_t kMismatchesKept = 16;
  static constexpr std::size_t kHiddenArenas = 256;
  static constexpr std::size_t kSuspects = 8;
  static constexpr int kSearchedPast = 256;
  static constexpr std::uint32_t kCollectionRounds = 16;

  // The request that a run of driver calls serves or precedes.
  struct Request {
    std::size_t event = 0;
    bool present = false;
    bool is_next = false;  // the run is followed by this request directly
    ListIndex list = kNoIndex;
    std::uint64_t rounded_bytes = 0;
  };

  // Explaining costs work that a hostile trace could ask for without end; past a share of the trace's length only what is cheap is done.
  bool afford(std::size_t steps) {
    if (steps > work_left_) return false;
    work_left_ -= steps;
    return true;
  }

  void note_private_start();
  void finish();
  void compare_end();
  void mismatch(std::uint64_t event, std::string what);
  void on_alloc(std::size_t at);
  void note_held(AllocationId id);
  void on_free(const Event& event);
  void on_failed(std::size_t at);

  std::uint32_t arena_at(const Event& event, std::uint32_t tagged) const;
  void note_arena(const Event& event, std::uint32_t arena);
  std::uint32_t hidden_arena(ListIndex list, std::uint64_t rounded);
  void hide(SegmentIndex segment, std::uint32_t arena);
  BlockIndex infer_private(const Event& event, ListIndex list, std::uint64_t rounded, BlockIndex predicted);
  std::uint32_t scratch_arena();

  // proof_run.cpp: explains the collected run, which ends before the event `until`; leaves the block it obtained in fresh_.
  void explain_run(std::size_t until);
  Request request_at(std::size_t until);
  bool only_waits_end(std::size_t from, std::size_t until);
  void explain_releases(std::span<const std::size_t> calls, const Request& request, bool taken_after);
  std::size_t try_releases(std::span<const std::size_t> calls, const Request& request, bool taken_after);
  std::size_t match_cached(std::span<const std::size_t> calls, std::uint32_t arena, bool hiding);
  bool same_call(const Event& call, ByteRange range, bool unmap) const;
  void note_flush(std::size_t first_call, const Request& request, bool taken_after);
  BlockIndex obtain_mapped(ListIndex list, std::uint64_t rounded);
  void explain_takes(std::span<const std::size_t> calls, const Request& request);
  void force_call(const Event& call, std::uint32_t arena);
  ListIndex list_of_takes(const Event& first, const Request& request);
  bool is_kept(const Event& call);

  const TorchRecording& recording_;
  const std::vector<Event>& events_;
  TorchAllocator allocator_;
  TorchSettings settings_;
  bool may_hide_;
  bool release_stacks_tell_;  // a release carries the stack of what caused it
  TorchProofResult result_;

  std::vector<BlockIndex> block_of_;
  std::vector<std::uint64_t>* held_bytes_;
  std::vector<std::size_t> run_;
  BlockIndex fresh_ = kNoIndex;
  bool flushed_in_run_ = false;
  bool waits_ended_ = false;  // the last torch events completed frees: a flush does that after the request has searched
  std::size_t next_request_ = 0;  // cached position of the next request, so that looking ahead stays linear
  bool private_segments_ = false;
  std::vector<std::uint32_t> hidden_arenas_;
  std::optional<std::uint32_t> scratch_arena_;
  std::vector<bool> never_freed_;  // by allocation of the driver heap, made when first asked for
  std::uint64_t work_left_ = 0;    // set from the length of the trace
};

}  // namespace faultline
