#include "facts/libraries.h"

#include <algorithm>
#include <array>
#include <utility>

#include "facts/stack_facts.h"
#include "trace/framework.h"

namespace faultline {
namespace {

using Named = std::pair<std::string_view, std::string_view>;

// By the beginning of the module's file name.
constexpr std::array<Named, 26> kModules = {{{"libcublas", "cuBLAS"},
                                             {"libcudnn", "cuDNN"},
                                             {"libnccl", "NCCL"},
                                             {"libcusparse", "cuSPARSE"},
                                             {"libcusolver", "cuSOLVER"},
                                             {"libcufft", "cuFFT"},
                                             {"libcurand", "cuRAND"},
                                             {"libcutensor", "cuTENSOR"},
                                             {"libnvshmem", "NVSHMEM"},
                                             {"libnvinfer", "TensorRT"},
                                             {"libnvjpeg", "nvJPEG"},
                                             {"libnvrtc", "NVRTC"},
                                             {"libcufile", "cuFile"},
                                             {"libcupti", "CUPTI"},
                                             {"libc10", words_of(Framework::kPyTorch)},
                                             {"libtorch", words_of(Framework::kPyTorch)},
                                             {"libtriton", "Triton"},
                                             {"xla_extension", "XLA"},
                                             {"xla_cuda_plugin", "XLA"},
                                             {"libjax", "XLA"},
                                             {"libjitlink", "nvJitLink"},
                                             {"libtensorflow", words_of(Framework::kTensorFlow)},
                                             {"_pywrap_tensorflow", words_of(Framework::kTensorFlow)},
                                             {"libonnxruntime", "ONNX Runtime"},
                                             {"librmm", "RMM"},
                                             {"libnvcomp", "nvCOMP"}}};

// What passes a call on and asks for nothing by itself.
constexpr std::array<std::string_view, 14> kPassOn = {"libcudart", "libcuda.so", "libfaultline", "libc.so", "libc-",
                                                      "libstdc++", "libpthread", "libdl",        "libm.so", "ld-linux",
                                                      "libffi",    "_ctypes",    "libpython",    "python"};

// By a folder in the path: modules without a telling name, and Python packages.
constexpr std::array<Named, 12> kFolders = {{{"/torch/", words_of(Framework::kPyTorch)},
                                             {"/triton/", "Triton"},
                                             {"/jaxlib/", "XLA"},
                                             {"/jax_plugins/", "XLA"},
                                             {"/jax/", "XLA"},
                                             {"/tensorflow/", words_of(Framework::kTensorFlow)},
                                             {"/cupy", "CuPy"},
                                             {"/numba", "Numba"},
                                             {"/rmm/", "RMM"},
                                             {"/pycuda/", "PyCUDA"},
                                             {"/cuda/bindings/", ""},
                                             {"/cuda/core/", ""}}};

std::string_view name_of_path(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "flash_attn" of "…/site-packages/flash_attn/ops.py"; "libfoo" of "/usr/lib/libfoo.so.3".
std::string own_name(std::string_view path) {
  if (const std::string_view rest = installed_part(path); !rest.empty())
    return std::string(rest.substr(0, rest.find_first_of("/\\.")));
  const std::string_view name = name_of_path(path);
  return std::string(name.substr(0, name.find(".so")));
}

constexpr std::size_t kMostFrames = 1024;

// Folders of headers that are compiled into whoever includes them.
constexpr std::array<std::string_view, 16> kHeaderFolders = {"/thrust/",
                                                             "/cub/",
                                                             "/libcudacxx/",
                                                             "/cuda/std/",
                                                             "/cooperative_groups/",
                                                             "/nvtx3/",
                                                             "/cccl/",
                                                             "/include/c++/",
                                                             "/c++/v1/",
                                                             "/crt/",
                                                             "/cutlass/",
                                                             "/cute/",
                                                             "/targets/x86_64-linux/include/",
                                                             "/targets/sbsa-linux/include/",
                                                             "/nvidia/cu13/include/",
                                                             "/nvidia/cuda_runtime/include/"};
// Headers of the toolkit by their own names: a toolkit may lie anywhere.
constexpr std::array<std::string_view, 14> kToolkitHeaders = {"cuda_runtime.h",
                                                              "cuda_runtime_api.h",
                                                              "cuda.h",
                                                              "cuda_fp16.h",
                                                              "cuda_fp16.hpp",
                                                              "cuda_bf16.h",
                                                              "cuda_bf16.hpp",
                                                              "cuda_fp8.h",
                                                              "cuda_fp8.hpp",
                                                              "device_functions.h",
                                                              "host_runtime.h",
                                                              "cooperative_groups.h",
                                                              "cuda_device_runtime_api.h",
                                                              "vector_functions.hpp"};

bool is_header(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return true;  // <vector>
  const std::string_view ending = name.substr(dot);
  return ending == ".h" || ending == ".hpp" || ending == ".cuh" || ending == ".inl" || ending == ".tcc" ||
         ending == ".hxx";
}

}  // namespace

bool is_toolkit_file(std::string_view path) {
  const std::string_view name = name_of_path(path);
  if (path.find(".cudafe1.") != std::string_view::npos || name.ends_with(".stub.c") || name.ends_with(".fatbin.c"))
    return true;
  if (!is_header(name)) return false;
  // A toolkit's own folder: /usr/local/cuda-13.0/include/…, /home/ada/cuda/include/…
  const std::size_t include = path.find("/include/");
  if (include != std::string_view::npos) {
    const std::string_view root = path.substr(0, include);
    if (name_of_path(root).starts_with("cuda")) return true;
  }
  return std::find(kToolkitHeaders.begin(), kToolkitHeaders.end(), name) != kToolkitHeaders.end() ||
         std::any_of(kHeaderFolders.begin(), kHeaderFolders.end(),
                     [&](std::string_view folder) { return path.find(folder) != std::string_view::npos; });
}

std::string_view installed_part(std::string_view path) {
  for (const std::string_view installed : {"site-packages", "dist-packages"}) {
    const std::size_t at = path.rfind(installed);
    if (at == std::string_view::npos || (at != 0 && path[at - 1] != '/' && path[at - 1] != '\\')) continue;
    const std::string_view rest = path.substr(at + installed.size());
    if (rest.starts_with('/') || rest.starts_with('\\')) return rest.substr(1);
  }
  return {};
}

std::string library_of_file(std::string_view path) {
  const std::string_view name = name_of_path(path);
  for (const std::string_view begin : kPassOn) {
    if (name.starts_with(begin) && is_native_file(path)) return {};
  }
  if (name.starts_with("python") && name.find('.') != std::string_view::npos &&
      name.find(".py") == std::string_view::npos)
    return {};  // the interpreter
  if (is_toolkit_file(path)) return {};
  for (const auto& [begin, library] : kModules) {
    if (name.starts_with(begin) && name.find(".so") != std::string_view::npos) return std::string(library);
  }
  if (!installed_part(path).empty()) {
    for (const auto& [folder, library] : kFolders) {
      if (path.find(folder) != std::string_view::npos) return std::string(library);
    }
    return own_name(path);
  }
  if (path.find("/lib/python3") != std::string_view::npos || path.starts_with("<frozen ")) return {};
  if (name.find(".so") != std::string_view::npos) return own_name(path);
  return path.empty() || path == "??" ? std::string() : "the program";
}

std::string library_of(const Trace& trace, StackId stack) {
  for (std::size_t looked_at = 0; stack.value != 0 && looked_at < kMostFrames;
       stack = trace.stacks.parent(stack), ++looked_at) {
    const std::string_view file = trace.strings.at(trace.stacks.frame(stack).file);
    if (std::string library = library_of_file(file); !library.empty()) return library;
  }
  return {};
}

StackLibraries::StackLibraries(const Trace& trace) : trace_(trace), files_(trace.stacks.size()) {
  std::vector<StringId> of_frame(trace.stacks.frame_count());
  for (std::uint32_t i = 0; i < of_frame.size(); ++i) {
    const StringId file = trace.stacks.frame(FrameId(i)).file;
    if (!library_of_file(trace.strings.at(file)).empty()) of_frame[i] = file;
  }
  for (std::uint32_t i = 1; i < files_.size(); ++i) {  // callers stand before those they call
    const StringId own = of_frame[trace.stacks.frame_id(StackId(i)).index()];
    files_[i] = own.value != 0 ? own : files_[trace.stacks.parent(StackId(i)).index()];
  }
}

std::string StackLibraries::of(StackId stack) const { return library_of_file(trace_.strings.at(file(stack))); }

}  // namespace faultline
