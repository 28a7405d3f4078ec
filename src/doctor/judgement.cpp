#include "doctor/judgement.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/units.h"
#include "fmt/format.h"
#include "process/driver_release.h"

namespace faultline::doctor {
namespace {

constexpr std::uint64_t kSpaceForRun = 100 * kMiB;
constexpr std::pair<int, int> kLeastGlibc = {2, 35};

std::string cuda_words(int version) { return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10); }

constexpr int kVersionsDiffer = 803;

struct InitError {
  int code;
  const char* means;
  const char* advice;
};
constexpr std::array<InitError, 8> kInitErrors = {{
    {34, "this libcuda.so.1 is the toolkit's stub, made for linking only",
     "take its folder out of LD_LIBRARY_PATH and install the NVIDIA driver"},
    {46, "the GPU is held by another process in exclusive mode, or is in an error state",
     "look at nvidia-smi; nvidia-smi -c 0 lets processes share it"},
    {100, "the driver sees no GPU",
     "look at nvidia-smi; in a container the GPU must be given to it, for example docker run --gpus all"},
    {101, "CUDA_VISIBLE_DEVICES names a GPU that is not there", "look at nvidia-smi -L"},
    {802, "the system is not ready: on machines with NVSwitch the fabric manager does not run",
     "start nvidia-fabricmanager"},
    {kVersionsDiffer, "the driver's library and the kernel's module are of different versions",
     "load the installed module again, most easily by a reboot; in a container install no driver of its own"},
    {804, "the forward-compatibility library does not support this GPU",
     "take the compat folder out of LD_LIBRARY_PATH"},
    {999, "the kernel's module did not answer as it should, often after a suspend or a crash",
     "look at dmesg; loading nvidia_uvm again, or a reboot, usually helps"},
}};

const InitError* find_init_error(int code) {
  const auto found =
      std::find_if(kInitErrors.begin(), kInitErrors.end(), [&](const InitError& known) { return known.code == code; });
  return found == kInitErrors.end() ? nullptr : found;
}

bool hides_all(const std::optional<std::string>& visible) {
  return visible && (visible->empty() || visible->starts_with("-1") || *visible == "NoDevFiles");
}

Ability ability(std::string name, Mark mark, std::string says, std::string advice = {}) {
  return {std::move(name), mark, std::move(says), std::move(advice), false};
}

std::string list_gpus(const std::vector<SeenGpu>& gpus) {
  std::string text;
  for (const SeenGpu& gpu : gpus)
    text += fmt::format("{}{}, {}", text.empty() ? "" : "; ", gpu.name, format_bytes(gpu.memory_bytes));
  return text;
}

Ability judge_driver(const Machine& machine) {
  const std::string name = "driver";
  if (machine.driver_path.empty()) {
    return ability(name, Mark::kNo, "there is no CUDA driver (libcuda.so.1) where programs look for one",
                   machine.has_device_files ? "the kernel's module is there: install the library of the same version, "
                                              "or give the container the driver, for example docker run --gpus all"
                                            : "plan needs none");
  }
  std::string what = machine.driver_path;
  if (!machine.driver_release.empty()) what += " of driver " + machine.driver_release;
  if (machine.driver.cuda_version > 0) what += fmt::format(" ({})", cuda_words(machine.driver.cuda_version));
  if (!machine.driver.trouble.empty())
    return ability(name, Mark::kNo, fmt::format("{} was found, but {}", what, machine.driver.trouble),
                   "install the NVIDIA driver again");
  const int init = machine.driver.init.value_or(0);
  if (init != 0) {
    const std::string error =
        machine.driver.init_name.empty() ? fmt::format("error {}", init) : machine.driver.init_name;
    if (init == 100 && hides_all(machine.visible_devices)) {
      return ability(
          name, Mark::kNo,
          fmt::format("{}: {}, because CUDA_VISIBLE_DEVICES is \"{}\"", what, error, *machine.visible_devices),
          "unset CUDA_VISIBLE_DEVICES");
    }
    if (machine.has_device_files && !machine.can_open_device_files) {
      return ability(name, Mark::kNo, fmt::format("{}: {}: /dev/nvidia* may not be opened by this user", what, error),
                     "ask for read and write permission to /dev/nvidia*");
    }
    if (!machine.driver_release.empty() && !machine.module_release.empty() &&
        machine.driver_release != machine.module_release) {
      return ability(name, Mark::kNo,
                     fmt::format("{}: {}: the kernel's module is {}", what, error, machine.module_release),
                     find_init_error(kVersionsDiffer)->advice);
    }
    if (!machine.has_device_files && machine.module_release.empty() &&
        machine.driver_path.find("/wsl/") == std::string::npos) {
      return ability(
          name, Mark::kNo,
          fmt::format("{}: {}: the library is there, but no NVIDIA GPU is attached (no /dev/nvidia*)", what, error),
          "in a container give it the GPU, for example docker run --gpus all; else load the nvidia module");
    }
    const InitError* known = find_init_error(init);
    return ability(name, Mark::kNo,
                   known ? fmt::format("{}: {}: {}", what, error, known->means)
                         : fmt::format("{}: cuInit returns {}", what, error),
                   known ? known->advice : "look at nvidia-smi and dmesg");
  }
  if (machine.driver.gpus.empty())
    return ability(name, Mark::kNo, what + " starts, but lists no GPU",
                   "look at nvidia-smi -L and at CUDA_VISIBLE_DEVICES");
  return ability(name, Mark::kOk, fmt::format("{} has {}", what, list_gpus(machine.driver.gpus)));
}

Ability judge_recorder(const Machine& machine) {
  if (machine.recorder_path.empty()) {
    return ability("recorder", Mark::kNo, "the recorder (capture/libcuda.so.1) is not beside the executable",
                   "build or install Faultline whole, or name its folder in FAULTLINE_HOME");
  }
  if (!machine.recorder_trouble.empty())
    return ability("recorder", Mark::kNo,
                   fmt::format("a program started with {} {}", machine.recorder_path, machine.recorder_trouble),
                   "LD_PRELOAD must be allowed and the file readable");
  return ability("recorder", Mark::kOk, machine.recorder_path + " is loaded into a program by LD_PRELOAD");
}

Ability judge_virtual_driver(const Machine& machine) {
  if (machine.virtual_path.empty())
    return ability("virtual driver", Mark::kNo,
                   "the virtual driver (vgpu/libfaultline_vgpu.so) is not beside the executable",
                   "build or install Faultline whole");
  const DriverAnswer& answer = machine.virtual_driver;
  if (!answer.trouble.empty())
    return ability("virtual driver", Mark::kNo,
                   fmt::format("{} was found, but {}", machine.virtual_path, answer.trouble),
                   "build or install Faultline again");
  if (answer.init.value_or(0) != 0 || answer.gpus.empty())
    return ability("virtual driver", Mark::kNo, machine.virtual_path + " shows no GPU",
                   "build or install Faultline again");
  return ability("virtual driver", Mark::kOk, fmt::format("plays {}", list_gpus(answer.gpus)));
}

Ability judge_folder(const Machine& machine) {
  if (!machine.folder_trouble.empty())
    return ability("run folder", Mark::kNo,
                   fmt::format("nothing can be kept in {}: {}", machine.folder, machine.folder_trouble),
                   "go to another folder, or name one with -o");
  const std::string room =
      fmt::format("runs are kept in {}, where {} is free", machine.folder, format_bytes(machine.free_bytes));
  if (machine.free_bytes < kSpaceForRun)
    return ability("run folder", Mark::kPartly, room, "a long recording may not fit; name another folder with -o");
  return ability("run folder", Mark::kOk, room);
}

Ability judge_dumps(const Machine& machine, const Ability& driver, const Ability& folder) {
  const std::string name = "GPU core dumps";
  if (driver.mark == Mark::kNo) return ability(name, Mark::kNo, "they are the driver's work, and it has no GPU here");
  const int release = process::release_number(machine.driver_release);
  const bool is_old = release != 0 ? release < process::kFirstReleaseWithLightDumps
                                   : machine.driver.cuda_version != 0 &&
                                         machine.driver.cuda_version < process::kFirstCudaWithLightDumps;
  if (is_old) {
    return ability(
        name, Mark::kNo,
        fmt::format("the driver's {} is older than 12.5 (driver 555) and cannot write light ones",
                    cuda_words(machine.driver.cuda_version)),
        "install a newer driver; without a dump the launches that can have failed are named, but not the line");
  }
  if (folder.mark == Mark::kNo)
    return ability(name, Mark::kNo, "they go into the run folder, and nothing can be kept there", folder.advice);
  if (machine.free_bytes < process::kSpaceForCoreDump)
    return ability(name, Mark::kNo, fmt::format("only {} is free for them", format_bytes(machine.free_bytes)),
                   "name another folder with -o");
  return ability(
      name, Mark::kOk,
      "the driver can write one when a kernel fails (run --core-dump, run --again), so that its line is known");
}

// What can be planned, and how: "PyTorch 2.11.0, JAX 0.11.2 (with its CUDA plugin: …)".
std::string planned_frameworks(const PythonAnswer& python) {
  const auto version = [&](const char* package) {
    const auto found = python.packages.find(package);
    return found == python.packages.end() ? std::string() : found->second;
  };
  std::vector<std::string> all;
  if (const std::string torch = version("torch"); !torch.empty()) all.push_back("PyTorch " + torch);
  if (const std::string jax = version("jax"); !jax.empty())
    all.push_back(fmt::format("JAX {} ({})", jax,
                              version("jax-cuda").empty()
                                  ? "without its CUDA plugin: temporaries are counted by XLA's compiler for the CPU"
                                  : "with its CUDA plugin: XLA compiles for the planned GPU, without one"));
  if (const std::string tensorflow = version("tensorflow"); !tensorflow.empty())
    all.push_back("TensorFlow " + tensorflow);
  return fmt::format("{}", fmt::join(all, ", "));
}

Ability judge_plan(const Machine& machine) {
  const auto job = [](Mark mark, std::string says, std::string advice = {}) {
    return Ability{"plan", mark, std::move(says), std::move(advice), true};
  };
  const PythonAnswer& python = machine.python;
  if (machine.dry_run_path.empty() || machine.python_part.empty()) {
    const std::string lacks = machine.dry_run_path.empty() ? "libfaultline_dryrun.so" : "Faultline's Python package";
    return job(Mark::kNo, lacks + " is not beside the executable",
               "build or install Faultline whole, or name its folder in FAULTLINE_HOME");
  }
  const std::string activate =
      "activate the environment that has PyTorch, JAX or TensorFlow, or name its Python behind plan --";
  if (python.path.empty()) return job(Mark::kNo, "there is no python3 on PATH", activate);
  if (!python.trouble.empty())
    return job(Mark::kNo, python.path + " " + python.trouble, "name another Python behind plan --");
  const std::string planned = planned_frameworks(python);
  if (planned.empty())
    return job(Mark::kNo, fmt::format("{} ({}) has no PyTorch, JAX or TensorFlow", python.path, python.version),
               activate);
  if (machine.watch_trouble.empty())
    return job(Mark::kOk, fmt::format("{} ({}) has {}", python.path, python.version, planned));
  return job(
      Mark::kPartly,
      "a program's changes to files cannot be kept aside, so it is planned only with --allow-writes: see watching");
}

Ability judge_virtual_run(const Ability& recorder, const Ability& virtual_driver, const Ability& folder) {
  const auto job = [](Mark mark, std::string says, std::string advice = {}) {
    return Ability{"run --gpu virtual", mark, std::move(says), std::move(advice), true};
  };
  for (const Ability* part : {&recorder, &virtual_driver}) {
    if (part->mark == Mark::kNo)
      return job(Mark::kNo, fmt::format("one of its parts does not work: see {}", part->name));
  }
  if (folder.mark == Mark::kNo)
    return job(Mark::kPartly, "programs run, but nothing is recorded: " + folder.says, folder.advice);
  return job(Mark::kOk,
             "programs of the CUDA driver's interface run on a GPU that this machine's CPU plays, without kernels; "
             "PyTorch, TensorFlow and JAX cannot: plan is for them");
}

// Without a GPU: what run tells of programs that compute on the CPU; empty: nothing.
std::string run_on_cpu(const Machine& machine) {
  std::string told;
  if (machine.python_part.empty()) return told;
  if (machine.python.packages.contains("tensorflow"))
    told = "of TensorFlow programs on the CPU each tensor is recorded with its line, and what its operations refuse";
  if (machine.python.packages.contains("jax"))
    told += std::string(told.empty() ? "" : "; ") + "of JAX programs on the CPU how their memory ran out";
  return told;
}

Ability judge_run(const Machine& machine, const Ability& recorder, const Ability& driver, const Ability& folder,
                  const Ability& dumps) {
  if (const std::string told = run_on_cpu(machine);
      driver.mark == Mark::kNo && folder.mark != Mark::kNo && !told.empty())
    return ability("run", Mark::kPartly, "there is no GPU to run on (see driver); " + told);
  if (driver.mark == Mark::kNo) return ability("run", Mark::kNo, "there is no GPU to run on: see driver");
  for (const Ability* part : {&recorder, &folder}) {
    if (part->mark == Mark::kNo)
      return ability("run", Mark::kPartly, fmt::format("programs run, but nothing is recorded: see {}", part->name));
  }
  const std::string recorded = "programs are recorded on this machine's GPU; ";
  if (dumps.mark == Mark::kOk)
    return ability("run", Mark::kOk,
                   recorded + "with --core-dump or --again a failing kernel is found down to its line");
  return ability("run", Mark::kPartly,
                 recorded + "of a failing kernel the launch is named, not the line inside it: see GPU core dumps");
}

Ability judge_frameworks(const Machine& machine) {
  const std::string name = "frameworks";
  if (machine.python.path.empty()) return ability(name, Mark::kPartly, "there is no python3 on PATH to ask");
  if (!machine.python.trouble.empty())
    return ability(name, Mark::kPartly, machine.python.path + " " + machine.python.trouble);
  std::string list;
  bool without_cuda = false;
  for (const auto& [package, version] : machine.python.packages) {
    const bool is_cpu = package == "torch" && version.find("+cpu") != std::string::npos;
    without_cuda |= is_cpu;
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", package, version);
  }
  if (list.empty())
    return ability(name, Mark::kPartly,
                   fmt::format("{} has none of torch, jax, tensorflow, cupy, triton", machine.python.path));
  if (without_cuda)
    return ability(name, Mark::kPartly, list + ": this PyTorch is built without CUDA",
                   "plan works with it; run needs a build with CUDA");
  return ability(name, Mark::kOk, list);
}

Ability judge_toolkit(const Machine& machine) {
  std::string there, missing;
  for (const char* tool : {"nvcc", "cuda-gdb", "compute-sanitizer"}) {
    std::string& list = machine.tools.contains(tool) ? there : missing;
    list += (list.empty() ? "" : ", ") + std::string(tool);
  }
  if (there.empty()) return ability("toolkit", Mark::kOk, "not on PATH, and not needed");
  return ability("toolkit", Mark::kOk,
                 there + " on PATH" + (missing.empty() ? "" : ", not " + missing) + "; none is needed");
}

// plan watches the program that it starts; nothing else of Faultline's does.
Ability judge_watching(const Machine& machine) {
  if (machine.watch_trouble.empty())
    return ability("watching", Mark::kOk,
                   "a planned program's changes to files can be kept aside (ptrace with seccomp)");
  const bool by_scope = machine.ptrace_scope.value_or(0) >= 2;
  return ability(
      "watching", Mark::kNo,
      machine.watch_trouble +
          (by_scope ? fmt::format(": kernel.yama.ptrace_scope is {}", *machine.ptrace_scope) : std::string()),
      by_scope ? "sysctl kernel.yama.ptrace_scope=1, or plan with --allow-writes in a copy of your folder"
               : "start the container with --cap-add=SYS_PTRACE or a profile that allows ptrace, or plan with "
                 "--allow-writes in a copy of your folder");
}

Ability judge_glibc(const Machine& machine) {
  const std::string least = fmt::format("{}.{}", kLeastGlibc.first, kLeastGlibc.second);
  if (machine.glibc.empty())
    return ability("C library", Mark::kNo, "this is not glibc, and programs cannot be recorded",
                   "use a system with glibc " + least + " or later");
  std::pair<int, int> version{0, 0};
  const char* const end = machine.glibc.data() + machine.glibc.size();
  const char* const dot = std::from_chars(machine.glibc.data(), end, version.first).ptr;
  if (dot != end) std::from_chars(dot + 1, end, version.second);
  if (version < kLeastGlibc) {
    return ability("C library", Mark::kPartly,
                   fmt::format("glibc {} is older than {}, which the recorder is built for", machine.glibc, least),
                   "build Faultline on this system, or use a newer one");
  }
  return ability("C library", Mark::kOk, fmt::format("glibc {}", machine.glibc));
}

Ability judge_locked_memory(const Machine& machine) {
  if (!machine.locked_bytes) return ability("locked memory", Mark::kOk, "without a limit (ulimit -l)");
  return ability("locked memory", Mark::kOk,
                 fmt::format("{} for a process (ulimit -l); what network cards pin counts against it",
                             format_bytes(*machine.locked_bytes)));
}

}  // namespace

