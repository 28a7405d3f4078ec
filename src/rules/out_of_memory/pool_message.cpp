#include "rules/out_of_memory/pool_message.h"

#include <algorithm>
#include <cstdlib>

#include "base/units.h"
#include "fmt/format.h"
#include "rules/describe.h"
#include "rules/out_of_memory/compiled_program.h"
#include "rules/out_of_memory/message_words.h"
#include "rules/out_of_memory/pool.h"
#include "rules/pool_cause.h"
#include "rules/shortage.h"
#include "rules/stated_error.h"
#include "sources/pool_names.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

// "TensorFlow", "JAX", or both where the text does not tell.
std::string owner_words(const StatedError& stated) {
  return stated.framework == Framework::kOther ? stated.program : std::string(words_of(stated.framework));
}

// What the pool's map would tell, where the text has none of it. CUDA's own pool has none.
void add_map(const Case& subject, Finding& finding) {
  if (subject.statements().error.allocator() == StatedAllocator::kAsync) return;
  if (!pool_failure(subject) && !subject.statements().pools.empty()) return;  // the map in the text is another's
  const std::vector<DumpedPool>& pools = subject.statements().pools;
  if (std::any_of(pools.begin(), pools.end(), [](const DumpedPool& pool) { return pool.is_cut(); }))
    return add_try(
        finding,
        "Give Faultline the pool's whole map, from \"Current allocation summary\" or the first \"BFCAllocator "
        "dump\" line to the totals at its end (\"Sum Total of in-use chunks\", \"Stats\"): it shows the "
        "cause.");
  const Framework who = subject.statements().error.framework;
  add_try(
      finding,
      "The pool's map, which would show the cause, is not in this text. " +
          (who == Framework::kJax          ? std::string("JAX prints it only with TF_CPP_MIN_LOG_LEVEL=0")
           : who == Framework::kTensorFlow ? std::string("TensorFlow prints it to the standard error, unless "
                                                         "TF_CPP_MIN_LOG_LEVEL is set above 0")
                                           : std::string("TensorFlow prints it to the standard error by itself, JAX "
                                                         "only with TF_CPP_MIN_LOG_LEVEL=0")) +
          ": TF_CPP_MIN_LOG_LEVEL=0 " + program_words(subject) + " 2>&1 | tee log.txt, then faultline explain log.txt");
}

bool has_map(const Case& subject, const std::optional<PoolFailure>& failure) {
  return failure && shortage_of(subject, failure->slot, failure->moment).pool->has_map;
}

// A map of a pool of the host's memory is not told by what the GPU had.
bool is_of_gpu(const Case& subject, const std::optional<PoolFailure>& failure) {
  return !failure || shortage_of(subject, failure->slot, failure->moment).pool->memory == PoolMemory::kGpu;
}

std::string tensor_words(const StatedError& stated) {
  return "tensor of shape " + stated.tensor_shape + (stated.tensor_type.empty() ? "" : ", type " + stated.tensor_type);
}

// A program that asks the driver for each buffer, or a pool whose own words are not in the text.
bool judge_refused(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.asked_of == AskedOf::kAllocator) return false;
  if (stated.asked_of == AskedOf::kContext) {
    conclude(finding, Confidence::kLikely,
             owner_words(stated) + " could not even make its CUDA context on " + device_words(subject) +
                 ", which takes a few hundred MiB: the device was full before the framework had allocated anything, so "
                 "other processes hold it, or another framework in this one.");
    finding.cause = "other-process";
    add_try(finding,
            "See who holds the device: nvidia-smi; other programs and forgotten notebooks count. End them, or "
            "use another device: CUDA_VISIBLE_DEVICES.");
    return true;
  }
  conclude(finding, Confidence::kProved,
           owner_words(stated) + " asked the driver for " + size_words(stated) +
               (stated.asked_of == AskedOf::kUnifiedMemory
                    ? " of unified memory, which spans GPU memory and host memory, and got none. How "
                      "much was free of either is not in this text."
                    : " and got none: the device had no room for it. How much was free, and who held the rest, is not "
                      "in this text."));
  add_try(finding, "See who holds the device: nvidia-smi; other programs and forgotten notebooks count.");
  add_try(finding, std::string(finding.location.known() ? "Hold less at this line" : "Hold less at once") +
                       ": a smaller batch or sequence, a smaller type.");
  return true;
}

