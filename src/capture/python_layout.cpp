#include "capture/python_layout.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace faultline::capture {

namespace {

// Memory known to be there.
struct PlainLoads {
  template <typename Value = std::uintptr_t>
  Value load(std::uintptr_t address) {
    Value value;
    std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
    return value;
  }
  static constexpr bool failed = false;
};

// Memory that may not be: reads 0 and remembers.
struct CheckedLoads {
  ReadMemory read;
  bool failed = false;
  template <typename Value = std::uintptr_t>
  Value load(std::uintptr_t address) {
    Value value{};
    if (read(address, &value, sizeof value) != sizeof value) failed = true;
    return failed ? Value{} : value;
  }
};

constexpr std::array kFactors = [] {
  std::array<std::uint64_t, 13> factors{};
  std::uint64_t factor = 0x9e3779b97f4a7c15u;
  for (std::uint64_t& each : factors) each = factor = factor * 0xd1342543de82ef95u + 2;  // stays odd
  return factors;
}();

// What the line of an instruction depends on, by content where memory could have been used again at the same address. Eight bytes that end with the
// last character are always inside the object: what stands before the characters is longer. A sum of products, because those can be computed side
// by side: this is most of the time that a frame takes.
template <typename Loads>
std::uint64_t identity_of(const PythonLayout& layout, Loads& memory, std::uintptr_t code, std::uintptr_t line_table) {
  const auto line_bytes = memory.load(line_table + layout.size_offset);
  const std::uintptr_t lines = line_table + layout.bytes_offset;
  std::uint64_t sum = kFactors[0] * memory.template load<std::uint32_t>(code + layout.first_line_offset);
  sum += kFactors[1] * line_table + kFactors[2] * line_bytes + kFactors[3] * memory.load(lines + line_bytes - 8);
  if (line_bytes >= 16) sum += kFactors[4] * memory.load(lines + line_bytes / 2 - 8);

  const auto add_text = [&](std::size_t i, std::uintptr_t text) __attribute__((always_inline)) {
    sum += kFactors[i] * text;
    // a subclass keeps its characters elsewhere
    if (memory.load(text + layout.type_offset) != layout.text_type) return;
    const auto length = memory.load(text + layout.size_offset);
    sum += kFactors[i + 1] * length + kFactors[i + 2] * memory.load(text + layout.text_hash_offset);
    sum += kFactors[i + 3] * memory.load(text + layout.text_offset + length - 8);
  };
  add_text(5, memory.load(code + layout.file_offset));
  add_text(9, memory.load(code + layout.name_offset));
  return sum ^ (sum >> 29);
}

template <typename Loads>
std::size_t walk(const PythonLayout& layout, Loads& memory, std::uintptr_t thread, std::span<PythonFrame> frames) {
  std::uintptr_t frame = memory.load(thread + layout.chain.thread_offset);
  if (layout.chain.record_offset != PythonLayout::kDirect && frame != 0)
    frame = memory.load(frame + layout.chain.record_offset);
  std::size_t count = 0;
  for (; frame != 0 && count < frames.size() && !memory.failed;
       frame = memory.load(frame + layout.chain.previous_offset)) {
    const std::uintptr_t code = memory.load(frame + layout.chain.code_offset) & ~std::uintptr_t{7};
    if (code == 0 || memory.load(code + layout.type_offset) != layout.code_type) continue;
    const std::uintptr_t line_table = memory.load(code + layout.line_table_offset);
    if (layout.one_byte_line_table_is_own && memory.load(line_table + layout.size_offset) == 1) continue;

    std::int64_t instruction = 0;
    if (layout.instruction.is_pointer) {
      instruction =
          static_cast<std::int64_t>(memory.load(frame + layout.instruction.offset) - code) - layout.instruction.bias;
    } else {
      instruction = std::int64_t{memory.template load<std::int32_t>(frame + layout.instruction.offset)} *
                    layout.instruction.scale;
    }
    PythonFrame& out = frames[count++];
    out.code = reinterpret_cast<const void*>(code);
    out.identity = identity_of(layout, memory, code, line_table);
    out.instruction = static_cast<std::int32_t>(std::max<std::int64_t>(instruction, -1));
  }
  return count;
}

std::size_t read_through_pipe(std::uintptr_t address, void* to, std::size_t size_bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return 0;
  // The kernel refuses to write from memory that cannot be read.
  const ssize_t written = write(ends[1], reinterpret_cast<const void*>(address), size_bytes);
  const ssize_t copied = written > 0 ? read(ends[0], to, static_cast<std::size_t>(written)) : 0;
  close(ends[0]);
  close(ends[1]);
  return copied > 0 ? static_cast<std::size_t>(copied) : 0;
}

}  // namespace

std::size_t walk_python_frames(const PythonLayout& layout, std::uintptr_t thread, std::span<PythonFrame> frames) {
  PlainLoads memory;
  return walk(layout, memory, thread, frames);
}

std::optional<std::size_t> check_python_frames(const PythonLayout& layout, std::uintptr_t thread,
                                               std::span<PythonFrame> frames, ReadMemory read) {
  CheckedLoads memory{read};
  const std::size_t count = walk(layout, memory, thread, frames);
  return memory.failed ? std::nullopt : std::optional(count);
}

std::size_t read_own_memory(std::uintptr_t address, void* to, std::size_t size_bytes) {
  constexpr std::size_t kPage = 4096;
  for (;;) {
    iovec local{to, size_bytes};
    iovec remote{reinterpret_cast<void*>(address), size_bytes};
    const ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (copied > 0) return static_cast<std::size_t>(copied);
    if (errno != EFAULT) {  // some sandboxes forbid the call altogether
      if (const std::size_t piped = read_through_pipe(address, to, size_bytes); piped > 0) return piped;
    }
    const std::size_t to_page_end = kPage - address % kPage;
    if (to_page_end >= size_bytes) return 0;
    size_bytes = to_page_end;
  }
}

}  // namespace faultline::capture
