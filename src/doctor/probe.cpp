#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/environment.h"
#include "confine/confined_program.h"
#include "doctor/machine.h"
#include "driver/find_driver.h"
#include "fmt/format.h"
#include "process/driver_release.h"
#include "process/installation.h"
#include "process/plain_path.h"
#include "process/quick_child.h"

namespace faultline::doctor {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// a driver that wakes a sleeping GPU takes seconds, and so does a Python on a slow disk or a busy machine
constexpr auto kLimit = 10'000ms;
constexpr int kMostGpus = 64;

// No package is imported: a framework takes seconds, and a broken one may take the process with it. It runs isolated (-I), so that nothing that lies in the
// user's folders is executed; PYTHONPATH and the user's own packages are read all the same.
constexpr const char* kAskPython = R"(
import json, os, site, sys
found = {}
try:
    from importlib import metadata
    here = os.environ.get("FAULTLINE_HERE", "/")
    path = [os.path.join(here, entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry] + sys.path
    if sys.prefix == sys.base_prefix and not os.environ.get("PYTHONNOUSERSITE"):
        path.append(site.getusersitepackages())
    for name, packages in {"torch": ["torch"], "jax": ["jax"], "jax-cuda": ["jax-cuda13-plugin", "jax-cuda12-plugin"], "tensorflow": ["tensorflow", "tensorflow-cpu", "tf-nightly"],
                           "cupy": ["cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy"], "triton": ["triton"], "numba": ["numba"]}.items():
        for package in packages:
            try:
                found[name] = next(iter(metadata.distributions(name=package, path=path))).version + ("+cpu" if package.endswith("-cpu") else "")
                break
            except Exception:
                pass
except ImportError:
    pass
print(json.dumps({"path": sys.executable, "version": "%d.%d.%d" % sys.version_info[:3], "packages": found}))
)";

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

void tell(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) ::_exit(1);
}

// In the child. The interface's functions have had these types since CUDA 3.2.
void ask_driver_inside(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const problem = ::dlerror();
    tell(std::string("trouble it cannot be loaded: ") + (problem == nullptr ? "" : problem));
    return;
  }
  const auto init = symbol<int (*)(unsigned)>(library, "cuInit");
  if (init == nullptr) return tell("trouble it is no CUDA driver: it has no cuInit");
  if (const auto version = symbol<int (*)(int*)>(library, "cuDriverGetVersion")) {
    int number = 0;
    if (version(&number) == 0) tell(fmt::format("cuda {}", number));
  }
  const int result = init(0);
  tell(fmt::format("init {}", result));
  if (result != 0) {
    const char* name = nullptr;
    if (const auto name_of_error = symbol<int (*)(int, const char**)>(library, "cuGetErrorName"))
      name_of_error(result, &name);
    if (name != nullptr) tell(std::string("init-name ") + name);
    return;
  }
  const auto get_count = symbol<int (*)(int*)>(library, "cuDeviceGetCount");
  const auto get = symbol<int (*)(int*, int)>(library, "cuDeviceGet");
  const auto get_name = symbol<int (*)(char*, int, int)>(library, "cuDeviceGetName");
  const auto get_memory = symbol<int (*)(std::size_t*, int)>(library, "cuDeviceTotalMem_v2");
  int count = 0;
  if (get_count == nullptr || get == nullptr || get_name == nullptr || get_memory == nullptr || get_count(&count) != 0)
    return;
  for (int index = 0; index < count && index < kMostGpus; ++index) {
    int device = 0;
    char name[256] = {};
    std::size_t memory_bytes = 0;
    if (get(&device, index) == 0 && get_name(name, sizeof name - 1, device) == 0 &&
        get_memory(&memory_bytes, device) == 0)
      tell(fmt::format("gpu {} {}", memory_bytes, name));
  }
}

DriverAnswer ask_driver(const std::string& path) {
  const process::ChildAnswer child = process::ask_child([&] { ask_driver_inside(path); }, kLimit);
  DriverAnswer answer = parse_driver_answer(child.output);
  if (answer.trouble.empty() && !child.trouble.empty())
    answer.trouble = "it " + child.trouble + " when it listed its GPUs";
  return answer;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string find_on_path(const std::string& name) {
  const std::string path = environment("PATH");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string file = (fs::path(end == at ? "." : path.substr(at, end - at)) / name).string();
    std::error_code problem;
    if (::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, problem)) return file;
    at = end + 1;
  }
  return {};
}

