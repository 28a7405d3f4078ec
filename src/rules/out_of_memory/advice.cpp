#include "rules/out_of_memory/advice.h"

#include <algorithm>

namespace faultline {
namespace {

void add_smaller(const AdviceContext& context, Finding& finding) {
  if (context.makes_optimizer_state) {
    return add_try(finding, "The optimizer was making its state (Adam keeps two more values for each parameter): SGD, an 8-bit Adam, or sharding it over devices shrinks it.");
  }
  if (!context.live) return add_try(finding, "Hold less at this line: a smaller batch or sequence, activation checkpointing, a smaller type.");
  switch (static_cast<Category>(std::max_element(context.live->begin(), context.live->end()) - context.live->begin())) {
    case Category::kActivations:
    case Category::kTemporaries: return add_try(finding, "Activations and temporaries are the largest part: a smaller batch, or torch.utils.checkpoint around the layers, shrinks them.");
    case Category::kOptimizer: return add_try(finding, "The optimizer's state is the largest part: SGD, an 8-bit Adam, or sharding it over devices shrinks it.");
    case Category::kParameters: return add_try(finding, "The parameters are the largest part: bfloat16 or quantised weights halve or quarter them.");
    default: return;
  }
}

// PyTorch 2.1 changed the wording: "GPU 0 has a total capacity of …" where it had been "(GPU 0; 7.79 GiB total capacity; …".
bool is_before_2_1(const StatedError& message) { return message.text.find("total capacity;") != std::string::npos; }

void add_limit(const AdviceContext& context, Finding& finding) {
  if (std::any_of(finding.tries.begin(), finding.tries.end(), [](const Try& attempt) { return attempt.confirmed == true && attempt.what.starts_with("Raise or remove the limit"); })) return;
  if (context.message != nullptr && context.message->allocator == StatedAllocator::kMetal) {
    return add_try(finding, "The limit is PYTORCH_MPS_HIGH_WATERMARK_RATIO times what the system recommends; raising it lets the system swap, and 0.0 removes it, which can bring the whole machine down.");
  }
  if (context.message != nullptr && context.message->framework_name == "cupy") {
    return add_try(finding, "Raise or remove the pool's limit: set_limit() of the memory pool in the code, or the variable CUPY_GPU_MEMORY_LIMIT.");
  }
  if (context.message != nullptr && is_before_2_1(*context.message)) return add_try(finding, "Raise or remove the limit: it is set by torch.cuda.set_per_process_memory_fraction(...) in the code.");
  add_try(finding, "Raise or remove the limit: it is set by torch.cuda.set_per_process_memory_fraction(...) in the code, or by per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF.");
}

// A recording's settings are tried by replays; of a message nothing can be.
void add_unconfirmed_settings(const StatedError& message, Finding& finding) {
  if (is_before_2_1(message)) {
    return add_try(finding, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 is what this PyTorch has against it (the message's wording is of 2.0 or older); from 2.1 on expandable_segments:True is made for this. Neither is proved to suffice by a message.");
  }
  add_try(finding, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True is made for this, but a message cannot show that it would have sufficed: a recording can, faultline replay FOLDER --search.");
  if (message.text.find("setting PYTORCH_ALLOC_CONF") != std::string::npos) {
    add_try(finding, "Write PYTORCH_CUDA_ALLOC_CONF, not the PYTORCH_ALLOC_CONF that the message names: PyTorch 2.9 ignores the new name for CUDA.");
  }
}

void add_empty_cache_truth(const AdviceContext& context, Finding& finding) {
  if (context.message == nullptr || context.message->allocator != StatedAllocator::kUsual) return;
  add_try(finding, "torch.cuda.empty_cache() before this line would not have helped: PyTorch gives back every wholly free segment by itself before it raises this error "
                   "(except while a CUDA graph is being captured).");
}

void add_owner(const AdviceContext& context, Finding& finding) {
  std::string who = "Run nvidia-smi to see which processes hold the device";
  if (context.message != nullptr && !context.message->other_pids.empty()) who += ", then ps -fp " + context.message->other_pids.front();
  add_try(finding, who + " (workers of the same job and forgotten notebooks count; on Windows the desktop does; in a container the host's view is needed).");
  add_try(finding, "Or choose another device: CUDA_VISIBLE_DEVICES=" + std::string(finding.device == 0 ? "1 " : "0 ") + context.program);
}

}  // namespace

void advise(const CauseVerdict& verdict, const AdviceContext& context, Finding& finding) {
  switch (verdict.story) {
    case Story::kAbsurd: return add_try(finding, "Print the shapes that go into this line: one of them is negative or far too large.");
    case Story::kTooLarge:
      return add_try(finding, "Make the tensor smaller, or in pieces. Often it is a broadcast, an outer product, or attention over the whole length at once.");
    case Story::kIdleCache:
      if (finding.cause.empty() || verdict.confidence != Confidence::kProved) return;
      return add_try(finding, "Call torch.cuda.empty_cache() before this line, once; or keep PyTorch from taking the last of the device: torch.cuda.set_per_process_memory_fraction(0.9).");
    case Story::kPieces:
    case Story::kPiecesUnderLimit:
      if (context.message != nullptr) add_unconfirmed_settings(*context.message, finding);
      add_empty_cache_truth(context, finding);
      if (verdict.story == Story::kPiecesUnderLimit) add_limit(context, finding);
      return;
    case Story::kLimit:
      add_limit(context, finding);
      if (context.live) add_smaller(context, finding);
      return;
    case Story::kRoomLeft:
      add_try(finding, "Look for torch.cuda.set_per_process_memory_fraction in the code and its libraries: PyTorch 2.1 to 2.4 obey such a limit but do not print it.");
      add_try(finding, "Look for limits around the program: a MIG slice, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, a container's GPU-sharing layer, WSL or Windows graphics memory.");
      return add_try(finding, "Watch the device while it runs, another process may come and go: nvidia-smi --query-gpu=memory.used --format=csv -lms 100");
    case Story::kOthers:
    case Story::kBeforeStart:
    case Story::kUnseen:
    case Story::kUnexplained: return add_owner(context, finding);
    case Story::kOutside:
      return add_try(finding, "Find the owner: NCCL buffers, a second framework or library with its own pool, CUDA graphs, raw cudaMalloc; faultline run -- " + context.program + " names it.");
    case Story::kGraphPool:
      return add_try(finding, "Let graphs share one pool (torch.cuda.graph(..., pool=...), or torch.compile's graph trees), capture fewer sizes, or delete graphs that are no longer replayed.");
    case Story::kFull:
    case Story::kLentMemory:
    case Story::kNearlyFull:
    case Story::kAsGoodAsFull:
    case Story::kJustAbove:
      add_smaller(context, finding);
      return add_empty_cache_truth(context, finding);
    case Story::kOpen: return add_empty_cache_truth(context, finding);
    case Story::kDriverLimit:
    case Story::kFreeUnknown: return;
  }
}

}  // namespace faultline
