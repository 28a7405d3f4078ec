#include "capture/python_stack.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "capture/python_api.h"
#include "capture/python_layout.h"
#include "capture/python_lesson.h"
#include "capture/python_public.h"

// How the layout is learned. Calls that come with the GIL held show their stacks as they are, which is often enough and runs no Python. A lesson is
// given besides, as a pending call: the main thread runs it between two instructions, where no lock of the program's libraries is held. Python
// code is never run from inside a driver call.
namespace faultline::capture {

namespace {

constexpr std::size_t kMostFramesCompared = 64;
constexpr int kMostContradictions = 8;
constexpr int kNeededProofs = 2;

std::atomic<PythonState> g_state{PythonState::kNoPython};
std::atomic<const PythonLayout*> g_layout{nullptr};
std::atomic<std::uint64_t> g_calls{0};
std::atomic<bool> g_lesson_is_pending{false};
std::atomic_flag g_learning = ATOMIC_FLAG_INIT;

// What is known so far; only with g_learning set.
struct Progress {
  LayoutLearner learner;
  std::vector<FrameTruth> last_frames;
  int proofs = 0;
  int contradictions = 0;
};

Progress* g_progress = nullptr;  // never freed: other threads may still run when static objects end

int minor_version(const PythonApi& python) {
  const char* version = python.Py_GetVersion();
  return std::strncmp(version, "3.", 2) == 0 ? std::atoi(version + 2) : 0;
}

bool is_free_threaded(const PythonApi& python) {
  return std::strstr(python.Py_GetVersion(), "free-threading") != nullptr;
}

// Frame by frame what CPython itself says, lines included.
bool proves(const PythonApi& python, const PythonLayout& layout, void* thread, const PublicStack& stack) {
  std::array<PythonFrame, kMostFramesCompared> frames;
  const auto count = check_python_frames(layout, reinterpret_cast<std::uintptr_t>(thread), frames);
  if (!count || *count != stack.frames.size()) return false;
  for (std::size_t i = 0; i < *count; ++i) {
    const FrameTruth& truth = stack.frames[i];
    if (reinterpret_cast<std::uintptr_t>(frames[i].code) != truth.code ||
        frames[i].instruction != std::max(truth.instruction, -1))
      return false;
    if (python.PyCode_Addr2Line(const_cast<void*>(frames[i].code), frames[i].instruction) != stack.lines[i])
      return false;
  }
  return true;
}

void learn_from_stack(const PythonApi& python, void* thread) {
  if (g_progress == nullptr) g_progress = new Progress;
  Progress& known = *g_progress;
  PublicStack stack;
  if (!read_public_stack(python, thread, kMostFramesCompared, stack)) {
    g_state = PythonState::kWithGil;
    return;
  }
  const auto same = [](const FrameTruth& a, const FrameTruth& b) {
    return a.code == b.code && a.instruction == b.instruction;
  };
  if (std::equal(stack.frames.begin(), stack.frames.end(), known.last_frames.begin(), known.last_frames.end(), same))
    return;  // teaches nothing
  known.last_frames = stack.frames;

  bool contradicted = !known.learner.observe(reinterpret_cast<std::uintptr_t>(thread), stack.frames, stack.codes);
  if (known.learner.ready()) {
    PythonLayout layout = known.learner.layout();
    layout.one_byte_line_table_is_own = minor_version(python) >= 11;
    if (learn_objects(python, layout) && proves(python, layout, thread, stack)) {
      if (++known.proofs >= kNeededProofs) {
        g_layout.store(new PythonLayout(layout), std::memory_order_release);
        g_state = PythonState::kAlways;
        return;
      }
    } else {
      contradicted = true;
    }
  }
  if (!contradicted) return;
  known.learner = LayoutLearner();
  known.proofs = 0;
  if (++known.contradictions >= kMostContradictions) g_state = PythonState::kWithGil;
}

// With the GIL held. Another thread may be at it already: then this one leaves it alone.
void try_to_learn(const PythonApi& python, void* thread) {
  if (g_state != PythonState::kNotYet || g_learning.test_and_set(std::memory_order_acquire)) return;
  struct Clear {
    ~Clear() { g_learning.clear(std::memory_order_release); }
  } when_done;
  if (g_state == PythonState::kNotYet) learn_from_stack(python, thread);
}

// Called by the interpreter, as the next one: nothing may be thrown into it. Without memory to learn with, stacks stay as they are.
void look() {
  const PythonApi* python = find_python();
  void* const thread = python != nullptr ? thread_with_gil(*python) : nullptr;
  try {
    if (thread != nullptr) try_to_learn(*python, thread);
  } catch (const std::bad_alloc&) {
    g_state = PythonState::kWithGil;
  }
}

int lesson(void*) {
  const PythonApi* python = find_python();
  if (g_state == PythonState::kNotYet && python != nullptr && is_running(*python)) {
    if (void* thread = thread_with_gil(*python)) give_python_lesson(*python, thread, look);
  }
  g_lesson_is_pending = false;
  return 0;
}

void ask_for_lesson(const PythonApi& python) {
  if (g_lesson_is_pending.exchange(true)) return;
  if (python.Py_AddPendingCall(lesson, nullptr) != 0) g_lesson_is_pending = false;
}

std::size_t read_while_learning(const PythonApi& python, std::span<PythonFrame> frames) {
  if (!is_running(python)) return 0;
  if (g_state == PythonState::kNoPython) {
    PythonState none = PythonState::kNoPython;
    g_state.compare_exchange_strong(none, is_free_threaded(python) ? PythonState::kWithGil : PythonState::kNotYet);
  }
  void* thread = thread_with_gil(python);
  if (g_state == PythonState::kNotYet) {
    const std::uint64_t call = g_calls.fetch_add(1, std::memory_order_relaxed) + 1;
    const bool is_power_of_two = (call & (call - 1)) == 0;
    if (thread != nullptr && (call <= 16 || is_power_of_two)) try_to_learn(python, thread);
    if (is_power_of_two && g_state == PythonState::kNotYet) ask_for_lesson(python);
  }
  if (thread == nullptr) return 0;
  if (const PythonLayout* layout = g_layout.load(std::memory_order_acquire)) {
    return walk_python_frames(*layout, reinterpret_cast<std::uintptr_t>(thread), frames);
  }
  return read_public_frames(python, thread, frames);
}

}  // namespace

std::size_t read_python_stack(std::span<PythonFrame> frames) {
  const PythonApi* python = find_python();
  if (python == nullptr) return 0;
  const PythonLayout* layout = g_layout.load(std::memory_order_acquire);
  if (layout == nullptr) return read_while_learning(*python, frames);
  // While the interpreter ends, it frees the frames of threads that still run.
  if (python->Py_IsFinalizing == nullptr || python->Py_IsFinalizing() != 0) return 0;
  void* thread = python->PyGILState_GetThisThreadState();
  return thread == nullptr ? 0 : walk_python_frames(*layout, reinterpret_cast<std::uintptr_t>(thread), frames);
}

bool describe_python_frame(const PythonFrame& frame, PythonFrameText& text) {
  const PythonApi* python = find_python();
  if (python == nullptr || frame.code == nullptr) return false;
  const PythonLayout* layout = g_layout.load(std::memory_order_acquire);
  if (layout == nullptr) return thread_with_gil(*python) != nullptr && describe_public_frame(*python, frame, text);
  const auto field = [&]<typename Value>(std::uint16_t offset, Value& value) {
    std::memcpy(&value, static_cast<const char*>(frame.code) + offset, sizeof value);
  };
  void *file = nullptr, *name = nullptr;
  std::int32_t first_line = 0;
  field(layout->file_offset, file);
  field(layout->name_offset, name);
  field(layout->first_line_offset, first_line);
  const int line = python->PyCode_Addr2Line(const_cast<void*>(frame.code), frame.instruction);
  text.line = static_cast<std::uint32_t>(std::max(line > 0 ? line : first_line, 0));
  return copy_text(*python, file, text.file) && copy_text(*python, name, text.function);
}

PythonState python_state() { return g_state; }

void forget_python_after_fork() {
  if (g_learning.test()) g_progress = nullptr;  // whoever was at it is gone, and left it half done
  g_learning.clear();
  g_lesson_is_pending = false;
}

}  // namespace faultline::capture
