// GPU memory ran out around a model: engines that serve it, what spreads it over devices, what measures for it.
#include "sources/messages/extractors.h"
#include "sources/messages/kinds.h"
#include "sources/messages/tables.h"

namespace faultline {
namespace {

using enum Confidence;
using enum Force;
using enum Stands;

const KindRow kServingKinds[] = {
    {.name = "jetson-alloc",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "The board ran out of memory, which CPU and GPU share (error 12: no memory)",
     .tries = {"See who holds it: free -h, tegrastats; the desktop alone takes over 1 GiB (sudo systemctl isolate "
               "multi-user.target).",
               "A smaller batch or input, half precision, fewer processes; swap does not help what the GPU uses."},
     .words = {{"nvmapmemalloc", kAsErrorOrCode}}},
    {.name = "nvml-assert",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning =
         "PyTorch was about to report that GPU memory ran out and failed while it asked NVML for the numbers (MIG "
         "slices, Jetson and some virtual GPUs cannot answer); the message does not say how much was missing",
     .tries = {"Treat it as out of memory: a smaller batch or sequence, activation checkpointing, a smaller type.",
               "On a MIG slice the slice's memory is the limit, not the card's: nvidia-smi -L and nvidia-smi show it.",
               "faultline plan --gpu 10GiB -- PROGRAM says whether it fits a slice of that size."},
     .words = {{"nvml_success == r internal assert failed", kAsErrorOrCode}}},
    {.name = "async-bare",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "PyTorch's cudaMallocAsync allocator ran out of GPU memory (ComfyUI turns it on); its message has no "
                "numbers, so it does not show who held the memory",
     .tries = {"Hold less at once: a smaller image or batch, tiled VAE, a quantised or half-precision model; in "
               "ComfyUI --lowvram or --novram keeps weights in RAM.",
               "See who else holds the device: nvidia-smi",
               "ComfyUI --disable-cuda-malloc goes back to PyTorch's usual allocator, whose message has the numbers; "
               "give that one to faultline explain."},
     .words =
         {{.text = "allocation on device", .stands = kAsErrorOrCode, .force = kWeak, .accepts = is_without_numbers}}},
    {.name = "vllm-no-blocks",
     .rule = kGpuMemory,
     .meaning = "vLLM has no room for its key-value cache: the weights and the profiling run took all of the share it "
                "may use (gpu_memory_utilization)",
     .tries = {"Raise --gpu-memory-utilization (0.9 unless set) if the rest of the device is free: nvidia-smi.",
               "Shrink what comes first: --max-num-seqs, --max-num-batched-tokens, --max-model-len, --enforce-eager "
               "(no CUDA graphs), a quantised model.",
               "Or split the model: --tensor-parallel-size 2."},
     .words = {{"no available memory for the cache blocks", kAsErrorOrCode}}},
    {.name = "vllm-length",
     .id = MessageKind::kVllmLength,
     .rule = kGpuMemory,
     .meaning =
         "The key-value cache that vLLM has room for is smaller than one request of the model's full length needs",
     .tries = {without_number(
                   "Set --max-model-len to at most the number of tokens that the message says can be stored."),
               "Or make room: a higher --gpu-memory-utilization, --kv-cache-dtype fp8, a quantised model, "
               "--tensor-parallel-size 2."},
     .words = {{.text = "tokens that can be stored in kv cache", .stands = kAsErrorOrCode, .reads = read_length},
               {.text = "which is larger than the available kv cache memory",
                .stands = kAsErrorOrCode,
                .reads = read_length_and_cache}}},
    {.name = "vllm-start",
     .id = MessageKind::kVllmStart,
     .rule = kGpuMemory,
     .meaning = "Less of the device is free than the share vLLM is set to take (gpu_memory_utilization): something "
                "else holds the rest",
     .tries = {"See who holds it: nvidia-smi; most often it is an earlier server that never ended.",
               without_number("Or take less: --gpu-memory-utilization below the free part of the device.")},
     .words = {{.text = "is less than desired gpu memory utilization",
                .stands = kAsErrorOrCode,
                .reads = read_serving_start}}},
    {.name = "serving-prefill",
     .rule = kGpuMemory,
     .meaning = "SGLang's pool for keys and values, which is a fixed share of the device, had no room for this batch; "
                "the device itself need not be full",
     .tries = {"Fewer tokens at once: a lower --max-running-requests, --chunked-prefill-size or --max-total-tokens.",
               "Or a larger pool: a higher --mem-fraction-static where the device has room beside it, a quantised "
               "model, --kv-cache-dtype fp8_e5m2, more GPUs (--tp)."},
     .words = {{"prefill out of memory. try to lower your batch size", kAsError, kStrong, "", "", "SGLang"},
               {"decode out of memory. try to lower your batch size", kAsError, kStrong, "", "", "SGLang"}}},
    {.name = "serving-static",
     .rule = kGpuMemory,
     .meaning =
         "Once the weights were loaded, nothing of SGLang's static share of the device was left for keys and values",
     .tries = {"Raise --mem-fraction-static if the rest of the device is free (nvidia-smi); what is outside the share "
               "is needed for activations and CUDA graphs.",
               "Or make the weights smaller: quantisation, --tp over more GPUs."},
     .words = {{"not enough memory. please try to increase --mem-fraction-static", kAsError, kStrong, "", "", "SGLang"},
               {"loaded weights leave no gpu memory for the kv cache under ", kAsError, kStrong, "", "", "SGLang"}}},
    {.name = "serving-retract",
     .rule = kGpuMemory,
     .meaning = "SGLang's pool for keys and values was full; it retracted requests and computes them again later: that "
                "costs time, and nothing has failed",
     .tries = {"If it comes often: a higher --schedule-conservativeness (1.3), a lower --max-running-requests, or a "
               "higher --mem-fraction-static."},
     .words = {{"kv cache pool is full. retract requests", kAsError, kBenign, "", "", "SGLang"},
               {"decode out of memory happened", kAsError, kBenign, "", "", "SGLang"}}},
    {.name = "serving-preempt",
     .rule = kGpuMemory,
     .meaning = "vLLM's cache for keys and values was full; it took a request back and computes it again later, which "
                "costs time: nothing has failed",
     .tries = {"If it comes often: a higher --gpu-memory-utilization where the device has room, a lower --max-num-seqs "
               "or --max-num-batched-tokens, or --tensor-parallel-size 2."},
     .words = {{"is preempted by preemptionmode", kAnywhere, kBenign, "", "", "vLLM"}}},
    {.name = "serving-unbalanced",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning =
         "SGLang found one of its GPUs with much less free memory than the others: most often another process is on it",
     .tries = {"See who holds it: nvidia-smi; most often it is an earlier server that never ended.",
               "Or leave that GPU out: CUDA_VISIBLE_DEVICES, --base-gpu-id."},
     .words = {{"the memory capacity is unbalanced. some gpus may be occupied", kAsError, kStrong, "", "", "SGLang"}}},
    {.name = "vllm-sampler",
     .rule = kGpuMemory,
     .meaning = "vLLM ran its sampler for the largest number of requests, to see that it fits, and GPU memory ran out",
     .tries = {"Lower --max-num-seqs: the sampler holds one row of the vocabulary for each request.",
               "Or leave room for it: a lower --gpu-memory-utilization."},
     .words = {{"cuda out of memory occurred when warming up sampler with", kAsError, kStrong, "", "", "vLLM"}}},
    {.name = "vllm-profiling",
     .rule = kGpuMemory,
     .meaning = "While vLLM measured how much memory it needs, another process gave memory of the same GPU back, so "
                "the measurement was of no use and vLLM stopped: it did not run out of memory",
     .tries = {"Start it again once the other processes on this GPU have started or ended: nvidia-smi shows them.",
               "Several servers on one GPU: start them one after the other."},
     .words = {{"this happens when other processes sharing the same container", kAsError, kStrong, "", "", "vLLM"}}},
    {.name = "model-runner",
     .rule = kGpuMemory,
     .confidence = kHint,
     .meaning = "The process that runs the model ended by itself; ollama supposes that memory was missing, and does "
                "not say whether the GPU's or the host's",
     .tries =
         {"The server's log has the reason: journalctl -u ollama, or ~/.ollama/logs/server.log; give Faultline that.",
          "A smaller model or a stronger quantisation shows whether it was memory."},
     .words = {{"llama runner exited, you may not have enough available memory", kAsError, kStrong, "", "", "ollama"}}},
    {.name = "batch-none",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "accelerate halved the batch after each out-of-memory error and reached zero: the program runs out of "
                "memory with a batch of 1 too, or what it had held was not freed between the tries",
     .tries = {"Run it with a batch of 1 and without find_executable_batch_size: the error then has numbers. Give "
               "Faultline that.",
               "What is made outside the function that is tried again stays alive: make the model and the optimizer "
               "inside it."},
     .words = {{"no executable batch size found, reached zero"}}},
    {.name = "serving-warmup",
     .rule = kGpuMemory,
     .meaning = "TGI tried its largest batch at the start and the device had no room for that many prefill tokens",
     .tries = {"Lower --max-batch-prefill-tokens, and --max-input-tokens and --max-total-tokens with it.",
               "Or make room: a quantised model (--quantize), --num-shard over more GPUs; nvidia-smi shows whether "
               "something else holds the device."},
     .words = {{"prefill tokens. you need to decrease", kAnywhere, kStrong, "to handle {tokens:n}", "", "TGI"}}},
    {.name = "model-vram",
     .id = MessageKind::kModelVram,
     .rule = kGpuMemory,
     .meaning = "The model and its cache do not fit into the GPU memory that the program may use",
     .tries = {"A shorter context or a quantised cache, a model with fewer bits a weight, or more GPUs.",
               "See whether something else holds the device: nvidia-smi; and how much the program was told to use of "
               "it (a split over GPUs, a reserve, gpu_memory_utilization)."},
     .words = {{"insufficient vram for model and cache", kAsError, kStrong, "", "", "ExLlama"},
               {"insufficient vram in split for model and cache", kAsError, kStrong, "", "", "ExLlama"},
               {"insufficient gpu memory error: the available single gpu memory", kAsError, kStrong, "memory is {free}",
                "", "MLC LLM"}}},
    {.name = "dispatched",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "The quantised model did not fit the GPU memory that accelerate counted as free, so "
                "device_map=\"auto\" would have put some of it on the CPU or the disk, which bitsandbytes does not "
                "accept; nothing was loaded, and the message does not say how much was missing",
     .tries = {"See what is free before the model is loaded: nvidia-smi; an earlier model in the same notebook counts "
               "(del model, gc.collect(), torch.cuda.empty_cache(), or restart it).",
               "If it should fit, say so: device_map={\"\": 0} puts all of it on GPU 0 and fails with a real message "
               "if it does not fit; max_memory={0: \"22GiB\"} raises what accelerate counts with.",
               "Else a smaller model or fewer bits (load_in_4bit); llm_int8_enable_fp32_cpu_offload=True leaves the "
               "rest on the CPU in float32, slowly."},
     .words = {{"some modules are dispatched on the cpu or the disk"}}},
    {.name = "dispatched-disk",
     .rule = kGpuMemory,
     .confidence = kLikely,
     .meaning = "The model fits neither the GPU memory nor the RAM that accelerate counted as free, so "
                "device_map=\"auto\" would have put some of it on the disk, and no folder for it was given",
     .tries = {"See what is free: nvidia-smi and free -h; a smaller or quantised model, or a smaller type "
               "(torch_dtype=\"auto\").",
               "offload_folder=\"offload\" lets it work from the disk, slowly."},
     .words = {{"had weights offloaded to the disk. please provide an ", kAnywhere}}},
};

}  // namespace

std::span<const KindRow> serving_kinds() { return kServingKinds; }

}  // namespace faultline
