// The stack readers behind C functions, as a library of its own that tests load into an interpreter with ctypes: through PyDLL a call keeps the GIL,
// through CDLL it lets it go.
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "capture/native_stack.h"
#include "capture/python_public.h"
#include "capture/python_stack.h"

using faultline::capture::PythonFrame;
using faultline::capture::PythonFrameText;

#define FAULTLINE_PROBE extern "C" __attribute__((visibility("default")))

namespace {

int copy_out(const std::string& text, char* buffer, int size) {
  if (text.size() + 1 > static_cast<std::size_t>(size)) return -1;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return static_cast<int>(text.size());
}

template <typename Read>
double nanoseconds_per_call(int calls, Read read) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) read();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls;
}

template <typename Describe>
int write_frames(const std::vector<PythonFrame>& frames, Describe describe, char* buffer, int size) {
  std::string text;
  for (const PythonFrame& frame : frames) {
    PythonFrameText words;
    if (!describe(frame, words)) words.function = "(not described)";
    text += words.file + "\t" + words.function + "\t" + std::to_string(words.line) + "\t";
    text += std::to_string(reinterpret_cast<std::uintptr_t>(frame.code)) + ":" + std::to_string(frame.identity) + ":" +
            std::to_string(frame.instruction) + "\n";
  }
  return copy_out(text, buffer, size);
}

}  // namespace

// One line per frame, innermost first: file, function, line, and what names the frame, with tabs between.
FAULTLINE_PROBE int probe_python(char* buffer, int size, int most_frames) {
  std::vector<PythonFrame> frames(static_cast<std::size_t>(most_frames));
  frames.resize(faultline::capture::read_python_stack(frames));
  return write_frames(frames, faultline::capture::describe_python_frame, buffer, size);
}

// The same through CPython's public functions alone.
FAULTLINE_PROBE int probe_python_with_gil(char* buffer, int size, int most_frames) {
  const faultline::capture::PythonApi* python = faultline::capture::find_python();
  void* thread = python == nullptr ? nullptr : faultline::capture::thread_with_gil(*python);
  if (thread == nullptr) return -1;
  std::vector<PythonFrame> frames(static_cast<std::size_t>(most_frames));
  frames.resize(faultline::capture::read_public_frames(*python, thread, frames));
  const auto describe = [&](const PythonFrame& frame, PythonFrameText& text) {
    return faultline::capture::describe_public_frame(*python, frame, text);
  };
  return write_frames(frames, describe, buffer, size);
}

FAULTLINE_PROBE int probe_python_state() { return static_cast<int>(faultline::capture::python_state()); }
FAULTLINE_PROBE void probe_after_fork() { faultline::capture::forget_python_after_fork(); }

// From a thread that the interpreter has never seen.
FAULTLINE_PROBE int probe_python_elsewhere() {
  int count = -1;
  std::thread([&] {
    PythonFrame frames[8];
    count = static_cast<int>(faultline::capture::read_python_stack(frames));
  }).join();
  return count;
}

FAULTLINE_PROBE double probe_python_cost(int calls) {
  std::vector<PythonFrame> frames(256);
  return nanoseconds_per_call(calls, [&] { faultline::capture::read_python_stack(frames); });
}

FAULTLINE_PROBE __attribute__((noinline)) std::size_t probe_native(std::uintptr_t* addresses, std::size_t most) {
  const std::size_t count = faultline::capture::read_native_stack({addresses, most});
  asm volatile("" ::: "memory");  // no tail call: the frame above must be there
  return count;
}

FAULTLINE_PROBE bool probe_describe_native(std::uintptr_t address, char* module, int size, std::uint64_t* offset) {
  faultline::capture::NativeFrameText text;
  if (!faultline::capture::describe_native_frame(address, text)) return false;
  *offset = text.offset;
  return copy_out(text.module, module, size) >= 0;
}

FAULTLINE_PROBE std::uint64_t probe_native_unwound() { return faultline::capture::native_stacks_unwound(); }

FAULTLINE_PROBE double probe_native_cost(int calls) {
  std::vector<std::uintptr_t> addresses(256);
  return nanoseconds_per_call(calls, [&] { faultline::capture::read_native_stack(addresses); });
}
