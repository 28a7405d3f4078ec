#include "rules/platform.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "sources/messages/programs.h"

namespace faultline {
namespace {

using Names = std::pair<std::string_view, std::string_view>;  // CUDA's, and its own; empty: there is none

constexpr auto kRocmNames = std::to_array<Names>(
    {{"nvidia-smi --query-gpu=memory.used --format=csv -lms 100", "watch -n 0.5 rocm-smi --showmeminfo vram"},
     {"nvidia-smi -", ""},
     {"nvidia-smi", "rocm-smi --showpids --showmeminfo vram"},
     {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"},
     {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"},
     {"CUDA_LAUNCH_BLOCKING=1", "AMD_SERIALIZE_KERNEL=3"}});
constexpr auto kAscendNames = std::to_array<Names>({{"nvidia-smi -", ""},
                                                    {"nvidia-smi", "npu-smi info"},
                                                    {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF"},
                                                    {"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"},
                                                    {"CUDA_LAUNCH_BLOCKING=1", "ASCEND_LAUNCH_BLOCKING=1"},
                                                    {"torch.cuda.", "torch.npu."},
                                                    {"\"cuda\"", "\"npu\""},
                                                    {"\"cuda:0\"", "\"npu:0\""}});
constexpr auto kIntelNames = std::to_array<Names>({{"nvidia-smi -", ""},
                                                   {"nvidia-smi", "xpu-smi ps"},
                                                   {"PYTORCH_CUDA_ALLOC_CONF", ""},
                                                   {"CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"},
                                                   {"torch.cuda.", "torch.xpu."},
                                                   {"\"cuda\"", "\"xpu\""},
                                                   {"\"cuda:0\"", "\"xpu:0\""}});
constexpr auto kMetalNames = std::to_array<Names>({{"nvidia-smi", ""}});
constexpr auto kDirectXNames = std::to_array<Names>({{"nvidia-smi",
                                                      "the Task Manager (Performance, GPU, dedicated "
                                                      "GPU memory)"}});

std::span<const Names> names_of(Platform platform) {
  switch (platform) {
    case Platform::kRocm: return kRocmNames;
    case Platform::kAscend: return kAscendNames;
    case Platform::kIntel: return kIntelNames;
    case Platform::kMetal: return kMetalNames;
    case Platform::kDirectX: return kDirectXNames;
    case Platform::kCuda:
    case Platform::kOther: break;
  }
  return {};
}

// What is left of CUDA is of no use there: Faultline's own recording, which is made at CUDA's driver, too.
constexpr std::array<std::string_view, 14> kOfCudaAlone = {"CUDA",           "cuda",
                                                           "faultline run",  "faultline replay",
                                                           "faultline plan", "compute-sanitizer",
                                                           "dcgmi",          "MIG slice",
                                                           "cudaMall",       "NVML",
                                                           "--gpu=SIZE",     "nvidia",
                                                           "NVIDIA",         "NCCL_"};

// ROCm keeps many of CUDA's names.
bool is_of_cuda_alone(Platform platform, std::string_view words) {
  return std::any_of(kOfCudaAlone.begin(), kOfCudaAlone.end(), [&](std::string_view part) {
    if (platform == Platform::kRocm && (part == "cuda" || part == "CUDA" || part == "NCCL_")) return false;
    return words.find(part) != std::string_view::npos;
  });
}

// False: it has a part without a counterpart.
bool translate(std::span<const Names> names, std::string& words) {
  for (const auto& [cuda, own] : names) {
    for (std::size_t at = words.find(cuda); at != std::string::npos; at = words.find(cuda, at + own.size())) {
      if (own.empty()) return false;
      words.replace(at, cuda.size(), own);
    }
  }
  return true;
}

}  // namespace

Platform platform_of(const StatedError& stated) {
  static constexpr std::array<std::pair<std::string_view, Platform>, 5> kBackends = {{{"HIP", Platform::kRocm},
                                                                                      {"NPU", Platform::kAscend},
                                                                                      {"XPU", Platform::kIntel},
                                                                                      {"MPS", Platform::kMetal},
                                                                                      {"MUSA", Platform::kOther}}};
  for (const auto& [backend, platform] : kBackends) {
    if (stated.backend == backend) return platform;
  }
  if (const Platform platform = row_of(stated.kind).platform; platform != Platform::kCuda) return platform;
  for (const std::string_view mark :
       {"HIP error", "HIP out of", "hipError", "hipMalloc", "ROCm", "PYTORCH_HIP_ALLOC_CONF"}) {
    if (stated.text.find(mark) != std::string::npos) return Platform::kRocm;
  }
  if (stated.program == "rocm") return Platform::kRocm;
  const Program* program = program_of(stated.program_name());
  if (program == nullptr) return Platform::kCuda;
  const bool names_cuda =
      stated.text.find("cuda") != std::string::npos || stated.text.find("CUDA") != std::string::npos;
  return program->platform == Platform::kOther && names_cuda ? Platform::kCuda : program->platform;
}

std::string_view shows_holders(Platform platform) {
  switch (platform) {
    case Platform::kCuda: return "nvidia-smi";
    case Platform::kRocm: return "rocm-smi --showpids --showmeminfo vram";
    case Platform::kAscend: return "npu-smi info";
    case Platform::kIntel: return "xpu-smi ps";
    case Platform::kMetal: return "the Activity Monitor (memory, which the GPU shares)";
    case Platform::kDirectX: return "the Task Manager (Performance, GPU, dedicated GPU memory)";
    case Platform::kOther: return "the tool of the GPU's maker (nvidia-smi, rocm-smi, intel_gpu_top)";
  }
  return {};
}

void for_platform(Platform platform, Finding& finding) {
  if (platform == Platform::kCuda || platform == Platform::kOther) return;
  const std::span<const Names> names = names_of(platform);
  std::erase_if(finding.tries, [&](Try& attempt) {
    return !translate(names, attempt.what) || is_of_cuda_alone(platform, attempt.what);
  });
}

}  // namespace faultline
