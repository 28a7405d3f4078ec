// A device that cannot be used, and lines that look like that and are harmless.
#include "sources/messages/extractors.h"
#include "sources/messages/kinds.h"
#include "sources/messages/tables.h"

namespace faultline {
namespace {

using enum Confidence;
using enum Force;
using enum Stands;

const KindRow kDeviceKinds[] = {
    {.name = "harmless-numa",
     .is_harmless = true,
     .rule = kDeviceNotUsable,
     .meaning =
         "This is harmless: the system does not say which part of host memory is nearest to the GPU (most often in a "
         "container or a virtual machine), and TensorFlow or JAX takes the first; nothing fails because of it",
     .tries = {"Look further down in the log for what failed; if nothing did, there is nothing to do."},
     .words = {{"could not open file to read numa node", kAnywhereOrCode, kWeak},
               {"numa node read from sysfs had negative value", kAnywhereOrCode, kWeak}}},
    {.name = "harmless-growth",
     .is_harmless = true,
     .rule = kDeviceNotUsable,
     .meaning = "This is harmless: TF_FORCE_GPU_ALLOW_GROWTH is set (Colab sets it) and overrides what the program "
                "says; the pool then grows region by region as needed",
     .tries = {"To let the program decide, or to have the whole limit as one region, which growth cannot split: "
               "TF_FORCE_GPU_ALLOW_GROWTH=false."},
     .words = {{"setting because the tf_force_gpu_allow_growth", kAnywhereOrCode, kWeak}}},
    {.name = "harmless-factory",
     .is_harmless = true,
     .rule = kDeviceNotUsable,
     .meaning = "This is harmless: TensorFlow and XLA both register a CUDA library, and the first one stays",
     .tries = {"Look further down in the log for what failed; if nothing did, there is nothing to do."},
     .words = {{"unable to register cudnn factory: attempting to register", kAnywhereOrCode, kWeak},
               {"unable to register cublas factory: attempting to register", kAnywhereOrCode, kWeak},
               {"unable to register cufft factory: attempting to register", kAnywhereOrCode, kWeak}}},
    {.name = "harmless-tensorrt",
     .is_harmless = true,
     .rule = kDeviceNotUsable,
     .meaning = "This is harmless: TensorRT is not installed, and TensorFlow works without it",
     .tries = {"Look further down in the log for what failed; if nothing did, there is nothing to do."},
     .words = {{"tf-trt warning: could not find tensorrt", kAnywhereOrCode, kWeak}}},
    {.name = "harmless-rematerialization",
     .id = MessageKind::kRematerialization,
     .is_harmless = true,
     .rule = kDeviceNotUsable,
     .meaning = "This is not a failure yet: XLA could not bring a compiled program below the limit that it plans with, "
                "and compiled it all the same; it may run out of GPU memory when it runs",
     .tries = {"If a failure follows in the log, give Faultline the whole log; if none does, it ran.",
               "A smaller batch or sequence, a smaller type, or jax.checkpoint around the layers makes the program "
               "smaller."},
     .words = {{.text = "by rematerialization; only reduced to",
                .stands = kAnywhereOrCode,
                .force = kWeak,
                .reads = read_rematerialization}}},
    {.name = "setup-tensorflow-libraries",
     .rule = kDeviceNotUsable,
     .meaning = "TensorFlow did not find all CUDA libraries, so it uses no GPU; memory is not the problem",
     .tries = {"Install TensorFlow with its libraries: pip install \"tensorflow[and-cuda]\"; the lines above name the "
               "missing ones.",
               "Look: python -c \"import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))\""},
     .words = {{"cannot dlopen some gpu libraries", kAsErrorOrCode}}},
    {.name = "setup-library-version",
     .id = MessageKind::kSetupLibraryVersion,
     .rule = kDeviceNotUsable,
     .meaning = "The program loaded another cuDNN than TensorFlow or JAX was built for, so it cannot use it; memory is "
                "not the problem",
     .tries =
         {"Let the framework bring its own: pip install \"tensorflow[and-cuda]\", or pip install -U \"jax[cuda12]\".",
          "Another cuDNN comes first: look at LD_LIBRARY_PATH, conda's lib and ldconfig -p | grep cudnn, and remove "
          "the older one; pip list | grep -i cudnn shows what pip has."},
     .words = {{.text = "but source was compiled with", .stands = kAnywhereOrCode, .accepts = names_cudnn}}},
    {.name = "setup-no-cudnn",
     .rule = kDeviceNotUsable,
     .confidence = kLikely,
     .meaning = "cuDNN was not found or could not be started: it is missing, of another version than the framework was "
                "built for, or had no memory left for its handle; the lines above this one say which",
     .tries = {"Look at the lines above (\"Loaded runtime CuDNN library\", \"Could not create cudnn handle\", \"failed "
               "to allocate\"), and give Faultline the whole log.",
               "Let the framework bring its own: pip install \"tensorflow[and-cuda]\", or pip install -U "
               "\"jax[cuda12]\"; LD_LIBRARY_PATH comes before it.",
               "If it was memory: nvidia-smi shows how full the device is before the program starts."},
     .words = {{"dnn library is not found", kAnywhereOrCode, kWeak},
               {"dnn library initialization failed", kAnywhereOrCode, kWeak}}},
    {.name = "setup-fork",
     .rule = kDeviceNotUsable,
     .meaning = "CUDA was in use before the fork, and cannot be used in the child: memory is not the problem",
     .tries = {"multiprocessing.set_start_method(\"spawn\") before anything else, or num_workers=0.",
               "Or touch the GPU only in the children: no .cuda(), torch.cuda.is_available() tricks or models at "
               "import time; in a Dataset keep tensors on the CPU."},
     .words = {{"cannot re-initialize cuda in forked subprocess", kAsErrorOrCode}}},
    {.name = "setup-ptx",
     .rule = kDeviceNotUsable,
     .meaning = "A kernel was compiled by a newer CUDA than the driver can read (PTX): memory is not the problem",
     .tries =
         {"Update the driver, or build the extension with the CUDA that nvidia-smi shows or an older one.",
          "A wheel that holds finished code for this device needs no PTX: look for one for its compute capability."},
     .words = {{"the provided ptx was compiled with an unsupported toolchain", kAsErrorOrCode}}},
    {.name = "setup-init",
     .rule = kDeviceNotUsable,
     .confidence = kLikely,
     .meaning =
         "CUDA could not start in this process (initialization error); the message does not say that memory ran out",
     .tries =
         {"The usual reason is a fork after CUDA was in use: try multiprocessing with \"spawn\", or num_workers=0.",
          "Otherwise nvidia-smi: a driver that was updated without a restart, or a device in a bad state (lines with "
          "Xid in dmesg)."},
     .words = {{"cuda error: initialization error", kAsErrorOrCode}}},
    {.name = "setup-symbol",
     .rule = kDeviceNotUsable,
     .confidence = kLikely,
     .meaning = "bitsandbytes found no kernel of its own for this device: the library was built for other "
                "architectures or another CUDA; memory is not the problem",
     .tries = {"Install a build for this CUDA and device: pip install -U bitsandbytes; python -m bitsandbytes shows "
               "what it found.",
               "Built from source: compute capability and CUDA version must be those of the machine."},
     .words = {{"error named symbol not found at line", kAsErrorOrCode}}},
    {.name = "setup-no-gpu",
     .rule = kDeviceNotUsable,
     .meaning = "The program sees no GPU: memory is not the problem",
     .tries = {"See what the machine has: nvidia-smi; and what the program may see: echo $CUDA_VISIBLE_DEVICES (empty "
               "or -1 hides all).",
               "In Colab or Kaggle choose a GPU runtime; in a container start with --gpus all; in Slurm ask for one "
               "(--gres=gpu:1).",
               "No GPU here at all? faultline plan -- PROGRAM runs it without one and says whether it would fit; "
               "map_location=\"cpu\" loads a checkpoint without one."},
     .words = {{"no cuda gpus are available", kAsErrorOrCode},
               {"no cuda-capable device is detected", kAsErrorOrCode},
               {"but torch.cuda.is_available() is false", kAsErrorOrCode},
               {"no compatible cuda device is available", kAsError, kStrong, "", "", "OpenMM"}}},
    {.name = "setup-cpu-build",
     .rule = kDeviceNotUsable,
     .meaning = "This PyTorch was built without CUDA (a CPU build), so no GPU can be used whatever the machine has: "
                "memory is not the problem",
     .tries = {"See which build it is: python -c \"import torch; print(torch.__version__, torch.version.cuda)\"; +cpu "
               "or None is a CPU build.",
               "Install a CUDA build: choose it at https://pytorch.org/get-started/locally/ and install into a clean "
               "environment; another package may have pulled the CPU build in.",
               "On a Mac use device \"mps\". Without a GPU, faultline plan -- PROGRAM says what it would need on one; "
               "a CPU build is enough for that."},
     .words = {{"torch not compiled with cuda enabled", kAsErrorOrCode}}},
    {.name = "setup-no-driver",
     .rule = kDeviceNotUsable,
     .meaning = "The NVIDIA driver is not there or not running, so no GPU can be used: memory is not the problem",
     .tries =
         {"nvidia-smi must work first: install the driver, or after an update of the kernel or driver restart the "
          "machine.",
          "In a container the driver comes from the host: start it with --gpus all and the NVIDIA container toolkit."},
     .words = {{"found no nvidia driver on your system", kAsErrorOrCode},
               {"couldn't communicate with the nvidia driver", kAnywhereOrCode}}},
    {.name = "setup-old-driver",
     .rule = kDeviceNotUsable,
     .meaning = "The NVIDIA driver is older than this program's CUDA needs: memory is not the problem",
     .tries = {"nvidia-smi shows the newest CUDA that the driver can serve (top right): update the driver, or install "
               "a build of PyTorch for that CUDA or an older one.",
               "In a container the driver is the host's; updating CUDA inside changes nothing."},
     .words = {{"cuda driver version is insufficient for cuda runtime version", kAsErrorOrCode},
               {"the nvidia driver on your system is too old", kAsErrorOrCode},
               {"nvidia-container-cli: requirement error", kAnywhere, kStrong, "", "cuda"}}},
    {.name = "setup-driver-mismatch",
     .rule = kDeviceNotUsable,
     .meaning = "The driver that runs in the kernel and the driver's libraries are of different versions, most often "
                "after an update without a restart: memory is not the problem",
     .tries = {"Restart the machine, or unload and reload the nvidia kernel modules.",
               "cat /proc/driver/nvidia/version shows what runs; in a container make sure that no libcuda.so or compat "
               "package of its own comes before the host's."},
     .words = {{"driver/library version mismatch", kAsErrorOrCode},
               {"forward compatibility was attempted on non supported hw", kAsErrorOrCode}}},
    {.name = "setup-busy",
     .rule = kDeviceNotUsable,
     .confidence = kLikely,
     .meaning = "The device gives no context to this process: it is in exclusive mode and taken, or left in a bad "
                "state; the message does not say that memory ran out",
     .tries = {"nvidia-smi -q -d COMPUTE shows the mode: Exclusive_Process lets one process in; nvidia-smi lists who "
               "is there.",
               "A process that died hard may still hold it, and Xid lines in dmesg show a device that needs a reset "
               "(nvidia-smi --gpu-reset).",
               "On MIG devices: is a compute instance made (nvidia-smi mig -lgi; mig -lci), and does "
               "CUDA_VISIBLE_DEVICES name it by its MIG- name?"},
     .words = {{"all cuda-capable devices are busy or unavailable", kAsErrorOrCode},
               {"cuda-capable device(s) is/are busy or unavailable", kAsErrorOrCode}}},
    {.name = "setup-ordinal",
     .rule = kDeviceNotUsable,
     .meaning = "The program requested a GPU number that it does not see: memory is not the problem",
     .tries = {"Numbers count from 0 among what CUDA_VISIBLE_DEVICES lets through: with CUDA_VISIBLE_DEVICES=3 that "
               "GPU is cuda:0.",
               "python -c \"import torch; print(torch.cuda.device_count())\"; more ranks than GPUs, or a cuda:1 kept "
               "in a checkpoint (map_location) end so too."},
     .words = {{"invalid device ordinal", kAsErrorOrCode}}},
    {.name = "setup-unknown",
     .rule = kDeviceNotUsable,
     .confidence = kLikely,
     .meaning = "CUDA could not start in this process; the message does not say that memory ran out",
     .tries = {"CUDA_VISIBLE_DEVICES must be set before the program starts to use CUDA, not after.",
               "After a suspend or a driver update: sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm, or "
               "restart; then nvidia-smi."},
     .words = {{"cuda unknown error - this may be due to", kAsErrorOrCode},
               {"unexpected error from cudagetdevicecount()", kAsError, kWeak}}},
    {.name = "setup-fabric",
     .rule = kDeviceNotUsable,
     .confidence = kLikely,
     .meaning = "The NVSwitch fabric of this machine is not up, so CUDA does not start: memory is not the problem",
     .tries = {"systemctl status nvidia-fabricmanager: it must run, and be of the driver's own version."},
     .words = {{"system not yet initialized", kAsErrorOrCode}}},
    {.name = "vulkan-setup",
     .rule = kDeviceNotUsable,
     .confidence = kLikely,
     .meaning = "Vulkan found no usable device or driver: memory is not the problem",
     .tries = {"vulkaninfo --summary must list the device; install the driver's Vulkan part (an ICD file in "
               "/usr/share/vulkan/icd.d), in a container with graphics capabilities (NVIDIA_DRIVER_CAPABILITIES=all)."},
     .words = {{"vk_error_incompatible_driver", kAnywhereOrCode, kWeak},
               {"vk_error_initialization_failed", kAnywhereOrCode, kWeak},
               {"errorincompatibledriver", kAnywhereOrCode, kWeak}}},
    {.name = "ptxas-fatal",
     .rule = kDeviceNotUsable,
     .confidence = kLikely,
     .meaning = "GPU code was not compiled (ptxas failed): the compiler does not know this device or this code; GPU "
                "memory is not the problem, and nothing ran",
     .tries =
         {"\"is not defined for option 'gpu-name'\" or \"Unsupported .version\": this ptxas is older than the device "
          "or than what made the code. Install a newer CUDA toolkit, or point TRITON_PTXAS_PATH to a newer ptxas.",
          "\"Unresolved extern function\": a device function is missing at linking (nvcc -rdc=true, or the object that "
          "has it).",
          "ptxas --version, and nvidia-smi for the device, show which do not match."},
     .words = {{"ptxas fatal", kAnywhereOrCode, kWeak}}},
    {.name = "rocm-image",
     .platform = Platform::kRocm,
     .rule = kDeviceNotUsable,
     .meaning = "This program holds no code for this AMD GPU: memory is not the problem",
     .tries = {"rocminfo | grep gfx names the device; install a build of PyTorch or of the extension for it, or build "
               "with PYTORCH_ROCM_ARCH set to it.",
               "HSA_OVERRIDE_GFX_VERSION=10.3.0 (or 11.0.0) makes some unsupported cards run code of a neighbour; "
               "results are not guaranteed."},
     .words = {{"hiperrornobinaryforgpu", kAnywhereOrCode, kWeak},
               {"hiperrorinvaliddevicefunction", kAnywhereOrCode, kWeak}}},
    {.name = "setup-container",
     .rule = kDeviceNotUsable,
     .meaning = "The container could not be given a GPU: the NVIDIA container toolkit is not installed or not set up, "
                "or the machine's driver does not run; memory is not the problem",
     .tries = {"nvidia-smi must work on the machine itself first.",
               "Then the toolkit: sudo nvidia-ctk runtime configure --runtime=docker, restart Docker, and try docker "
               "run --rm --gpus all ubuntu nvidia-smi."},
     .words = {{"could not select device driver \"\" with capabilities: [[gpu", kAnywhere},
               {"nvidia-container-cli: initialization error", kAnywhere},
               {"unknown or invalid runtime name: nvidia", kAnywhere},
               {"unknown runtime specified nvidia", kAnywhere},
               {"unresolvable cdi devices nvidia.com/", kAnywhere}}},
    {.name = "setup-count-memory",
     .rule = kDeviceNotUsable,
     .confidence = kLikely,
     .meaning = "CUDA could not start in this process: the first look at the devices returned error 2, out of memory. "
                "There was not even room for a context, or the process has a limit of its own; the message does not "
                "say how much was free",
     .tries = {"See who holds the devices, all of them: nvidia-smi; most often it is an earlier run that never ended.",
               "A limit does it too: ulimit -v, a cgroup, a MIG slice, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT.",
               "CUDA_VISIBLE_DEVICES with only the GPU that you want leaves a full one out; set it before the program "
               "starts to use CUDA."},
     .words = {{"might have already set an error? error 2: out of memory", kAnywhere}}},
    {.name = "setup-scheduling",
     .rule = kDeviceNotUsable,
     .meaning = "Kubernetes did not start the pod: no node has as many free GPUs as it requests. Nothing ran, and GPU "
                "memory is not the problem",
     .tries = {"See which pods hold them: kubectl describe nodes (Allocated resources); end one, add a node, or "
               "request fewer.",
               "If a node's Capacity lists no GPU at all, its device plugin is not running."},
     .words = {{"insufficient nvidia.com/gpu", kAnywhere, kWeak},
               {"insufficient amd.com/gpu", kAnywhere, kWeak},
               {"insufficient gpu.intel.com/", kAnywhere, kWeak}}},
};

}  // namespace

std::span<const KindRow> device_kinds() { return kDeviceKinds; }

}  // namespace faultline
