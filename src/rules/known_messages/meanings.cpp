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
     "The host's memory (RAM) did not suffice, not the GPU's: the request was for the CPU, so a larger GPU or "
     "torch.cuda.empty_cache() changes nothing",
     {"Ask for less at once at this line: a smaller array, pieces, numpy.memmap, or a smaller type; check the extents "
      "if the size is absurd.",
      "Loading a model: torch.load(..., mmap=True), low_cpu_mem_usage=True or safetensors keep it from being in RAM "
      "twice.",
      kWatchHost, kFewerWorkers}},
    {"harmless-numa",
     kDevice,
     Confidence::kProved,
     "This is harmless and no error: the system does not say to which part of the host's memory the GPU is nearest (a "
     "container or a virtual machine, most often), and TensorFlow or JAX takes the first; nothing fails for it",
     {"Look further down in the log for what did fail; if nothing did, there is nothing to do."}},
    {"harmless-growth",
     kDevice,
     Confidence::kProved,
     "This is harmless and no error: TF_FORCE_GPU_ALLOW_GROWTH is set (Colab sets it), and decides over what the "
     "program says; the pool then grows by regions as it is needed",
     {"To have the program decide, or the whole limit as one region, which cannot fall into pieces by growth: "
      "TF_FORCE_GPU_ALLOW_GROWTH=false."}},
    {"harmless-factory",
     kDevice,
     Confidence::kProved,
     "This is harmless and no error: a library of CUDA is registered twice, by TensorFlow and by XLA, and the first "
     "stays",
     {"Look further down in the log for what did fail; if nothing did, there is nothing to do."}},
    {"harmless-tensorrt",
     kDevice,
     Confidence::kProved,
     "This is harmless and no error: TensorRT is not installed, and TensorFlow works without it",
     {"Look further down in the log for what did fail; if nothing did, there is nothing to do."}},
    {"harmless-host-share",
     kHost,
     Confidence::kProved,
     "This is no error: TensorFlow says that one request takes more than a tenth of the host's memory that is free, "
     "and "
     "goes on; it is not the GPU's memory, and nothing has failed by it",
     {"Look further down in the log for what did fail; if nothing did, there is nothing to do.",
      "If the process is killed behind it, the host's memory ran out: smaller batches, or tf.data instead of whole "
      "arrays."}},
    {"harmless-rematerialization",
     kDevice,
     Confidence::kProved,
     "This is no failure yet: XLA could not bring the memory of a compiled program below the limit that it plans with, "
     "and compiles it all the same; the program may run out of GPU memory when it runs",
     {"If a failure follows in the log, give Faultline the whole log; if none does, it ran.",
      "A smaller batch or sequence, a smaller type, or jax.checkpoint around the layers makes the program smaller."}},
    {"host-pinned-pool",
     kHost,
     Confidence::kLikely,
     "TensorFlow or JAX asked for page-locked memory of the host, through which copies to the GPU go, and got none: "
     "RAM, "
     "or a limit on locked memory, did not suffice; the words are CUDA's, but the GPU's memory need not be full",
     {"Copy less at once: smaller batches, fewer of them prefetched (tf.data's prefetch), or the data in pieces.",
      "ulimit -l shows the limit on locked memory, free -h what RAM there is; in WSL 2 and in containers it is "
      "limited."}},
    {"host-alloc-xla",
     kHost,
     Confidence::kLikely,
     "XLA has these words for a buffer that it makes on the CPU: then the host's memory (RAM) did not suffice, not the "
     "GPU's. The text does not name the device, so that it was the CPU is likely and not proved",
     {"python -c \"import jax; print(jax.devices())\" tells where it ran; if that is a GPU, its memory is the matter.",
      "Ask for less at once at this line: a smaller array, pieces, numpy.memmap, or a smaller type; check the extents "
      "if "
      "the size is absurd.",
      "Watch it while the program runs: free -h; in a container the limit counts, not the machine: cat "
      "/sys/fs/cgroup/memory.max."}},
    {"setup-tensorflow-libraries",
     kDevice,
     Confidence::kProved,
     "TensorFlow did not find all of CUDA's libraries, so it uses no GPU; memory is not the matter",
     {"Install TensorFlow with its libraries: pip install \"tensorflow[and-cuda]\"; the lines above name those that "
      "are "
      "missing.",
      "Look: python -c \"import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))\""}},
    {"setup-library-version",
     kDevice,
     Confidence::kProved,
     "The cuDNN that is loaded is not the one that TensorFlow or JAX was built for, so it cannot be used; memory is "
     "not "
     "the matter",
     {"Let the framework bring its own: pip install \"tensorflow[and-cuda]\", or pip install -U \"jax[cuda12]\".",
      "Another cuDNN is found first: look at LD_LIBRARY_PATH, conda's lib and ldconfig -p | grep cudnn, and take the "
      "older one out; pip list | grep -i cudnn shows what pip has."}},
    {"setup-no-cudnn",
     kDevice,
     Confidence::kLikely,
     "cuDNN was not found or could not be started: it is missing, of another version than the framework was built for, "
     "or had no memory left for its handle; the lines above this one say which",
     {"Look at the lines above (\"Loaded runtime CuDNN library\", \"Could not create cudnn handle\", \"failed to "
      "allocate\"), and give Faultline the whole log.",
      "Let the framework bring its own: pip install \"tensorflow[and-cuda]\", or pip install -U \"jax[cuda12]\"; "
      "LD_LIBRARY_PATH comes before it.",
      "Was it memory: nvidia-smi shows how full the device is before the program starts."}},
    {"host-refused",
     kHost,
     Confidence::kLikely,
     "The system refused the process memory of the host (ENOMEM): RAM and swap, a limit on the process, or the "
     "kernel's rule against promising more than there is; the GPU's memory is not the matter",
     {"At os.fork, subprocess or a DataLoader's start: a fork asks for as much as the process has. Start children "
      "while it is small, or multiprocessing.set_start_method(\"spawn\"); fewer num_workers.",
      "At an array or a file: ask for less at once, or numpy.memmap; at many mappings (mmap) look at sysctl "
      "vm.max_map_count.",
      "ulimit -v, and sysctl vm.overcommit_memory (2 refuses early) show limits.", kWatchHost}},
    {"host-bad-alloc",
     kHost,
     Confidence::kLikely,
     "C++ code found no host memory (std::bad_alloc): RAM, not the GPU's memory, unless a GPU library says otherwise "
     "in the same line",
     {"A damaged or absurd size gives the same error: look at what the line was given.", kWatchHost, kFewerWorkers}},
    {"host-cgroup",
     kHost,
     Confidence::kProved,
     "The system ended the process because its container or job (cgroup) had used up its host memory (RAM); the GPU's "
     "memory is not the matter",
     {"Raise the limit: docker run --memory, resources.limits.memory in Kubernetes, --mem in Slurm.",
      "Or hold less RAM: fewer DataLoader workers, memory-mapped data, load the model with low_cpu_mem_usage=True.",
      "Files in /dev/shm count against the same limit."}},
    {"host-killed",
     kHost,
     Confidence::kLikely,
     "The process was killed from outside (SIGKILL): most often the system ran out of host memory (RAM); the GPU's "
     "memory never ends a process so, it raises an error",
     {"See whether it was memory: dmesg -T | grep -i 'killed process' on the host, the last lines name the process and "
      "its size; no such line means a scheduler, a time limit or a person ended it.",
      kWatchHost, kFewerWorkers,
      "Loading a checkpoint: torch.load(..., mmap=True), or low_cpu_mem_usage=True; several ranks of one machine each "
      "load it."}},
    {"host-oom-killer",
     kHost,
     Confidence::kProved,
     "The system ran out of host memory (RAM) and killed a process to free some; the line names it. The GPU's memory "
     "is "
     "not the matter",
     {kWatchHost, kFewerWorkers,
      "Or hold less RAM while loading: low_cpu_mem_usage=True, safetensors, memory-mapped data; several ranks of one "
      "machine each load their own copy."}},
    {"host-oom-invoked",
     kHost,
     Confidence::kProved,
     "Host memory (RAM) ran out, the machine's or a container's, and the kernel looked for a process to end; the GPU's "
     "memory is not the matter",
     {"The lines below it in the kernel's log (\"Killed process …\") name the process that was ended and its size.",
      kWatchHost, kFewerWorkers}},
    {"host-ray",
     kHost,
     Confidence::kProved,
     "Ray ended the worker because the machine's host memory (RAM) was nearly full; the GPU's memory is not the matter",
     {"Let fewer tasks run at once on a machine: more CPUs per task (num_cpus), or say what a task needs (memory=…).",
      "ray logs raylet.out and the list of the largest processes below the message tell who held the memory.",
      "RAY_memory_usage_threshold moves the line (0.95 unless told); beyond it the system's own killer takes over."}},
    {"host-paging",
     kHost,
     Confidence::kProved,
     "Windows could not reserve the memory: RAM and the paging file together were used up (host memory, not the GPU's)",
     {"Enlarge the paging file (System, Advanced, Performance, Virtual memory), or let Windows manage its size.",
      "Each DataLoader worker on Windows loads PyTorch's libraries anew, several GB of reserved memory each: fewer "
      "num_workers.",
      "Close what else holds memory: Task Manager, Details, Commit size."}},
    {"host-pinned",
     kHost,
     Confidence::kLikely,
     "Page-locked (pinned) memory of the host could not be allocated: RAM, or a limit on locked memory, did not "
     "suffice; the words are the CUDA runtime's, but the GPU's memory need not be full",
     {"In PyTorch pin_memory=False, fewer workers or a smaller prefetch_factor take less of it.",
      "ulimit -l shows the limit on locked memory, free -h what RAM there is; in WSL 2 pinned memory is limited.",
      "If an earlier kernel went wrong, this call is only the first to notice: look for an error above it."}},
    {"jetson-alloc",
     kMemory,
     Confidence::kLikely,
     "The board's memory, which CPU and GPU share, did not suffice (error 12 is: no memory)",
     {"See who holds it: free -h, tegrastats; the desktop alone takes over 1 GiB (sudo systemctl isolate "
      "multi-user.target).",
      "A smaller batch or input, half precision, fewer processes; swap does not help what the GPU uses."}},
    {"metal-buffer",
     kMemory,
     Confidence::kProved,
     "One buffer was asked for that is larger than Metal gives at all (its maxBufferLength), however much memory is "
     "free",
     {"Make this tensor smaller or work in pieces: often it is attention over the whole length, or a batch decoded at "
      "once."}},
    {"engine-none",
     kLaunch,
     Confidence::kHint,
     "cuDNN found no way to run this convolution: either none of its ways got the memory that it needs, or none exists "
     "for these types and this layout on this device",
     {"Try with less on the device (a batch of 1): if it works, it was memory, and torch.cuda.empty_cache() before "
      "this line can help, for cuDNN's workspace is taken while it chooses.",
      "Otherwise look at types: float64 or bfloat16 convolutions, or inputs of two types, have no way on some devices.",
      "torch.backends.cudnn.enabled = False goes round cuDNN (slower) and tells which it was."}},
    {"call-invalid",
     kLaunch,
     Confidence::kHint,
     "A CUDA call was refused for its arguments: a copy or launch with a wrong pointer or size, or libraries that do "
     "not go together; memory is not said to be the matter",
     {"Run it as faultline run -- PROGRAM: it names the call that was refused and its arguments.",
      "If it comes at the first touch of the GPU: two versions of CUDA libraries (pip list | grep -i nvidia, "
      "LD_LIBRARY_PATH), or a build older than the device."}},
    {"call-unsupported",
     kLaunch,
     Confidence::kHint,
     "A CUDA call was refused because this device or system does not offer what it asks for; memory is not said to be "
     "the matter",
     {"Run it as faultline run -- PROGRAM: it names the call that was refused.",
      "Virtual GPUs (vGPU), WSL and MIG slices lack some functions: peer access, IPC between processes, "
      "expandable_segments, cudaMallocAsync. Leave those settings out and try."}},
    {"call-capture",
     kLaunch,
     Confidence::kProved,
     "While a CUDA graph was being captured, something was called that cannot be part of a graph (a synchronisation, a "
     "copy to the host, a fresh allocation from the driver); memory is not the matter",
     {"Look for .item(), .cpu(), print of a tensor, or a library's first call inside the captured part; warm it up "
      "before the capture on a side stream.",
      "Run it as faultline run -- PROGRAM: it names the call."}},
    {"call-32bit",
     "tensor/shape-mismatch",
     Confidence::kProved,
     "A tensor has more elements than this operation can count with 32 bits (2^31 - 1): memory is not the matter",
     {"Split the batch for this operation, for example with torch.chunk, so that each part has fewer than 2147483648 "
      "elements."}},
    {"operands-index",
     "tensor/index-out-of-range",
     Confidence::kProved,
     "An index is too large, or negative, for the table it looks into (on the CPU; on a GPU the same ends in a "
     "device-side assert): most often a token or category number that is not below num_embeddings. Memory is not the "
     "matter",
     {"Print what goes into this line: ids.min(), ids.max(), and the table's size (embedding.num_embeddings, or "
      "model.config.vocab_size and max_position_embeddings for positions).",
      "A tokenizer with added tokens needs model.resize_token_embeddings(len(tokenizer)); a sequence longer than "
      "max_position_embeddings must be cut (truncation=True, max_length=...); padding of -100 or -1 belongs into "
      "labels, not into inputs."}},
    {"setup-fork",
     kDevice,
     Confidence::kProved,
     "CUDA was in use before the process was forked, and cannot be used in the child: memory is not the matter",
     {"multiprocessing.set_start_method(\"spawn\") before anything else, or num_workers=0.",
      "Or touch the GPU only in the children: no .cuda(), torch.cuda.is_available() tricks or models at import time; "
      "in a Dataset keep tensors on the CPU."}},
    {"setup-ptx",
     kDevice,
     Confidence::kProved,
     "A kernel was compiled by a newer CUDA than the driver can read (PTX): memory is not the matter",
     {"Update the driver, or build the extension with the CUDA that nvidia-smi shows or an older one.",
      "A wheel that holds finished code for this device needs no PTX: look for one for its compute capability."}},
    {"setup-init",
     kDevice,
     Confidence::kLikely,
     "CUDA could not be started in this process (initialization error); memory is not said to be the matter",
     {"The usual reason is a fork after CUDA was in use: multiprocessing with \"spawn\", or num_workers=0, tells.",
      "Otherwise nvidia-smi: a driver that was updated without a restart, or a device in a bad state (lines with Xid "
      "in dmesg)."}},
    {"setup-symbol",
     kDevice,
     Confidence::kLikely,
     "bitsandbytes found no kernel of its own for this device: the library was built for other architectures or "
     "another CUDA; memory is not the matter",
     {"Install a build for this CUDA and device: pip install -U bitsandbytes; python -m bitsandbytes shows what it "
      "found.",
      "Built from source: compute capability and CUDA version must be those of the machine."}},
    {"host-session",
     kHost,
     Confidence::kProved,
     "The notebook's machine ran out of host memory (RAM), not of the GPU's memory; the session was ended and all "
     "variables are gone",
     {"Choose a runtime with more RAM (Runtime, Change runtime type, High-RAM).",
      "Load data in pieces or memory-mapped, and delete what is no longer needed (del x) before loading more.",
      "Load models straight to the GPU: device_map=\"cuda\", low_cpu_mem_usage=True, or a half-precision checkpoint."}},
    {"host-worker",
     kHost,
     Confidence::kLikely,
     "A DataLoader worker was ended from outside: most often the host's memory (RAM) ran out; the GPU's memory is not "
     "the matter",
     {kFewerWorkers, "num_workers=0 shows an error of the dataset's own, if that is what ended it.",
      "dmesg -T | grep -i 'killed process' tells whether the system ended it for memory.", kWatchHost}},
    {"host-bus",
     kHost,
     Confidence::kLikely,
     "A DataLoader worker touched memory of the host that had nothing behind it (a bus error): most often the shared "
     "memory (/dev/shm) is full, as the message itself supposes; a memory-mapped file that was cut short or whose disk "
     "fails does the same. The GPU's memory is not the matter",
     {"See how full the shared memory is while it runs: df -h /dev/shm. Where it runs in a container, --shm-size=8g or "
      "--ipc=host gives it more (Docker gives 64 MiB unless told; in Kubernetes an emptyDir with medium: Memory).",
      "num_workers=0 needs none of it: if the error stays, or a line of the dataset fails, it was a file; look at "
      "those "
      "read with numpy.memmap, mmap or safetensors, and whether something writes or cuts them meanwhile.",
      "Fewer num_workers or a smaller prefetch_factor and batch put less into it."}},
    {"host-shm",
     kHost,
     Confidence::kProved,
     "Shared memory of the host (/dev/shm), which DataLoader workers pass tensors through, could not be had: it is "
     "full, or a limit on it was reached; the GPU's memory is not the matter",
     {"Where it runs in a container, give it more: docker run --shm-size=8g, or --ipc=host; in Kubernetes an emptyDir "
      "with medium: Memory at /dev/shm. Docker gives 64 MiB unless told.",
      "Fewer num_workers or a smaller prefetch_factor and batch put less into it; num_workers=0 needs none.",
      "See how full it is: df -h /dev/shm"}},
    {"setup-no-gpu",
     kDevice,
     Confidence::kProved,
     "The program sees no GPU: memory is not the matter",
     {"See what the machine has: nvidia-smi; and what the program may see: echo $CUDA_VISIBLE_DEVICES (empty or -1 "
      "hides all).",
      "In Colab or Kaggle choose a GPU runtime; in a container start with --gpus all; in Slurm ask for one "
      "(--gres=gpu:1).",
      "No GPU here at all? faultline plan -- PROGRAM runs it without one and tells whether it would fit; "
      "map_location=\"cpu\" loads a checkpoint without one."}},
    {"setup-cpu-build",
     kDevice,
     Confidence::kProved,
     "This PyTorch was built without CUDA (a CPU build), so no GPU can be used whatever the machine has: memory is not "
     "the matter",
     {"See which build it is: python -c \"import torch; print(torch.__version__, torch.version.cuda)\"; +cpu or None "
      "is a CPU build.",
      "Install a CUDA build: choose it at https://pytorch.org/get-started/locally/ and install into a clean "
      "environment; another package may have pulled the CPU build in.",
      "On a Mac use device \"mps\". Without a GPU, faultline plan -- PROGRAM tells what it would need on one; a CPU "
      "build suffices for that."}},
    {"setup-no-driver",
     kDevice,
     Confidence::kProved,
     "The NVIDIA driver is not there or not running, so no GPU can be used: memory is not the matter",
     {"nvidia-smi must work first: install the driver, or after an update of the kernel or driver restart the machine.",
      "In a container the driver comes from the host: start it with --gpus all and the NVIDIA container toolkit."}},
    {"setup-old-driver",
     kDevice,
     Confidence::kProved,
     "The NVIDIA driver is older than this program's CUDA needs: memory is not the matter",
     {"nvidia-smi shows the newest CUDA that the driver can serve (top right): update the driver, or install a build "
      "of PyTorch for that CUDA or an older one.",
      "In a container the driver is the host's; updating CUDA inside changes nothing."}},
    {"setup-driver-mismatch",
     kDevice,
     Confidence::kProved,
     "The driver that runs in the kernel and the driver's libraries are of different versions, most often after an "
     "update without a restart: memory is not the matter",
     {"Restart the machine, or unload and reload the nvidia kernel modules.",
      "cat /proc/driver/nvidia/version shows what runs; in a container make sure that no libcuda.so or compat package "
      "of its own comes before the host's."}},
    {"setup-busy",
     kDevice,
     Confidence::kLikely,
     "The device gives no context to this process: it is in exclusive mode and taken, or left in a bad state; memory "
     "is not said to be the matter",
     {"nvidia-smi -q -d COMPUTE shows the mode: Exclusive_Process lets one process in; nvidia-smi lists who is there.",
      "A process that died hard may still hold it, and Xid lines in dmesg tell of a device that needs a reset "
      "(nvidia-smi --gpu-reset).",
      "On MIG devices: is a compute instance made (nvidia-smi mig -lgi; mig -lci), and does CUDA_VISIBLE_DEVICES name "
      "it by its MIG- name?"}},
    {"setup-ordinal",
     kDevice,
     Confidence::kProved,
     "The program asked for a GPU number that it does not see: memory is not the matter",
     {"Numbers count from 0 among what CUDA_VISIBLE_DEVICES lets through: with CUDA_VISIBLE_DEVICES=3 that GPU is "
      "cuda:0.",
      "python -c \"import torch; print(torch.cuda.device_count())\"; more ranks than GPUs, or a cuda:1 kept in a "
      "checkpoint (map_location) end so too."}},
    {"setup-unknown",
     kDevice,
     Confidence::kLikely,
     "CUDA could not be started in this process; memory is not said to be the matter",
     {"CUDA_VISIBLE_DEVICES must be set before the program starts to use CUDA, not after.",
      "After a suspend or a driver update: sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm, or restart; then "
      "nvidia-smi."}},
    {"setup-fabric",
     kDevice,
     Confidence::kLikely,
     "The machine's NVSwitch fabric is not up, so CUDA does not start: memory is not the matter",
     {"systemctl status nvidia-fabricmanager: it must run, and be of the driver's own version."}},
    {"unknown-error",
     kLaunch,
     Confidence::kHint,
     "CUDA reports an error without a name: at the first touch of the GPU the driver is in a bad state; later, a "
     "kernel or the device failed",
     {"At the start: nvidia-smi, then restart or reload the nvidia modules.",
      "Later: faultline run -- PROGRAM names the launches that were under way, and lines with Xid in dmesg tell what "
      "the hardware saw."}},
    {"nvml-assert",
     kMemory,
     Confidence::kLikely,
     "PyTorch was about to report that GPU memory ran out and failed while it asked NVML for the numbers (MIG slices, "
     "Jetson and some virtual GPUs cannot answer); how much was missing is not said",
     {"Treat it as out of memory: a smaller batch or sequence, activation checkpointing, a smaller type.",
      "On a MIG slice the slice's memory is the limit, not the card's: nvidia-smi -L and nvidia-smi show it.",
      "faultline plan --gpu 10GiB -- PROGRAM tells whether it fits a slice of that size."}},
    {"async-bare",
     kMemory,
     Confidence::kLikely,
     "GPU memory ran out in PyTorch's cudaMallocAsync allocator (ComfyUI turns it on); its message has no numbers, so "
     "who held the memory cannot be told",
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
     {"Raise --gpu-memory-utilization (0.9 unless told) if the rest of the device is free: nvidia-smi.",
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
     "Less of the device is free than the share vLLM is told to take (gpu_memory_utilization): something else holds "
     "the rest",
     {"See who holds it: nvidia-smi; an earlier server that did not end is the usual one.",
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
