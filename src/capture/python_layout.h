// Where a CPython interpreter keeps a thread's frames, found by looking.
//
//   thread state ──[thread_offset]──▶ frame            one step (3.9, 3.10, 3.13 and later), or through a record in between (3.11, 3.12)
//   frame        ──[code_offset]────▶ code object      low bits may be tags; None, or code without lines: the interpreter's own frame
//                ──[previous_offset]▶ caller's frame
//                ──[instruction_offset] a pointer into the code object, or a count of bytes or of two-byte units
//   code object  ──▶ file, qualified name, line table; first line
//
// The learner is shown stacks whose frames are known (from CPython's public functions) and keeps those places that explain all of them. It reads
// memory only through a function that fails instead of faulting, and knows nothing of versions. The walk then uses plain loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "capture/python_stack.h"

namespace faultline::capture {

struct PythonLayout {
  static constexpr std::uint16_t kDirect = 0xffff;
  struct Chain {
    std::uint16_t thread_offset = 0;
    std::uint16_t record_offset = kDirect;  // of the frame pointer in the record the thread state points to
    std::uint16_t code_offset = 0;
    std::uint16_t previous_offset = 0;
    friend bool operator==(const Chain&, const Chain&) = default;
  };
  struct Instruction {
    std::uint16_t offset = 0;
    bool is_pointer = false;
    std::int32_t bias = 0;   // pointer: distance of the first instruction from the code object
    std::int32_t scale = 1;  // count: bytes per unit
    friend bool operator==(const Instruction&, const Instruction&) = default;
  };
  Chain chain;
  Instruction instruction;
  std::uint16_t file_offset = 0;
  std::uint16_t name_offset = 0;
  std::uint16_t line_table_offset = 0;
  std::uint16_t first_line_offset = 0;

  // Of objects in general; filled in by who knows the types.
  std::uint16_t type_offset = 8;
  std::uint16_t size_offset = 16;  // of str and bytes: how many characters, how many bytes
  std::uint16_t text_offset = 0;   // of a plain str's characters
  std::uint16_t text_hash_offset = 0;
  std::uint16_t bytes_offset = 0;  // of a bytes object's bytes
  std::uintptr_t code_type = 0;
  std::uintptr_t text_type = 0;
  // the interpreter's own code objects (3.12 and later) have line tables of one byte, no other has
  bool one_byte_line_table_is_own = false;
};

// Innermost first; how many were written. `thread` must be the calling thread's own thread state.
std::size_t walk_python_frames(const PythonLayout& layout, std::uintptr_t thread, std::span<PythonFrame> frames);

// How many bytes at the address could be copied, from its start on. Never faults.
using ReadMemory = std::size_t (*)(std::uintptr_t address, void* to, std::size_t size_bytes);
std::size_t read_own_memory(std::uintptr_t address, void* to, std::size_t size_bytes);

// The same walk with checked reads. Nothing: it led to memory that is not there.
std::optional<std::size_t> check_python_frames(const PythonLayout& layout, std::uintptr_t thread,
                                               std::span<PythonFrame> frames, ReadMemory read = read_own_memory);

struct FrameTruth {
  std::uintptr_t code = 0;
  std::int32_t instruction = 0;  // f_lasti: bytes
};

struct CodeTruth {
  std::uintptr_t code = 0;
  std::uintptr_t file = 0;
  std::uintptr_t name = 0;
  std::uintptr_t line_table = 0;
  std::int32_t first_line = 0;
};

class LayoutLearner {
 public:
  explicit LayoutLearner(ReadMemory read = read_own_memory) : read_(read) {}

  // The innermost frames of one stack, and the code objects they run. False: it does not fit what was seen before; the learner starts anew.
  bool observe(std::uintptr_t thread, std::span<const FrameTruth> frames, std::span<const CodeTruth> codes);
  // One explanation is left, and enough was seen to believe it.
  bool ready() const;
  // The places; type and text fields are left as they are by default.
  PythonLayout layout() const;

 private:
  bool follow(const PythonLayout::Chain& chain, std::uintptr_t thread, std::span<const FrameTruth> frames,
              std::vector<std::uintptr_t>* places) const;
  void search_chains(std::uintptr_t thread, std::span<const FrameTruth> frames);
  void search_frame(std::uintptr_t frame, PythonLayout::Chain chain, std::uintptr_t thread,
                    std::span<const FrameTruth> frames);
  bool observe_instructions(std::span<const std::uintptr_t> places, std::span<const FrameTruth> frames);
  bool observe_code(const CodeTruth& code);
  void start_anew();

  ReadMemory read_;
  std::vector<PythonLayout::Chain> chains_;
  std::vector<PythonLayout::Instruction> instructions_;
  std::vector<std::uint16_t> files_, names_, line_tables_, first_lines_;
  std::set<std::int32_t> instructions_seen_;
  std::set<std::uintptr_t> codes_seen_;
  std::size_t stacks_seen_ = 0;
};

}  // namespace faultline::capture