std::string_view name_of(Mark mark) {
  constexpr std::array<std::string_view, 3> kNames = {"ok", "partly", "no"};
  return kNames[static_cast<std::size_t>(mark)];
}

std::vector<Ability> judge_machine(const Machine& machine) {
  Ability reading = ability("explain, replay", Mark::kOk,
                            "snapshots, traces, run folders and error messages can be read; nothing more is needed");
  reading.is_main = true;
  const Ability driver = judge_driver(machine);
  const Ability recorder = judge_recorder(machine);
  const Ability virtual_driver = judge_virtual_driver(machine);
  const Ability folder = judge_folder(machine);
  const Ability dumps = judge_dumps(machine, driver, folder);
  return {reading,
          judge_plan(machine),
          judge_virtual_run(recorder, virtual_driver, folder),
          judge_run(machine, recorder, driver, folder, dumps),
          driver,
          recorder,
          virtual_driver,
          dumps,
          judge_frameworks(machine),
          folder,
          judge_glibc(machine),
          judge_locked_memory(machine),
          judge_watching(machine),
          judge_toolkit(machine)};
}

bool main_jobs_work(const std::vector<Ability>& abilities) {
  return std::none_of(abilities.begin(), abilities.end(),
                      [](const Ability& one) { return one.is_main && one.mark == Mark::kNo; });
}

}  // namespace faultline::doctor
