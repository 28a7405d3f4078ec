#include <algorithm>
#include <array>
#include <cstring>

#include "capture/python_layout.h"

namespace faultline::capture {

namespace {

// How far into each structure we look. Every CPython so far has what we want well within.
constexpr std::size_t kThreadBytes = 256;
constexpr std::size_t kRecordBytes = 16;
constexpr std::size_t kFrameBytes = 128;
constexpr std::size_t kCodeBytes = 256;
constexpr std::size_t kFewestFrames = 3;  // in the first stack: fewer could be matched by accident
constexpr int kMostOwnFramesInARow = 3;   // frames the interpreter inserts between two Python functions
constexpr std::int64_t kMostInstructionBytes = 1 << 20;

// A structure's beginning, as far as it could be read.
class Window {
 public:
  Window(ReadMemory read, std::uintptr_t address, std::size_t size_bytes)
      : size_(address % 8 == 0 && address >= 4096 ? read(address, bytes_.data(), size_bytes) : 0) {}

  template <typename Value>
  bool get(std::size_t offset, Value& value) const {
    if (offset + sizeof value > size_) return false;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return true;
  }
  std::uintptr_t word(std::size_t offset) const {
    std::uintptr_t value = 0;
    get(offset, value);
    return value;
  }
  std::size_t size() const { return size_; }

 private:
  std::array<std::byte, 256> bytes_;
  std::size_t size_;
};

std::uintptr_t untagged(std::uintptr_t word) { return word & ~std::uintptr_t{7}; }

// Keeps the places that hold the value; finds them all the first time.
template <typename Value>
bool narrow(std::vector<std::uint16_t>& places, bool first, const Window& window, Value value) {
  const auto holds = [&](std::size_t offset) {
    Value found{};
    return window.get(offset, found) && found == value;
  };
  if (first) {
    for (std::size_t offset = 0; offset < window.size(); offset += sizeof(Value)) {
      if (holds(offset)) places.push_back(static_cast<std::uint16_t>(offset));
    }
  } else {
    std::erase_if(places, [&](std::uint16_t offset) { return !holds(offset); });
  }
  return !places.empty();
}

bool agrees(const PythonLayout::Instruction& place, const Window& frame, const FrameTruth& truth) {
  if (place.is_pointer) {
    return static_cast<std::int64_t>(frame.word(place.offset) - truth.code) - place.bias == truth.instruction;
  }
  std::int32_t count = 0;
  return frame.get(place.offset, count) && std::int64_t{count} * place.scale == truth.instruction;
}

}  // namespace

bool LayoutLearner::follow(const PythonLayout::Chain& chain, std::uintptr_t thread, std::span<const FrameTruth> frames,
                           std::vector<std::uintptr_t>* places) const {
  std::uintptr_t frame = Window(read_, thread + chain.thread_offset, 8).word(0);
  if (chain.record_offset != PythonLayout::kDirect) frame = Window(read_, frame + chain.record_offset, 8).word(0);
  const std::size_t needed = std::max(chain.code_offset, chain.previous_offset) + std::size_t{8};
  std::size_t matched = 0;
  int own_frames = 0;
  while (matched < frames.size()) {
    const Window window(read_, frame, needed);
    if (window.size() < needed) return false;
    if (untagged(window.word(chain.code_offset)) == frames[matched].code) {
      if (places != nullptr) places->push_back(frame);
      ++matched;
      own_frames = 0;
    } else if (++own_frames > kMostOwnFramesInARow) {
      return false;
    }
    frame = window.word(chain.previous_offset);
  }
  return true;
}

void LayoutLearner::search_frame(std::uintptr_t frame, PythonLayout::Chain chain, std::uintptr_t thread,
                                 std::span<const FrameTruth> frames) {
  const Window window(read_, frame, kFrameBytes);
  for (std::size_t code = 0; code + 8 <= window.size(); code += 8) {
    if (untagged(window.word(code)) != frames[0].code) continue;
    for (std::size_t previous = 0; previous + 8 <= window.size(); previous += 8) {
      if (previous == code || window.word(previous) == 0) continue;
      chain.code_offset = static_cast<std::uint16_t>(code);
      chain.previous_offset = static_cast<std::uint16_t>(previous);
      if (follow(chain, thread, frames, nullptr)) chains_.push_back(chain);
    }
  }
}

void LayoutLearner::search_chains(std::uintptr_t thread, std::span<const FrameTruth> frames) {
  const Window state(read_, thread, kThreadBytes);
  PythonLayout::Chain chain;
  for (std::size_t offset = 0; offset + 8 <= state.size(); offset += 8) {
    chain.thread_offset = static_cast<std::uint16_t>(offset);
    search_frame(state.word(offset), chain, thread, frames);
  }
  if (!chains_.empty()) return;
  for (std::size_t offset = 0; offset + 8 <= state.size(); offset += 8) {
    const Window record(read_, state.word(offset), kRecordBytes);
    for (std::size_t inner = 0; inner + 8 <= record.size(); inner += 8) {
      chain.thread_offset = static_cast<std::uint16_t>(offset);
      chain.record_offset = static_cast<std::uint16_t>(inner);
      search_frame(record.word(inner), chain, thread, frames);
    }
  }
}

bool LayoutLearner::observe_instructions(std::span<const std::uintptr_t> places, std::span<const FrameTruth> frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const FrameTruth& truth = frames[i];
    const Window frame(read_, places[i], kFrameBytes);
    if (instructions_seen_.empty()) {
      for (std::size_t offset = 0; offset + 4 <= frame.size(); offset += 4) {
        PythonLayout::Instruction place;
        place.offset = static_cast<std::uint16_t>(offset);
        for (place.scale = 1; place.scale <= 2; ++place.scale) {
          if (agrees(place, frame, truth)) instructions_.push_back(place);
        }
        if (offset % 8 != 0 || offset + 8 > frame.size()) continue;
        const auto distance = static_cast<std::int64_t>(frame.word(offset) - truth.code);
        if (distance <= truth.instruction || distance > kMostInstructionBytes) continue;
        place = {place.offset, true, static_cast<std::int32_t>(distance - truth.instruction), 1};
        instructions_.push_back(place);
      }
    } else {
      std::erase_if(instructions_,
                    [&](const PythonLayout::Instruction& place) { return !agrees(place, frame, truth); });
    }
    instructions_seen_.insert(truth.instruction);
  }
  return !instructions_.empty();
}

