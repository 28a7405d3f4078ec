#include <algorithm>
#include <cstdlib>

#include "base/units.h"
#include "models/torch/segment_sizes.h"
#include "rules/inequality.h"
#include "rules/out_of_memory/advice.h"
#include "rules/out_of_memory/out_of_memory.h"
#include "rules/out_of_memory/pool.h"
#include "rules/stated_error.h"
#include "sources/text_notes.h"

namespace faultline {
namespace {

std::string size_words(const StatedError& stated) {
  return stated.requested ? shown(*stated.requested) : std::string("memory");
}

void conclude(Finding& finding, Confidence confidence, std::string message) {
  finding.confidence = confidence;
  finding.message = std::move(message);
}

// Why a process of the list may be none of somebody else's.
std::string doubt_of(const Case& subject) {
  const StatedError& stated = subject.statements().error;
  if (subject.statements().message_only) {
    const TextNotes notes = read_text_notes(subject.trace());
    for (const std::string& pid : stated.other_pids) {
      if (const auto own = notes.job_pids.find(pid); own != notes.job_pids.end())
        return (stated.other_pids.size() == 1 ? ", which this text calls " : "; this text calls " + pid + " ") +
               own->second + " of this very job: two of its ranks then share this GPU, or the list is numbered " +
               "otherwise, as in a container";
    }
  }
  return stated.guessed_self.empty() ? std::string()
                                     : ", if this program is process " + stated.guessed_self +
                                           ", whose size fits what PyTorch holds and a CUDA context";
}

Shortage shortage_of(const Case& subject) {
  const StatedError& stated = subject.statements().error;
  Shortage shortage;
  // What the usual allocator prints is what it asked the driver for; the others print the tensor's own bytes.
  shortage.segment = *stated.requested;
  shortage.requested =
      stated.framework == Framework::kPyTorch ? TorchSegmentSizes().block_behind(*stated.requested) : *stated.requested;
  shortage.states_limits = true;
  shortage.live = stated.live;
  shortage.reserved = stated.reserved;
  if (stated.other_metal)
    shortage.reserved = shortage.reserved.value_or(stated.live.value_or(ByteInterval{})) + *stated.other_metal;
  shortage.free = stated.free;
  shortage.capacity = stated.capacity;
  shortage.idle = stated.cached;
  shortage.graph_pool = stated.graph_pool;
  shortage.allowed = stated.allowed;
  shortage.outside = stated.outside();
  shortage.others = stated.others;
  shortage.other_pids = stated.other_pids;
  shortage.doubt = doubt_of(subject);
  if (stated.framework != Framework::kPyTorch) shortage.holder = "the program";
  shortage.device = device_words(subject);
  return shortage;
}

void add_numbers(const StatedError& stated, const Shortage& shortage, Finding& finding) {
  const auto add = [&](const char* name, const std::optional<ByteInterval>& bytes) {
    if (bytes) add_evidence(finding, name, bytes->middle());
  };
  add("requested_bytes", stated.requested);
  add("capacity_bytes", stated.capacity);
  add("free_bytes", stated.free);
  add("allocated_bytes", stated.live);
  add("cached_bytes", stated.cached);
  add("graph_pool_free_bytes", stated.graph_pool);
  if (!stated.live) add("reserved_bytes", stated.reserved);
  add("allowed_bytes", stated.allowed);
  add("this_process_bytes", stated.this_process);
  add("outside_framework_bytes", stated.outside());
  if (!stated.processes_ambiguous) add("other_processes_bytes", stated.others);
  if (stated.found_self)
    add_evidence(
        finding, "process_list",
        std::string(
            "this process is listed under another number, as in a container: only one entry is large enough to be it"));
  if (!stated.guessed_self.empty())
    add_evidence(finding, "process_list", "by its size this program is process " + stated.guessed_self);
  if (stated.processes_ambiguous)
    add_evidence(finding, "process_list", std::string("it cannot be told which of the listed processes is this one"));
  if (stated.framework == Framework::kPyTorch && stated.allocator == StatedAllocator::kUsual &&
      shortage.segment.min < (std::uint64_t{1} << 60)) {
    add_evidence(finding, "block_at_least_bytes", shortage.requested.min);
    add_evidence(finding, "block_at_most_bytes", shortage.requested.max);
  }
}

// A message with the numbers of an allocator. False: they tell of no cause.
bool judge_numbers(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  const Shortage shortage = shortage_of(subject);
  CauseVerdict verdict = cause_of(shortage);
  add_numbers(stated, shortage, finding);
  const bool async = stated.allocator == StatedAllocator::kAsync && stated.live;
  if (stated.framework != Framework::kPyTorch && verdict.story != Story::kLimit && !(async && *verdict.cause() != 0))
    return false;
  if (*verdict.cause() == 0 && stated.allocator == StatedAllocator::kAsync && stated.live && stated.capacity) {
    verdict.why = "PyTorch's tensors took " + shown(*stated.live) + " of " + shown(*stated.capacity) +
                  "; the rest is the CUDA pool's own cache, the context, and other programs, and this text does not "
                  "divide it further";
  }
  finding.cause = verdict.cause();
  conclude(finding, verdict.story == Story::kFreeUnknown ? Confidence::kLikely : verdict.confidence,
           asked_for(*stated.requested) + ": " + verdict.why + ".");
  add_evidence(finding, "inequality", verdict.inequality);
  for (const StatedError::Buffer& buffer : stated.buffers) {
    if (stated.framework != Framework::kPyTorch && async)
      finding.holders.push_back({buffer.bytes.middle(), 1, "in the pool", Location(), buffer.what});
  }
  AdviceContext context;
  context.program = program_words(subject);
  context.message = &stated;
  context.sets_expandable = subject.statements().message_only && read_text_notes(subject.trace()).sets_expandable;
  if (subject.statements().message_only) context.of_rank = read_text_notes(subject.trace()).who.starts_with("rank ");
  if (subject.statements().message_only && !subject.trace().events.empty())
    context.roles = subject.facts().stacks.roles(subject.trace().events.front().stack);
  advise(verdict, context, finding);
  return true;
}

// "TensorFlow", "JAX", or both where the text does not tell.
std::string owner_words(const StatedError& stated) {
  return stated.framework_name == "tensorflow" ? "TensorFlow"
         : stated.framework_name == "jax"      ? "JAX"
                                               : stated.framework_name;
}

// What the pool's map would tell, where the text has none of it.
void add_map(const Case& subject, Finding& finding) {
  const std::string who = owner_words(subject.statements().error);
  add_try(finding, "The pool's map, which tells the causes apart, is not in this text. " +
                       (who == "JAX"          ? std::string("JAX prints it only with TF_CPP_MIN_LOG_LEVEL=0")
                        : who == "TensorFlow" ? std::string("TensorFlow prints it to the standard error, unless "
                                                            "TF_CPP_MIN_LOG_LEVEL is set above 0")
                                              : std::string("TensorFlow prints it to the standard error by itself, JAX "
                                                            "only with TF_CPP_MIN_LOG_LEVEL=0")) +
                       ": TF_CPP_MIN_LOG_LEVEL=0 " + program_words(subject) +
                       " 2>&1 | tee log.txt, then faultline explain log.txt");
}

bool has_map(const Case& subject, const std::optional<PoolFailure>& failure) {
  return failure && shortage_of(subject, failure->slot, failure->moment).pool->has_map;
}

// A program that asks the driver for each buffer, or a pool whose own words are not in the text.
bool judge_refused(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.call.empty()) return false;
  conclude(finding, Confidence::kProved,
           owner_words(stated) + " asked the driver for " + size_words(stated) +
               (stated.call == "unified memory"
                    ? " of unified memory, which lies in the GPU's and the host's memory together, and got none. How "
                      "much was free of either is not in this text."
                    : " and got none: the device had no room for it. How much was free, and who held the rest, is not "
                      "in this text."));
  add_try(finding, "See who holds the device: nvidia-smi; other programs and forgotten notebooks count.");
  add_try(finding, std::string(finding.location.known() ? "Hold less at this line" : "Hold less at once") +
                       ": a smaller batch or sequence, a smaller type.");
  return true;
}

// The first extent of a tensor of three dimensions or more is most often the batch, unless it is as small as a filter's.
void add_smaller_tensor(const StatedError& stated, Finding& finding) {
  const std::string& shape = stated.tensor_shape;
  const std::string first = shape.substr(1, shape.find_first_of(",]") - 1);
  const bool is_likely = std::count(shape.begin(), shape.end(), ',') >= 2 && std::atoi(first.c_str()) > 7;
  add_try(finding, is_likely ? "The first dimension, " + first +
                                   ", is likely the batch: a smaller one makes this tensor, and all that grow with it, "
                                   "smaller in proportion (batch_size of fit, batch of tf.data)."
                             : "If the first dimension, " + first +
                                   ", is the batch, a smaller one makes this tensor smaller in proportion; else a "
                                   "smaller layer or type does.");
}

void judge_tensorflow(Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  const std::string who = owner_words(stated);
  if (judge_refused(subject, finding)) return;
  if (stated.kind == ErrorKind::kPoolGrowth) {
    conclude(finding, Confidence::kHint,
             who + " asked the driver for a pool of " + size_words(stated) +
                 " and did not get it; it goes on with less, so this line alone is no failure, but something else held "
                 "the device's memory.");
    finding.severity = Severity::kWarning;
    return add_try(finding, "See who holds the device: nvidia-smi; and let the pool grow as needed: " +
                                std::string(who == "TensorFlow" ? "TF_FORCE_GPU_ALLOW_GROWTH=true"
                                            : who == "JAX"      ? "XLA_PYTHON_CLIENT_PREALLOCATE=false"
                                                                : "TF_FORCE_GPU_ALLOW_GROWTH=true in TensorFlow, "
                                                                  "XLA_PYTHON_CLIENT_PREALLOCATE=false in JAX"));
  }
  if (stated.benign) {
    finding.severity = Severity::kNote;
    return conclude(finding, Confidence::kLikely,
                    who + " could not get " + size_words(stated) +
                        " of scratch memory and went on without it: slower, no failure, as its message says.");
  }
  if (stated.disguised) {
    conclude(finding, Confidence::kLikely,
             "A copy to the GPU found no memory for its target: TensorFlow's words for that are that the target is not "
             "initialized.");
  } else {
    conclude(
        finding, Confidence::kLikely,
        who + " could not find " + size_words(stated) +
            (stated.tensor_shape.empty() ? "" : " for a tensor of shape " + stated.tensor_shape) +
            (stated.op.empty() ? "" : (stated.tensor_shape.empty() ? " for " : " of ") + stated.op) +
            " in its memory pool; the message says neither how full the pool was nor whether the space was in pieces.");
  }
  const auto failure = pool_failure(subject);
  if (failure) tell_pool(subject, *failure, finding);
  if (!finding.location.known() && !stated.disguised) finding.location.op = stated.op;
  if (!stated.tensor_shape.empty()) {
    finding.memory = "tensor of shape " + stated.tensor_shape + ", type " + stated.tensor_type;
    if (!failure) add_smaller_tensor(stated, finding);
  }
  if (finding.cause.empty() && !has_map(subject, failure)) add_map(subject, finding);
}

// The largest buffers of the program that XLA compiled, where the text lists them.
std::string buffer_words(const StatedError& stated, Finding& finding) {
  std::string words;
  std::size_t told = 0;
  for (const StatedError::Buffer& buffer : stated.buffers) {
    const std::string place = buffer.place.substr(buffer.place.find_last_of('/') + 1);
    add_evidence(finding, "buffer",
                 shown(buffer.bytes) + " " + buffer.what + (buffer.place.empty() ? "" : " at " + buffer.place));
    if (++told <= 2)
      words += (words.empty() ? "" : "; ") + shown(buffer.bytes) + " " + buffer.what +
               (place.empty() ? "" : " (" + place + ")");
  }
  return words;
}

void judge_jax(Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.kind == ErrorKind::kPoolGrowth || stated.benign || stated.disguised || !stated.call.empty())
    return judge_tensorflow(subject, finding);
  const std::string buffers = buffer_words(stated, finding);
  if (stated.executable_total && stated.capacity) {
    finding.cause = "exhausted";
    conclude(finding, Confidence::kProved,
             "The compiled program needs " + shown(*stated.executable_total) + " of the " + shown(*stated.capacity) +
                 " that the device has" + (buffers.empty() ? "." : "; its largest buffers: " + buffers + "."));
    return add_try(finding,
                   "Hold less: a smaller batch or sequence, a smaller type, jax.checkpoint around the layers, or "
                   "sharding over more devices.");
  }
  // of a TPU, which tells how much was free
  if (stated.free && stated.requested) {
    const bool is_short = surely_less(*stated.free, *stated.requested);
    finding.cause = is_short ? "exhausted" : surely_at_least(*stated.free, *stated.requested) ? "fragmented" : "";
    conclude(finding, is_short ? Confidence::kProved : Confidence::kLikely,
             shown(*stated.requested) + " were asked for, and " + shown(*stated.free) + " were free" +
                 (is_short                ? "."
                  : finding.cause.empty() ? ", as far as the rounded numbers tell: too little, or in pieces."
                                          : ", but not in one piece."));
    if (!finding.cause.empty())
      add_evidence(finding, "inequality",
                   compared({{*stated.free, "free"}}, is_short ? "<" : "≥", {{*stated.requested, "asked for"}}));
    return add_try(finding,
                   "Hold less: a smaller batch or sequence, a smaller type, jax.checkpoint around the layers, or "
                   "sharding over more devices.");
  }
  conclude(
      finding, Confidence::kLikely,
      "XLA could not find " + size_words(stated) +
          " in its memory pool; the message says neither how full the pool was nor whether the space was in pieces.");
  const auto failure = pool_failure(subject);
  if (failure) tell_pool(subject, *failure, finding);
  if (stated.status == "autotuner") {
    finding.message +=
        " XLA's autotuner asked for it, which tries kernels on copies of their operands while a program is compiled.";
    add_try(finding,
            "XLA_FLAGS=--xla_gpu_autotune_level=0 compiles without trying kernels (which may be slower ones). "
            "Not confirmed: whether the program itself then fits is not in this text.");
  }
  if (stated.executable_total) {
    add_evidence(finding, "executable_total_bytes", stated.executable_total->middle());
    if (stated.executable_temporaries)
      add_evidence(finding, "executable_temporaries_bytes", stated.executable_temporaries->middle());
    finding.message +=
        " The program that it had compiled needs " + shown(*stated.executable_total) + " in all" +
        (stated.executable_temporaries ? ", " + shown(*stated.executable_temporaries) + " of it for temporaries"
                                       : std::string()) +
        (buffers.empty() ? "." : "; its largest buffers: " + buffers + ".");
  } else if (!buffers.empty()) {
    finding.message += " The largest buffers of the program that it had compiled: " + buffers + ".";
  }
  if (!buffers.empty())
    add_try(finding,
            "Make the largest of these buffers smaller: a smaller batch or a smaller type at its line, jax.checkpoint "
            "around what keeps it for the backward pass, or work in pieces (jax.lax.map, jax.lax.scan).");
  else if (stated.executable_temporaries && stated.executable_total &&
           surely_at_least(*stated.executable_temporaries + *stated.executable_temporaries, *stated.executable_total))
    add_try(finding,
            "Most of it is temporaries, what is kept between operations: a smaller batch or sequence, a smaller type, "
            "jax.checkpoint around the layers, or work in pieces (jax.lax.map, jax.lax.scan) shrinks them.");
  if (finding.cause.empty() && !has_map(subject, failure)) add_map(subject, finding);
  if (stated.other_framework != "TensorFlow" && finding.cause.empty() && !failure)
    add_try(finding,
            "JAX takes three quarters of the device at start: if nothing else needs it, XLA_CLIENT_MEM_FRACTION=0.95 "
            "(older: XLA_PYTHON_CLIENT_MEM_FRACTION).");
  if (buffers.empty())
    add_try(finding, "See every buffer and its line: faultline run --buffers -- " + program_words(subject));
}

