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
#include "sources/messages/kinds.h"
#include "trace/trace.h"

namespace faultline {

enum class Framework : std::uint8_t { kNone, kPyTorch, kJax, kTensorFlow, kOther };
enum class StatedAllocator : std::uint8_t { kUsual, kAsync, kMetal, kOther };

struct StatedError {
  ErrorKind kind = ErrorKind::kNone;
  FaultKind fault = FaultKind::kUnknown;     // where it is one
  MessageKind message = MessageKind::kNone;  // its row has what it means
  Framework framework = Framework::kNone;
  std::string framework_name;  // "cupy"
  StatedAllocator allocator = StatedAllocator::kUsual;
  Library library = Library::kNone;  // that failed
  std::string text;                  // the matched sentences
  std::string writer;                // which writer of an interleaved log: "[rank3]:"
  std::string device;                // "0"; empty where the message names none
  std::uint64_t line = 1, count = 1, distinct = 1;
  std::uint64_t address = 0;  // of an illegal access; 0: not stated

  std::optional<ByteInterval> requested, capacity, free, live, cached, graph_pool, reserved, allowed, this_process,
      other_metal, executable_total, executable_temporaries, shared_memory_limit;
  std::optional<ByteInterval> used;  // of the device, by whomever
  // what the runtime said of the device as it began: what was free, what it has, what the pool got
  std::optional<ByteInterval> start_free, start_capacity, start_pool;
  std::optional<ByteInterval> refused_region;  // what the driver refused the pool shortly before
  // other processes, where the message lists them: at least all but the largest of the list
  std::optional<ByteInterval> others;
  std::vector<std::string> other_pids;
  bool found_self = false;   // this process was recognised in the list although its number there is another one
  std::string guessed_self;  // the one of the list that fits what this program holds, where others cannot be excluded
  bool processes_ambiguous = false;             // the list may or may not hold this process
  std::optional<ByteInterval> outside() const;  // of this process, beside the framework's allocator

  std::optional<bool> asynchronous;  // whether the line may be later than the launch
  bool benign = false;               // the writer says itself that it goes on
  bool guessed = false;              // no known message: a line that looks like one of memory running out
  bool cut = false;                  // its beginning is not in the text
  std::string backend;               // "CUDA", "HIP", "NPU", "XPU", where the message names it
  bool disguised = false;            // TensorFlow's "Dst tensor is not initialized"
  std::string status, call;          // of a library: "CUBLAS_STATUS_ALLOC_FAILED", the call that returned it
  std::string tensor_shape, tensor_type;
  std::string op, op_type;  // of a graph, whose request it was: "model/conv2d_12/Conv2D", "Conv2D"
  std::string pool;         // as the message names it: "GPU_0_bfc"
  struct Buffer {
    ByteInterval bytes;
    std::string what, place;  // "f32[4096,128] of dot_general", "models.py:689"
  };
  std::vector<Buffer> buffers;  // of a program that XLA compiled, the largest first
  std::string xid, process;     // the number of a line of the kernel's log; "4711 (python)" where it names one
  std::string ended_by;         // another exception that ended the program after this message; empty: none was seen
  bool ended_while_handled = false;   // that one was raised while this was being handled
  bool lives_on = false;              // the text shows the program at work behind it
  std::string torch_version;          // "1.13", or "<=1.10" where only its Python tells
  std::string other_framework;        // "numba", where nothing in the text is of PyTorch
  std::vector<std::string> survived;  // messages before it, after which the log went on
  struct Assertion {
    std::string expression, kernel, block, thread;
    std::uint64_t lines = 0;
  } assertion;

  explicit operator bool() const { return kind != ErrorKind::kNone; }
};

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
