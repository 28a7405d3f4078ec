// What the texts of programs mean that have a kind of their own (sources/error_text/program_words.cpp).
#include "rules/known_messages/meanings.h"

namespace faultline {
namespace {

constexpr auto kPrograms = std::to_array<Meaning>({
    {"host-too-large",
     kHost,
     Confidence::kProved,
     "The program compared what it needs with the memory that the system has left, and did not start; it did not ask "
     "the GPU",
     {"Take a smaller model, a stronger quantisation or a shorter context, or end other programs: free -h shows what "
      "is "
      "available.",
      "In a container or a virtual machine its own limit counts: docker --memory, WSL's .wslconfig, "
      "/sys/fs/cgroup/memory.max."}},
    {"host-alloc-ggml",
     kHost,
     Confidence::kProved,
     "Host memory (RAM) ran out: the buffer was for the CPU, where llama.cpp puts the layers that are not on the GPU, "
     "and their context",
     {"Take a smaller or stronger quantised model, a shorter context (-c), or put more layers on the GPU (-ngl) if it "
      "has room.",
      kWatchHost}},
    {"harmless-mlock",
     kHost,
     Confidence::kProved,
     "This is not a failure: llama.cpp could not lock its memory against swapping, and works without that",
     {"Without --mlock the warning goes away; ulimit -l raises the limit on locked memory."}},
    {"harmless-tactic",
     kMemory,
     Confidence::kProved,
     "This is not a failure: while TensorRT built the engine, some of its tactics needed more GPU memory than was "
     "free, "
     "and it chose among the others; the engine may be slower for it",
     {"If it matters: build on a GPU with more free memory, or with smaller shapes or batch in the profile."}},
    {"host-javacpp",
     kHost,
     Confidence::kProved,
     "JavaCPP reached its own limit on host memory (RAM), which can be below what the machine has; GPU memory is not "
     "the problem",
     {"-Dorg.bytedeco.javacpp.maxphysicalbytes=32G (of the process) and -Dorg.bytedeco.javacpp.maxbytes=16G (beside "
      "Java's heap) raise it; what stays with -Xmx is the heap's.",
      "Or hold less: a smaller batch, and close() or workspaces for what is no longer needed."}},
    {"host-dask",
     kHost,
     Confidence::kProved,
     "A Dask worker exceeded its share of host memory (RAM) and was restarted; GPU memory is not the problem",
     {"Fewer workers on a machine, or a larger memory_limit for each; smaller partitions.",
      "The dashboard (port 8787) shows what each worker holds; distributed.worker.memory in its settings moves the "
      "limits."}},
    {"host-shm-nccl",
     kHost,
     Confidence::kProved,
     "NCCL exchanges data between the processes of one machine through shared memory (/dev/shm), and could not get "
     "any: it is full, or at its limit; GPU memory is not the problem",
     {"Where it runs in a container, give it more: docker run --shm-size=8g, or --ipc=host; in Kubernetes an emptyDir "
      "with medium: Memory at /dev/shm. Docker gives 64 MiB unless set.",
      "See how full it is: df -h /dev/shm; files nccl-* of runs that were killed can be removed.",
      "NCCL_SHM_DISABLE=1 works without it, slower."}},
    {"host-evicted",
     kHost,
     Confidence::kProved,
     "Kubernetes stopped the pod because its machine was short of host memory (RAM); GPU memory is not the problem",
     {"Request what it needs (resources.requests.memory), so that it is put on a machine that has it; a pod that takes "
      "more than it requests is stopped first.",
      kWatchHost}},
    {"setup-container",
     kDevice,
     Confidence::kProved,
     "The container could not be given a GPU: the NVIDIA container toolkit is not installed or not set up, or the "
     "machine's driver does not run; memory is not the problem",
     {"nvidia-smi must work on the machine itself first.",
      "Then the toolkit: sudo nvidia-ctk runtime configure --runtime=docker, restart Docker, and try docker run --rm "
      "--gpus all ubuntu nvidia-smi."}},
    {"rocm-hang",
     kLaunch,
     Confidence::kLikely,
     "ROCm's runtime found the GPU hanging and ended the program: a kernel that never ends or went wrong, or the "
     "driver; the message does not say that memory ran out",
     {"dmesg has what the driver saw (amdgpu: ring timeout, page fault, GPU reset); give Faultline those lines.",
      "If it is a GPU that ROCm does not support officially, HSA_OVERRIDE_GFX_VERSION decides which code it gets: a "
      "wrong one hangs."}},
    {"serving-prefill",
     kMemory,
     Confidence::kProved,
     "SGLang's pool for keys and values, which is a fixed share of the device, had no room for this batch; the device "
     "itself need not be full",
     {"Fewer tokens at once: a lower --max-running-requests, --chunked-prefill-size or --max-total-tokens.",
      "Or a larger pool: a higher --mem-fraction-static where the device has room beside it, a quantised model, "
      "--kv-cache-dtype fp8_e5m2, more GPUs (--tp)."}},
    {"serving-static",
     kMemory,
     Confidence::kProved,
     "Once the weights were loaded, nothing of SGLang's static share of the device was left for keys and values",
     {"Raise --mem-fraction-static if the rest of the device is free (nvidia-smi); what is outside the share is needed "
      "for activations and CUDA graphs.",
      "Or make the weights smaller: quantisation, --tp over more GPUs."}},
    {"serving-retract",
     kMemory,
     Confidence::kProved,
     "SGLang's pool for keys and values was full; it retracted requests and computes them again later: that costs "
     "time, and nothing has failed",
     {"If it comes often: a higher --schedule-conservativeness (1.3), a lower --max-running-requests, or a higher "
      "--mem-fraction-static."}},
    {"serving-preempt",
     kMemory,
     Confidence::kProved,
     "vLLM's cache for keys and values was full; it took a request back and computes it again later, which costs time: "
     "nothing has failed",
     {"If it comes often: a higher --gpu-memory-utilization where the device has room, a lower --max-num-seqs or "
      "--max-num-batched-tokens, or --tensor-parallel-size 2."}},
    {"serving-unbalanced",
     kMemory,
     Confidence::kLikely,
     "SGLang found one of its GPUs with much less free memory than the others: most often another process is on it",
     {"See who holds it: nvidia-smi; most often it is an earlier server that never ended.",
      "Or leave that GPU out: CUDA_VISIBLE_DEVICES, --base-gpu-id."}},
    {"vllm-sampler",
     kMemory,
     Confidence::kProved,
     "vLLM ran its sampler for the largest number of requests, to see that it fits, and GPU memory ran out",
     {"Lower --max-num-seqs: the sampler holds one row of the vocabulary for each request.",
      "Or leave room for it: a lower --gpu-memory-utilization."}},
    {"vllm-profiling",
     kMemory,
     Confidence::kProved,
     "While vLLM measured how much memory it needs, another process gave memory of the same GPU back, so the "
     "measurement was of no use and vLLM stopped: it did not run out of memory",
     {"Start it again once the other processes on this GPU have started or ended: nvidia-smi shows them.",
      "Several servers on one GPU: start them one after the other."}},
    {"model-runner",
     kMemory,
     Confidence::kHint,
     "The process that runs the model ended by itself; ollama supposes that memory was missing, and does not say "
     "whether "
     "the GPU's or the host's",
     {"The server's log has the reason: journalctl -u ollama, or ~/.ollama/logs/server.log; give Faultline that.",
      "A smaller model or a stronger quantisation shows whether it was memory."}},
    {"batch-none",
     kMemory,
     Confidence::kLikely,
     "accelerate halved the batch after each out-of-memory error and reached zero: the program runs out of memory with "
     "a batch of 1 too, or what it had held was not freed between the tries",
     {"Run it with a batch of 1 and without find_executable_batch_size: the error then has numbers. Give Faultline "
      "that.",
      "What is made outside the function that is tried again stays alive: make the model and the optimizer inside "
      "it."}},
    {"serving-warmup",
     kMemory,
     Confidence::kProved,
     "TGI tried its largest batch at the start and the device had no room for that many prefill tokens",
     {"Lower --max-batch-prefill-tokens, and --max-input-tokens and --max-total-tokens with it.",
      "Or make room: a quantised model (--quantize), --num-shard over more GPUs; nvidia-smi shows whether something "
      "else holds the device."}},
    {"model-vram",
     kMemory,
     Confidence::kProved,
     "The model and its cache do not fit into the GPU memory that the program may use",
     {"A shorter context or a quantised cache, a model with fewer bits a weight, or more GPUs.",
      "See whether something else holds the device: nvidia-smi; and how much the program was told to use of it (a "
      "split over GPUs, a reserve, gpu_memory_utilization)."}},
    {"buffer-limit",
     kMemory,
     Confidence::kProved,
     "The program requested one buffer larger than this device allows in one piece, however much memory is free",
     {"Make it smaller: a smaller batch, a shorter sequence, attention or decoding in pieces (tiling), a smaller "
      "type."}},
    {"dispatched",
     kMemory,
     Confidence::kLikely,
     "The quantised model did not fit the GPU memory that accelerate counted as free, so device_map=\"auto\" would "
     "have put some of it on the CPU or the disk, which bitsandbytes does not accept; nothing was loaded, and the "
     "message does not say how much was missing",
     {"See what is free before the model is loaded: nvidia-smi; an earlier model in the same notebook counts (del "
      "model, gc.collect(), torch.cuda.empty_cache(), or restart it).",
      "If it should fit, say so: device_map={\"\": 0} puts all of it on GPU 0 and fails with a real message if it "
      "does not fit; max_memory={0: \"22GiB\"} raises what accelerate counts with.",
      "Else a smaller model or fewer bits (load_in_4bit); llm_int8_enable_fp32_cpu_offload=True leaves the rest on the "
      "CPU in float32, slowly."}},
    {"dispatched-disk",
     kMemory,
     Confidence::kLikely,
     "The model fits neither the GPU memory nor the RAM that accelerate counted as free, so device_map=\"auto\" would "
     "have put some of it on the disk, and no folder for it was given",
     {"See what is free: nvidia-smi and free -h; a smaller or quantised model, or a smaller type "
      "(torch_dtype=\"auto\").",
      "offload_folder=\"offload\" lets it work from the disk, slowly."}},
    {"harmless-offload",
     kMemory,
     Confidence::kProved,
     "This is not a failure: accelerate found too little free GPU memory for the whole model and left part of it on "
     "the "
     "CPU or the disk; it works, slowly",
     {"If all of it should fit: run nvidia-smi before the model is loaded, and device_map={\"\": 0} to put it on GPU 0 "
      "or fail."}},
    {"setup-count-memory",
     kDevice,
     Confidence::kLikely,
     "CUDA could not start in this process: the first look at the devices returned error 2, out of memory. There was "
     "not even room for a context, or the process has a limit of its own; the message does not say how much was free",
     {"See who holds the devices, all of them: nvidia-smi; most often it is an earlier run that never ended.",
      "A limit does it too: ulimit -v, a cgroup, a MIG slice, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT.",
      "CUDA_VISIBLE_DEVICES with only the GPU that you want leaves a full one out; set it before the program starts to "
      "use CUDA."}},
    {"level-zero-lost",
     kLaunch,
     Confidence::kHint,
     "The Intel GPU stopped working for this process (UR_RESULT_ERROR_DEVICE_LOST): a kernel ran too long or went "
     "wrong, "
     "or the driver failed, which it also does when memory is short; the message does not say which",
     {"A smaller batch or model shows whether it was memory.",
      "dmesg | grep -i -E \"i915|xe \" shows what the driver saw."}},
    {"directx-lost",
     kLaunch,
     Confidence::kHint,
     "Windows removed the GPU from this program (DXGI device removed, hung or reset): a shader ran too long or went "
     "wrong, or the driver failed; the message does not say that memory ran out",
     {"The code behind it says more: 0x887A0006 is work that took too long, 0x887A0005 a device that is gone, "
      "0x887A0007 a command that the driver refused.",
      "Update the driver; take back overclocking; look at power and heat."}},
    {"metal-hang",
     kLaunch,
     Confidence::kHint,
     "macOS stopped the work on the GPU because it took too long (a hang or a timeout); the message does not say that "
     "memory ran out",
     {"Give the GPU less at once: a smaller batch or prompt, work in pieces."}},
    {"rocm-timeout",
     kLaunch,
     Confidence::kHint,
     "The AMD driver saw the GPU take too long over a piece of work (a ring timeout); this text does not show whether "
     "it recovered or was reset. It does not say that memory ran out",
     {"What follows in dmesg shows more: \"soft recovered\" means that only that work was stopped, \"GPU reset begin\" "
      "that "
      "the GPU was reset.",
      "The program that the log names had work on the GPU at that moment; a kernel that runs too long or wrong is the "
      "usual reason, an unstable clock or power supply another."}},
    {"rocm-recovered",
     kLaunch,
     Confidence::kLikely,
     "The AMD driver ended a piece of work that took too long (a ring timeout) and the GPU went on without a reset: "
     "what was in its memory is still there. It does not say that memory ran out",
     {"If it comes often: a kernel that runs too long or wrong is the usual reason, an unstable clock or power supply "
      "another."}},
    {"rocm-submission",
     kMemory,
     Confidence::kLikely,
     "The AMD driver had no memory for work that was given to it: GPU memory (VRAM), or the host memory that the GPU "
     "may use (GTT); the line has no numbers and does not say which",
     {"rocm-smi --showmeminfo vram gtt, or radeontop, shows how full both are.",
      "Hold less at once: a smaller batch, model, texture or resolution; other programs on the GPU, the desktop and a "
      "browser count."}},
    {"rocm-kfd",
     kMemory,
     Confidence::kLikely,
     "The AMD compute driver (KFD) had no memory for a process: GPU memory, or the part of host memory that GPU "
     "programs may use; the line does not say which",
     {"rocm-smi --showmeminfo vram gtt shows how full both are, free -h the host.",
      "\"exceeds resident system memory limit\" beside it means the host's part, which is most of RAM unless "
      "amdgpu.no_system_mem_limit=1 is set."}},
    {"level-zero-hang",
     kLaunch,
     Confidence::kLikely,
     "The Intel driver found the GPU hanging in the work of the program that the line names; after \"context reset\" "
     "that program's work on the GPU is lost. It does not say that memory ran out",
     {"A kernel that runs too long or wrong is the usual reason: give the GPU less at once.",
      "Long kernels on purpose need a longer or no time limit (i915.enable_hangcheck=0, preempt_timeout_ms of the "
      "engine)."}},
    {"nvrm-sysmem",
     kMemory,
     Confidence::kLikely,
     "The NVIDIA driver had no room in GPU memory for a buffer of the display and took host memory for it instead: "
     "nothing has failed, and the display may be slower",
     {"If programs fail as well, see what holds the GPU: nvidia-smi."}},
    {"setup-scheduling",
     kDevice,
     Confidence::kProved,
     "Kubernetes did not start the pod: no node has as many free GPUs as it requests. Nothing ran, and GPU memory is "
     "not the problem",
     {"See which pods hold them: kubectl describe nodes (Allocated resources); end one, add a node, or request fewer.",
      "If a node's Capacity lists no GPU at all, its device plugin is not running."}},
    {"tpu-scratch",
     kLaunch,
     Confidence::kProved,
     "A kernel needs more of the TPU core's scratch memory (vmem, smem) than there is: it was not compiled, and the "
     "device's memory (HBM) is not the problem",
     {"In a Pallas kernel: smaller blocks (block_shape of BlockSpec), fewer of them in flight; for smem smaller "
      "prefetched scalars.",
      "Of vmem a kernel has a scoped limit: vmem_limit_bytes in the kernel's compiler parameters, or for the whole "
      "program XLA's xla_tpu_scoped_vmem_limit_kib (LIBTPU_INIT_ARGS), raises it."}},
    {"host-arena",
     kHost,
     Confidence::kProved,
     "ONNX Runtime's arena for the CPU found no host memory (RAM); GPU memory is not involved",
     {"A smaller batch or input, or a quantised model; enable_cpu_mem_arena=False in SessionOptions keeps less.",
      kWatchHost}},
    {"rocm-reset",
     kLaunch,
     Confidence::kLikely,
     "The AMD driver found the GPU hanging and reset it; what was in its memory is lost, and programs that used it "
     "fail "
     "afterwards. It does not say that memory ran out",
     {"The program that the log names had work on the GPU at that moment; a kernel that runs too long or wrong is the "
      "usual reason, an unstable clock or power supply another.",
      "AMD_SERIALIZE_KERNEL=3 makes the line that is reported the line that launched the work."}},
    {"triton-registers",
     kLaunch,
     Confidence::kProved,
     "A Triton kernel needs more registers than one block can have on this GPU; GPU memory is not full",
     {"Smaller block sizes or fewer warps (num_warps) for that kernel."}},
    {"triton-tensor-memory",
     kLaunch,
     Confidence::kProved,
     "A Triton kernel needs more tensor memory than one block can have on this GPU; GPU memory is not full",
     {"Smaller block sizes or fewer stages (num_stages) for that kernel."}},
    {"nvrm-memory",
     kLaunch,
     Confidence::kHint,
     "NVIDIA's kernel driver could not allocate memory for itself (NV_ERR_NO_MEMORY): of the GPU, or of the host; the "
     "line "
     "does not say which",
     {"See both: nvidia-smi and free -h; other lines of dmesg around it name the program.",
      "If neither is full, update the driver: some of its releases print this line without harm."}},
    {"host-ray-store",
     kHost,
     Confidence::kProved,
     "Ray's object store, which is host memory (/dev/shm), is full; GPU memory is not involved",
     {"Let go of what is no longer needed (del reference), or put large objects once and pass the reference.",
      "ray memory shows who holds it; ray.init(object_store_memory=…) makes it larger, in a container also "
      "--shm-size."}},
    {"gpu-lost",
     kLaunch,
     Confidence::kLikely,
     "The GPU no longer answers on the bus: power, heat, the slot or the card. The program is not at fault, and memory "
     "is not the problem",
     {"Restart the machine; dmesg | grep -i -E \"xid|nvrm\" shows what came before it.",
      "If it comes under load, look at power and heat: nvidia-smi -q -d POWER,TEMPERATURE, the power cables, the "
      "riser; "
      "a lower limit (nvidia-smi -pl) shows whether it is power."}},
    {"nccl-timeout",
     kLaunch,
     Confidence::kLikely,
     "A collective operation (NCCL) timed out: a rank never reached it, or the network between them failed; the "
     "message does not say that memory ran out",
     {"Look at the ranks that never got there: one may have died of its own error (out of memory too), or wait "
      "elsewhere (uneven batches, a branch that only some ranks take). Give Faultline that rank's log.",
      "TORCH_NCCL_DESYNC_DEBUG=1 and NCCL_DEBUG=INFO name them; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 records what each "
      "rank did last.",
      "If a rank is only slow (a checkpoint, an evaluation), init_process_group(timeout=…) gives it more time."}},
    {"nvenc-session",
     kMemory,
     Confidence::kHint,
     "The encoder (NVENC) could not open another session and says out of memory: on consumer cards most often the "
     "driver's limit on sessions is reached, else GPU memory is full; it does not say which",
     {"nvidia-smi --query-gpu=encoder.stats.sessionCount,memory.used --format=csv shows both: sessions in use "
      "(streams, "
      "recordings and other encoders count), and memory.",
      "End sessions that are not needed, or put fewer encodes on one card; a newer driver allows more of them."}},
    {"level-zero-resources",
     kMemory,
     Confidence::kHint,
     "The driver of this Intel GPU was out of resources: its memory, registers or local memory for a kernel, or one "
     "buffer beyond its largest; it does not say which",
     {"A smaller batch or model shows whether it was memory: xpu-smi stats -d 0 shows how full the device is.",
      "One buffer over 4 GB needs UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1."}},
    {"rocm-critical",
     kLaunch,
     Confidence::kHint,
     "The ROCm runtime stopped the process over memory that it could not use (\"Memory in use\"): in a container most "
     "often a missing permission, not full memory",
     {"In a container: --ipc=host --device /dev/kfd --device /dev/dri --group-add video; with SELinux, allow map on "
      "/dev/kfd.",
      "dmesg | grep -i -E \"amdgpu|avc\" shows what the driver, or SELinux, saw at that moment."}},
});

}  // namespace

std::span<const Meaning> program_meanings() { return kPrograms; }

}  // namespace faultline
