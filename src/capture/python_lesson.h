// A few Python functions of our own, called only so that the interpreter can be watched running them.
#pragma once

#include "capture/python_api.h"

namespace faultline::capture {

// Calls `look` from inside several nested functions, at different depths and instructions. With the GIL held, and from a place where the interpreter
// may run Python code. The program sees nothing of it: no module, no tracing or profiling event, no exception. False: not now (somebody traces
// the program, and this version cannot be told to leave us out).
bool give_python_lesson(const PythonApi& python, void* thread, void (*look)());

}  // namespace faultline::capture
