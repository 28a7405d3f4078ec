// Python stacks of the calling thread, read without taking the GIL and without changing anything in the interpreter.
//
// PyTorch lets the GIL go before it launches a kernel, so a recorder that waited for it at every launch could stop the program for good (another
// thread may hold the GIL and wait for a lock that this one has). But a thread's own frames do not change while it is inside our call, so they can
// be read where they are, GIL or not. Where the interpreter keeps them differs from version to version; instead of tables of versions the
// places are found at run time, by searching the thread state's memory for frames that are known: those of the program while it calls with the
// GIL held, or those of a few nested functions of our own, which the main thread runs once between two instructions of the program (never from
// inside a driver call, where the program's libraries may hold locks). What was found is checked frame by frame against CPython's own public
// functions; if it does not hold in every detail, stacks are read through those public functions, and only while the GIL is held.
//
// All CPython functions are looked up at run time (dlsym), so a program without Python pays one flag test per call.
// Thread-safe. Once the layout is known, reading costs some ten nanoseconds per frame, takes no lock and never allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace faultline::capture {

// Which instruction of which code object. A code object's memory may be used again for another: `identity` differs then.
struct PythonFrame {
  const void* code = nullptr;
  std::uint64_t identity = 0;
  std::int32_t instruction = -1;  // as PyCode_Addr2Line takes it; -1: the function's first line
  friend bool operator==(const PythonFrame&, const PythonFrame&) = default;
};

struct PythonFrameText {
  std::string file;
  std::string function;
  std::uint32_t line = 0;
};

enum class PythonState : std::uint8_t {
  kNoPython,  // no interpreter in this process (so far)
  kNotYet,    // an interpreter whose layout is not known yet: stacks only while the GIL is held
  kWithGil,   // the layout could not be learned (or the interpreter has no GIL): stacks only while the GIL is held
  kAlways,    // stacks of any thread that has Python frames
};

// Innermost first; how many were written. Frames beyond the span are the outermost ones, and are left out. 0: this thread has none, or they cannot
// be read now. May learn the layout on the way (a millisecond, once). Never waits for the GIL and never lets it go.
std::size_t read_python_stack(std::span<PythonFrame> frames);

// What a frame that read_python_stack just gave means. Only on the thread that read it, before it returns to Python. False: it could not be read.
bool describe_python_frame(const PythonFrame& frame, PythonFrameText& text);

PythonState python_state();
void forget_python_after_fork();  // in the child: threads are gone, the layout stays

}  // namespace faultline::capture
