// CPython's C functions as this process has them: found at run time, so that a program without Python needs none.
//
// Only functions that every CPython since 3.9 exports are required; where one of them is missing (another implementation, an older version) there
// is no Python for us. The few that came or went between versions may be null. Objects are void*: nothing here knows how they look inside.
#pragma once

#include <cstddef>
#include <cstdint>

namespace faultline::capture {

// The functions that every version has.
#define FAULTLINE_PYTHON_FUNCTIONS(F)                                              \
  /* Pure reads: they may be called without the GIL. */                            \
  F(int, Py_IsInitialized, ())                                                     \
  F(const char*, Py_GetVersion, ())                                                \
  F(int, PyGILState_Check, ())                                                     \
  F(void*, PyGILState_GetThisThreadState, ())                                      \
  F(int, Py_AddPendingCall, (int (*)(void*), void*)) /* takes a lock of its own */ \
  F(int, PyCode_Addr2Line, (void* code, int instruction))                          \
  F(std::ptrdiff_t, PyUnicode_GetLength, (void*))                                  \
  F(std::uint32_t, PyUnicode_ReadChar, (void*, std::ptrdiff_t))                    \
  /* With the GIL held. */                                                         \
  F(void*, PyThreadState_GetFrame, (void* thread))                                 \
  F(void*, PyFrame_GetBack, (void* frame))                                         \
  F(void*, PyFrame_GetCode, (void* frame))                                         \
  F(int, PyFrame_GetLineNumber, (void* frame))                                     \
  F(void*, PyObject_GetAttrString, (void*, const char*))                           \
  F(std::ptrdiff_t, PyObject_Hash, (void*))                                        \
  F(long, PyLong_AsLong, (void*))                                                  \
  F(void*, PyUnicode_FromString, (const char*))                                    \
  F(const char*, PyUnicode_AsUTF8AndSize, (void*, std::ptrdiff_t*))                \
  F(void*, PyBytes_FromStringAndSize, (const char*, std::ptrdiff_t))               \
  F(char*, PyBytes_AsString, (void*))                                              \
  F(void, Py_IncRef, (void*))                                                      \
  F(void, Py_DecRef, (void*))                                                      \
  F(void, PyErr_Fetch, (void**, void**, void**))                                   \
  F(void, PyErr_Restore, (void*, void*, void*))                                    \
  F(void, PyErr_Clear, ())                                                         \
  F(void*, Py_CompileString, (const char* text, const char* file, int start))      \
  F(void*, PyEval_EvalCode, (void* code, void* globals, void* locals))             \
  F(void*, PyCFunction_NewEx, (void* method, void* self, void* module))            \
  F(void*, PyDict_New, ())                                                         \
  F(int, PyDict_SetItemString, (void*, const char*, void*))                        \
  F(void, PyDict_Clear, (void*))                                                   \
  F(void*, PySys_GetObject, (const char*))                                         \
  F(void*, PyObject_CallObject, (void*, void*))

struct PythonApi {
#define FAULTLINE_MEMBER(result, name, parameters) result(*name) parameters;
  FAULTLINE_PYTHON_FUNCTIONS(FAULTLINE_MEMBER)
#undef FAULTLINE_MEMBER
  // Objects.
  void* PyCode_Type;
  void* PyUnicode_Type;
  void* PyBytes_Type;
  void* None;
  // Not in every version.
  int (*Py_IsFinalizing)();               // with an underscore before 3.13
  void* (*PyThreadState_GetUnchecked)();  // _PyThreadState_UncheckedGet before 3.13
  int (*PyGC_Disable)();                  // since 3.10
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
