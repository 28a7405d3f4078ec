// GPU memory ran out, of interfaces and drivers other than CUDA's runtime: MATLAB, Vulkan, OpenCL, ROCm.
#include "sources/messages/extractors.h"
#include "sources/messages/kinds.h"
#include "sources/messages/tables.h"

namespace faultline {
namespace {

using enum Confidence;
using enum Force;
using enum Stands;

const KindRow kGpuMemoryKinds[] = {
    {.name = "metal-buffer",
     .rule = kGpuMemory,
     .meaning =
         "The program requested one buffer larger than Metal allows (maxBufferLength), however much memory is free",
     .tries = {"Make this tensor smaller or work in pieces: often it is attention over the whole length, or a whole "
               "batch decoded at once."},
     .words = {{.text = "invalid buffer size: ", .stands = kAsErrorOrCode, .reads = read_first_size}}},
    {.name = "matlab-memory",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "MATLAB ran out of GPU memory; its message has no numbers, so it does not show how much was missing or "
                "who held the memory",
     .tries = {"In MATLAB: g = gpuDevice; g.AvailableMemory and g.TotalMemory show how full it is, and whos which "
               "gpuArray variables there are.",
               "clear gpuArray variables that are no longer needed, gather() results to the CPU, or work in pieces; "
               "reset(g) gives all of it back and clears every gpuArray.",
               "In trainNetwork and trainnet a smaller MiniBatchSize in trainingOptions; single instead of double "
               "halves the arrays.",
               "Other programs hold the device too: nvidia-smi"},
     .words = {{"out of memory on device. to view more detail", kAnywhereOrCode, kWeak},
               {"the gpu failed to allocate memory. to continue, reset", kAnywhereOrCode, kWeak}}},
    {.name = "matlab-size",
     .rule = kGpuMemory,
     .meaning = "The program requested one array larger than MATLAB allows on this GPU, however much memory is free",
     .tries = {"Make the array smaller, single instead of double, or work in pieces; check the extents if the size is "
               "absurd."},
     .words = {{"maximum variable size allowed on the device is exceeded", kAnywhereOrCode, kWeak}}},
    {.name = "vulkan-memory",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "A Vulkan program ran out of GPU memory (VK_ERROR_OUT_OF_DEVICE_MEMORY); the error has no numbers, so "
                "it does not show who held the memory. Faultline does not record Vulkan calls",
     .tries = {"See who holds the device: nvidia-smi, or radeontop, intel_gpu_top; a browser and the desktop count.",
               "Put less on it: a smaller model, context, texture or tile size; in llama.cpp fewer layers (-ngl) or a "
               "shorter context (-c), in waifu2x, realesrgan and their kin a smaller tile (-t).",
               "One buffer can be refused while memory is free: maxMemoryAllocationSize (vulkaninfo) limits a single "
               "allocation."},
     .words = {{"erroroutofdevicememory", kAnywhereOrCode, kWeak},
               {"vk_error_out_of_device_memory", kAnywhereOrCode, kWeak},
               {"outofdevicememoryerror", kAnywhereOrCode, kWeak},
               {"vkallocatememory failed"},
               {"vkresult: error_out_of_device_memory", kAnywhere}}},
    {.name = "vulkan-heaps",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "DXVK (Direct3D on Vulkan) could not allocate memory; the lines below its message list each heap of "
                "the device, what the program has of it and what the driver would still give. Faultline does not "
                "record Vulkan calls",
     .tries =
         {"A heap with little left is full: lower texture quality or resolution, and end what else holds the device.",
          "If every heap has room, it is no full device: a program of 32 bits runs out of addresses, and a driver "
          "limits how many allocations there may be."},
     .words = {{"dxvkmemoryallocator: memory allocation failed", kAnywhere, kStrong, "", "", "DXVK"}}},
    {.name = "opencl-memory",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "An OpenCL program ran out of GPU memory for a buffer (CL_MEM_OBJECT_ALLOCATION_FAILURE, -4); the "
                "error has no numbers. Faultline does not record OpenCL calls",
     .tries = {"clinfo shows Global memory size and Max memory allocation: one buffer may take only the latter, often "
               "a quarter of the whole.",
               "See who else holds the device: nvidia-smi, radeontop; make buffers smaller, or work in pieces."},
     .words = {{"cl_mem_object_allocation_failure", kAnywhereOrCode, kWeak},
               {"failed: mem_object_allocation_failure", kAnywhereOrCode, kWeak},
               {"failed: mem object allocation failure", kAsErrorOrCode, kWeak},
               {"error code -4 (mem object allocation failure)", kAnywhereOrCode, kWeak},
               {"memory object allocation failure"},
               {"mem_object_allocation_failure", kAsError, kWeak},
               {"clenqueuendrangekernel (-4)", kAnywhere, kWeak},
               {"clenqueuereadbuffer (-4)", kAnywhere, kWeak},
               {"clenqueuewritebuffer (-4)", kAnywhere, kWeak},
               {"clcreatebuffer (-4)", kAnywhere, kWeak}}},
    {.name = "opencl-size",
     .rule = kGpuMemory,
     .meaning = "The program requested one OpenCL buffer that is empty or larger than the device allows "
                "(CL_INVALID_BUFFER_SIZE, -61), however much memory is free",
     .tries = {"clinfo shows Max memory allocation: split the buffer so that each part is smaller."},
     .words = {{"cl_invalid_buffer_size", kAnywhereOrCode, kWeak},
               {"failed: invalid_buffer_size", kAnywhereOrCode, kWeak},
               {"clcreatebuffer (-61)", kAnywhere, kWeak}}},
    {.name = "rocm-resources",
     .platform = Platform::kRocm,
     .rule = kGpuMemory,
     .confidence = kHint,
     .meaning = "The ROCm runtime could not allocate what it needed (HSA_STATUS_ERROR_OUT_OF_RESOURCES): at the start "
                "most often the device itself (/dev/kfd), later GPU or host memory, threads or scratch memory; it does "
                "not say which",
     .tries = {"rocm-smi --showmeminfo vram shows how full the device is, free -h the host.",
               "A smaller batch or model shows whether it was memory; on an APU the memory set aside in the BIOS is "
               "the limit.",
               "dmesg | grep -i amdgpu shows what the driver saw at that moment."},
     .words = {{"hsa_status_error_out_of_resources", kAnywhereOrCode, kWeak}}},
    {.name = "harmless-tactic",
     .is_harmless = true,
     .rule = kGpuMemory,
     .meaning =
         "This is not a failure: while TensorRT built the engine, some of its tactics needed more GPU memory than "
         "was free, and it chose among the others; the engine may be slower for it",
     .tries = {"If it matters: build on a GPU with more free memory, or with smaller shapes or batch in the profile."},
     .words = {{"device memory is insufficient to use tactic", kAnywhere, kStrong, "", "", "TensorRT"},
               {"skipping tactic ", kAnywhere, kStrong, "", "insufficient memory", "TensorRT"}}},
    {.name = "buffer-limit",
     .id = MessageKind::kBufferLimit,
     .rule = kGpuMemory,
     .meaning =
         "The program requested one buffer larger than this device allows in one piece, however much memory is free",
     .tries = {"Make it smaller: a smaller batch, a shorter sequence, attention or decoding in pieces (tiling), a "
               "smaller type."},
     .words = {{"is greater than the maximum buffer size (", kAnywhere, kStrong,
                "buffer size {requested:n} is greater than the maximum buffer size ({limit:n}", "", "wgpu"},
               {"no pool handles allocation of size ", kAsError, kStrong, "of size {requested:n}", "", "CubeCL"},
               {"exceeded max size of memory object allocation", kAsError, kStrong,
                "requested {requested}, but max alloc size supported by device is {limit}", "", "OpenVINO"},
               {"which is greater than the maximum allowed buffer size of ", kAnywhere, kStrong,
                "attempting to allocate {requested}buffer size of {limit}", "", "MLX"}}},
    {.name = "harmless-offload",
     .is_harmless = true,
     .rule = kGpuMemory,
     .meaning = "This is not a failure: accelerate found too little free GPU memory for the whole model and left part "
                "of it on the CPU or the disk; it works, slowly",
     .tries = {"If all of it should fit: run nvidia-smi before the model is loaded, and device_map={\"\": 0} to put it "
               "on GPU 0 or fail."},
     .words = {{"because they were offloaded to the ", kAnywhere}}},
    {.name = "rocm-submission",
     .platform = Platform::kRocm,
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "The AMD driver had no memory for work that was given to it: GPU memory (VRAM), or the host memory "
                "that the GPU may use (GTT); the line has no numbers and does not say which",
     .tries = {"rocm-smi --showmeminfo vram gtt, or radeontop, shows how full both are.",
               "Hold less at once: a smaller batch, model, texture or resolution; other programs on the GPU, the "
               "desktop and a browser count."},
     .words = {{"not enough memory for command submission", kAnywhere}}},
    {.name = "rocm-kfd",
     .platform = Platform::kRocm,
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "The AMD compute driver (KFD) had no memory for a process: GPU memory, or the part of host memory that "
                "GPU programs may use; the line does not say which",
     .tries = {"rocm-smi --showmeminfo vram gtt shows how full both are, free -h the host.",
               "\"exceeds resident system memory limit\" beside it means the host's part, which is most of RAM unless "
               "amdgpu.no_system_mem_limit=1 is set."},
     .words = {{"failed to alloc memory for process. ret", kAnywhere}}},
    {.name = "nvrm-sysmem",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "The NVIDIA driver had no room in GPU memory for a buffer of the display and took host memory for it "
                "instead: nothing has failed, and the display may be slower",
     .tries = {"If programs fail as well, see what holds the GPU: nvidia-smi."},
     .words = {{"failed to allocate nvkms video memory for gem object", kAnywhere, kBenign, "",
                "fall back to sysmem"}}},
    {.name = "nvenc-session",
     .rule = kGpuMemory,
     .confidence = kHint,
     .meaning = "The encoder (NVENC) could not open another session and says out of memory: on consumer cards most "
                "often the driver's limit on sessions is reached, else GPU memory is full; it does not say which",
     .tries =
         {"nvidia-smi --query-gpu=encoder.stats.sessionCount,memory.used --format=csv shows both: sessions in use "
          "(streams, recordings and other encoders count), and memory.",
          "End sessions that are not needed, or put fewer encodes on one card; a newer driver allows more of them."},
     .words = {{"openencodesessionex failed: out of memory", kAnywhere, kStrong, "", "", "NVENC"},
               {"nvencopenencodesessionex(", kAnywhere, kStrong, "", "out_of_memory", "NVENC"},
               {"nvencopenencodesessionex: 10 (", kAnywhere, kStrong, "", "unable to allocate enough memory", "NVENC"},
               {"nvencopenencodesessionex(", kAnywhere, kStrong, "", "unable to allocate enough memory", "NVENC"}}},
    {.name = "level-zero-resources",
     .rule = kGpuMemory,
     .confidence = kHint,
     .meaning = "The driver of this Intel GPU was out of resources: its memory, registers or local memory for a "
                "kernel, or one buffer beyond its largest; it does not say which",
     .tries = {"A smaller batch or model shows whether it was memory: xpu-smi stats -d 0 shows how full the device is.",
               "One buffer over 4 GB needs UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1."},
     .words = {{"(pi_error_out_of_resources", kAnywhere, kStrong, "", "", "Level Zero"},
               {"(ur_result_error_out_of_resources", kAnywhere, kStrong, "", "", "Level Zero"}}},
};

}  // namespace

std::span<const KindRow> gpu_memory_kinds() { return kGpuMemoryKinds; }

}  // namespace faultline
