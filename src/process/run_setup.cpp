#include "process/run_setup.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/given_size.h"
#include "base/units.h"
#include "driver/find_driver.h"
#include "fmt/format.h"
#include "models/gpus.h"
#include "process/driver_release.h"
#include "process/hint.h"
#include "process/installation.h"
#include "process/plain_path.h"

namespace faultline::process {
namespace {

constexpr std::string_view kVirtual = "virtual";

// The lightest dump that still tells the kernel, the instruction, the registers and the threads. Not skip_abort: with it the driver hides most faults from
// the program, which then goes on with wrong results (docs/core-dumps.md).
constexpr const char* kLightDump =
    "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,skip_constbank_memory";

constexpr const char* kFlags = "CUDA_COREDUMP_GENERATION_FLAGS";

// 0 where nothing tells it.
int driver_number() {
  const std::string library = library_release(driver::find_real_driver());
  return release_number(library.empty() ? module_release() : library);
}

void arm_core_dump(const RunArguments& arguments, const std::string& folder, RunSetup& setup) {
  const auto leave_out = [&](const std::string& why) {
    setup.left_out.push_back("a GPU core dump is not taken: " + why);
  };
  if (!arguments.gpu.empty()) return leave_out("the virtual GPU writes none");
  for (const char* own : {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_COREDUMP_FILE"}) {
    if (setup.environment.has(own)) return leave_out(fmt::format("{} is set already, and is left as it is", own));
  }
  if (const int driver = driver_number(); driver != 0 && driver < kFirstReleaseWithLightDumps) {
    return leave_out(
        fmt::format("driver {} knows only the full one, with all of GPU memory; {} and later know a light one", driver,
                    kFirstReleaseWithLightDumps));
  }
  std::error_code problem;
  const std::filesystem::space_info space = std::filesystem::space(folder, problem);
  if (!problem && space.available < kSpaceForCoreDump)
    return leave_out(fmt::format("only {} is left in {}", format_bytes(space.available), folder));
  setup.environment.set("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1");
  setup.environment.set("CUDA_COREDUMP_FILE", folder + "/core-%p");
  setup.environment.set_unless_there(kFlags, kLightDump);
  setup.environment.set("FAULTLINE_CORE_DUMP_ARMED", "1");
  setup.core_dump_is_armed = true;
  const bool goes_on = setup.environment.value(kFlags).find("skip_abort") != std::string::npos;
  setup.beforehand.push_back(goes_on
                                 ? fmt::format("the GPU core dump is armed with your {}, which has skip_abort: most "
                                               "faults are then hidden from the program, and its results may be wrong",
                                               kFlags)
                                 : std::string("the GPU core dump is armed: should a kernel fault, the driver ends the "
                                               "program there, or a moment later (SIGABRT)"));
}

void bring_in_python_side(const RunArguments& arguments, const std::string& folder, RunSetup& setup) {
  const std::string found = python_part();
  if (found.empty()) {
    setup.left_out.push_back(
        "PyTorch's own history is not recorded: Faultline's Python package was not found beside the executable");
    return;
  }
  const Result<std::string> python = plain_path(found, kSearchPathSeparators, folder);
  if (!python) {
    setup.left_out.push_back("PyTorch's own history is not recorded: " + python.error().message());
    return;
  }
  setup.environment.prepend("PYTHONPATH", *python + "/faultline/_inject");
  const nlohmann::json options = {{"history", arguments.history == "on"},
                                  {"history_entries", arguments.history_entries},
                                  {"buffers", arguments.buffers}};
  setup.environment.set("FAULTLINE_RUN_OPTIONS", options.dump());
}

// The driver that will stand behind the recorder; empty: none, and the sentence is left.
Result<std::string> driver_for(const RunArguments& arguments, RunSetup& setup) {
  if (arguments.gpu.empty()) {
    std::string real = driver::find_real_driver();
    if (real.empty()) {
      setup.left_out.push_back(
          "there is no CUDA driver (libcuda.so.1) on this machine, so no GPU call can be recorded; faultline plan -- … "
          "says without a GPU what a program of PyTorch, TensorFlow or JAX would take; faultline doctor says more");
    }
    return real;
  }
  Result<std::string> settings = virtual_gpu_settings(arguments.gpu);
  if (!settings) return settings.error();
  std::string library = library_part("vgpu/libfaultline_vgpu.so");
  if (library.empty())
    return Error{"the virtual driver (libfaultline_vgpu.so) was not found beside the executable", {}, {}};
  setup.environment.set("FAULTLINE_VGPU", *settings);
  return library;
}

}  // namespace

std::string virtual_gpu_words() {
  std::string words(kVirtual);
  for (const GpuEntry& entry : gpu_catalogue()) words += fmt::format(",{}:{}", kVirtual, entry.gpu.name);
  return words;
}

Result<std::string> virtual_gpu_settings(const std::string& gpu) {
  if (!gpu.starts_with(kVirtual) || (gpu.size() > kVirtual.size() && gpu[kVirtual.size()] != ':')) {
    return Error{fmt::format("'{}' is not virtual, virtual:NAME or virtual:SIZE", gpu),
                 {},
                 "Without --gpu the machine's own GPU is used; plan takes other GPUs"};
  }
  if (gpu.size() <= kVirtual.size() + 1) return std::string();
  Result<Gpu> found = find_gpu(gpu.substr(kVirtual.size() + 1));
  if (!found) return found.error();
  std::string settings = fmt::format("bytes={}", found->capacity_bytes);
  if (!found->name.empty())
    settings += fmt::format(",name={},major={},minor={}", found->full_name, found->compute_major, found->compute_minor);
  return settings;
}

Result<RunSetup> set_up_run(const RunArguments& arguments, const std::string& folder) {
  RunSetup setup;
  Result<std::string> driver = driver_for(arguments, setup);
  if (!driver) return driver.error();
  const std::string recorder = library_part("capture/libcuda.so.1");
  const Result<std::string> preloaded = plain_path(recorder, kPreloadSeparators, folder);
  if (recorder.empty()) {
    setup.left_out.push_back(
        "nothing is recorded: the recorder (capture/libcuda.so.1) was not found beside the executable");
  } else if (!preloaded) {
    setup.left_out.push_back("nothing is recorded: " + preloaded.error().message());
  } else if (!driver->empty() && (!folder.empty() || !arguments.gpu.empty())) {
    // behind the user's own: some, such as AddressSanitizer, must come first
    setup.environment.append("LD_PRELOAD", *preloaded);
    setup.environment.set("FAULTLINE_DRIVER", *driver);
    setup.environment.set("FAULTLINE_CAPTURE_LIBRARY", recorder);
    setup.environment.set_unless_there("NVTX_INJECTION64_PATH", recorder);
    if (arguments.native_stacks) setup.environment.set("FAULTLINE_NATIVE_STACKS", "1");
    setup.records = !folder.empty();
  }
  if (folder.empty()) return setup;
  setup.environment.set("FAULTLINE_RUN_FOLDER", folder);
  if (arguments.core_dump && !driver->empty()) arm_core_dump(arguments, folder, setup);
  bring_in_python_side(arguments, folder, setup);
  return setup;
}

std::unique_ptr<TraceKeeper> start_keeper(const RunArguments& arguments, const std::string& folder, RunSetup& setup) {
  const Result<std::uint64_t> most_bytes = parse_size(arguments.keep);
  Result<std::unique_ptr<TraceKeeper>> keeper =
      most_bytes ? TraceKeeper::create(folder, *most_bytes) : most_bytes.error();
  if (!keeper) {
    hint("nothing will be recorded of the GPU: " + keeper.error().message());
    setup.records = false;
    return nullptr;
  }
  setup.environment.set(kRoomVariable, (*keeper)->room_number());
  return std::move(*keeper);
}

void end_keeper(TraceKeeper* keeper) {
  if (keeper == nullptr) return;
  keeper->finish();
  for (const std::string& sentence : keeper->notes()) hint(sentence);
}

}  // namespace faultline::process
