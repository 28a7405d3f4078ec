#include "rules/known_messages/meanings.h"

namespace faultline {
namespace {

constexpr auto kOtherApis = std::to_array<Meaning>({
    {"matlab-memory",
     kMemory,
     Confidence::kLikely,
     "MATLAB ran out of GPU memory; its message has no numbers, so it does not show how much was missing or who held "
     "the memory",
     {"In MATLAB: g = gpuDevice; g.AvailableMemory and g.TotalMemory show how full it is, and whos which gpuArray "
      "variables there are.",
      "clear gpuArray variables that are no longer needed, gather() results to the CPU, or work in pieces; reset(g) "
      "gives all of it back and clears every gpuArray.",
      "In trainNetwork and trainnet a smaller MiniBatchSize in trainingOptions; single instead of double halves the "
      "arrays.",
      "Other programs hold the device too: nvidia-smi"}},
    {"matlab-size",
     kMemory,
     Confidence::kProved,
     "The program requested one array larger than MATLAB allows on this GPU, however much memory is free",
     {"Make the array smaller, single instead of double, or work in pieces; check the extents if the size is absurd."}},
    {"vulkan-memory",
     kMemory,
     Confidence::kLikely,
     "A Vulkan program ran out of GPU memory (VK_ERROR_OUT_OF_DEVICE_MEMORY); the error has no numbers, so it does not "
     "show who held the memory. Faultline does not record Vulkan calls",
     {"See who holds the device: nvidia-smi, or radeontop, intel_gpu_top; a browser and the desktop count.",
      "Put less on it: a smaller model, context, texture or tile size; in llama.cpp fewer layers (-ngl) or a shorter "
      "context (-c), in waifu2x, realesrgan and their kin a smaller tile (-t).",
      "One buffer can be refused while memory is free: maxMemoryAllocationSize (vulkaninfo) limits a single "
      "allocation."}},
    {"vulkan-heaps",
     kMemory,
     Confidence::kLikely,
     "DXVK (Direct3D on Vulkan) could not allocate memory; the lines below its message list each heap of "
     "the device, what the program has of it and what the driver would still give. Faultline does not record Vulkan "
     "calls",
     {"A heap with little left is full: lower texture quality or resolution, and end what else holds the device.",
      "If every heap has room, it is no full device: a program of 32 bits runs out of addresses, and a driver limits "
      "how many allocations there may be."}},
    {"vulkan-host-memory",
     kHost,
     Confidence::kLikely,
     "A Vulkan program ran out of host memory (VK_ERROR_OUT_OF_HOST_MEMORY): RAM, or what the driver needs for itself, "
     "not GPU memory",
     {kWatchHost,
      "If RAM is free, the driver could not start on this device: vulkaninfo --summary shows which devices it sees."}},
    {"vulkan-lost",
     kLaunch,
     Confidence::kHint,
     "The Vulkan device was lost (VK_ERROR_DEVICE_LOST): a shader ran too long or went wrong, or the device or its "
     "driver "
     "failed; the message does not say that memory ran out",
     {"Look for lines with Xid (NVIDIA) or \"ring … timeout\" (AMD) in dmesg: they show what the driver saw.",
      "If large work triggers it, give the GPU less at once: on a device that also drives a display the system stops "
      "work that takes seconds.",
      "Update the driver; an overclocked GPU, or one short of power, fails like this too."}},
    {"vulkan-setup",
     kDevice,
     Confidence::kLikely,
     "Vulkan found no usable device or driver: memory is not the problem",
     {"vulkaninfo --summary must list the device; install the driver's Vulkan part (an ICD file in "
      "/usr/share/vulkan/icd.d), in a container with graphics capabilities (NVIDIA_DRIVER_CAPABILITIES=all)."}},
    {"opencl-memory",
     kMemory,
     Confidence::kLikely,
     "An OpenCL program ran out of GPU memory for a buffer (CL_MEM_OBJECT_ALLOCATION_FAILURE, -4); the error has no "
     "numbers. Faultline does not record OpenCL calls",
     {"clinfo shows Global memory size and Max memory allocation: one buffer may take only the latter, often a quarter "
      "of the whole.",
      "See who else holds the device: nvidia-smi, radeontop; make buffers smaller, or work in pieces."}},
    {"opencl-resources",
     kLaunch,
     Confidence::kHint,
     "OpenCL reports CL_OUT_OF_RESOURCES (-5): on NVIDIA most often a kernel that read or wrote beyond a buffer, else "
     "too "
     "many registers or too much local memory for the work-group, or a kernel that ran too long; it need not be memory",
     {"Look at the kernel's indices first: run it on the CPU (POCL), or under oclgrind, which names the access.",
      "Try a smaller work-group (local size): if that helps, it was registers or local memory.",
      "Xid lines in dmesg show an illegal access (31, 13) or a time limit (8)."}},
    {"opencl-host",
     kHost,
     Confidence::kLikely,
     "OpenCL ran out of host memory (CL_OUT_OF_HOST_MEMORY, -6): RAM, or what the driver needs for itself, not GPU "
     "memory",
     {kWatchHost, "If RAM is free, look at the driver: clinfo must list the device."}},
    {"opencl-size",
     kMemory,
     Confidence::kProved,
     "The program requested one OpenCL buffer that is empty or larger than the device allows (CL_INVALID_BUFFER_SIZE, "
     "-61), however much memory is free",
     {"clinfo shows Max memory allocation: split the buffer so that each part is smaller."}},
    {"ptxas-shared",
     kLaunch,
     Confidence::kProved,
     "A kernel was not compiled: it declares more shared memory for a block than a kernel may declare (48 KiB at "
     "compile "
     "time); GPU memory is not the problem, and nothing ran",
     {"Make the tile or the arrays marked __shared__ smaller, or use a smaller type.",
      "More than 48 KiB must be requested at launch: extern __shared__, and "
      "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes); how much there is depends on "
      "the "
      "device (99 KiB to 227 KiB on recent ones).",
      "In Triton a smaller BLOCK size or fewer num_stages."}},
    {"ptxas-registers",
     kLaunch,
     Confidence::kProved,
     "A kernel was not compiled: it needs more registers than a thread may have; GPU memory is not the problem, "
     "and "
     "nothing ran",
     {"Give each thread less to hold: a smaller tile or BLOCK size, more num_warps, less unrolling.",
      "Of __launch_bounds__ or -maxrregcount: a higher bound lets it compile.",
      "In Triton's autotune such a configuration can be left out; newer releases pass over it by themselves."}},
    {"ptxas-host",
     kHost,
     Confidence::kLikely,
     "The compiler for GPU code (ptxas) ran out of host memory: RAM while compiling, not GPU memory",
     {"Compile fewer files at once: MAX_JOBS=2 pip install …, make -j2; each ptxas can take several GB.", kWatchHost}},
    {"ptxas-fatal",
     kDevice,
     Confidence::kLikely,
     "GPU code was not compiled (ptxas failed): the compiler does not know this device or this code; GPU memory is not "
     "the problem, and nothing ran",
     {"\"is not defined for option 'gpu-name'\" or \"Unsupported .version\": this ptxas is older than the device or "
      "than "
      "what made the code. Install a newer CUDA toolkit, or point TRITON_PTXAS_PATH to a newer ptxas.",
      "\"Unresolved extern function\": a device function is missing at linking (nvcc -rdc=true, or the object that has "
      "it).",
      "ptxas --version, and nvidia-smi for the device, show which do not match."}},
    {"rocm-resources",
     kMemory,
     Confidence::kHint,
     "The ROCm runtime could not allocate what it needed (HSA_STATUS_ERROR_OUT_OF_RESOURCES): at the start most often "
     "the "
     "device itself (/dev/kfd), later GPU or host memory, threads or scratch memory; it does not say which",
     {"rocm-smi --showmeminfo vram shows how full the device is, free -h the host.",
      "A smaller batch or model shows whether it was memory; on an APU the memory set aside in the BIOS is the limit.",
      "dmesg | grep -i amdgpu shows what the driver saw at that moment."}},
    {"rocm-fault",
     kLaunch,
     Confidence::kLikely,
     "A kernel did something illegal on an AMD GPU (a hardware exception or an access outside its memory); the message "
     "does not say that memory ran out",
     {"AMD_SERIALIZE_KERNEL=3 makes the line that is reported the line that launched it; HIP_LAUNCH_BLOCKING=1 does so "
      "for "
      "PyTorch.",
      "A kernel built for another device does the same: look at HSA_OVERRIDE_GFX_VERSION and rocminfo.",
      "dmesg | grep -i amdgpu has the page fault's address and the process."}},
    {"rocm-image",
     kDevice,
     Confidence::kProved,
     "This program holds no code for this AMD GPU: memory is not the problem",
     {"rocminfo | grep gfx names the device; install a build of PyTorch or of the extension for it, or build with "
      "PYTORCH_ROCM_ARCH set to it.",
      "HSA_OVERRIDE_GFX_VERSION=10.3.0 (or 11.0.0) makes some unsupported cards run code of a neighbour; results are "
      "not "
      "guaranteed."}},
});

}  // namespace

std::span<const Meaning> other_api_meanings() { return kOtherApis; }

}  // namespace faultline
