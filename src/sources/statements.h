// What an input says in words and numbers beside its events: the message a failure left, how the process ended, what a dry run was told.
//
// Read once from a trace's properties, typed, so that nothing behind the sources asks which source it was or compares its words. A number of a message is the
// interval of byte counts that it can stand for. A member that nothing was said about is empty.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_interval.h"
#include "sources/stated_error.h"
#include "sources/text_notes.h"
#include "trace/trace.h"

namespace faultline {

// A pool of TensorFlow's or JAX's allocator (a heap of kind bfc), as far as the input states something of it; docs/bfc.md has the names.
struct DumpedPool {
  std::string name;                                         // of the heap
  std::optional<ByteInterval> limit, available;             // what it may take, and of that what no region has taken
  std::optional<ByteInterval> request;                      // that failed, as the pool looks for it
  std::optional<ByteInterval> taken, in_use, largest_free;  // as its own totals say
  std::optional<ByteInterval> slack;                        // of what is in use, what nobody asked for
  std::optional<ByteInterval> refused_region;               // what the driver would not give
  std::optional<ByteInterval> peak_in_use;
  std::optional<ByteInterval>
      base_limit;  // what XLA says that it plans with: the pool's limit, or four fifths of the device
  struct Bar {
    std::uint64_t free = 0, longest = 0;
  };
  std::optional<Bar> bar;  // of what it has taken: hundredths without a chunk in use, and the longest row of them
  std::optional<ByteInterval> free_by_bins, largest_by_bins;  // as the list of its bins says
  std::uint64_t unread_bytes = 0;  // of its regions, what lines that are missing would have told of
  ByteInterval unplaced;           // regions of which no line is left
  bool is_open = false;            // nothing tells whether lines of the map are missing
  bool is_cut() const { return is_open || unread_bytes != 0 || unplaced.max != 0; }
  struct Size {
    std::uint64_t count = 0, size_bytes = 0;
  };
  std::vector<Size> sizes;      // of what is in use the largest, where the map has not all of it
  bool knows_requests = false;  // of each chunk it is known how much was asked for
  bool is_mixed = false;        // its lines stand between those of another pool
  std::optional<bool> growth;
  std::string asked_by;    // the operation whose request failed
  std::uint64_t form = 0;  // the year since when a map is written in these words (docs/tensorflow-jax.md); 0: not told
};

// How the process ended, as far as somebody saw it.
struct Ending {
  bool exited = false;                         // it came to exit(), and everything up to there is recorded
  std::optional<std::int64_t> status;          // its own, else the command's; 128 + N: signal N
  std::optional<std::int64_t> command_status;  // of the command that was run, where somebody saw it; likewise
  int command_signal = 0;                      // what ended that command, where it was a signal
  std::string exception_type, exception_message;
  bool well() const { return exited && status == 0 && exception_type.empty() && exception_message.empty(); }
};

struct Statements {
  StatedError error;
  TextNotes notes;            // of a text
  bool message_only = false;  // the message is all there is: nothing was recorded
  Ending ending;
  std::vector<DumpedPool> pools;  // of each heap of that kind
  const DumpedPool* pool_of(std::string_view heap_name) const;
  // launches, copies and faults would be in it; not so in an allocator's own history or a dry run
  bool shows_calls = true;
  bool is_recorded = false;                      // by Faultline, at the driver's boundary
  bool waits_for_launches = false;               // CUDA_LAUNCH_BLOCKING was set
  std::optional<std::string> second_run_status;  // of the run that was repeated for its core dump
  bool placed_by_model = false;                  // addresses are a model's own, not an allocator's: a dry run
  bool planned_to_end = false;                   // a dry run whose program came to its end
  // what a dry run was told its contexts take, and of several GPUs each
  std::optional<std::uint64_t> planned_context_bytes;
  std::map<std::uint16_t, std::uint64_t> planned_contexts;
  std::optional<std::uint64_t> planned_context_of(std::uint16_t device) const;
};
Statements read_statements(const Trace& trace);

}  // namespace faultline