bool LayoutLearner::observe_code(const CodeTruth& code) {
  const Window window(read_, code.code, kCodeBytes);
  const bool first = codes_seen_.empty();
  codes_seen_.insert(code.code);
  return narrow(files_, first, window, code.file) && narrow(names_, first, window, code.name) &&
         narrow(line_tables_, first, window, code.line_table) && narrow(first_lines_, first, window, code.first_line);
}

bool LayoutLearner::observe(std::uintptr_t thread, std::span<const FrameTruth> frames,
                            std::span<const CodeTruth> codes) {
  if (frames.empty()) return true;
  if (stacks_seen_ == 0) {
    if (frames.size() < kFewestFrames) return true;
    search_chains(thread, frames);
  } else {
    const PythonLayout::Chain first = chains_.front();
    std::erase_if(chains_, [&](const PythonLayout::Chain& chain) { return !follow(chain, thread, frames, nullptr); });
    if (!chains_.empty() && chains_.front() != first) chains_.clear();  // the instructions were searched in its frames
  }
  std::vector<std::uintptr_t> places;
  if (chains_.empty() || !follow(chains_.front(), thread, frames, &places) || !observe_instructions(places, frames) ||
      !std::all_of(codes.begin(), codes.end(), [&](const CodeTruth& code) { return observe_code(code); })) {
    start_anew();
    return false;
  }
  ++stacks_seen_;
  return true;
}

bool LayoutLearner::ready() const {
  return stacks_seen_ >= 2 && codes_seen_.size() >= 3 && instructions_seen_.size() >= 4 && instructions_.size() == 1 &&
         files_.size() == 1 && names_.size() == 1 && line_tables_.size() == 1 && first_lines_.size() == 1;
}

PythonLayout LayoutLearner::layout() const {
  PythonLayout layout;
  layout.chain = chains_.front();
  layout.instruction = instructions_.front();
  layout.file_offset = files_.front();
  layout.name_offset = names_.front();
  layout.line_table_offset = line_tables_.front();
  layout.first_line_offset = first_lines_.front();
  return layout;
}

void LayoutLearner::start_anew() { *this = LayoutLearner(read_); }

}  // namespace faultline::capture