// The runtime's own words, "CUDA error: out of memory", from whatever called it.
void judge_bare(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.framework == Framework::kPyTorch) {
    const bool is_cut = stated.text.find("Tr") != std::string::npos;
    conclude(finding, Confidence::kLikely,
             std::string("GPU memory ran out in PyTorch's allocator; ") +
                 (is_cut ? "the message is cut, or has no size that can be read" : "this text has no numbers of it") +
                 ", so how much was missing and who held the memory cannot be told.");
    return add_try(finding,
                   "Since 1.0 the message goes on with numbers (\"Tried to allocate …\"): give Faultline the whole of "
                   "it, or the whole log.");
  }
  const bool other = !stated.other_framework.empty();
  conclude(finding, Confidence::kLikely,
           std::string(other ? "A CUDA call found no memory"
                             : "A CUDA call outside the framework's allocator found no memory") +
               ": making a context, loading a kernel, a library's buffer, a graph, or pinned host memory; the message "
               "has no numbers, so who held the memory cannot be told.");
  if (other)
    conclude(finding, Confidence::kLikely,
             "A CUDA call of " + stated.other_framework +
                 " found no GPU memory; the message has no numbers, so who held the memory cannot be told.");
  add_try(finding, "If it fails at the first touch of the GPU, another program holds it: nvidia-smi");
  if (!other)
    add_try(
        finding,
        "If it fails later, in a program that uses PyTorch, PyTorch's idle cache may be what is missing: it is given "
        "back only when PyTorch itself runs out, so here torch.cuda.empty_cache() before this line can help.");
}

