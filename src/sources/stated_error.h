// What a message states, typed: made by the reader of a text, kept in a trace's properties, and the same again for the rules.
//
// A number of a message is the interval of byte counts that it can stand for. A member that nothing was said about is empty. How a statement is written as properties of a trace, and read from
// them, stands in stated_fields.cpp, once for both ways.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_interval.h"
#include "sources/messages/kinds.h"
#include "trace/framework.h"

namespace faultline {

inline constexpr std::string_view kAsyncPool = "cudaMallocAsync", kMetalPool = "metal";  // pools that no message names
enum class StatedAllocator : std::uint8_t { kUsual, kAsync, kMetal, kOther };
// Of whom the memory was asked, where not of the framework's allocator.
enum class AskedOf : std::uint8_t { kAllocator, kDriver, kContext, kUnifiedMemory };

struct StatedError {
  MessageKind kind = MessageKind::kNone;
  ErrorKind group() const { return row_of(kind).group; }
  FaultKind fault() const { return row_of(kind).fault; }
  Library library() const { return row_of(kind).library; }

  Framework framework = Framework::kNone;  // who wrote it
  std::string program;                     // "cupy", where that is no framework
  void set_maker(std::string_view name);
  std::string maker_name() const;  // "pytorch", "cupy"
  Framework other_framework =
      Framework::kNone;             // what else uses the GPU in the text, where nothing in it is of PyTorch
  std::string other_program;        // "numba", where that is no framework
  std::string other_words() const;  // "JAX", "numba"; empty: nothing else
  // The program whose settings help: who wrote the message, else who else is in the text.
  std::string program_name() const { return framework == Framework::kNone ? other_words() : maker_name(); }

  std::string text;  // the matched sentences
  std::string tag;   // which writer of an interleaved log: "[rank3]:"
  std::optional<std::uint16_t> device;
  std::uint64_t line = 1, count = 1, distinct = 1;
  std::uint64_t address = 0;  // of an illegal access; 0: not stated

  std::optional<ByteInterval> requested, capacity, free, live, cached, graph_pool, reserved, allowed, this_process,
      other_metal, executable_total, executable_temporaries;
  std::optional<ByteInterval> limit;  // of one request, or of what a kernel may have
  std::optional<ByteInterval> used;   // of the device, by whomever
  // what the runtime said of the device as it began: what was free, what it has, what the pool got
  std::optional<ByteInterval> start_free, start_capacity, start_pool;
  std::optional<ByteInterval> refused_region;   // what the driver refused the pool shortly before
  std::optional<ByteInterval> refused_unified;  // the same of unified memory

  struct ListedProcess {
    std::string pid;
    std::optional<ByteInterval> bytes;
  };
  std::vector<ListedProcess> processes;  // as the message lists them
  // what follows from the list: of the others at least all but the largest
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
  bool disguised = false;            // TensorFlow's "Dst tensor is not initialized"
  bool for_constant = false;         // for a constant of a compiled program
  bool for_autotuner = false;        // for what XLA's autotuner tries
  bool at_pool_limit = false;        // the pool has the largest size that it was given
  bool of_unknown_memory = false;    // the text does not show whether of the device or of the host
  AskedOf asked_of = AskedOf::kAllocator;
  std::string backend;                  // "CUDA", "HIP", "NPU", "XPU", where the message names it
  std::string status, call;             // of a library: "CUBLAS_STATUS_ALLOC_FAILED", the call that returned it
  std::optional<std::uint64_t> tokens;  // for which there is room
  std::string scratch;                  // "vmem", of a TPU's core
  std::string tensor_shape, tensor_type;
  std::string op, op_type;  // of a graph, whose request it was: "model/conv2d_12/Conv2D", "Conv2D"
  std::string pool;         // as the message names it: "GPU_0_bfc"
  StatedAllocator allocator() const;
  struct Buffer {
    ByteInterval bytes;
    std::string what, place;  // "f32[4096,128] of dot_general", "models.py:689"
  };
  std::vector<Buffer> buffers;       // of a program that XLA compiled, the largest first
  std::optional<std::uint64_t> xid;  // the number of a line of the kernel's log
  std::string process;               // "4711 (python)", where such a line names one
  std::string ended_by;  // another exception that ended the program after this message; empty: none was seen
  bool ended_while_handled = false;   // that one was raised while this was being handled
  bool lives_on = false;              // the text shows the program at work behind it
  std::string torch_version;          // "1.13", or "<=1.10" where only its Python tells
  std::vector<std::string> survived;  // messages before it, after which the log went on
  struct Assertion {
    std::string expression, kernel, block, thread;
    std::uint64_t lines = 0;
  } assertion;

  explicit operator bool() const { return kind != MessageKind::kNone; }
};

// The member that a row's form names, "requested"; null: there is none.
std::optional<ByteInterval>* number_named(StatedError& stated, std::string_view name);
// Of all but what was requested; how many there were.
std::size_t drop_numbers_above(StatedError& stated, std::uint64_t most);
// What another message states and this one does not.
void fill_in(StatedError& stated, const StatedError& other);

}  // namespace faultline
