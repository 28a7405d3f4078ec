// memory/out-of-memory from a message: which of the possible stories its numbers prove, make likely, or exclude.
#include "base/units.h"
#include "rules/error_text/judgement.h"
#include "rules/error_text/stated_numbers.h"
#include "sources/error_text/error_text.h"

namespace faultline {
namespace {

constexpr PrintedBytes kContextRoom = {0, kGiB};  // what a CUDA context and its libraries take: 0.6 to 0.8 GiB were measured, up to 1 is allowed for
constexpr std::uint64_t kMaterial = kGiB;         // smaller holdings of others are not called a cause
constexpr std::uint64_t kJustAbove = 256 * kMiB;  // free beyond the request by no more than this is the driver's own room

void conclude(Finding& finding, const char* cause, Confidence confidence, std::string message) {
  finding.cause = cause;
  finding.confidence = confidence;
  finding.message = std::move(message);
}

// A tenth of what is reserved lies idle.
bool is_wasteful(const StatedNumbers& numbers, PrintedBytes idle) {
  return numbers.reserved && idle.min >= numbers.reserved->max / 10;
}

std::string asked_for(const StatedNumbers& numbers) {
  return shown(*numbers.requested);
}

void add_empty_cache_truth(Finding& finding) {
  add_try(finding,
          "torch.cuda.empty_cache() before this line would not have helped: PyTorch gives back every wholly free segment by itself before it raises "
          "this error "
          "(except while a CUDA graph is being captured)");
}

void add_fragmentation_tries(const Trace& trace, Finding& finding) {
  add_try(finding,
          "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True is made for this, but the message cannot show that it would have sufficed: take a "
          "snapshot, then faultline "
          "replay snapshot.pickle --set expandable_segments=True");
  if (stated_word(trace, "text").find("setting PYTORCH_ALLOC_CONF") != std::string_view::npos) {
    add_try(finding, "write PYTORCH_CUDA_ALLOC_CONF, not the PYTORCH_ALLOC_CONF that the message names: PyTorch 2.9 ignores the new name for CUDA");
  }
  add_empty_cache_truth(finding);
  add_try(finding, "max_split_size_mb is no cure by itself and can make it worse; set it only where a replay of your own snapshot shows a gain");
}

void add_limit_try(Finding& finding) {
  add_try(finding,
          "raise or remove the limit: it is set by torch.cuda.set_per_process_memory_fraction(...) in the code, or by per_process_memory_fraction in "
          "PYTORCH_CUDA_ALLOC_CONF");
}

void add_smaller_tries(Finding& finding) {
  add_try(finding, "hold less at this line: a smaller batch or sequence, activation checkpointing, a smaller type");
}

// The request alone is larger than the device, or than anything.
bool judge_too_large(const Trace& trace, const StatedNumbers& numbers, Finding& finding) {
  if (stated_word(trace, "requested_is") == "at least") {
    conclude(finding, "exhausted", Confidence::kProved,
             "more than an exabyte was asked for in one piece: a size has gone wrong before this line (a negative or overflowed extent), memory is "
             "not the problem");
    add_try(finding, "print the shapes that go into this line: one of them is negative or far too large");
    return true;
  }
  if (!numbers.requested || !numbers.capacity || !surely_less(*numbers.capacity, PrintedBytes{numbers.needed().min, numbers.requested->max}))
    return false;
  conclude(finding, "exhausted", Confidence::kProved,
           asked_for(numbers) + " was asked for in one piece and " + device_of(trace) + " has " + shown(*numbers.capacity) +
               " in all: no setting, cache or cleanup can help, the tensor that this line makes must get smaller");
  add_try(finding,
          "look at the shapes at this line: often a broadcast, an outer product, or attention over the whole length at once; work in pieces instead");
  return true;
}

// A limit that the program has set for itself.
bool judge_own_limit(const Trace& trace, const StatedNumbers& numbers, Finding& finding) {
  if (!numbers.allowed || !numbers.requested) return false;
  const bool metal = stated_word(trace, "allocator") == "metal";
  PrintedBytes held = numbers.reserved ? *numbers.reserved : numbers.allocated.value_or(PrintedBytes{});
  if (const auto other = metal ? stated_bytes(trace, "other_metal") : std::nullopt) held = held + *other;
  const PrintedBytes wanted = held + *numbers.requested;
  const bool room = numbers.free && surely_at_least(*numbers.free, *numbers.requested);
  const bool certain = surely_less(*numbers.allowed, wanted);
  // Where rounding leaves it open, a limit that is stated and a device that was not full still speak for it.
  const bool open = !certain && wanted.max > numbers.allowed->min && (room || metal);
  if (!certain && !open) return false;
  const std::string sum = shown(held) + " held and " + asked_for(numbers) + " asked for against " + shown(*numbers.allowed) + " allowed";
  const Confidence confidence = certain ? Confidence::kProved : Confidence::kLikely;
  if (metal) {
    conclude(finding, "own-limit", confidence, "PyTorch's own limit for this GPU stopped the request: " + sum);
    add_try(finding,
            "the limit is PYTORCH_MPS_HIGH_WATERMARK_RATIO times what the system recommends; raising it lets the system swap, and 0.0 removes it, "
            "which can bring the "
            "whole machine down");
    return true;
  }
  if (numbers.allocated && numbers.cached && surely_at_least(*numbers.allowed, *numbers.allocated + *numbers.requested)) {
    conclude(finding, "fragmented", Confidence::kLikely,
             "the limit of " + shown(*numbers.allowed) + " has room for what is in use (" + shown(*numbers.allocated) + ") and the " + asked_for(numbers) +
                 " asked for, but " + shown(*numbers.cached) + " that PyTorch holds against it lie unused in pieces between live tensors");
    add_fragmentation_tries(trace, finding);
    add_limit_try(finding);
    return true;
  }
  std::string message = "the program's own limit stopped the request: " + sum;
  if (room)
    message += ", while " + device_of(trace) + " had " + shown(*numbers.free) + " free";
  else if (numbers.free)
    message += "; " + device_of(trace) + " itself had only " + shown(*numbers.free) + " free, so raising the limit alone would not have helped";
  conclude(finding, "own-limit", confidence, std::move(message));
  if (stated_word(trace, "framework") == "cupy") {
    add_try(finding, "raise or remove the pool's limit: set_limit() of the memory pool in the code, or the variable CUPY_GPU_MEMORY_LIMIT");
  } else {
    add_limit_try(finding);
  }
  if (numbers.cached && is_wasteful(numbers, *numbers.cached)) {
    add_try(finding, shown(*numbers.cached) + " of what counts against the limit is cached and unused, in pieces between live tensors");
  }
  return true;
}

// The device had room and still said no.
bool judge_room_left(const Trace& trace, const StatedNumbers& numbers, Finding& finding) {
  if (!numbers.free || !numbers.requested || !surely_at_least(*numbers.free, *numbers.requested)) return false;
  const PrintedBytes beyond = *numbers.free - *numbers.requested;
  add_evidence(finding, "free_beyond_request_bytes", beyond.middle());
  if (beyond.max <= kJustAbove) {
    conclude(finding, "", Confidence::kLikely,
             device_of(trace) + " had " + shown(*numbers.free) + " free for a request of " + asked_for(numbers) +
                 " and still refused: that close to the end the driver's own granularity and page tables decide, so treat the device as full");
    add_smaller_tries(finding);
    return true;
  }
  conclude(finding, "", Confidence::kLikely,
           device_of(trace) + " reported " + shown(*numbers.free) + " free and " + asked_for(numbers) +
               " was refused: it was not full. A limit outside PyTorch's view, a limit that this version does not print, or a change in the instant "
               "between is what remains; the numbers cannot tell which");
  add_try(
      finding,
      "look for torch.cuda.set_per_process_memory_fraction in the code and its libraries: PyTorch 2.1 to 2.4 obey such a limit but do not print it");
  add_try(finding,
          "look for limits around the program: a MIG slice, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, a container's GPU-sharing layer, WSL or Windows "
          "graphics memory");
  add_try(finding, "watch the device while it runs, another process may come and go: nvidia-smi --query-gpu=memory.used --format=csv -lms 100");
  return true;
}

std::string pid_list(const StatedNumbers& numbers) {
  std::string list;
  for (std::size_t i = 0; i < numbers.other_pids.size() && i < 4; ++i) list += (i == 0 ? "" : ", ") + numbers.other_pids[i];
  if (numbers.other_pids.size() > 4) list += ", …";
  return (numbers.other_pids.size() == 1 ? "process " : "processes ") + list;
}

// Somebody else's memory, named by the message or left over by its numbers.
bool judge_others(const Trace& trace, const StatedNumbers& numbers, Finding& finding) {
  if (!numbers.requested || !numbers.free) return false;
  if (numbers.others && numbers.others->min >= kMaterial && surely_at_least(*numbers.free + *numbers.others, *numbers.requested)) {
    conclude(finding, "other-process", Confidence::kProved,
             "other programs held " + shown(*numbers.others) + " of " + device_of(trace) + " (" + pid_list(numbers) + "): without them the " +
                 asked_for(numbers) + " would have fitted");
    add_try(finding, "see who they are: nvidia-smi, then ps -fp " + numbers.other_pids.front() +
                         "; workers of the same job and forgotten notebook kernels count as well");
    add_try(finding, "or choose another device: CUDA_VISIBLE_DEVICES=" + std::string(finding.device == 0 ? "1 " : "0 ") + program_of(trace));
    return true;
  }
  if (const auto outside = numbers.outside();
      outside && outside->min >= kMaterial && surely_at_least(*numbers.free + (*outside - kContextRoom), *numbers.requested)) {
    conclude(finding, "outside-framework", Confidence::kLikely,
             "this process held " + shown(*outside) + " on " + device_of(trace) +
                 " outside PyTorch's allocator, more than a CUDA context and its libraries need; without the excess the " + asked_for(numbers) +
                 " would have fitted");
    add_try(finding, "find the owner: NCCL buffers, a second framework or library with its own pool, CUDA graphs, raw cudaMalloc");
    return true;
  }
  const auto left = numbers.unexplained();
  if (!numbers.this_process && left && numbers.capacity && left->min >= 2 * kGiB && left->min >= numbers.capacity->max / 5 &&
      surely_at_least(*numbers.free + (*left - kContextRoom), *numbers.requested)) {
    conclude(finding, "other-process", Confidence::kLikely,
             shown(*left) + " of " + device_of(trace) +
                 " was neither free nor in this program's PyTorch: almost always another program, otherwise memory of this one outside PyTorch");
    add_try(finding, "see who holds it: nvidia-smi (on Windows the desktop and browsers count; in a container the host's view is needed)");
    add_try(finding, "or choose another device: CUDA_VISIBLE_DEVICES=" + std::string(finding.device == 0 ? "1 " : "0 ") + program_of(trace));
    return true;
  }
  return false;
}

// Enough memory, but not in one piece.
bool judge_fragmented(const Trace& trace, const StatedNumbers& numbers, Finding& finding) {
  if (!numbers.requested || !numbers.free || !numbers.cached) return false;
  if (!is_wasteful(numbers, *numbers.cached) || !surely_at_least(*numbers.free + *numbers.cached, *numbers.requested)) return false;
  conclude(finding, "fragmented", Confidence::kLikely,
           shown(*numbers.cached) + " was held by PyTorch but not in use, in pieces between live tensors; with the " + shown(*numbers.free) +
               " free that is more than the " + asked_for(numbers) + " asked for, so it was the lack of one piece, not of memory, that stopped it");
  add_fragmentation_tries(trace, finding);
  return true;
}

bool judge_graph_pools(const StatedNumbers& numbers, Finding& finding) {
  if (!numbers.requested || !numbers.free || !numbers.cached || !numbers.graph_pool || !is_wasteful(numbers, *numbers.graph_pool)) return false;
  if (!surely_at_least(*numbers.free + *numbers.cached + *numbers.graph_pool, *numbers.requested)) return false;
  conclude(finding, "idle-cache", Confidence::kLikely,
           shown(*numbers.graph_pool) +
               " lay free inside the private pools of CUDA graphs, where only their own graphs can use it; it would have covered the " +
               asked_for(numbers));
  add_try(finding,
          "let graphs share one pool (torch.cuda.graph(..., pool=...), or torch.compile's graph trees), capture fewer sizes, or delete graphs that "
          "are no longer replayed");
  return true;
}

// Live tensors are what fills the device.
bool judge_full(const Trace& trace, const StatedNumbers& numbers, Finding& finding) {
  if (!numbers.requested || !numbers.free || !numbers.cached || !numbers.allocated || !numbers.capacity) return false;
  const PrintedBytes idle = *numbers.cached + numbers.graph_pool.value_or(PrintedBytes{});
  const PrintedBytes left = *numbers.free + idle - *numbers.requested;
  if (surely_less(*numbers.free + idle, numbers.needed())) {
    if (surely_less(*numbers.capacity, *numbers.allocated)) {
      conclude(finding, "exhausted", Confidence::kProved,
               "the program already held " + shown(*numbers.allocated) + " on a device of " + shown(*numbers.capacity) +
                   ": the driver had lent it the computer's own memory, as Windows does, and that ran out too; " + asked_for(numbers) +
                   " more could not fit");
    } else {
      conclude(finding, "exhausted", Confidence::kProved,
               shown(*numbers.allocated) + " of " + device_of(trace) + " was in use by live tensors, and all that was free or idle together (" +
                   shown(*numbers.free + idle) + ") is less than the " + asked_for(numbers) +
                   " asked for: it does not fit, and fragmentation is excluded");
    }
  } else if (!is_wasteful(numbers, PrintedBytes::exactly(idle.max)) && left.max < numbers.capacity->min / 20) {
    conclude(finding, "exhausted", Confidence::kLikely,
             device_of(trace) + " was in effect full: " + shown(*numbers.allocated) +
                 " was in use by live tensors, and had everything free or idle (" + shown(*numbers.free + idle) + ") been in one piece, at most " +
                 format_bytes(left.max) + " would have been left after the " + asked_for(numbers));
  } else {
    return false;
  }
  add_smaller_tries(finding);
  add_empty_cache_truth(finding);
  return true;
}

// PyTorch's message with its numbers.
void judge_numbers(const Trace& trace, const StatedNumbers& numbers, Finding& finding) {
  if (judge_too_large(trace, numbers, finding) || judge_own_limit(trace, numbers, finding) || judge_room_left(trace, numbers, finding)) return;
  const bool waste_first = numbers.cached && numbers.requested && surely_at_least(*numbers.cached, *numbers.requested);
  if (waste_first && judge_fragmented(trace, numbers, finding)) return;
  if (judge_others(trace, numbers, finding) || judge_fragmented(trace, numbers, finding) || judge_graph_pools(numbers, finding) ||
      judge_full(trace, numbers, finding))
    return;
  if (stated_word(trace, "allocator") == "cudaMallocAsync" && numbers.allocated && numbers.capacity) {
    conclude(finding, "", Confidence::kLikely,
             device_of(trace) + " had no room for " + asked_for(numbers) + ": PyTorch's tensors took " + shown(*numbers.allocated) + " of " +
                 shown(*numbers.capacity) +
                 "; the rest is the CUDA pool's own cache, the context, and other programs, and this text does not divide it further");
    add_smaller_tries(finding);
    return;
  }
  conclude(finding, "", Confidence::kLikely,
           device_of(trace) + " had no room for " + asked_for(numbers) + "; the numbers in the message fit more than one cause");
  if (stated_word(trace, "allocator").empty()) add_empty_cache_truth(finding);
}

void add_number_evidence(const Trace& trace, const StatedNumbers& numbers, Finding& finding) {
  add_evidence(finding, "requested_bytes", numbers.requested);
  add_evidence(finding, "capacity_bytes", numbers.capacity);
  add_evidence(finding, "free_bytes", numbers.free);
  add_evidence(finding, "allocated_bytes", numbers.allocated);
  add_evidence(finding, "cached_bytes", numbers.cached);
  add_evidence(finding, "graph_pool_free_bytes", numbers.graph_pool);
  add_evidence(finding, "allowed_bytes", numbers.allowed);
  add_evidence(finding, "this_process_bytes", numbers.this_process);
  add_evidence(finding, "outside_framework_bytes", numbers.outside());
  add_evidence(finding, "other_processes_bytes", numbers.others);
  if (numbers.found_self)
    add_evidence(finding, "process_list",
                 std::string("this process is listed under another number, as in a container: only one entry is large enough to be it"));
  if (numbers.processes_ambiguous) add_evidence(finding, "process_list", std::string("it cannot be told which of the listed processes is this one"));
  // What the caching allocator asked the driver for is not what the tensor needs; the other allocators print the tensor's own bytes.
  const PrintedBytes needed = numbers.needed();
  if (stated_word(trace, "allocator").empty() && stated_word(trace, "requested_is").empty()) {
    add_evidence(finding, "block_at_least_bytes", needed.min);
    add_evidence(finding, "block_at_most_bytes", needed.max);
  }
}

void judge_other_framework(const Trace& trace, const StatedNumbers& numbers, Finding& finding) {
  const std::string_view framework = stated_word(trace, "framework");
  const std::string size = numbers.requested ? asked_for(numbers) : "an allocation";
  if (framework == "jax") {
    conclude(
        finding, "", Confidence::kLikely,
        "XLA could not find " + size + " in its memory pool; the message says neither how full the pool was nor whether the space was in pieces");
    if (const auto total = stated_bytes(trace, "executable_total")) add_evidence(finding, "executable_total_bytes", total);
    add_try(finding,
            "JAX takes three quarters of the device at start: if nothing else needs it, XLA_CLIENT_MEM_FRACTION=0.95 (older: "
            "XLA_PYTHON_CLIENT_MEM_FRACTION)");
    add_try(finding,
            "get the pool's own map at the failure: TF_CPP_MIN_LOG_LEVEL=0 " + program_of(trace) + " 2> log.txt, then: faultline explain log.txt");
  } else if (framework == "tensorflow") {
    if (stated_word(trace, "kind") == "pool-growth") {
      conclude(finding, "", Confidence::kHint,
               "TensorFlow asked the driver for a pool of " + size +
                   " and did not get it; it goes on with less, so this line alone is no failure, but something else held the device's memory");
      finding.severity = Severity::kWarning;
      add_try(finding, "see who holds the device: nvidia-smi; and let the pool grow as needed: TF_FORCE_GPU_ALLOW_GROWTH=true");
      return;
    }
    if (stated_word(trace, "benign") == "yes") {
      conclude(finding, "", Confidence::kLikely,
               "TensorFlow could not get " + size + " of scratch memory and went on without it: slower, no failure, as its message says");
      finding.severity = Severity::kNote;
      return;
    }
    const std::string shape(stated_word(trace, "tensor.shape"));
    if (!stated_word(trace, "disguise").empty()) {
      conclude(finding, "", Confidence::kLikely,
               "a copy to the GPU found no memory for its target: TensorFlow's words for that are that the target is not initialized");
    } else {
      conclude(finding, "", Confidence::kLikely,
               "TensorFlow could not find " + size + (shape.empty() ? "" : " for a tensor of shape " + shape) +
                   " in its memory pool; the message says neither how full the pool was nor whether the space was in pieces");
    }
    finding.memory = shape.empty() ? "" : "tensor of shape " + shape + ", type " + std::string(stated_word(trace, "tensor.type"));
    add_try(finding,
            "the lines above it in the log hold the pool's map (\"BFCAllocator dump\"): give Faultline the whole log: faultline explain log.txt");
  } else {
    conclude(finding, "", Confidence::kLikely,
             (framework.empty() ? "the program" : std::string(framework)) + " could not get " + size + " from " + device_of(trace) +
                 "; the message does not say who held the rest");
    add_try(finding, "see who holds the device: nvidia-smi");
  }
  if (!stated_word(trace, "buffer.file").empty() && !finding.location.known()) {
    finding.location.file = stated_word(trace, "buffer.file");
    finding.location.line = static_cast<std::uint32_t>(counter_of(trace, "buffer.line"));
    finding.location.op = stated_word(trace, "buffer.op");
  }
}

// "CUDA error: out of memory": no allocator of a framework was asked.
void judge_bare(Finding& finding) {
  conclude(finding, "", Confidence::kLikely,
           "a CUDA call outside the framework's allocator found no memory: making a context, loading a kernel, a library's buffer, a graph, or "
           "pinned host memory; the message has no numbers, so "
           "who held the memory cannot be told");
  add_try(finding, "if it fails at the first touch of the GPU, another program holds it: nvidia-smi");
  add_try(finding,
          "if it fails later, PyTorch's idle cache may be what is missing: it is given back only when PyTorch itself runs out, so here "
          "torch.cuda.empty_cache() before this line can help");
}

}  // namespace

void judge_out_of_memory(const Trace& trace, Finding& finding) {
  const StatedNumbers numbers = stated_numbers(trace);
  if (numbers.requested) finding.bytes = numbers.requested->middle();
  const std::string_view framework = stated_word(trace, "framework");
  if (framework == "pytorch" && numbers.requested) {
    judge_numbers(trace, numbers, finding);
    add_number_evidence(trace, numbers, finding);
  } else if (framework.empty() || framework == "pytorch") {
    judge_bare(finding);
  } else {
    if (!judge_own_limit(trace, numbers, finding)) judge_other_framework(trace, numbers, finding);
    add_evidence(finding, "requested_bytes", numbers.requested);
    add_evidence(finding, "reserved_bytes", numbers.reserved);
    add_evidence(finding, "allowed_bytes", numbers.allowed);
  }
  if (finding.severity == Severity::kError && stated_word(trace, "allocator") != "metal") add_recording_tries(trace, finding);
}

}  // namespace faultline