// A framework or a library that says no more than that it got nothing.
void judge_without_numbers(Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.framework == Framework::kJax) {
    judge_jax(subject, finding);
  } else if (stated.framework == Framework::kTensorFlow) {
    judge_tensorflow(subject, finding);
  } else if (stated.framework == Framework::kOther && !stated.status.empty()) {
    finding.cause = "own-limit";
    conclude(finding, Confidence::kProved,
             "The memory pool reached the largest size that it was given (" + stated.status +
                 "); the device itself need not be full.");
    add_try(finding,
            "Raise or remove the pool's limit (maximum_pool_size of rmm.reinitialize or PoolMemoryResource), or hold "
            "less.");
  } else if (stated.framework == Framework::kOther) {
    conclude(finding, Confidence::kLikely,
             stated.framework_name + " could not get " + (stated.requested ? size_words(stated) : "an allocation") +
                 " from " + device_words(subject) +
                 (stated.free ? ", of which " + shown(*stated.free) + " were free" : std::string()) +
                 "; the message does not say who held the rest.");
    add_try(finding, "See who holds the device: nvidia-smi");
    if (stated.framework_name == "llama.cpp")
      add_try(finding,
              "Put less on the GPU: fewer layers (-ngl), a shorter context (-c), a smaller quantisation, "
              "--cache-type-k q8_0.");
    if (stated.framework_name == "TensorRT")
      add_try(finding,
              "A smaller workspace (setMemoryPoolLimit, --memPoolSize), smaller shapes or batch in the profile; while "
              "an engine is built, a tactic that finds no memory is skipped and need not end the build.");
  } else {
    judge_bare(subject, finding);
  }
  const auto placed = std::find_if(stated.buffers.begin(), stated.buffers.end(),
                                   [](const StatedError::Buffer& buffer) { return !buffer.place.empty(); });
  if (placed != stated.buffers.end() && !finding.location.known()) {
    const std::size_t colon = placed->place.rfind(':');
    finding.location.file = placed->place.substr(0, colon);
    finding.location.line = static_cast<std::uint32_t>(std::atoi(placed->place.c_str() + colon + 1));
    finding.location.op = placed->what;
  }
}