const char* const kEndOthers =
    "See who holds the device and end it, or wait: nvidia-smi; forgotten notebooks and runs that hang "
    "count. Or use another one: CUDA_VISIBLE_DEVICES.";

// Room that the runtime saw as it began, before its pool took anything: what was gone by then is not this program's. Where the pool's own numbers have told a cause already, it is this one if
// the request would have fitted into what was gone.
bool tell_start(const StatedError& stated, Finding& finding) {
  if (stated.start_free && stated.start_capacity &&
      surely_less(*stated.start_free + *stated.start_free, *stated.start_capacity)) {
    const ByteInterval gone = *stated.start_capacity - *stated.start_free;
    if (!finding.cause.empty() && (!stated.requested || !surely_at_least(gone, *stated.requested))) return false;
    std::erase_if(finding.evidence, [](const Evidence& evidence) { return evidence.name == "inequality"; });
    const bool is_short = stated.requested && surely_less(*stated.start_free, *stated.requested);
    finding.cause = "other-process";
    finding.confidence = is_short ? Confidence::kProved : Confidence::kLikely;
    finding.message += fmt::format(
        " The GPU was nearly full before this program had allocated anything: {} of its {} was free when it began, so "
        "{} "
        "were held by others (or by an earlier run that is still alive).",
        shown(*stated.start_free), shown(*stated.start_capacity), shown(gone));
    add_evidence(finding, "free_at_start_bytes", stated.start_free->middle());
    add_evidence(
        finding, "inequality",
        is_short
            ? compared({{*stated.start_free, "free when the program began"}}, "<", {{*stated.requested, "requested"}})
            : compared({{gone, "held before the program began"}}, ">", {{*stated.start_free, "free when it began"}}));
    finding.tries.insert(finding.tries.begin(), Try{kEndOthers, std::nullopt, 0});
    return true;
  }
  // "Created device … with 381 MB memory": what the pool may take is set then, by what was free
  if (stated.start_pool && surely_less(*stated.start_pool, ByteInterval::exactly(kGiB))) {
    finding.message += fmt::format(
        " The pool was made with {} MiB as the program began, which is less than any free GPU has: something else held "
        "the device, or a limit was set (per_process_gpu_memory_fraction, memory_limit).",
        stated.start_pool->min / kMiB);  // whole ones, as it was printed
    if (!finding.number("pool_limit_bytes")) {
      add_evidence(finding, "pool_limit_at_least_bytes", stated.start_pool->min);
      add_evidence(finding, "pool_limit_at_most_bytes", stated.start_pool->max);
    }
    add_try(finding, kEndOthers);
    return true;
  }
  return false;
}

// What the driver did not give the pool shortly before a message that has neither map nor header.
void tell_refused(const StatedError& stated, Finding& finding) {
  if (!stated.refused_region || !finding.cause.empty()) return;
  const ByteInterval refused = *stated.refused_region;
  add_evidence(finding, "refused_region_bytes", refused.middle());
  const bool is_this =
      stated.requested && surely_at_least(refused, *stated.requested) && is_last_refusal(refused, *stated.requested);
  finding.message += fmt::format(
      " Shortly before it the driver had refused the pool {}, so the pool was not at its limit, and the device's "
      "memory was held outside it{}.",
      shown(refused), is_this ? "" : "; the text does not say whether it also refused what this request needs");
  if (is_this) {
    finding.cause = "outside-framework";
    add_evidence(finding, "inequality",
                 compared({{refused, "refused by the driver"}}, "≥", {{*stated.requested, "requested"}}));
  }
  add_try(finding, kEndOthers);
}

// What the framework's start and the driver's refusals tell of the cause. Free memory in pieces is none of theirs.
void tell_surroundings(const StatedError& stated, bool has_failure, Finding& finding) {
  if (finding.cause == "fragmented") return;
  if (!tell_start(stated, finding) && !has_failure) tell_refused(stated, finding);
}

