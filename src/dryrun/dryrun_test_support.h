// A dry run in a test: a handle on a file that goes away, its calls by short names, and the trace it leaves.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "dryrun/dryrun.h"
#include "models/replay.h"
#include "trace/file_reader.h"
#include "trace/file_test_support.h"
#include "trace/validate.h"

namespace faultline {

struct Given {
  std::int32_t answer = -1;
  std::uint32_t allocation = 0;
  std::uint64_t address = 0;
  bool served() const { return answer == FAULTLINE_SERVED; }
};

class DryRun {
 public:
  explicit DryRun(std::uint64_t capacity_bytes, std::uint64_t context_bytes = 0, const char* alloc_conf = "",
                  const char* torch_version = "2.11.0") {
    std::array<char, 512> error{};
    handle_ = faultline_open(path().c_str(), "a device", capacity_bytes, context_bytes, alloc_conf, torch_version,
                             error.data(), error.size());
    EXPECT_NE(handle_, nullptr) << error.data();
  }
  ~DryRun() { faultline_close(handle_); }
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  faultline_dryrun* handle() const { return handle_; }
  std::string path() const { return folder_ / "trace"; }

  Given alloc(std::uint64_t size_bytes, std::uint32_t stream = 0, std::uint32_t heap = FAULTLINE_HEAP_TORCH,
              std::uint32_t stack = 0, std::uint32_t tensor = 0) {
    Given given;
    given.answer =
        faultline_alloc(handle_, 0, size_bytes, stream, heap, stack, tensor, &given.allocation, &given.address);
    return given;
  }
  void free(std::uint32_t allocation, std::uint32_t stack = 0) { faultline_free(handle_, allocation, stack); }
  std::uint32_t text(const std::string& words) { return faultline_string(handle_, words.data(), words.size()); }
  std::uint32_t line(std::uint32_t number) {
    return faultline_stack(handle_, 0, faultline_frame(handle_, text("train"), text("train.py"), number));
  }
  faultline_stats stats() const {
    faultline_stats stats;
    faultline_get_stats(handle_, 0, &stats);
    return stats;
  }
  std::string error() const {
    std::array<char, 512> text{};
    faultline_error(handle_, text.data(), text.size());
    return text.data();
  }

  // Ends the dry run; what it wrote must be whole.
  Trace finish() {
    EXPECT_EQ(error(), "");
    faultline_close(std::exchange(handle_, nullptr));
    Result<Trace> trace = read_trace_file(path());
    EXPECT_TRUE(trace.ok()) << trace.error().message();
    const Status status = check_trace(*trace);
    EXPECT_TRUE(status.ok()) << status.error().message();
    for (const auto& [what, times] : trace->lost) ADD_FAILURE() << what << ' ' << times;
    return std::move(*trace);
  }

 private:
  TemporaryFolder folder_;
  faultline_dryrun* handle_ = nullptr;
};

inline std::vector<Event> events_of(const Trace& trace, EventKind kind) {
  std::vector<Event> found;
  for (const Event& event : trace.events) {
    if (event.kind == kind) found.push_back(event);
  }
  return found;
}

// Every placement, every driver call and the end state are what the model of the allocator says.
inline ReplayResult expect_proved(const Trace& trace) {
  ReplayOptions options;
  options.proof = true;
  Result<ReplayResult> proof = replay(trace, options);
  EXPECT_TRUE(proof.ok()) << proof.error().message();
  for (const Mismatch& mismatch : proof->mismatches)
    ADD_FAILURE() << "event " << mismatch.event << ": " << mismatch.what;
  EXPECT_EQ(proof->exact, proof->placements);
  EXPECT_EQ(proof->segment_events_exact, proof->segment_events);
  EXPECT_EQ(proof->end_blocks_exact, proof->end_blocks);
  return std::move(*proof);
}

}  // namespace faultline