void judge_library(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  const bool other = !stated.other_framework.empty();
  const bool has_pool = stated.other_framework == "TensorFlow" || stated.other_framework == "JAX";
  if (stated.requested) add_evidence(finding, "requested_bytes", stated.requested->middle());
  add_evidence(finding, "status", stated.status);
  add_evidence(finding, "call", stated.call);
  // NCCL passes on the driver's own answer; a status of cuBLAS or cuDNN is only that something could not be had.
  const bool by_status = stated.library != "NCCL";
  conclude(
      finding, by_status ? Confidence::kLikely : Confidence::kProved,
      (by_status ? stated.library + " could not get what it needs (" +
                       (stated.status.empty() ? "no allocation" : stated.status) +
                       "): most often the device had no memory left for it, else the context was broken before, by an "
                       "illegal access or an index out of range"
                 : stated.library + " asked the driver for " + size_words(stated) + " and got none") +
          (has_pool ? "; it takes memory beside the pool of " + stated.other_framework +
                          ", which keeps what it has taken, and nothing here says who held the memory."
           : other  ? "; nothing here says who held the memory."
                    : "; it does not go through PyTorch's allocator, so PyTorch did not give its idle cache back "
                      "first, and nothing here says who held the memory."));
  if (has_pool)
    add_try(finding, stated.other_framework == "JAX"
                         ? "Leave room beside the pool: XLA_CLIENT_MEM_FRACTION=0.6 (older: "
                           "XLA_PYTHON_CLIENT_MEM_FRACTION), or XLA_PYTHON_CLIENT_PREALLOCATE=false."
                         : "Leave room beside the pool, which takes almost the whole device at the start: "
                           "TF_FORCE_GPU_ALLOW_GROWTH=true, or set_logical_device_configuration(memory_limit=…).");
  if (!other)
    add_try(finding,
            "torch.cuda.empty_cache() before this line can help here, unlike with PyTorch's own error; if it does, the "
            "memory was idle cache.");
  if (!other && stated.library == "NCCL" && !is_torch_before(stated, 1, 8))
    add_try(finding,
            "Leave room for it: torch.cuda.set_per_process_memory_fraction(0.9) keeps PyTorch from taking the last of "
            "the device.");
  else if (stated.library == "cuBLAS" || stated.library == "cuDNN")
    add_try(
        finding,
        "Make its handle while there is room: one small matrix product or convolution at the start of the program.");
  add_try(finding, "See who holds the device: nvidia-smi");
  if (by_status)
    add_try(finding,
            "If there was room, the context was broken before: after an illegal access or an index out of range the "
            "next call of a library fails so. Look for an earlier error in the log (\"Assertion `…` failed\"); "
            "CUDA_LAUNCH_BLOCKING=1 " +
                program_words(subject) + " shows it.");
}

