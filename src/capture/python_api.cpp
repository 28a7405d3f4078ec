#include "capture/python_api.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <new>

// Bound when this library is loaded; null where the process starts without Python.
extern "C" __attribute__((weak)) int Py_IsInitialized();

namespace faultline::capture {

namespace {

// A program that embeds Python may have loaded it for itself alone: its names are then visible only through its own handle.
void* embedded_python() {
  const char* path = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "libpython3.") == nullptr) return 0;
        *static_cast<const char**>(found) = info->dlpi_name;
        return 1;
      },
      &path);
  return path == nullptr ? nullptr : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

template <typename Symbol>
bool look_up(void* library, Symbol& symbol, const char* name, const char* older_name = nullptr) {
  void* address = dlsym(library, name);
  if (address == nullptr && older_name != nullptr) address = dlsym(library, older_name);
  std::memcpy(&symbol, &address, sizeof address);
  return address != nullptr;
}

bool look_up_all(void* library, PythonApi& python) {
  bool complete = true;
#define FAULTLINE_REQUIRED(result, name, parameters) complete = complete && look_up(library, python.name, #name);
  FAULTLINE_PYTHON_FUNCTIONS(FAULTLINE_REQUIRED)
#undef FAULTLINE_REQUIRED
  complete = complete && look_up(library, python.PyCode_Type, "PyCode_Type") &&
             look_up(library, python.PyUnicode_Type, "PyUnicode_Type") &&
             look_up(library, python.PyBytes_Type, "PyBytes_Type") && look_up(library, python.None, "_Py_NoneStruct");
  look_up(library, python.Py_IsFinalizing, "Py_IsFinalizing", "_Py_IsFinalizing");
  look_up(library, python.PyThreadState_GetUnchecked, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
  look_up(library, python.PyGC_Disable, "PyGC_Disable");
  look_up(library, python.PyGC_Enable, "PyGC_Enable");
  look_up(library, python.PyThreadState_EnterTracing, "PyThreadState_EnterTracing");
  look_up(library, python.PyThreadState_LeaveTracing, "PyThreadState_LeaveTracing");
  return complete;
}

std::atomic<const PythonApi*> g_python{nullptr};
std::atomic<std::uint64_t> g_misses{0};

const PythonApi* keep(const PythonApi& python) {
  const auto* kept = new (std::nothrow) PythonApi(python);
  if (kept == nullptr) return nullptr;
  const PythonApi* first = nullptr;
  if (g_python.compare_exchange_strong(first, kept, std::memory_order_acq_rel)) return kept;
  delete kept;  // another thread found it at the same time
  return first;
}

// Looking up a name takes the loader's lock, which another thread may hold for as long as a library starts, perhaps waiting for a lock that the caller of a driver
// function has. So an interpreter that is there from the start, as it is in every Python program, is found when this library is loaded.
__attribute__((constructor)) void find_python_at_start() {
  PythonApi python{};
  if (Py_IsInitialized != nullptr && look_up_all(RTLD_DEFAULT, python)) keep(python);
}

}  // namespace

const PythonApi* find_python() {
  if (const PythonApi* python = g_python.load(std::memory_order_acquire)) return python;
  const std::uint64_t miss = g_misses.fetch_add(1, std::memory_order_relaxed) + 1;
  if ((miss & (miss - 1)) != 0) return nullptr;  // the interpreter may be loaded later: look at calls 1, 2, 4, 8, …
  PythonApi python{};
  void* const library = embedded_python();  // the loader is asked only where one has come
  return library != nullptr && look_up_all(library, python) ? keep(python) : nullptr;
}

bool is_running(const PythonApi& python) {
  return python.Py_IsInitialized() != 0 && (python.Py_IsFinalizing == nullptr || python.Py_IsFinalizing() == 0);
}

void* thread_with_gil(const PythonApi& python) {
  // PyGILState_Check alone says yes to everybody once the program has made a second interpreter.
  if (python.PyThreadState_GetUnchecked == nullptr) return nullptr;
  void* thread = python.PyGILState_GetThisThreadState();
  if (thread == nullptr || python.PyThreadState_GetUnchecked() != thread || python.PyGILState_Check() == 0)
    return nullptr;
  return thread;
}

}  // namespace faultline::capture
