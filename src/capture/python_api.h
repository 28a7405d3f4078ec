// CPython's C functions as this process has them: found at run time, so that a program without Python needs none.
//
// Only functions that every CPython since 3.9 exports are required; where one of them is missing (another implementation, an older version) there
// is no Python for us. The few that came or went between versions may be null. Objects are void*: nothing here knows how they look inside.
#pragma once

#include <cstddef>
#include <cstdint>

namespace faultline::capture {

struct PythonApi {
  // Pure reads: they may be called without the GIL.
  int (*Py_IsInitialized)();
  const char* (*Py_GetVersion)();
  int (*PyGILState_Check)();
  void* (*PyGILState_GetThisThreadState)();
  int (*Py_AddPendingCall)(int (*)(void*), void*);  // takes a lock of its own
  int (*PyCode_Addr2Line)(void* code, int instruction);
  std::ptrdiff_t (*PyUnicode_GetLength)(void*);
  std::uint32_t (*PyUnicode_ReadChar)(void*, std::ptrdiff_t);
  // With the GIL held.
  void* (*PyThreadState_GetFrame)(void* thread);
  void* (*PyFrame_GetBack)(void* frame);
  void* (*PyFrame_GetCode)(void* frame);
  int (*PyFrame_GetLineNumber)(void* frame);
  void* (*PyObject_GetAttrString)(void*, const char*);
  std::ptrdiff_t (*PyObject_Hash)(void*);
  long (*PyLong_AsLong)(void*);
  void* (*PyUnicode_FromString)(const char*);
  const char* (*PyUnicode_AsUTF8AndSize)(void*, std::ptrdiff_t*);
  void* (*PyBytes_FromStringAndSize)(const char*, std::ptrdiff_t);
  char* (*PyBytes_AsString)(void*);
  void (*Py_IncRef)(void*);
  void (*Py_DecRef)(void*);
  void (*PyErr_Fetch)(void**, void**, void**);
  void (*PyErr_Restore)(void*, void*, void*);
  void (*PyErr_Clear)();
  void* (*Py_CompileString)(const char* text, const char* file, int start);
  void* (*PyEval_EvalCode)(void* code, void* globals, void* locals);
  void* (*PyCFunction_NewEx)(void* method, void* self, void* module);
  void* (*PyDict_New)();
  int (*PyDict_SetItemString)(void*, const char*, void*);
  void (*PyDict_Clear)(void*);
  void* (*PySys_GetObject)(const char*);
  void* (*PyObject_CallObject)(void*, void*);
  // Objects.
  void* PyCode_Type;
  void* PyUnicode_Type;
  void* PyBytes_Type;
  void* None;
  // Not in every version.
  int (*Py_IsFinalizing)();            // with an underscore before 3.13
  void* (*PyThreadState_GetUnchecked)();  // _PyThreadState_UncheckedGet before 3.13
  int (*PyGC_Disable)();               // since 3.10
  int (*PyGC_Enable)();
  void (*PyThreadState_EnterTracing)(void*);  // since 3.11
  void (*PyThreadState_LeaveTracing)(void*);
};

// Null while no usable interpreter is loaded. Looks again at most a few times, further and further apart; lock-free once found.
const PythonApi* find_python();

// Ready for use and not on its way out.
bool is_running(const PythonApi& python);
// The calling thread's own thread state if it holds the GIL right now, else null.
void* thread_with_gil(const PythonApi& python);

}  // namespace faultline::capture
