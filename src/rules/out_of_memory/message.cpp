#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/units.h"
#include "models/torch/segment_sizes.h"
#include "rules/describe.h"
#include "rules/inequality.h"
#include "rules/out_of_memory/advice.h"
#include "rules/out_of_memory/message_words.h"
#include "rules/out_of_memory/out_of_memory.h"
#include "rules/out_of_memory/pool_message.h"
#include "rules/platform.h"
#include "rules/stated_error.h"
#include "sources/messages/programs.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

// Whether a text has these words, or ends with the beginning of them: it was cut there.
bool ends_within(std::string_view text, std::string_view words) {
  if (text.find(words) != std::string_view::npos) return true;
  for (std::size_t length = words.size() - 1; length > 1; --length) {
    if (text.ends_with(words.substr(0, length))) return true;
  }
  return false;
}

constexpr std::array<std::string_view, 5> kSourceEnds = {".cu", ".cpp", ".cc", ".c:", ".h:"};

// Why a process of the list may be none of somebody else's.
std::string doubt_of(const Case& subject) {
  const StatedError& stated = subject.statements().error;
  if (subject.statements().message_only) {
    const auto& jobs = subject.statements().notes.jobs;
    for (const std::string& pid : stated.other_pids) {
      const auto is_own = [&](const TextNotes::Job& job) { return job.pid == pid; };
      if (const auto own = std::find_if(jobs.begin(), jobs.end(), is_own); own != jobs.end())
        return (stated.other_pids.size() == 1 ? ", which this text calls " : "; this text calls " + pid + " ") +
               own->who + " of this very job: two of its ranks then share this GPU, or the list is numbered " +
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
  if (stated.framework != Framework::kPyTorch || stated.other_metal) shortage.holder = "the program";
  shortage.device = device_words(subject);
  return shortage;
}

void add_numbers(const StatedError& stated, const Shortage& shortage, Finding& finding) {
  const auto add = [&](const char* name, const std::optional<ByteInterval>& bytes) {
    if (bytes) add_stated_bytes(finding, name, *bytes);
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
  if (stated.framework == Framework::kPyTorch && stated.allocator() == StatedAllocator::kUsual &&
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
  const bool async = stated.allocator() == StatedAllocator::kAsync && stated.live && stated.reserved;
  const bool is_too_large =
      (verdict.story == Story::kTooLarge || verdict.story == Story::kAbsurd) && stated.framework == Framework::kOther;
  if (stated.framework != Framework::kPyTorch && verdict.story != Story::kLimit && !is_too_large &&
      !(async && *verdict.cause() != 0))
    return false;
  if (*verdict.cause() == 0 && stated.allocator() == StatedAllocator::kAsync && stated.live && stated.capacity) {
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
  if (subject.statements().message_only) {
    const TextNotes& notes = subject.statements().notes;
    context.sets_expandable = notes.sets_expandable;
    context.is_windows = notes.is_windows;
    context.of_other_language = notes.is_of_other_language;
    context.of_rank = notes.who.is_rank;
  }
  if (subject.statements().message_only && !subject.trace().events.empty())
    context.roles = subject.facts().stacks.roles(subject.trace().events.front().stack);
  advise(verdict, context, finding);
  return true;
}

void add_program_tries(std::string_view name, Finding& finding) {
  const Program* program = program_of(name);
  if (program == nullptr) return;
  for (const std::string_view what : program->tries) {
    if (!what.empty()) add_try(finding, std::string(what));
  }
}

// A program in C++ that names its own source, with nothing of PyTorch or Python around it: "GPUassert: out of memory main.cu 41".
bool is_of_source(const Case& subject) {
  if (!subject.statements().message_only) return false;
  const TextNotes& notes = subject.statements().notes;
  if (notes.names_torch || notes.has_traceback) return false;
  const std::string& text = subject.statements().error.text;
  return std::any_of(kSourceEnds.begin(), kSourceEnds.end(),
                     [&](std::string_view end) { return text.find(end) != std::string::npos; });
}

// What the message says of who held the device, and what it leaves open.
std::string holders_words(const StatedError& stated) {
  std::string words;
  const auto add = [&](const std::optional<ByteInterval>& bytes, std::string_view what) {
    if (bytes) words += (words.empty() ? "" : ", ") + shown(*bytes) + std::string(what);
  };
  add(stated.capacity, " in all");
  add(stated.used, " of it taken");
  add(stated.free, " free");
  add(stated.live, " in use by this program");
  add(stated.reserved, " held by its own pool");
  const bool names_own = stated.live || stated.reserved;
  return (words.empty() ? std::string() : " (" + words + ")") +
         (names_own     ? "; the message does not say what others held."
          : stated.used ? "; the message does not say who took it."
                        : "; the message does not say who held the rest.");
}

// No message that is known: what the line says, and no more.
void judge_guess(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.requested) add_stated_bytes(finding, "bytes_in_the_line", *stated.requested);
  add_evidence(finding, "recognised", std::string("by single words alone: the message is not known"));
  conclude(finding, Confidence::kHint,
           "A line of this text reads as if GPU memory had run out: \"" + stated.text +
               "\". Faultline does not know this message: which program wrote it, how much it requested, and who "
               "held the rest is unknown, and it may mean something else.");
  add_try(finding,
          "See who holds the device: nvidia-smi, rocm-smi or the tool of its maker; then allocate less at once in "
          "the program that failed.");
  add_try(finding, "Give Faultline the whole log: the lines around this one often have the numbers.");
}

// The runtime's own words, "CUDA error: out of memory", from whatever called it.
void judge_bare(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.framework == Framework::kPyTorch) {
    if (stated.cut) {
      if (stated.capacity) add_stated_bytes(finding, "capacity_bytes", *stated.capacity);
      if (stated.free) add_stated_bytes(finding, "free_bytes", *stated.free);
      if (stated.live) add_stated_bytes(finding, "allocated_bytes", *stated.live);
      if (stated.cached) add_stated_bytes(finding, "cached_bytes", *stated.cached);
      if (stated.reserved) add_stated_bytes(finding, "reserved_bytes", *stated.reserved);
      conclude(finding, Confidence::kLikely,
               "GPU memory ran out in PyTorch's allocator; the beginning of the message is cut off, so the size of the "
               "request and the cause are not known" +
                   holders_words(stated));
      return add_try(finding, "Give Faultline the whole message, from \"Tried to allocate …\" on, or the whole log.");
    }
    const bool is_cut = ends_within(stated.text, "Tried to allocate");
    conclude(finding, Confidence::kLikely,
             std::string("GPU memory ran out in PyTorch's allocator; ") +
                 (is_cut ? "the message is cut, or has no size that can be read" : "this text has no numbers of it") +
                 ", so how much was missing and who held the memory cannot be told.");
    return add_try(finding,
                   "Since 1.0 the message goes on with numbers (\"Tried to allocate …\"): give Faultline the whole of "
                   "it, or the whole log.");
  }
  const bool other = stated.other_framework != Framework::kNone || is_of_source(subject);
  const std::string api = platform_of(stated) == Platform::kRocm ? "HIP" : "CUDA";
  conclude(finding, Confidence::kLikely,
           "A " + api + " call " +
               std::string(other ? "ran out of memory" : "outside the framework's allocator ran out of memory") +
               ": making a context, loading a kernel, a library's buffer, a graph, or pinned host memory; the message "
               "has no numbers, so it does not show who held the memory.");
  if (stated.other_framework != Framework::kNone)
    conclude(finding, Confidence::kLikely,
             "A " + api + " call of " + stated.other_words() +
                 " ran out of GPU memory; the message has no numbers, so it does not show who held the memory.");
  add_try(finding, "If it fails at the first touch of the GPU, another program holds it: nvidia-smi");
  add_program_tries(stated.other_words(), finding);
  if (!other)
    add_try(finding,
            "If it fails later, in a program that uses PyTorch, PyTorch's idle cache may be what is missing: PyTorch "
            "frees it only when it runs out itself, so here torch.cuda.empty_cache() before this line can help.");
}

// A framework or a library that says no more than that it got nothing.
void judge_without_numbers(Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.framework == Framework::kJax) {
    judge_jax(subject, finding);
  } else if (has_pool(stated.framework)) {
    judge_tensorflow(subject, finding);
  } else if (stated.framework == Framework::kOther && stated.of_unknown_memory) {
    if (stated.requested) add_stated_bytes(finding, "requested_bytes", *stated.requested);
    conclude(finding, Confidence::kLikely,
             stated.program + " could not allocate " + (stated.requested ? size_words(stated) : "memory") +
                 " in one of its arenas: GPU memory or host memory, this text does not say which.");
    add_try(finding,
            "session.get_providers() shows where the model runs: with CPUExecutionProvider alone it is host memory "
            "(free -h), else see who holds the device: nvidia-smi");
  } else if (stated.framework == Framework::kOther && stated.at_pool_limit) {
    finding.cause = "own-limit";
    conclude(finding, Confidence::kProved,
             "The memory pool reached the largest size that it was given (Maximum pool size exceeded); the device "
             "itself need not be full.");
    add_try(finding,
            "Raise or remove the pool's limit (maximum_pool_size of rmm.reinitialize or PoolMemoryResource), or hold "
            "less.");
  } else if (stated.framework == Framework::kOther) {
    const Platform platform = platform_of(stated);
    const bool had_room = stated.requested && stated.free &&
                          surely_less(*stated.requested + ByteInterval::exactly(kDriverMarginBytes), *stated.free);
    conclude(finding, Confidence::kLikely,
             stated.program + " could not allocate " + (stated.requested ? size_words(stated) : "memory") + " on " +
                 device_words(subject) +
                 (had_room ? ", though " + shown(*stated.free) +
                                 " was free: the device was not full. A limit on this process, another device, or "
                                 "memory that was taken and freed in between can do that; the message does not say."
                           : holders_words(stated)));
    if (stated.requested) add_stated_bytes(finding, "requested_bytes", *stated.requested);
    if (stated.free) add_stated_bytes(finding, "free_bytes", *stated.free);
    add_try(finding, "See who holds the device: " + std::string(shows_holders(platform)));
    add_program_tries(stated.program, finding);
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
  const bool other = stated.other_framework != Framework::kNone;
  const bool beside_pool = has_pool(stated.other_framework);
  if (stated.requested) add_stated_bytes(finding, "requested_bytes", *stated.requested);
  add_evidence(finding, "status", stated.status);
  add_evidence(finding, "call", stated.call);
  // NCCL passes on the driver's own answer; a status of cuBLAS or cuDNN is only that something could not be had.
  const std::string library(name_of(stated.library()));
  const bool by_status = stated.library() != Library::kNccl;
  conclude(
      finding, by_status ? Confidence::kLikely : Confidence::kProved,
      (by_status ? library + " could not allocate what it needs (" +
                       (stated.status.empty() ? "no allocation" : stated.status) +
                       "): most often the device had no memory left for it, else the context was broken before, by an "
                       "illegal access or an index out of range"
                 : library + " asked the driver for " + size_words(stated) + " and got none") +
          (beside_pool ? "; it takes memory beside the pool of " + stated.other_words() +
                             ", which keeps what it has taken, and nothing here says who held the memory."
           : other ? "; nothing here says who held the memory."
                   : "; it does not go through PyTorch's allocator, so PyTorch did not free its idle cache first, and "
                     "nothing here says who held the memory."));
  if (beside_pool)
    add_try(finding, stated.other_framework == Framework::kJax
                         ? "Leave room beside the pool: XLA_CLIENT_MEM_FRACTION=0.6 (older: "
                           "XLA_PYTHON_CLIENT_MEM_FRACTION), or XLA_PYTHON_CLIENT_PREALLOCATE=false."
                         : "Leave room beside the pool, which takes almost the whole device at the start: "
                           "TF_FORCE_GPU_ALLOW_GROWTH=true, or set_logical_device_configuration(memory_limit=…).");
  const bool is_python = !subject.statements().message_only || !subject.statements().notes.is_of_other_language;
  if (!other && is_python)
    add_try(finding,
            "torch.cuda.empty_cache() before this line can help here, unlike with PyTorch's own error; if it does, the "
            "memory was idle cache.");
  if (!other && stated.library() == Library::kNccl && !is_torch_before(stated, 1, 8))
    add_try(finding,
            "Leave room for it: torch.cuda.set_per_process_memory_fraction(0.9) keeps PyTorch from taking the last of "
            "the device.");
  else if (stated.library() == Library::kCublas || stated.library() == Library::kCudnn)
    add_try(finding,
            "Create its handle while there is room: run one small matrix product or convolution at the start of the "
            "program.");
  add_try(finding, "See who holds the device: nvidia-smi");
  if (by_status)
    add_try(finding,
            "If there was room, the context was broken before: after an illegal access or an index out of range the "
            "next library call fails like this. Look for an earlier error in the log (\"Assertion `…` failed\"); "
            "CUDA_LAUNCH_BLOCKING=1 " +
                program_words(subject) + " shows it.");
}

// What would tell more than a message can.
void add_next_step(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (finding.severity != Severity::kError || stated.allocator() == StatedAllocator::kMetal ||
      stated.framework == Framework::kJax || stated.guessed || platform_of(stated) == Platform::kOther)
    return;
  // What no setting and no device of its size can serve is a matter of the line alone.
  const bool too_large = stated.requested && (stated.requested->min >= (std::uint64_t{1} << 60) ||
                                              (stated.capacity && surely_less(*stated.capacity, *stated.requested)));
  if (too_large && finding.location.known()) return;
  add_try(finding, "Record the next run: faultline run -- " + program_words(subject) +
                       " names the lines that hold the memory" +
                       (stated.framework == Framework::kPyTorch ||
                                (stated.framework == Framework::kNone && stated.other_framework == Framework::kNone)
                            ? " and tries settings on the recording."
                            : "."));
  if (stated.framework != Framework::kPyTorch || finding.cause != "exhausted" || too_large) return;
  add_try(finding, "Ask before renting a larger GPU: faultline plan --gpu H100 -- " + program_words(subject) +
                       " says without one whether it would fit, and what would.");
}

}  // namespace

Finding describe_message(Case& subject) {
  const StatedError& stated = subject.statements().error;
  Finding finding = begin_stated(subject, rule_name::kOutOfMemory);
  if (stated.requested && stated.requested->min < kExabyte) finding.bytes = stated_bytes(*stated.requested);
  if (stated.guessed)
    judge_guess(subject, finding);
  else if (stated.group() == ErrorKind::kLibraryMemory)
    judge_library(subject, finding);
  else if (!stated.requested || stated.requested->max == 0 || stated.framework == Framework::kNone ||
           !judge_numbers(subject, finding))
    judge_without_numbers(subject, finding);
  if (finding.severity != Severity::kNote && stated.group() == ErrorKind::kOutOfMemory &&
      subject.statements().message_only && subject.statements().notes.shows_no_exception)
    finding.message +=
        " This text has no exception: JAX raises one only where the failed result is read, so a result that nobody "
        "read is missing silently.";
  add_inside(subject.facts(), stack_of(subject), finding);
  add_next_step(subject, finding);
  finish_stated(subject, finding);
  return finding;
}

}  // namespace faultline