// A constant of a compiled program is not in the pool: XLA asks the driver for it, which has what the pool leaves.
bool judge_constant(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (!stated.for_constant) return false;
  const bool is_tensorflow =
      stated.framework == Framework::kTensorFlow || stated.other_framework == Framework::kTensorFlow;
  conclude(
      finding, Confidence::kLikely,
      "XLA asked the driver for " + size_words(stated) +
          " to hold a constant of the program that it had compiled, and got none. Constants lie outside the memory "
          "pool, in what the pool and other programs leave of the device: a larger pool leaves less.");
  add_try(finding,
          is_tensorflow
              ? "Give what is large to the compiled function as an argument: an array that it takes from around it is "
                "compiled in as a constant, outside the pool."
              : "Give what is large to the jitted function as an argument: a NumPy or JAX array that it closes over is "
                "compiled in as a constant, outside the pool.");
  add_try(finding,
          is_tensorflow
              ? "Leave more of the device to it: TF_FORCE_GPU_ALLOW_GROWTH=true, or a smaller "
                "per_process_gpu_memory_fraction."
              : "Leave more of the device to it: XLA_PYTHON_CLIENT_PREALLOCATE=false, or less than the three quarters "
                "that the pool takes at start (XLA_CLIENT_MEM_FRACTION=0.5; older: XLA_PYTHON_CLIENT_MEM_FRACTION).");
  add_try(finding, "See who else holds the device: nvidia-smi.");
  return true;
}

// A pool of page-locked memory of the host, of which the text has no map. False: it is another one's.
bool judge_host_pool(const StatedError& stated, Finding& finding) {
  if (stated.pool.empty() || memory_of(stated.pool) != PoolMemory::kHost) return false;
  finding.rule = rule_name::kHostMemory;
  conclude(finding, Confidence::kProved,
           size_words(stated) + " was requested in " + stated.pool +
               ", a pool of host memory through which copies to the GPU go, and it had no room: its limit "
               "(64 GiB unless set), or RAM, ran out. GPU memory is not the problem.");
  add_try(finding,
          "Copy less at once: smaller batches, fewer of them prefetched (prefetch of tf.data), or the data in pieces. "
          "free -h and ulimit -l show what RAM there is and how much of it may be locked.");
  if (const PoolLimitVariable variable = limit_variable_of(stated.pool); !variable.name.empty())
    add_try(finding, fmt::format("{} says how much that pool may take{}.", variable.name,
                                 variable.remark.empty() ? "" : fmt::format(" ({})", variable.remark)));
  return true;
}

// A copy to the GPU that found no memory.
void judge_disguised(const StatedError& stated, Finding& finding) {
  conclude(finding, Confidence::kLikely,
           std::string("A copy to the GPU had no room for its target") +
               (stated.text.find("Dst tensor") == std::string::npos
                    ? ". "
                    : ": TensorFlow says of that only that the target is not initialized. ") +
               "GPU memory ran out; the text does not say how much it needed.");
  if (tell_start(stated, finding)) return;
  add_try(finding,
          "See who holds the GPU: nvidia-smi. Another notebook or run of TensorFlow takes almost all of it by itself: "
          "end it, or let both grow as needed (TF_FORCE_GPU_ALLOW_GROWTH=true for each).");
  add_try(
      finding,
      "Copy less at once: arrays that are given to fit whole lie on the GPU whole; tf.data from a generator or from "
      "files, a smaller batch, or with tf.device(\"CPU:0\") around what need not be there.");
}

