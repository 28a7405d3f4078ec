// What happens when something of ours goes wrong inside the program: recording ends, for good and quietly, and the program goes on.
//
// Every door of this library (the driver's functions, NVTX, the marks, the ends of threads, forks, the library's own end, callbacks of the interpreter) stands behind one
// of these, or behind the one in capture/forward.h. Locks are held by objects, so they are free again when an exception has passed.
#pragma once

#include <cxxabi.h>

namespace faultline::capture {

// Thrown where recording cannot go on. The clause is told in the report; it must last.
struct EndOfRecording {
  const char* why;
};

// Inside a catch: ends the recording, with what was caught as the reason.
void recording_failed() noexcept;

template <class Part>
void guarded(Part part) {
  try {
    part();
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is being cancelled
  } catch (...) {
    recording_failed();
  }
}

}  // namespace faultline::capture
