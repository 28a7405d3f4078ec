// The memory of the host ran out, as programs, libraries and compilers tell of it.
#include "sources/messages/extractors.h"
#include "sources/messages/kinds.h"
#include "sources/messages/tables.h"
#include "trace/framework.h"

namespace faultline {
namespace {

using enum Confidence;
using enum Force;
using enum Stands;

const KindRow kHostMemoryKinds[] = {
    {.name = "host-alloc",
     .id = MessageKind::kHostAlloc,
     .rule = kHostMemory,
     .meaning = "Host memory (RAM) ran out, not GPU memory: the request was for the CPU, so a larger GPU or "
                "torch.cuda.empty_cache() changes nothing",
     .meaning_beyond_torch = "Host memory (RAM) ran out, not GPU memory: the request was for the CPU, so a larger GPU "
                             "changes nothing",
     .tries =
         {"Request less at once at this line: a smaller array, pieces, numpy.memmap, or a smaller type; check the "
          "extents if the size is absurd.",
          of_torch_since_2_1(
              "Loading a model: torch.load(..., mmap=True), low_cpu_mem_usage=True or safetensors keep it from being "
              "in RAM twice."),
          kWatchHost, kFewerWorkers},
     .words = {{.text = "defaultcpuallocator: can't allocate memory",
                .stands = kAnywhereOrCode,
                .reads = read_first_size},
               {.text = "defaultcpuallocator: not enough memory", .stands = kAnywhereOrCode, .reads = read_first_size},
               {.text = "torch: not enough memory: you tried to allocate",
                .stands = kAsErrorOrCode,
                .reads = read_first_size},
               {.text = "unable to allocate ",
                .stands = kAsErrorOrCode,
                .accepts = is_for_an_array,
                .reads = read_first_size},
               {.text = "memoryerror",
                .stands = kAsErrorOrCode,
                .accepts = is_memory_error_of_host,
                .reads = read_first_size}}},
    {.name = "harmless-host-share",
     .is_harmless = true,
     .rule = kHostMemory,
     .meaning = "This is no error: TensorFlow says that one request takes more than a tenth of the free host memory "
                "(not GPU memory), and goes on",
     .tries = {"Look further down in the log for what failed; if nothing did, there is nothing to do.",
               "If the process is killed after it, host memory ran out: smaller batches, or tf.data instead of whole "
               "arrays."},
     .words = {{"exceeds 10% of free system memory", kAnywhereOrCode, kWeak}}},
    {.name = "host-pinned-pool",
     .id = MessageKind::kHostPinnedPool,
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning =
         "TensorFlow or JAX requested page-locked host memory, through which copies to the GPU go, and got none: RAM, "
         "or a limit on locked memory, was not enough; the words are CUDA's, but GPU memory need not be full",
     .tries =
         {"Copy less at once: smaller batches, fewer of them prefetched (prefetch of tf.data), or the data in pieces.",
          "ulimit -l shows the limit on locked memory, free -h what RAM there is; in WSL 2 and in containers it is "
          "limited."},
     .words = {{"could not allocate pinned host memory of size: ", kAnywhere, kBenign, "memory of size: {requested:n}",
                "", file_name_of(Framework::kTensorFlow)}}},
    {.name = "host-alloc-xla",
     .id = MessageKind::kHostAllocXla,
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "XLA uses these words for a buffer on the CPU: then host memory (RAM) ran out, not GPU memory. The "
                "text does not name the device, so that is likely and not proved",
     .tries =
         {"python -c \"import jax; print(jax.devices())\" shows where it ran; if that is a GPU, GPU memory ran out.",
          "Request less at once at this line: a smaller array, pieces, numpy.memmap, or a smaller type; check the "
          "extents if the size is absurd.",
          "Watch it while the program runs: free -h; in a container the limit counts, not the machine: cat "
          "/sys/fs/cgroup/memory.max."}},
    {.name = "host-refused",
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "The system refused the process host memory (ENOMEM): RAM and swap are used up, the process has a "
                "limit, or the kernel promises no more than there is; GPU memory is not the problem",
     .tries = {of_torch(
                   "At os.fork, subprocess or the start of a DataLoader: a fork requests as much as the process has. "
                   "Start children while it is small, or use multiprocessing.set_start_method(\"spawn\"); fewer "
                   "num_workers."),
               "At an array or a file: request less at once, or use numpy.memmap; with many mappings (mmap) look at "
               "sysctl vm.max_map_count.",
               "ulimit -v, and sysctl vm.overcommit_memory (2 refuses early) show limits.", kWatchHost},
     .words = {{"[errno 12] cannot allocate memory", kAsErrorOrCode}, {"fork: cannot allocate memory"}}},
    {.name = "host-bad-alloc",
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "C++ code ran out of host memory (std::bad_alloc): RAM, not GPU memory, unless a GPU library says "
                "otherwise on the same line",
     .tries = {"A damaged or absurd size gives the same error: look at what this line gets.", kWatchHost,
               kFewerWorkers},
     .words = {{.text = "std::bad_alloc", .stands = kAsErrorOrCode, .accepts = is_bad_alloc_of_host}}},
    {.name = "host-pinned",
     .id = MessageKind::kHostPinned,
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "Page-locked (pinned) host memory could not be allocated: RAM, or a limit on locked memory, was not "
                "enough; the words are CUDA's, but GPU memory need not be full",
     .tries =
         {"In PyTorch pin_memory=False, fewer workers or a smaller prefetch_factor need less of it.",
          "ulimit -l shows the limit on locked memory, free -h what RAM there is; in WSL 2 pinned memory is limited.",
          "If an earlier kernel went wrong, this call is only the first to notice: look for an error above it."},
     .words = {{"gpu allocpinnedmemory fail to allocate memory", kAnywhere, kStrong, "", "", "PhysX"}}},
    {.name = "vulkan-host-memory",
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "A Vulkan program ran out of host memory (VK_ERROR_OUT_OF_HOST_MEMORY): RAM, or what the driver needs "
                "for itself, not GPU memory",
     .tries = {kWatchHost,
               "If RAM is free, the driver could not start on this device: vulkaninfo --summary shows which devices it "
               "sees."},
     .words = {{"erroroutofhostmemory", kAnywhereOrCode, kWeak},
               {"vk_error_out_of_host_memory", kAnywhereOrCode, kWeak}}},
    {.name = "opencl-host",
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "OpenCL ran out of host memory (CL_OUT_OF_HOST_MEMORY, -6): RAM, or what the driver needs for itself, "
                "not GPU memory",
     .tries = {kWatchHost, "If RAM is free, look at the driver: clinfo must list the device."},
     .words = {{"cl_out_of_host_memory", kAnywhereOrCode, kWeak},
               {"failed: out_of_host_memory", kAnywhereOrCode, kWeak},
               {"out of host memory", kAsError, kStrong, "", "lightgbm"},
               {"clcreatecontext (-6)", kAnywhere, kWeak}}},
    {.name = "ptxas-host",
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "The compiler for GPU code (ptxas) ran out of host memory: RAM while compiling, not GPU memory",
     .tries = {"Compile fewer files at once: MAX_JOBS=2 pip install …, make -j2; each ptxas can take several GB.",
               kWatchHost},
     .words = {{"ptxas fatal : memory allocation failure", kAnywhereOrCode}}},
    {.name = "host-too-large",
     .rule = kHostMemory,
     .meaning = "The program compared what it needs with the memory that the system has left, and did not start; it "
                "did not ask the GPU",
     .tries = {"Take a smaller model, a stronger quantisation or a shorter context, or end other programs: free -h "
               "shows what is available.",
               "In a container or a virtual machine its own limit counts: docker --memory, WSL's .wslconfig, "
               "/sys/fs/cgroup/memory.max."},
     .words = {{"model requires more system memory (", kAnywhere, kStrong,
                "system memory ({requested}) than is available ({free})", "", "ollama"},
               {"model loading was stopped due to insufficient system resources", kAnywhere, kStrong,
                "requires approximately {requested} of memory", "", "LM Studio"},
               {"insufficient memory to run circuit ", kAnywhere, kStrong,
                "required memory: {requested}, max memory: {free}", "", "Qiskit Aer"}}},
    {.name = "host-alloc-ggml",
     .rule = kHostMemory,
     .meaning = "Host memory (RAM) ran out: the buffer was for the CPU, where llama.cpp puts the layers that are not "
                "on the GPU, and their context",
     .tries = {"Take a smaller or stronger quantised model, a shorter context (-c), or put more layers on the GPU "
               "(-ngl) if it has room.",
               kWatchHost},
     .words = {{"unable to allocate cpu buffer", kAsError, kWeak, "", "", "llama.cpp"},
               {"alloc_tensor_range: failed to allocate cpu buffer", kAnywhere, kStrong, "buffer of size {requested:n}",
                "", "llama.cpp"},
               {"ggml_gallocr_reserve_n: failed to allocate cpu buffer", kAnywhere, kStrong,
                "buffer of size {requested:n}", "", "llama.cpp"},
               {"ggml_aligned_malloc: insufficient memory", kAnywhere, kStrong, "attempted to allocate {requested}", "",
                "llama.cpp"},
               {"ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate", kAnywhere, kWeak,
                "buffer of size {requested:n}", "", "llama.cpp"},
               {"ggml_assert(data != null && \"failed to allocate buffer\") failed", kAnywhere, kStrong, "", "",
                "llama.cpp"},
               {"ggml_assert: ", kAnywhere, kStrong, "", "failed to allocate buffer", "llama.cpp"}}},
    {.name = "harmless-mlock",
     .is_harmless = true,
     .rule = kHostMemory,
     .meaning = "This is not a failure: llama.cpp could not lock its memory against swapping, and works without that",
     .tries = {"Without --mlock the warning goes away; ulimit -l raises the limit on locked memory."},
     .words = {{"warning: failed to mlock ", kAnywhere, kStrong, "", "", "llama.cpp"}}},
    {.name = "host-arena",
     .id = MessageKind::kHostArena,
     .rule = kHostMemory,
     .meaning = "ONNX Runtime's arena for the CPU found no host memory (RAM); GPU memory is not involved",
     .tries =
         {"A smaller batch or input, or a quantised model; enable_cpu_mem_arena=False in SessionOptions keeps less.",
          kWatchHost}},
};

}  // namespace

std::span<const KindRow> host_memory_kinds() { return kHostMemoryKinds; }

}  // namespace faultline
