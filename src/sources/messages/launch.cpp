// A call or a launch went wrong, and memory is not said to be the reason: refused calls, compilers, devices that hang or are lost.
#include "sources/messages/extractors.h"
#include "sources/messages/kinds.h"
#include "sources/messages/tables.h"

namespace faultline {
namespace {

using enum Confidence;
using enum Force;
using enum Stands;

const KindRow kLaunchKinds[] = {
    {.name = "engine-none",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "cuDNN found no algorithm for this convolution: either none got the memory that it needs, or none "
                "exists for these types and this layout on this device",
     .tries = {"Try with less on the device (a batch of 1): if it works, it was memory, and torch.cuda.empty_cache() "
               "before this line can help, because cuDNN allocates its workspace while it chooses.",
               "Otherwise look at types: some devices have no algorithm for float64 or bfloat16 convolutions, or for "
               "inputs of two types.",
               "torch.backends.cudnn.enabled = False avoids cuDNN (slower) and shows which it was."},
     .words = {{"was unable to find an engine to execute this computation", kAsErrorOrCode},
               {"unable to find a valid cudnn algorithm to run convolution", kAsErrorOrCode}}},
    {.name = "call-invalid",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "A CUDA call was refused because of its arguments: a copy or launch with a wrong pointer or size, or "
                "libraries that do not match; the message does not say that memory ran out",
     .tries = {"Run it as faultline run -- PROGRAM: it names the call that was refused and its arguments.",
               "If it comes at the first touch of the GPU: two versions of CUDA libraries (pip list | grep -i nvidia, "
               "LD_LIBRARY_PATH), or a build older than the device."},
     .words = {{"cuda error: invalid argument", kAsErrorOrCode, kWeak}}},
    {.name = "call-unsupported",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "A CUDA call was refused because this device or system does not support it; the message does not say "
                "that memory ran out",
     .tries = {"Run it as faultline run -- PROGRAM: it names the call that was refused.",
               "Virtual GPUs (vGPU), WSL and MIG slices lack some functions: peer access, IPC between processes, "
               "expandable_segments, cudaMallocAsync. Try without those settings."},
     .words = {{"cuda error: operation not supported", kAsErrorOrCode, kWeak}}},
    {.name = "call-capture",
     .rule = kLaunchError,
     .meaning = "While a CUDA graph was being captured, the program called something that cannot be part of a graph (a "
                "synchronisation, a copy to the host, a new allocation from the driver); memory is not the problem",
     .tries = {"Look for .item(), .cpu(), print of a tensor, or a library's first call inside the captured part; warm "
               "it up before the capture on a side stream.",
               "Run it as faultline run -- PROGRAM: it names the call."},
     .words = {{"operation not permitted when stream is capturing", kAsErrorOrCode, kWeak}}},
    {.name = "unknown-error",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "CUDA reports an error without a name: at the first touch of the GPU the driver is in a bad state; "
                "later, a kernel or the device failed",
     .tries = {"At the start: nvidia-smi, then restart or reload the nvidia modules.",
               "Later: faultline run -- PROGRAM names the launches that were under way, and lines with Xid in dmesg "
               "show what the hardware saw."},
     .words = {{"cuda error: unknown error", kAsErrorOrCode, kWeak}}},
    {.name = "vulkan-lost",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "The Vulkan device was lost (VK_ERROR_DEVICE_LOST): a shader ran too long or went wrong, or the device "
                "or its driver failed; the message does not say that memory ran out",
     .tries = {"Look for lines with Xid (NVIDIA) or \"ring … timeout\" (AMD) in dmesg: they show what the driver saw.",
               "If large work triggers it, give the GPU less at once: on a device that also drives a display the "
               "system stops work that takes seconds.",
               "Update the driver; an overclocked GPU, or one short of power, fails like this too."},
     .words = {{"errordevicelost", kAnywhereOrCode, kWeak},
               {"vk_error_device_lost", kAnywhereOrCode, kWeak},
               {"devicelosterror", kAnywhereOrCode, kWeak},
               {"vkresult: error_device_lost", kAnywhere},
               {"vulkan device was lost."}}},
    {.name = "opencl-resources",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "OpenCL reports CL_OUT_OF_RESOURCES (-5): on NVIDIA most often a kernel that read or wrote beyond a "
                "buffer, else too many registers or too much local memory for the work-group, or a kernel that ran too "
                "long; it need not be memory",
     .tries =
         {"Look at the kernel's indices first: run it on the CPU (POCL), or under oclgrind, which names the access.",
          "Try a smaller work-group (local size): if that helps, it was registers or local memory.",
          "Xid lines in dmesg show an illegal access (31, 13) or a time limit (8)."},
     .words = {{"cl_out_of_resources", kAnywhereOrCode, kWeak},
               {"failed: out_of_resources", kAnywhereOrCode, kWeak},
               {"failed: out of resources", kAsErrorOrCode, kWeak},
               {"error code -5 (out of resources)", kAnywhereOrCode, kWeak},
               {"clenqueuendrangekernel (-5)", kAnywhere, kWeak},
               {"clenqueuereadbuffer (-5)", kAnywhere, kWeak},
               {"clenqueuewritebuffer (-5)", kAnywhere, kWeak},
               {"clfinish (-5)", kAnywhere, kWeak},
               {"clwaitforevents (-5)", kAnywhere, kWeak}}},
    {.name = "ptxas-shared",
     .rule = kLaunchError,
     .meaning = "A kernel was not compiled: it declares more shared memory for a block than a kernel may declare (48 "
                "KiB at compile time); GPU memory is not the problem, and nothing ran",
     .tries = {"Make the tile or the arrays marked __shared__ smaller, or use a smaller type.",
               "More than 48 KiB must be requested at launch: extern __shared__, and cudaFuncSetAttribute(kernel, "
               "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes); how much there is depends on the device (99 KiB "
               "to 227 KiB on recent ones).",
               "In Triton a smaller BLOCK size or fewer num_stages."},
     .words = {{.text = "uses too much shared data", .stands = kAnywhereOrCode, .reads = read_shared_data}}},
    {.name = "ptxas-registers",
     .rule = kLaunchError,
     .meaning = "A kernel was not compiled: it needs more registers than a thread may have; GPU memory is not the "
                "problem, and nothing ran",
     .tries = {"Give each thread less to hold: a smaller tile or BLOCK size, more num_warps, less unrolling.",
               "Of __launch_bounds__ or -maxrregcount: a higher bound lets it compile.",
               "In Triton's autotune such a configuration can be left out; newer releases pass over it by themselves."},
     .words = {{"register allocation failed with register count", kAnywhereOrCode}}},
    {.name = "rocm-fault",
     .platform = Platform::kRocm,
     .rule = kLaunchError,
     .confidence = kLikely,
     .meaning = "A kernel did something illegal on an AMD GPU (a hardware exception or an access outside its memory); "
                "the message does not say that memory ran out",
     .tries = {"AMD_SERIALIZE_KERNEL=3 makes the line that is reported the line that launched it; "
               "HIP_LAUNCH_BLOCKING=1 does so for PyTorch.",
               "A kernel built for another device does the same: look at HSA_OVERRIDE_GFX_VERSION and rocminfo.",
               "dmesg | grep -i amdgpu has the page fault's address and the process."},
     .words = {{"hsa_status_error_memory_aperture_violation", kAnywhereOrCode, kWeak},
               {"hsa_status_error_memory_fault", kAnywhereOrCode, kWeak},
               {"hsa_status_error_illegal_instruction", kAnywhereOrCode, kWeak},
               {"hsa_status_error_exception", kAnywhereOrCode, kWeak},
               {"page fault (src_id:", kAnywhere, kStrong, "", "amdgpu"}}},
    {.name = "rocm-hang",
     .platform = Platform::kRocm,
     .rule = kLaunchError,
     .confidence = kLikely,
     .meaning = "ROCm's runtime found the GPU hanging and ended the program: a kernel that never ends or went wrong, "
                "or the driver; the message does not say that memory ran out",
     .tries =
         {"dmesg has what the driver saw (amdgpu: ring timeout, page fault, GPU reset); give Faultline those lines.",
          "If it is a GPU that ROCm does not support officially, HSA_OVERRIDE_GFX_VERSION decides which code it gets: "
          "a wrong one hangs."},
     .words = {{"hw exception by gpu node-", kAnywhere, kStrong, "", "gpu hang"}}},
    {.name = "level-zero-lost",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning =
         "The Intel GPU stopped working for this process (UR_RESULT_ERROR_DEVICE_LOST): a kernel ran too long or went "
         "wrong, or the driver failed, which it also does when memory is short; the message does not say which",
     .tries = {"A smaller batch or model shows whether it was memory.",
               "dmesg | grep -i -E \"i915|xe \" shows what the driver saw."},
     .words = {{"(ur_result_error_device_lost", kAnywhere, kStrong, "", "", "Level Zero"}}},
    {.name = "directx-lost",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "Windows removed the GPU from this program (DXGI device removed, hung or reset): a shader ran too long "
                "or went wrong, or the driver failed; the message does not say that memory ran out",
     .tries = {"The code behind it says more: 0x887A0006 is work that took too long, 0x887A0005 a device that is gone, "
               "0x887A0007 a command that the driver refused.",
               "Update the driver; take back overclocking; look at power and heat."},
     .words = {{"d3d device being lost", kAnywhere},
               {"gpu crashed or d3d device removed"},
               {"dxgi_error_device_removed", kAnywhere, kWeak},
               {"dxgi_error_device_hung", kAnywhere, kWeak},
               {"dxgi_error_device_reset", kAnywhere, kWeak}}},
    {.name = "metal-hang",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "macOS stopped the work on the GPU because it took too long (a hang or a timeout); the message does "
                "not say that memory ran out",
     .tries = {"Give the GPU less at once: a smaller batch or prompt, work in pieces."},
     .words = {{"kiogpucommandbuffercallbackerrorhang", kAnywhere, kStrong, "", "", "Metal"},
               {"kiogpucommandbuffercallbackerrortimeout", kAnywhere, kStrong, "", "", "Metal"}}},
    {.name = "rocm-timeout",
     .id = MessageKind::kRocmTimeout,
     .platform = Platform::kRocm,
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "The AMD driver saw the GPU take too long over a piece of work (a ring timeout); this text does not "
                "show whether it recovered or was reset. It does not say that memory ran out",
     .tries = {"What follows in dmesg shows more: \"soft recovered\" means that only that work was stopped, \"GPU "
               "reset begin\" that the GPU was reset.",
               "The program that the log names had work on the GPU at that moment; a kernel that runs too long or "
               "wrong is the usual reason, an unstable clock or power supply another."},
     .words = {{"timeout, signaled seq=", kAnywhere, kWeak, "", "ring "}}},
    {.name = "rocm-recovered",
     .id = MessageKind::kRocmRecovered,
     .platform = Platform::kRocm,
     .rule = kLaunchError,
     .confidence = kLikely,
     .meaning = "The AMD driver ended a piece of work that took too long (a ring timeout) and the GPU went on without "
                "a reset: what was in its memory is still there. It does not say that memory ran out",
     .tries = {"If it comes often: a kernel that runs too long or wrong is the usual reason, an unstable clock or "
               "power supply another."},
     .words = {{"timeout, but soft recovered", kAnywhere, kBenign, "", "ring "}}},
    {.name = "level-zero-hang",
     .rule = kLaunchError,
     .confidence = kLikely,
     .meaning = "The Intel driver found the GPU hanging in the work of the program that the line names; after "
                "\"context reset\" that program's work on the GPU is lost. It does not say that memory ran out",
     .tries = {"A kernel that runs too long or wrong is the usual reason: give the GPU less at once.",
               "Long kernels on purpose need a longer or no time limit (i915.enable_hangcheck=0, preempt_timeout_ms of "
               "the engine)."},
     .words = {{"gpu hang: ecode ", kAnywhere, kWeak}, {"context reset due to gpu hang", kAnywhere, kWeak}}},
    {.name = "tpu-scratch",
     .id = MessageKind::kTpuScratch,
     .rule = kLaunchError,
     .meaning = "A kernel needs more of the TPU core's scratch memory (vmem, smem) than there is: it was not compiled, "
                "and the device's memory (HBM) is not the problem",
     .tries = {"In a Pallas kernel: smaller blocks (block_shape of BlockSpec), fewer of them in flight; for smem "
               "smaller prefetched scalars.",
               "Of vmem a kernel has a scoped limit: vmem_limit_bytes in the kernel's compiler parameters, or for the "
               "whole program XLA's xla_tpu_scoped_vmem_limit_kib (LIBTPU_INIT_ARGS), raises it."}},
    {.name = "rocm-reset",
     .id = MessageKind::kRocmReset,
     .platform = Platform::kRocm,
     .rule = kLaunchError,
     .confidence = kLikely,
     .meaning = "The AMD driver found the GPU hanging and reset it; what was in its memory is lost, and programs that "
                "used it fail afterwards. It does not say that memory ran out",
     .tries = {"The program that the log names had work on the GPU at that moment; a kernel that runs too long or "
               "wrong is the usual reason, an unstable clock or power supply another.",
               "AMD_SERIALIZE_KERNEL=3 makes the line that is reported the line that launched the work."},
     .words = {{"gpu reset begin!", kAnywhere, kWeak, "", "amdgpu"}}},
    {.name = "triton-registers",
     .rule = kLaunchError,
     .meaning = "A Triton kernel needs more registers than one block can have on this GPU; GPU memory is not full",
     .tries = {"Smaller block sizes or fewer warps (num_warps) for that kernel."},
     .words = {{"out of resource: registers", kAsError, kStrong, "", "", "Triton"}}},
    {.name = "triton-tensor-memory",
     .rule = kLaunchError,
     .meaning = "A Triton kernel needs more tensor memory than one block can have on this GPU; GPU memory is not full",
     .tries = {"Smaller block sizes or fewer stages (num_stages) for that kernel."},
     .words = {{"out of resource: tensor memory", kAsError, kStrong, "", "", "Triton"}}},
    {.name = "nvrm-memory",
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "NVIDIA's kernel driver could not allocate memory for itself (NV_ERR_NO_MEMORY): of the GPU, or of the "
                "host; the line does not say which",
     .tries = {"See both: nvidia-smi and free -h; other lines of dmesg around it name the program.",
               "If neither is full, update the driver: some of its releases print this line without harm."},
     .words = {{"[nv_err_no_memory]", kAnywhere, kWeak, "", "nvrm"}}},
    {.name = "gpu-lost",
     .rule = kLaunchError,
     .confidence = kLikely,
     .meaning = "The GPU no longer answers on the bus: power, heat, the slot or the card. The program is not at fault, "
                "and memory is not the problem",
     .tries = {"Restart the machine; dmesg | grep -i -E \"xid|nvrm\" shows what came before it.",
               "If it comes under load, look at power and heat: nvidia-smi -q -d POWER,TEMPERATURE, the power cables, "
               "the riser; a lower limit (nvidia-smi -pl) shows whether it is power."},
     .words = {{"gpu has fallen off the bus", kAsError, kWeak},
               {"gpu is lost. reboot the system to recover", kAsError, kWeak},
               {"unable to determine the device handle for gpu", kAsError, kWeak}}},
    {.name = "nccl-timeout",
     .library = Library::kNccl,
     .rule = kLaunchError,
     .confidence = kLikely,
     .meaning = "A collective operation (NCCL) timed out: a rank never reached it, or the network between them failed; "
                "the message does not say that memory ran out",
     .tries =
         {"Look at the ranks that never got there: one may have died of its own error (out of memory too), or wait "
          "elsewhere (uneven batches, a branch that only some ranks take). Give Faultline that rank's log.",
          "TORCH_NCCL_DESYNC_DEBUG=1 and NCCL_DEBUG=INFO name them; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 records what "
          "each rank did last.",
          "If a rank is only slow (a checkpoint, an evaluation), init_process_group(timeout=…) gives it more time."},
     .words = {{"watchdog caught collective operation timeout", kAnywhere, kWeak},
               {"watchdog got stuck for ", kAnywhere, kWeak},
               {"some nccl operations have failed or timed out", kAsError, kWeak}}},
    {.name = "rocm-critical",
     .platform = Platform::kRocm,
     .rule = kLaunchError,
     .confidence = kHint,
     .meaning = "The ROCm runtime stopped the process over memory that it could not use (\"Memory in use\"): in a "
                "container most often a missing permission, not full memory",
     .tries = {"In a container: --ipc=host --device /dev/kfd --device /dev/dri --group-add video; with SELinux, allow "
               "map on /dev/kfd.",
               "dmesg | grep -i -E \"amdgpu|avc\" shows what the driver, or SELinux, saw at that moment."},
     .words = {{"memory critical error by agent node-", kAnywhere}}},
};

}  // namespace

std::span<const KindRow> launch_kinds() { return kLaunchKinds; }

}  // namespace faultline