// What would tell more than a message can.
void add_next_step(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (finding.severity != Severity::kError || stated.allocator == StatedAllocator::kMetal ||
      stated.framework == Framework::kJax)
    return;
  // What no setting and no device of its size can serve is a matter of the line alone.
  const bool too_large = stated.requested && (stated.requested->min >= (std::uint64_t{1} << 60) ||
                                              (stated.capacity && surely_less(*stated.capacity, *stated.requested)));
  if (too_large && finding.location.known()) return;
  add_try(finding, "Record the next run: faultline run -- " + program_words(subject) +
                       " names the lines that hold the memory" +
                       (stated.framework == Framework::kPyTorch ||
                                (stated.framework == Framework::kNone && stated.other_framework.empty())
                            ? " and tries settings on the recording."
                            : "."));
  if (stated.framework != Framework::kPyTorch || finding.cause != "exhausted" || too_large) return;
  add_try(finding, "Ask before renting a larger GPU: faultline plan --gpu H100 -- " + program_words(subject) +
                       " tells without one whether it would fit, and what would.");
}

// ROCm's names for the same things.
void name_as_hip(std::string& words) {
  using Names = std::pair<std::string_view, std::string_view>;
  for (const auto& [cuda, hip] :
       {Names("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"),
        Names("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), Names("nvidia-smi", "rocm-smi")}) {
    for (std::size_t at = words.find(cuda); at != std::string::npos; at = words.find(cuda, at + hip.size()))
      words.replace(at, cuda.size(), hip);
  }
}

}  // namespace

Finding describe_message(Case& subject) {
  const StatedError& stated = subject.statements().error;
  Finding finding = begin_stated(subject, "memory/out-of-memory");
  if (stated.requested && stated.requested->min < kExabyte) finding.bytes = stated.requested->middle();
  if (stated.kind == ErrorKind::kLibraryMemory)
    judge_library(subject, finding);
  else if (!stated.requested || stated.requested->max == 0 || stated.framework == Framework::kNone ||
           !judge_numbers(subject, finding))
    judge_without_numbers(subject, finding);
  if (finding.severity != Severity::kNote && stated.kind == ErrorKind::kOutOfMemory &&
      subject.statements().message_only && read_text_notes(subject.trace()).shows_no_exception)
    finding.message +=
        " No exception stands in this text: JAX raises one only where the result of what failed is read, so a result "
        "that nobody read is missing without a word.";
  add_next_step(subject, finding);
  if (stated.text.starts_with("HIP ") || stated.text.find("PYTORCH_HIP_ALLOC_CONF") != std::string::npos)
    for (Try& attempt : finding.tries) name_as_hip(attempt.what);
  finish_stated(subject, finding);
  return finding;
}

}  // namespace faultline
