#include "rules/known_messages/meanings.h"

#include <algorithm>

namespace faultline {
namespace {

constexpr std::string_view kFewerWorkers =
    "Each DataLoader worker holds its own copy of what Python touches: fewer num_workers, a smaller prefetch_factor, "
    "data in arrays or on disk instead of lists of Python objects.";

constexpr auto kMeanings = std::to_array<Meaning>({
    {"host-alloc",
     kHost,
     Confidence::kProved,
     "Host memory (RAM) ran out, not GPU memory: the request was for the CPU, so a larger GPU or "
     "torch.cuda.empty_cache() changes nothing",
     {"Request less at once at this line: a smaller array, pieces, numpy.memmap, or a smaller type; check the extents "
      "if the size is absurd.",
      "Loading a model: torch.load(..., mmap=True), low_cpu_mem_usage=True or safetensors keep it from being in RAM "
      "twice.",
      kWatchHost, kFewerWorkers}},
    {"harmless-numa",
     kDevice,
     Confidence::kProved,
     "This is harmless: the system does not say which part of host memory is nearest to the GPU (most often in a "
     "container or a virtual machine), and TensorFlow or JAX takes the first; nothing fails because of it",
     {"Look further down in the log for what failed; if nothing did, there is nothing to do."}},
    {"harmless-growth",
     kDevice,
     Confidence::kProved,
     "This is harmless: TF_FORCE_GPU_ALLOW_GROWTH is set (Colab sets it) and overrides what the program says; the pool "
     "then grows region by region as needed",
     {"To let the program decide, or to have the whole limit as one region, which growth cannot split: "
      "TF_FORCE_GPU_ALLOW_GROWTH=false."}},
    {"harmless-factory",
     kDevice,
     Confidence::kProved,
     "This is harmless: TensorFlow and XLA both register a CUDA library, and the first one stays",
     {"Look further down in the log for what failed; if nothing did, there is nothing to do."}},
    {"harmless-tensorrt",
     kDevice,
     Confidence::kProved,
     "This is harmless: TensorRT is not installed, and TensorFlow works without it",
     {"Look further down in the log for what failed; if nothing did, there is nothing to do."}},
    {"harmless-host-share",
     kHost,
     Confidence::kProved,
     "This is no error: TensorFlow says that one request takes more than a tenth of the free host memory (not GPU "
     "memory), and goes on",
     {"Look further down in the log for what failed; if nothing did, there is nothing to do.",
      "If the process is killed after it, host memory ran out: smaller batches, or tf.data instead of whole arrays."}},
    {"harmless-rematerialization",
     kDevice,
     Confidence::kProved,
     "This is not a failure yet: XLA could not bring a compiled program below the limit that it plans with, and "
     "compiled "
     "it all the same; it may run out of GPU memory when it runs",
     {"If a failure follows in the log, give Faultline the whole log; if none does, it ran.",
      "A smaller batch or sequence, a smaller type, or jax.checkpoint around the layers makes the program smaller."}},
    {"host-pinned-pool",
     kHost,
     Confidence::kLikely,
     "TensorFlow or JAX requested page-locked host memory, through which copies to the GPU go, and got none: RAM, or a "
     "limit on locked memory, was not enough; the words are CUDA's, but GPU memory need not be full",
     {"Copy less at once: smaller batches, fewer of them prefetched (prefetch of tf.data), or the data in pieces.",
      "ulimit -l shows the limit on locked memory, free -h what RAM there is; in WSL 2 and in containers it is "
      "limited."}},
    {"host-alloc-xla",
     kHost,
     Confidence::kLikely,
     "XLA uses these words for a buffer on the CPU: then host memory (RAM) ran out, not GPU memory. The text does not "
     "name the device, so that is likely and not proved",
     {"python -c \"import jax; print(jax.devices())\" shows where it ran; if that is a GPU, GPU memory ran out.",
      "Request less at once at this line: a smaller array, pieces, numpy.memmap, or a smaller type; check the extents "
      "if the size is absurd.",
      "Watch it while the program runs: free -h; in a container the limit counts, not the machine: cat "
      "/sys/fs/cgroup/memory.max."}},
    {"setup-tensorflow-libraries",
     kDevice,
     Confidence::kProved,
     "TensorFlow did not find all CUDA libraries, so it uses no GPU; memory is not the problem",
     {"Install TensorFlow with its libraries: pip install \"tensorflow[and-cuda]\"; the lines above name the missing "
      "ones.",
      "Look: python -c \"import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))\""}},
    {"setup-library-version",
     kDevice,
     Confidence::kProved,
     "The program loaded another cuDNN than TensorFlow or JAX was built for, so it cannot use it; memory is not the "
     "problem",
     {"Let the framework bring its own: pip install \"tensorflow[and-cuda]\", or pip install -U \"jax[cuda12]\".",
      "Another cuDNN comes first: look at LD_LIBRARY_PATH, conda's lib and ldconfig -p | grep cudnn, and remove the "
      "older one; pip list | grep -i cudnn shows what pip has."}},
    {"setup-no-cudnn",
     kDevice,
     Confidence::kLikely,
     "cuDNN was not found or could not be started: it is missing, of another version than the framework was built for, "
     "or had no memory left for its handle; the lines above this one say which",
     {"Look at the lines above (\"Loaded runtime CuDNN library\", \"Could not create cudnn handle\", \"failed to "
      "allocate\"), and give Faultline the whole log.",
      "Let the framework bring its own: pip install \"tensorflow[and-cuda]\", or pip install -U \"jax[cuda12]\"; "
      "LD_LIBRARY_PATH comes before it.",
      "If it was memory: nvidia-smi shows how full the device is before the program starts."}},
    {"host-refused",
     kHost,
     Confidence::kLikely,
     "The system refused the process host memory (ENOMEM): RAM and swap are used up, the process has a limit, or the "
     "kernel promises no more than there is; GPU memory is not the problem",
     {"At os.fork, subprocess or the start of a DataLoader: a fork requests as much as the process has. Start children "
      "while it is small, or use multiprocessing.set_start_method(\"spawn\"); fewer num_workers.",
      "At an array or a file: request less at once, or use numpy.memmap; with many mappings (mmap) look at sysctl "
      "vm.max_map_count.",
      "ulimit -v, and sysctl vm.overcommit_memory (2 refuses early) show limits.", kWatchHost}},
    {"host-bad-alloc",
     kHost,
     Confidence::kLikely,
     "C++ code ran out of host memory (std::bad_alloc): RAM, not GPU memory, unless a GPU library says otherwise on "
     "the same line",
     {"A damaged or absurd size gives the same error: look at what this line gets.", kWatchHost, kFewerWorkers}},
    {"host-cgroup",
     kHost,
     Confidence::kProved,
     "The system killed the process because its container or job (cgroup) had used up its host memory (RAM); GPU "
     "memory is not the problem",
     {"Raise the limit: docker run --memory, resources.limits.memory in Kubernetes, --mem in Slurm.",
      "Or hold less RAM: fewer DataLoader workers, memory-mapped data, load the model with low_cpu_mem_usage=True.",
      "Files in /dev/shm count against the same limit."}},
    {"host-killed",
     kHost,
     Confidence::kLikely,
     "The process was killed from outside (SIGKILL): most often the system ran out of host memory (RAM). A full GPU "
     "never kills a process: it raises an error",
     {"See whether it was memory: dmesg -T | grep -i 'killed process' on the host; its last lines name the process and "
      "its size. Without such a line a scheduler, a time limit or a person killed it.",
      kWatchHost, kFewerWorkers,
      "Loading a checkpoint: torch.load(..., mmap=True), or low_cpu_mem_usage=True; on one machine every rank loads "
      "it."}},
    {"host-oom-killer",
     kHost,
     Confidence::kProved,
     "The system ran out of host memory (RAM) and killed a process to free some; the line names it. GPU memory is not "
     "the problem",
     {kWatchHost, kFewerWorkers,
      "Or hold less RAM while loading: low_cpu_mem_usage=True, safetensors, memory-mapped data; several ranks of one "
      "machine each load their own copy."}},
    {"host-oom-invoked",
     kHost,
     Confidence::kProved,
     "Host memory (RAM) ran out, of the machine or of a container, and the kernel looked for a process to kill; GPU "
     "memory is not the problem",
     {"The lines below it in the kernel log (\"Killed process …\") name the process and its size.", kWatchHost,
      kFewerWorkers}},
    {"host-ray",
     kHost,
     Confidence::kProved,
     "Ray killed the worker because host memory (RAM) was nearly full; GPU memory is not the problem",
     {"Run fewer tasks at once on a machine: more CPUs per task (num_cpus), or say what a task needs (memory=…).",
      "ray logs raylet.out and the list of the largest processes below the message show who held the memory.",
      "RAY_memory_usage_threshold moves the limit (0.95 unless set); beyond it the system kills processes itself."}},
    {"host-paging",
     kHost,
     Confidence::kProved,
     "Windows could not reserve the memory: RAM and the paging file were both used up (host memory, not GPU memory)",
     {"Enlarge the paging file (System, Advanced, Performance, Virtual memory), or let Windows manage its size.",
      "Each DataLoader worker on Windows loads PyTorch's libraries anew, several GB of reserved memory each: fewer "
      "num_workers.",
      "Close what else holds memory: Task Manager, Details, Commit size."}},
    {"host-pinned",
     kHost,
     Confidence::kLikely,
     "Page-locked (pinned) host memory could not be allocated: RAM, or a limit on locked memory, was not enough; the "
     "words are CUDA's, but GPU memory need not be full",
     {"In PyTorch pin_memory=False, fewer workers or a smaller prefetch_factor need less of it.",
      "ulimit -l shows the limit on locked memory, free -h what RAM there is; in WSL 2 pinned memory is limited.",
      "If an earlier kernel went wrong, this call is only the first to notice: look for an error above it."}},
    {"jetson-alloc",
     kMemory,
     Confidence::kLikely,
     "The board ran out of memory, which CPU and GPU share (error 12: no memory)",
     {"See who holds it: free -h, tegrastats; the desktop alone takes over 1 GiB (sudo systemctl isolate "
      "multi-user.target).",
      "A smaller batch or input, half precision, fewer processes; swap does not help what the GPU uses."}},
    {"metal-buffer",
     kMemory,
     Confidence::kProved,
     "The program requested one buffer larger than Metal allows (maxBufferLength), however much memory is free",
     {"Make this tensor smaller or work in pieces: often it is attention over the whole length, or a whole batch "
      "decoded at once."}},
    {"engine-none",
     kLaunch,
     Confidence::kHint,
     "cuDNN found no algorithm for this convolution: either none got the memory that it needs, or none exists for "
     "these types and this layout on this device",
     {"Try with less on the device (a batch of 1): if it works, it was memory, and torch.cuda.empty_cache() before "
      "this line can help, because cuDNN allocates its workspace while it chooses.",
      "Otherwise look at types: some devices have no algorithm for float64 or bfloat16 convolutions, or for inputs of "
      "two types.",
      "torch.backends.cudnn.enabled = False avoids cuDNN (slower) and shows which it was."}},
    {"call-invalid",
     kLaunch,
     Confidence::kHint,
     "A CUDA call was refused because of its arguments: a copy or launch with a wrong pointer or size, or libraries "
     "that do not match; the message does not say that memory ran out",
     {"Run it as faultline run -- PROGRAM: it names the call that was refused and its arguments.",
      "If it comes at the first touch of the GPU: two versions of CUDA libraries (pip list | grep -i nvidia, "
      "LD_LIBRARY_PATH), or a build older than the device."}},
    {"call-unsupported",
     kLaunch,
     Confidence::kHint,
     "A CUDA call was refused because this device or system does not support it; the message does not say that memory "
     "ran out",
     {"Run it as faultline run -- PROGRAM: it names the call that was refused.",
      "Virtual GPUs (vGPU), WSL and MIG slices lack some functions: peer access, IPC between processes, "
      "expandable_segments, cudaMallocAsync. Try without those settings."}},
    {"call-capture",
     kLaunch,
     Confidence::kProved,
     "While a CUDA graph was being captured, the program called something that cannot be part of a graph (a "
     "synchronisation, a copy to the host, a new allocation from the driver); memory is not the problem",
     {"Look for .item(), .cpu(), print of a tensor, or a library's first call inside the captured part; warm it up "
      "before the capture on a side stream.",
      "Run it as faultline run -- PROGRAM: it names the call."}},
    {"call-32bit",
     "tensor/shape-mismatch",
     Confidence::kProved,
     "A tensor has more elements than this operation can count with 32 bits (2^31 - 1): memory is not the problem",
     {"Split the batch for this operation, for example with torch.chunk, so that each part has fewer than 2147483648 "
      "elements."}},
    {"operands-index",
     "tensor/index-out-of-range",
     Confidence::kProved,
     "An index is too large, or negative, for the table it looks into (on the CPU; on a GPU the same ends in a "
     "device-side assert): most often a token or category number that is not below num_embeddings. Memory is not the "
     "problem",
     {"Print what goes into this line: ids.min(), ids.max(), and the table's size (embedding.num_embeddings, or "
      "model.config.vocab_size and max_position_embeddings for positions).",
      "A tokenizer with added tokens needs model.resize_token_embeddings(len(tokenizer)); a sequence longer than "
      "max_position_embeddings must be cut (truncation=True, max_length=...); padding of -100 or -1 belongs into "
      "labels, not into inputs."}},
    {"setup-fork",
     kDevice,
     Confidence::kProved,
     "CUDA was in use before the fork, and cannot be used in the child: memory is not the problem",
     {"multiprocessing.set_start_method(\"spawn\") before anything else, or num_workers=0.",
      "Or touch the GPU only in the children: no .cuda(), torch.cuda.is_available() tricks or models at import time; "
      "in a Dataset keep tensors on the CPU."}},
    {"setup-ptx",
     kDevice,
     Confidence::kProved,
     "A kernel was compiled by a newer CUDA than the driver can read (PTX): memory is not the problem",
     {"Update the driver, or build the extension with the CUDA that nvidia-smi shows or an older one.",
      "A wheel that holds finished code for this device needs no PTX: look for one for its compute capability."}},
    {"setup-init",
     kDevice,
     Confidence::kLikely,
     "CUDA could not start in this process (initialization error); the message does not say that memory ran out",
     {"The usual reason is a fork after CUDA was in use: try multiprocessing with \"spawn\", or num_workers=0.",
      "Otherwise nvidia-smi: a driver that was updated without a restart, or a device in a bad state (lines with Xid "
      "in dmesg)."}},
    {"setup-symbol",
     kDevice,
     Confidence::kLikely,
     "bitsandbytes found no kernel of its own for this device: the library was built for other architectures or "
     "another CUDA; memory is not the problem",
     {"Install a build for this CUDA and device: pip install -U bitsandbytes; python -m bitsandbytes shows what it "
      "found.",
      "Built from source: compute capability and CUDA version must be those of the machine."}},
    {"host-session",
     kHost,
     Confidence::kProved,
     "The notebook's machine ran out of host memory (RAM), not of GPU memory; the session ended and all variables are "
     "gone",
     {"Choose a runtime with more RAM (Runtime, Change runtime type, High-RAM).",
      "Load data in pieces or memory-mapped, and delete what is no longer needed (del x) before loading more.",
      "Load models straight to the GPU: device_map=\"cuda\", low_cpu_mem_usage=True, or a half-precision checkpoint."}},
    {"host-worker",
     kHost,
     Confidence::kLikely,
     "A DataLoader worker was killed from outside: most often host memory (RAM) ran out; GPU memory is not the problem",
     {kFewerWorkers, "num_workers=0 shows the dataset's own error, if there is one.",
      "dmesg -T | grep -i 'killed process' shows whether the system killed it for memory.", kWatchHost}},
    {"host-bus",
     kHost,
     Confidence::kLikely,
     "A DataLoader worker touched host memory with nothing behind it (a bus error): most often shared memory "
     "(/dev/shm) is full, as the message itself supposes; a memory-mapped file that was cut short, or a failing disk, "
     "does the same. GPU memory is not the problem",
     {"See how full shared memory is while it runs: df -h /dev/shm. Where it runs in a container, --shm-size=8g or "
      "--ipc=host gives it more (Docker gives 64 MiB unless set; in Kubernetes an emptyDir with medium: Memory).",
      "num_workers=0 needs none: if the error stays, or a line of the dataset fails, it was a file; look at "
      "those "
      "read with numpy.memmap, mmap or safetensors, and whether something writes or cuts them meanwhile.",
      "Fewer num_workers or a smaller prefetch_factor and batch put less into it."}},
    {"host-shm",
     kHost,
     Confidence::kProved,
     "DataLoader workers pass tensors through shared memory (/dev/shm), and could not allocate any: it is full, or at "
     "its "
     "limit; GPU memory is not the problem",
     {"Where it runs in a container, give it more: docker run --shm-size=8g, or --ipc=host; in Kubernetes an emptyDir "
      "with medium: Memory at /dev/shm. Docker gives 64 MiB unless set.",
      "Fewer num_workers or a smaller prefetch_factor and batch put less into it; num_workers=0 needs none.",
      "See how full it is: df -h /dev/shm"}},
    {"setup-no-gpu",
     kDevice,
     Confidence::kProved,
     "The program sees no GPU: memory is not the problem",
     {"See what the machine has: nvidia-smi; and what the program may see: echo $CUDA_VISIBLE_DEVICES (empty or -1 "
      "hides all).",
      "In Colab or Kaggle choose a GPU runtime; in a container start with --gpus all; in Slurm ask for one "
      "(--gres=gpu:1).",
      "No GPU here at all? faultline plan -- PROGRAM runs it without one and says whether it would fit; "
      "map_location=\"cpu\" loads a checkpoint without one."}},
    {"setup-cpu-build",
     kDevice,
     Confidence::kProved,
     "This PyTorch was built without CUDA (a CPU build), so no GPU can be used whatever the machine has: memory is not "
     "the problem",
     {"See which build it is: python -c \"import torch; print(torch.__version__, torch.version.cuda)\"; +cpu or None "
      "is a CPU build.",
      "Install a CUDA build: choose it at https://pytorch.org/get-started/locally/ and install into a clean "
      "environment; another package may have pulled the CPU build in.",
      "On a Mac use device \"mps\". Without a GPU, faultline plan -- PROGRAM says what it would need on one; a CPU "
      "build is enough for that."}},
    {"setup-no-driver",
     kDevice,
     Confidence::kProved,
     "The NVIDIA driver is not there or not running, so no GPU can be used: memory is not the problem",
     {"nvidia-smi must work first: install the driver, or after an update of the kernel or driver restart the machine.",
      "In a container the driver comes from the host: start it with --gpus all and the NVIDIA container toolkit."}},
    {"setup-old-driver",
     kDevice,
     Confidence::kProved,
     "The NVIDIA driver is older than this program's CUDA needs: memory is not the problem",
     {"nvidia-smi shows the newest CUDA that the driver can serve (top right): update the driver, or install a build "
      "of PyTorch for that CUDA or an older one.",
      "In a container the driver is the host's; updating CUDA inside changes nothing."}},
    {"setup-driver-mismatch",
     kDevice,
     Confidence::kProved,
     "The driver that runs in the kernel and the driver's libraries are of different versions, most often after an "
     "update without a restart: memory is not the problem",
     {"Restart the machine, or unload and reload the nvidia kernel modules.",
      "cat /proc/driver/nvidia/version shows what runs; in a container make sure that no libcuda.so or compat package "
      "of its own comes before the host's."}},
    {"setup-busy",
     kDevice,
     Confidence::kLikely,
     "The device gives no context to this process: it is in exclusive mode and taken, or left in a bad state; the "
     "message does not say that memory ran out",
     {"nvidia-smi -q -d COMPUTE shows the mode: Exclusive_Process lets one process in; nvidia-smi lists who is there.",
      "A process that died hard may still hold it, and Xid lines in dmesg show a device that needs a reset "
      "(nvidia-smi --gpu-reset).",
      "On MIG devices: is a compute instance made (nvidia-smi mig -lgi; mig -lci), and does CUDA_VISIBLE_DEVICES name "
      "it by its MIG- name?"}},
    {"setup-ordinal",
     kDevice,
     Confidence::kProved,
     "The program requested a GPU number that it does not see: memory is not the problem",
     {"Numbers count from 0 among what CUDA_VISIBLE_DEVICES lets through: with CUDA_VISIBLE_DEVICES=3 that GPU is "
      "cuda:0.",
      "python -c \"import torch; print(torch.cuda.device_count())\"; more ranks than GPUs, or a cuda:1 kept in a "
      "checkpoint (map_location) end so too."}},
    {"setup-unknown",
     kDevice,
     Confidence::kLikely,
     "CUDA could not start in this process; the message does not say that memory ran out",
     {"CUDA_VISIBLE_DEVICES must be set before the program starts to use CUDA, not after.",
      "After a suspend or a driver update: sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm, or restart; then "
      "nvidia-smi."}},
    {"setup-fabric",
     kDevice,
     Confidence::kLikely,
     "The NVSwitch fabric of this machine is not up, so CUDA does not start: memory is not the problem",
     {"systemctl status nvidia-fabricmanager: it must run, and be of the driver's own version."}},
    {"unknown-error",
     kLaunch,
     Confidence::kHint,
     "CUDA reports an error without a name: at the first touch of the GPU the driver is in a bad state; later, a "
     "kernel or the device failed",
     {"At the start: nvidia-smi, then restart or reload the nvidia modules.",
      "Later: faultline run -- PROGRAM names the launches that were under way, and lines with Xid in dmesg show what "
      "the hardware saw."}},
    {"nvml-assert",
     kMemory,
     Confidence::kLikely,
     "PyTorch was about to report that GPU memory ran out and failed while it asked NVML for the numbers (MIG slices, "
     "Jetson and some virtual GPUs cannot answer); the message does not say how much was missing",
     {"Treat it as out of memory: a smaller batch or sequence, activation checkpointing, a smaller type.",
      "On a MIG slice the slice's memory is the limit, not the card's: nvidia-smi -L and nvidia-smi show it.",
      "faultline plan --gpu 10GiB -- PROGRAM says whether it fits a slice of that size."}},
    {"async-bare",
     kMemory,
     Confidence::kLikely,
     "PyTorch's cudaMallocAsync allocator ran out of GPU memory (ComfyUI turns it on); its message has no numbers, so "
     "it does not show who held the memory",
     {"Hold less at once: a smaller image or batch, tiled VAE, a quantised or half-precision model; in ComfyUI "
      "--lowvram or --novram keeps weights in RAM.",
      "See who else holds the device: nvidia-smi",
      "ComfyUI --disable-cuda-malloc goes back to PyTorch's usual allocator, whose message has the numbers; give that "
      "one to faultline explain."}},
    {"vllm-no-blocks",
     kMemory,
     Confidence::kProved,
     "vLLM has no room for its key-value cache: the weights and the profiling run took all of the share it may use "
     "(gpu_memory_utilization)",
     {"Raise --gpu-memory-utilization (0.9 unless set) if the rest of the device is free: nvidia-smi.",
      "Shrink what comes first: --max-num-seqs, --max-num-batched-tokens, --max-model-len, --enforce-eager (no CUDA "
      "graphs), a quantised model.",
      "Or split the model: --tensor-parallel-size 2."}},
    {"vllm-length",
     kMemory,
     Confidence::kProved,
     "The key-value cache that vLLM has room for is smaller than one request of the model's full length needs",
     {"Set --max-model-len to at most the number of tokens that the message says can be stored.",
      "Or make room: a higher --gpu-memory-utilization, --kv-cache-dtype fp8, a quantised model, "
      "--tensor-parallel-size 2."}},
    {"vllm-start",
     kMemory,
     Confidence::kProved,
     "Less of the device is free than the share vLLM is set to take (gpu_memory_utilization): something else holds "
     "the rest",
     {"See who holds it: nvidia-smi; most often it is an earlier server that never ended.",
      "Or take less: --gpu-memory-utilization below the free part of the device."}},
});

}  // namespace

const Meaning* meaning_of(std::string_view kind) {
  for (const std::span<const Meaning> table :
       {std::span<const Meaning>(kMeanings), other_api_meanings(), program_meanings()}) {
    const auto row = std::find_if(table.begin(), table.end(), [&](const Meaning& one) { return one.kind == kind; });
    if (row != table.end()) return &*row;
  }
  return nullptr;
}

}  // namespace faultline