// "gpu_async_0 cuMemAllocAsync failed to allocate …": CUDA's own pool, by the numbers that are printed with it. What cause_of tells of them stands in message.cpp.
void judge_async(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  std::string words =
      size_words(stated) + " was requested from CUDA's own pool (cuda_malloc_async), and CUDA gave none";
  Confidence confidence = Confidence::kLikely;
  if (stated.free && stated.capacity) {
    words += fmt::format(": of the device's {} it reports {} free", shown(*stated.capacity), shown(*stated.free));
    if (stated.live) words += fmt::format(", and {} has {} in use", owner_words(stated), shown(*stated.live));
    const ByteInterval known = *stated.free + stated.live.value_or(ByteInterval{});
    if (stated.requested && surely_less(*stated.capacity, *stated.requested)) {
      finding.cause = "exhausted";
      confidence = Confidence::kProved;
      words += "; it is more than the device has";
      add_evidence(finding, "inequality",
                   compared({{*stated.requested, "requested"}}, ">", {{*stated.capacity, "that the device has"}}));
    } else if (stated.requested && stated.live && surely_less(*stated.capacity, *stated.live + *stated.requested)) {
      finding.cause = "exhausted";
      confidence = Confidence::kProved;
      words += "; what is in use and the request are more than the device has";
      add_evidence(finding, "inequality",
                   compared({{*stated.live, "in use"}, {*stated.requested, "requested"}}, ">",
                            {{*stated.capacity, "that the device has"}}));
    } else if (stated.requested && surely_less(*stated.free, *stated.requested)) {
      words += stated.live && surely_less(known, *stated.capacity)
                   ? fmt::format(
                         "; the other {} are what the pool keeps for later requests, the CUDA context and other "
                         "programs, which this text does not divide",
                         shown(*stated.capacity - known))
                   : std::string("; who holds the rest is not in this text");
    } else if (stated.requested && surely_at_least(*stated.free, *stated.requested)) {
      words +=
          "; that is more than was requested, so memory was freed while the numbers were taken, or a limit around "
          "the program refused (a MIG slice, a container's share, MPS)";
    }
  } else {
    words += "; its own numbers are not in this text";
    add_try(
        finding,
        "TensorFlow and JAX print what was free, the sizes in use and the pool's totals to the standard error, above "
        "the exception: " +
            program_words(subject) + " 2>&1 | tee log.txt, then faultline explain log.txt");
  }
  conclude(finding, confidence, words + ".");
  for (const StatedError::Buffer& buffer : stated.buffers)
    finding.holders.push_back({buffer.bytes.middle(), 1, "in the pool", Location(), buffer.what});
  if (finding.cause.empty()) add_try(finding, "See who else holds the device: nvidia-smi.");
  add_try(finding, std::string(finding.location.known() ? "Hold less at this line" : "Hold less at once") +
                       ": a smaller batch or sequence, a smaller type.");
  if (!stated.tensor_shape.empty()) finding.memory = tensor_words(stated);
}

// The first extent of a tensor of three dimensions or more is most often the batch, unless it is as small as a filter's.
void add_smaller_tensor(const StatedError& stated, Finding& finding) {
  const std::string& shape = stated.tensor_shape;
  if (shape.find_first_of("0123456789") == std::string::npos) return;
  const std::string first = shape.substr(1, shape.find_first_of(",]") - 1);
  const bool is_likely = std::count(shape.begin(), shape.end(), ',') >= 2 && std::atoi(first.c_str()) > 7;
  add_try(finding, is_likely ? "The first dimension, " + first +
                                   ", is likely the batch: a smaller one makes this tensor, and all that grow with it, "
                                   "smaller in proportion (batch_size of fit, batch of tf.data)."
                             : "If the first dimension, " + first +
                                   ", is the batch, a smaller one makes this tensor smaller in proportion; else a "
                                   "smaller layer or type does.");
}

// "conv2/Conv2D (FusedBatchNorm)"
std::string op_words(const StatedError& stated) {
  const bool adds = !stated.op_type.empty() && !stated.op.ends_with(stated.op_type);
  return stated.op + (adds ? " (" + stated.op_type + ")" : "");
}

// Maps of other failures, each with a finding of its own.
void add_other_maps(const Case& subject, bool has_own, Finding& finding) {
  const std::vector<DumpedPool>& pools = subject.statements().pools;
  if (has_own || !subject.statements().message_only || pools.empty()) return;
  if (std::any_of(pools.begin(), pools.end(), [](const DumpedPool& pool) { return pool.is_mixed; })) {
    finding.message +=
        " Two maps are mixed in this text, line by line, and nothing shows which pool is which, so they show no cause.";
    return add_try(
        finding,
        "Record it so that their lines can be told apart: TF_CPP_LOG_THREAD_ID=1 puts the thread in front of each, or "
        "run with one GPU.");
  }
  const Trace& trace = subject.trace();
  const bool is_told = std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind == EventKind::kAllocFailed && trace.heaps[event.heap.index()].kind == HeapKind::kBfc;
  });
  finding.message += std::string(
                         " The map in this text is of another failure: its pool, or its request, is not what this "
                         "message names") +
                     (is_told ? "; it has a finding of its own." : ".");
}

}  // namespace