void look_at_driver(Machine& machine) {
  machine.driver_path = driver::find_real_driver();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) machine.visible_devices = visible;
  for (const char* file : {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl"}) {
    if (::access(file, F_OK) != 0) continue;
    machine.has_device_files = true;
    machine.can_open_device_files = ::access(file, R_OK | W_OK) == 0;
    break;
  }
  machine.module_release = process::module_release();
  if (machine.driver_path.empty()) return;
  machine.driver_release = process::library_release(machine.driver_path);
  machine.driver = ask_driver(machine.driver_path);
}

// The dynamic loader only warns when it cannot preload, so the program is asked what it has loaded.
std::string trouble_with_recorder(const std::string& path) {
  const Result<std::string> preloaded = process::plain_path(path, process::kPreloadSeparators, {});
  if (!preloaded) return "cannot name it: " + preloaded.error().message();
  const process::ChildAnswer child =
      process::ask_program({"cat", "/proc/self/maps"}, {"LD_PRELOAD=" + *preloaded}, kLimit);
  if (child.status == 127) return {};  // no cat to try it with
  if (!child.trouble.empty()) return child.trouble;
  return child.output.find(path) == std::string::npos ? "runs without it: the dynamic loader refused it" : "";
}

void look_at_own_parts(Machine& machine) {
  machine.dry_run_path = process::library_part("libfaultline_dryrun.so");
  machine.python_part = process::python_part();
  machine.recorder_path = process::library_part("capture/libcuda.so.1");
  if (!machine.recorder_path.empty()) machine.recorder_trouble = trouble_with_recorder(machine.recorder_path);
  machine.virtual_path = process::library_part("vgpu/libfaultline_vgpu.so");
  if (!machine.virtual_path.empty()) machine.virtual_driver = ask_driver(machine.virtual_path);
}

void look_at_python(Machine& machine) {
  machine.python.path = find_on_path("python3");
  if (machine.python.path.empty()) machine.python.path = find_on_path("python");
  if (machine.python.path.empty()) return;
  std::error_code problem;
  const std::string python = fs::absolute(machine.python.path, problem).string();
  const process::ChildAnswer child = process::ask_program(
      {python, "-I", "-c", kAskPython}, {"FAULTLINE_HERE=" + fs::current_path(problem).string()}, kLimit, "/");
  machine.python.trouble = child.trouble;
  if (child.trouble.empty()) parse_python_answer(child.output, machine.python);
}

void look_at_folder(Machine& machine) {
  std::error_code problem;
  machine.folder = fs::current_path(problem).string();
  if (problem) {
    machine.folder = ".";
    machine.folder_trouble = problem.message();
    return;
  }
  // Permissions alone do not tell: a file system may be mounted read-only, or the user be root without the right to write.
  std::string trial = machine.folder + "/faultline-doctor-XXXXXX";
  if (::mkdtemp(trial.data()) == nullptr)
    machine.folder_trouble = std::strerror(errno);
  else
    ::rmdir(trial.c_str());
  struct statvfs space {};
  if (::statvfs(machine.folder.c_str(), &space) == 0)
    machine.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
}

}  // namespace

Machine look_at_machine() {
  Machine machine;
  machine.glibc = ::gnu_get_libc_version();
  look_at_driver(machine);
  look_at_own_parts(machine);
  look_at_python(machine);
  look_at_folder(machine);
  if (const Status watches = confine::may_confine(); !watches) machine.watch_trouble = watches.error().message();
  if (const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope"); !scope.empty())
    machine.ptrace_scope = std::atoi(scope.c_str());
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    machine.locked_bytes = limit.rlim_cur;
  for (const char* tool : {"nvcc", "cuda-gdb", "compute-sanitizer"}) {
    std::string path = find_on_path(tool);
    if (path.empty() && ::access((std::string("/usr/local/cuda/bin/") + tool).c_str(), X_OK) == 0)
      path = std::string("/usr/local/cuda/bin/") + tool;
    if (!path.empty()) machine.tools[tool] = path;
  }
  return machine;
}

}  // namespace faultline::doctor
