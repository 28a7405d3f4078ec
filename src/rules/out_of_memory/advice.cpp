#include "rules/out_of_memory/advice.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"
#include "rules/platform.h"
#include "rules/stated_error.h"

namespace faultline {
namespace {

constexpr std::array<std::string_view, 8> kLaunchers = {
    "torchrun", "accelerate launch", "deepspeed ", "mpirun ", "mpiexec ", "srun ", "horovodrun ", "torch.distributed"};
constexpr const char* kFewerWeightBytes =
    "Half-precision, quantised or sharded weights shrink it; so does loading them piece by piece.";

// A message that PyTorch did not write: its settings and calls are of no use there.
bool is_of_other(const AdviceContext& context) {
  return context.message != nullptr && context.message->framework != Framework::kPyTorch &&
         context.message->framework != Framework::kNone;
}

void add_smaller(const AdviceContext& context, Finding& finding) {
  if (context.roles & kInitsOptimizer) {
    return add_try(finding,
                   "The optimizer was making its state (Adam keeps two more values for each parameter): SGD, an 8-bit "
                   "Adam, or sharding it over devices shrinks it; a smaller batch does not.");
  }
  if (!context.live) {
    if (context.roles & (kMovesModule | kLoadsState | kConstructs))
      return add_try(
          finding, std::string("The model was being made or moved to the device, so a smaller batch does not help. ") +
                       kFewerWeightBytes);
    if (is_of_other(context))
      return add_try(finding, std::string(finding.location.known() ? "Hold less at this line" : "Hold less at once") +
                                  ": a smaller batch or sequence, a smaller type.");
    const bool trains = context.roles & (kInBackward | kInOptimizer | kRecomputes);
    return add_try(finding, std::string(finding.location.known() ? "Hold less at this line: a smaller"
                                                                 : "Hold less at once: a smaller") +
                                " batch or sequence, a smaller type" +
                                (trains ? ", activation checkpointing."
                                 : context.of_other_language
                                     ? "; in training also activation checkpointing, in inference no gradients."
                                     : "; in training also activation checkpointing, in inference torch.no_grad()."));
  }
  const auto bytes_of = [&](Category category) { return (*context.live)[static_cast<std::size_t>(category)]; };
  // What lasts from step to step does not depend on the batch.
  const std::array<Category, 3> lasting = {Category::kParameters, Category::kGradients, Category::kOptimizer};
  const std::uint64_t last = bytes_of(lasting[0]) + bytes_of(lasting[1]) + bytes_of(lasting[2]),
                      passing = bytes_of(Category::kActivations) + bytes_of(Category::kTemporaries);
  if (last > passing && last > bytes_of(Category::kOther)) {
    const std::string part = fmt::format(
        "{} of what is in use{} are parameters, gradients and the optimizer's state, which do not shrink with the "
        "batch",
        format_bytes(last), context.when);
    const Category largest = *std::max_element(lasting.begin(), lasting.end(),
                                               [&](Category a, Category b) { return bytes_of(a) < bytes_of(b); });
    if (largest == Category::kOptimizer)
      return add_try(finding, part +
                                  ": the optimizer's state is the most of it, and SGD, an 8-bit Adam, or sharding it "
                                  "over devices shrinks that.");
    if (context.float32_parameter_bytes != 0) {
      return add_try(finding, fmt::format("{}: {} are parameters in float32, which a 16-bit type would make {} "
                                          "smaller; quantised or sharded weights save more.",
                                          part, format_bytes(context.float32_parameter_bytes),
                                          format_bytes(context.float32_parameter_bytes / 2)));
    }
    return add_try(finding, part + ". " + kFewerWeightBytes);
  }
  if (passing == 0 || passing < bytes_of(Category::kOther)) return;
  const bool kept = bytes_of(Category::kActivations) >= bytes_of(Category::kTemporaries);
  add_try(finding, fmt::format("{} of what is in use{} are {}: {}.",
                               format_bytes(kept ? bytes_of(Category::kActivations) : bytes_of(Category::kTemporaries)),
                               context.when, kept ? "activations" : "temporaries",
                               !kept ? "a smaller batch, or working in smaller pieces, shrinks them"
                               : context.never_trains
                                   ? "they are kept for a backward pass, and the program runs none; torch.no_grad() "
                                     "around the model lets them go"
                               : context.recomputes ? "a smaller batch shrinks them"
                               : context.when[0] != '\0'
                                   ? "a smaller batch shrinks them, and torch.utils.checkpoint around the layers those "
                                     "that are kept for backward"
                                   : "a smaller batch, or torch.utils.checkpoint around the layers, shrinks them"));
}

void add_limit(const AdviceContext& context, Finding& finding) {
  if (context.tells_limit) return;
  if (context.message != nullptr && context.message->allocator() == StatedAllocator::kMetal) {
    return add_try(finding,
                   "The limit is PYTORCH_MPS_HIGH_WATERMARK_RATIO times what the system recommends; raising it lets "
                   "the system swap, and 0.0 removes it, which can bring the whole machine down.");
  }
  if (context.message != nullptr && context.message->program == "cupy") {
    return add_try(finding,
                   "Raise or remove the pool's limit: set_limit() of the memory pool in the code, or the variable "
                   "CUPY_GPU_MEMORY_LIMIT.");
  }
  if (is_of_other(context)) return add_try(finding, "Raise or remove the limit that the program was given.");
  if (context.message != nullptr && is_torch_before(*context.message, 2, 1))
    return add_try(
        finding,
        "Raise or remove the limit: it is set by torch.cuda.set_per_process_memory_fraction(...) in the code.");
  add_try(finding,
          "Raise or remove the limit: it is set by torch.cuda.set_per_process_memory_fraction(...) in the code, or by "
          "per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF.");
}

// A recording's settings are tried by replays; of a message nothing can be.
void add_unconfirmed_settings(const AdviceContext& context, Finding& finding) {
  const StatedError& message = *context.message;
  // They are of PyTorch's own allocator: the one of cudaMallocAsync does not look at them.
  if (is_of_other(context) || message.allocator() == StatedAllocator::kAsync) return;
  if (context.is_windows && !is_torch_before(message, 1, 10)) {
    return add_try(
        finding,
        "Set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 before the program starts: it is what PyTorch has on "
        "Windows against free memory in pieces (the setting that the message names does not exist there). A message "
        "cannot show whether that is enough.");
  }
  if (is_torch_before(message, 1, 10)) {
    return add_try(
        finding,
        "This PyTorch has no setting against pieces: max_split_size_mb came with 1.10, expandable_segments:True, which "
        "is made for this, with 2.1. Here only other sizes or another order of what is allocated help, or an update.");
  }
  if (is_torch_before(message, 2, 1)) {
    const bool has_split = message.text.find("max_split_size_mb") != std::string::npos ||
                           (!message.torch_version.empty() && message.torch_version[0] != '<');
    return add_try(
        finding, std::string("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 is what this PyTorch has against pieces") +
                     (has_split ? "" : " if it is 1.10 or later (the message's wording is of 1.4 to 2.0)") +
                     "; from 2.1 on expandable_segments:True is made for this. A message does not prove that either "
                     "would be enough.");
  }
  if (context.sets_expandable) {
    return add_try(finding,
                   "expandable_segments:True is set already, by this text, and it is what PyTorch has against free "
                   "memory in pieces: check that the process that failed got the setting (it must be set before CUDA "
                   "is first used), and hold less, or allocate the large tensors first.");
  }
  add_try(finding,
          std::string("Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the program starts: it is made for "
                      "free memory in pieces. A message cannot show whether that is enough") +
              (platform_of(message) == Platform::kCuda ? "; a recording can: faultline replay FOLDER --search." : "."));
  if (message.text.find("setting PYTORCH_ALLOC_CONF") != std::string::npos) {
    add_try(finding,
            "Write PYTORCH_CUDA_ALLOC_CONF, not the PYTORCH_ALLOC_CONF that the message names: PyTorch 2.9 ignores the "
            "new name for CUDA.");
  }
}

void add_empty_cache_truth(const AdviceContext& context, Finding& finding) {
  if (context.message == nullptr || context.message->allocator() != StatedAllocator::kUsual || is_of_other(context) ||
      context.of_other_language)
    return;
  add_try(finding,
          "torch.cuda.empty_cache() before this line would not have helped: PyTorch frees every wholly free segment by "
          "itself before it raises this error (except while a CUDA graph is being captured).");
}

bool starts_ranks(const std::string& program) {
  return std::any_of(kLaunchers.begin(), kLaunchers.end(),
                     [&](std::string_view name) { return program.find(name) != std::string::npos; });
}

void add_owner(const AdviceContext& context, Finding& finding) {
  std::string who = "Run nvidia-smi to see which processes hold the device";
  if (context.message != nullptr && !context.message->other_pids.empty())
    who += ", then ps -fp " + context.message->other_pids.front();
  add_try(finding, who +
                       " (workers of the same job and forgotten notebooks count; on Windows the desktop does; in a "
                       "container the host's view is needed).");
  // A launcher gives each rank its own device of those that it sees: one visible device would have to hold them all.
  if (context.of_rank || starts_ranks(context.program))
    return add_try(
        finding,
        "See that each rank has a GPU of its own, before the first use of CUDA: "
        "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])); tensors that every rank puts on \"cuda\" or "
        "\"cuda:0\" land on one.");
  add_try(finding, "Or choose another device: CUDA_VISIBLE_DEVICES=" + std::string(finding.device == 0 ? "1 " : "0 ") +
                       context.program);
}

// The device had room, and something kept the program from it.
void add_unseen_limits(const AdviceContext& context, Finding& finding) {
  if (context.message == nullptr || (!is_of_other(context) && !is_torch_before(*context.message, 2, 1))) {
    add_try(finding,
            "Look for torch.cuda.set_per_process_memory_fraction in the code and its libraries: PyTorch 2.1 to 2.4 "
            "obey such a limit but do not print it.");
  }
  add_try(finding,
          "Look for limits around the program: a MIG slice, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, a container's "
          "GPU-sharing layer, WSL or Windows graphics memory.");
  add_try(finding,
          "Watch the device while it runs, another process may come and go: nvidia-smi "
          "--query-gpu=memory.used --format=csv -lms 100");
}

void add_what_parts_causes(const AdviceContext& context, Finding& finding) {
  if (context.message != nullptr) {
    add_try(finding,
            "To tell the causes apart: a recording has the bytes that the message rounds, and shows the pieces: "
            "faultline run -- " +
                context.program + "; nvidia-smi at that moment shows what other programs hold.");
    add_unconfirmed_settings(context, finding);
  }
  add_smaller(context, finding);
  add_empty_cache_truth(context, finding);
}

}  // namespace

void advise(const CauseVerdict& verdict, const AdviceContext& context, Finding& finding) {
  switch (verdict.story) {
    case Story::kAbsurd:
      return add_try(finding, "Print the shapes that go into this line: one of them is negative or far too large.");
    case Story::kTooLarge:
      return add_try(finding,
                     "Make the tensor smaller, or in pieces. Often it is a broadcast, an outer product, or attention "
                     "over the whole length at once.");
    case Story::kIdleCache:
      if (finding.cause.empty() || is_of_other(context) || verdict.confidence != Confidence::kProved) return;
      return add_try(finding,
                     "Call torch.cuda.empty_cache() before this line, once; or keep PyTorch from taking the last of "
                     "the device: torch.cuda.set_per_process_memory_fraction(0.9).");
    case Story::kPieces:
    case Story::kPiecesUnderLimit:
      if (context.message != nullptr) add_unconfirmed_settings(context, finding);
      add_empty_cache_truth(context, finding);
      if (verdict.story == Story::kPiecesUnderLimit) add_limit(context, finding);
      return;
    case Story::kLimit:
      add_limit(context, finding);
      if (context.live) add_smaller(context, finding);
      return;
    case Story::kLimitAndFull: add_smaller(context, finding); return add_limit(context, finding);
    case Story::kContradiction:
      return add_try(finding,
                     "Check whether the text joins several messages or was edited, and whether --gpu names the "
                     "GPU that it ran on.");
    case Story::kRoomLeft: return add_unseen_limits(context, finding);
    case Story::kOthers:
    case Story::kBeforeStart:
    case Story::kUnseen:
    case Story::kUnexplained: return add_owner(context, finding);
    case Story::kOutside:
      return add_try(finding,
                     "Find the owner: NCCL buffers, a second framework or library with its own pool, CUDA graphs, raw "
                     "cudaMalloc; faultline run -- " +
                         context.program + " names it.");
    case Story::kGraphPool:
      return add_try(finding,
                     "Let graphs share one pool (torch.cuda.graph(..., pool=...), or torch.compile's graph trees), "
                     "capture fewer sizes, or delete graphs that are no longer replayed.");
    case Story::kAsGoodAsFull:
    case Story::kRounding:
      add_smaller(context, finding);
      if (context.message != nullptr && context.message->allocator() == StatedAllocator::kUsual)
        add_unconfirmed_settings(context, finding);
      return add_empty_cache_truth(context, finding);
    case Story::kFull:
    case Story::kWholeNeed:
    case Story::kLentMemory:
    case Story::kLentRoom:
    case Story::kJustAbove: add_smaller(context, finding); return add_empty_cache_truth(context, finding);
    case Story::kOpen: return add_what_parts_causes(context, finding);
    case Story::kFreeUnknown:
      // Elsewhere a recording, which is made at CUDA's driver, cannot be advised.
      if (context.message == nullptr || platform_of(*context.message) == Platform::kCuda) return;
      add_smaller(context, finding);
      return add_try(finding, "See what else holds the device: " +
                                  std::string(shows_holders(platform_of(*context.message))) + ".");
    case Story::kDriverLimit:
    case Story::kPoolTooLarge:
    case Story::kPoolFull:
    case Story::kPoolSlack:
    case Story::kPoolAsGoodAsFull:
    case Story::kPoolPieces:
    case Story::kPoolRegions:
    case Story::kPoolRefused:
    case Story::kPoolRoom:
    case Story::kPoolSizeUnknown:
    case Story::kPoolOpen: return;  // pool.cpp
  }
}

}  // namespace faultline