void judge_tensorflow(Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  const std::string who = owner_words(stated);
  if (stated.allocator() == StatedAllocator::kAsync) return judge_async(subject, finding);
  if (judge_constant(subject, finding)) return;
  if (judge_refused(subject, finding)) return;
  if (stated.group() == ErrorKind::kPoolGrowth) {
    conclude(finding, Confidence::kHint,
             who + " asked the driver for a pool of " + size_words(stated) +
                 " and was refused; it then tries with less, so this line alone is not a failure, but "
                 "something else held the device's memory.");
    finding.severity = Severity::kWarning;
    return add_try(
        finding,
        "See who holds the device: nvidia-smi; and let the pool grow as needed: " +
            std::string(stated.framework == Framework::kTensorFlow ? "TF_FORCE_GPU_ALLOW_GROWTH=true"
                        : stated.framework == Framework::kJax      ? "XLA_PYTHON_CLIENT_PREALLOCATE=false"
                                                                   : "TF_FORCE_GPU_ALLOW_GROWTH=true in TensorFlow, "
                                                                     "XLA_PYTHON_CLIENT_PREALLOCATE=false in JAX"));
  }
  if (stated.benign) {
    finding.severity = Severity::kNote;
    return conclude(finding, Confidence::kLikely,
                    who + " could not allocate " + size_words(stated) +
                        " of scratch memory and went on without it: slower, but not a failure, as its message says.");
  }
  if (stated.disguised) {
    judge_disguised(stated, finding);
  } else {
    conclude(
        finding, Confidence::kLikely,
        who + " had no room for " + size_words(stated) +
            (stated.tensor_shape.empty() ? "" : " for a tensor of shape " + stated.tensor_shape) +
            (stated.op.empty() ? "" : (stated.tensor_shape.empty() ? " for " : " of ") + op_words(stated)) +
            " in its memory pool; the message says neither how full the pool was nor whether the space was in pieces.");
  }
  const auto failure = pool_failure(subject);
  if (!failure && judge_host_pool(stated, finding)) return;
  if (failure) tell_pool(subject, *failure, finding);
  if (!stated.disguised && is_of_gpu(subject, failure)) tell_surroundings(stated, failure.has_value(), finding);
  add_other_maps(subject, failure.has_value(), finding);
  if (!finding.location.known() && !stated.disguised) finding.location.op = stated.op;
  if (!stated.tensor_shape.empty()) {
    finding.memory = tensor_words(stated);
    if (!failure) add_smaller_tensor(stated, finding);
  }
  if (finding.cause.empty() && !has_map(subject, failure)) add_map(subject, finding);
}

void judge_jax(Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.group() == ErrorKind::kPoolGrowth || stated.benign || stated.disguised ||
      stated.asked_of != AskedOf::kAllocator || stated.for_constant || stated.allocator() == StatedAllocator::kAsync)
    return judge_tensorflow(subject, finding);
  const std::string buffers = buffer_words(stated, finding);
  if (stated.executable_total && stated.capacity) return judge_whole_program(stated, buffers, finding);
  if (stated.free && stated.requested) return judge_told_room(stated, finding);
  conclude(
      finding, Confidence::kLikely,
      "XLA had no room for " + size_words(stated) +
          " in its memory pool; the message says neither how full the pool was nor whether the space was in pieces.");
  const auto failure = pool_failure(subject);
  if (!failure && judge_host_pool(stated, finding)) return;
  if (failure) tell_pool(subject, *failure, finding);
  if (is_of_gpu(subject, failure)) tell_surroundings(stated, failure.has_value(), finding);
  add_other_maps(subject, failure.has_value(), finding);
  tell_request(stated, finding);
  tell_compiled_program(stated, buffers, finding);
  add_what_shrinks(stated, buffers, finding);
  if (finding.cause.empty() && !has_map(subject, failure)) add_map(subject, finding);
  if (stated.other_framework != Framework::kTensorFlow && finding.cause.empty() && !failure)
    add_try(finding,
            "JAX takes three quarters of the device at start: if nothing else needs it, XLA_CLIENT_MEM_FRACTION=0.95 "
            "(older: XLA_PYTHON_CLIENT_MEM_FRACTION).");
  if (buffers.empty())
    add_try(finding, "See every buffer and its line: faultline run --buffers -- " + program_words(subject));
}

}  // namespace faultline
