#include <algorithm>
#include <cstdlib>

#include "base/units.h"
#include "rules/cause.h"
#include "rules/illegal_address/fault_words.h"
#include "rules/illegal_address/illegal_address.h"
#include "rules/stated_error.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> marks) {
  return std::any_of(marks.begin(), marks.end(),
                     [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; });
}

// Whether the line in the traceback is the line at fault.
std::string about_place(const StatedError& stated, const Finding& finding) {
  if (!finding.location.known()) return ".";
  if (stated.asynchronous == false)
    return "; CUDA_LAUNCH_BLOCKING was on (the message lacks its sentence on late errors), so the line shown should be "
           "the one that launched it.";
  return "; the line shown is where the program noticed, the kernel was launched at or before it.";
}

// What names the launch, and then the line inside the kernel.
void add_next_steps(const Case& subject, bool of_access, Finding& finding) {
  const std::string program = program_words(subject);
  add_try(finding, "Run it as faultline run -- " + program +
                       ": it leaves the program as it is and names the launches that can have done it, with the "
                       "evidence for and against each.");
  if (of_access) add_try(finding, core_dump_advice());
  if (subject.statements().error.asynchronous != false && program != "PROGRAM")
    add_try(finding,
            "Without Faultline, CUDA_LAUNCH_BLOCKING=1 " + program + " makes the traceback end at the launch.");
  if (!of_access) return;
  if (is_of_other(subject.statements().error) || subject.statements().error.guessed) {
    add_try(finding, "In addition, compute-sanitizer " + program + " names the kernel and the thread (slow).");
    return add_try(finding,
                   "All later CUDA calls of that process fail as well: only the first error of a log counts, and the "
                   "process must be restarted.");
  }
  add_try(
      finding,
      "In addition, PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer " + program +
          " sees accesses that land in other tensors (slow; without that variable it cannot see past a tensor's end).");
  add_try(finding,
          "All later CUDA calls of that process fail as well: only the first error of a log counts, and the process "
          "must be restarted.");
}

std::string index_advice(const StatedError::Assertion& assertion) {
  if (has_any(assertion.expression, {"classes", "CLASSES", "target"})) {
    return "A target of the loss is not a class: targets must lie in 0 … classes-1 (labels that start at 1, an ignore "
           "value that was not passed as ignore_index, a head with too few outputs).";
  }
  if (has_any(assertion.kernel, {"indexSelect"}) || has_any(assertion.expression, {"srcIndex"})) {
    return "An embedding or index_select got an index beyond its table: a token id ≥ the vocabulary size (special "
           "tokens added without resize_token_embeddings), or a position ≥ the longest length.";
  }
  return "An index tensor holds a value outside the dimension it indexes.";
}

void judge_assertion(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  const StatedError::Assertion& assertion = stated.assertion;
  const std::string& condition = assertion.expression;
  const std::string kernel = assertion.kernel.empty() ? "a kernel" : assertion.kernel,
                    place = about_place(stated, finding);
  finding.location.kernel = assertion.kernel;
  if (condition.empty()) {
    finding.message =
        "A check inside a kernel failed; which one is in a line of its own (\"Assertion `…` failed\") on standard "
        "error, and this text lacks it" +
        place;
    add_try(finding,
            "Keep standard error too: " + program_words(subject) + " > log.txt 2>&1, then: faultline explain log.txt");
  } else if (has_any(condition, {"out of bounds", "out of range", "srcIndex <", "dstIndex <", "n_classes",
                                 "num_classes", "N_CLASSES", "idx_dim", "index_size", "ind_dim_size", "index >= 0",
                                 "idx >= 0", "target", "indexValue"})) {
    finding.rule = rule_name::kIndexOutOfRange;
    finding.message = "An index lay outside its dimension: " + kernel + " checks " + condition + place;
    add_try(finding, index_advice(assertion));
    add_try(finding,
            "Find the value: check min() and max() of the index tensor before this line, or run the same line on the "
            "CPU, where the error names index and size.");
  } else {
    finding.message = "A check inside " + kernel + " failed: " + condition + place;
    if (has_any(condition, {"probability", "val < zero", "cumdist"})) {
      add_try(finding,
              "The probabilities given to a sampler hold NaN, infinity or negative values: look for overflow in half "
              "precision before it.");
    } else if (has_any(condition, {"<= one"})) {
      add_try(finding,
              "Binary cross entropy got a value outside 0 … 1: apply a sigmoid, or use the variant with logits.");
    }
  }
  add_evidence(finding, "assertion", condition);
  add_evidence(finding, "kernel", assertion.kernel);
  add_evidence(finding, "first_block", assertion.block);
  add_evidence(finding, "first_thread", assertion.thread);
  if (assertion.lines != 0) add_evidence(finding, "threads_reporting", assertion.lines);
  add_next_steps(subject, false, finding);
}

// A GPU that PyTorch warns of: which it is, and which build holds code for it.
void about_unknown_gpu(const TextNotes::Gpu& gpu, Finding& finding) {
  if (gpu.architecture.empty()) return;
  finding.message += " The GPU is " + (gpu.name.empty() ? "one" : gpu.name) + " of architecture " + gpu.architecture +
                     (gpu.built_for.empty() ? "; this PyTorch was not built for it."
                                            : "; this PyTorch was built for " + gpu.built_for + ".");
  // the first CUDA that compiles for it
  const int number = std::atoi(gpu.architecture.c_str() + std::min(gpu.architecture.find('_') + 1, std::size_t{3}));
  const char* const cuda = number >= 100  ? "12.8"
                           : number >= 89 ? "11.8"
                           : number >= 86 ? "11.1"
                           : number >= 80 ? "11.0"
                                          : "";
  if (*cuda != '\0')
    add_try(finding, "Take a build of PyTorch for CUDA " + std::string(cuda) + " or later (" + gpu.architecture +
                         " needs it)" +
                         (number >= 100 ? ": PyTorch 2.7 or later, pip install torch --index-url "
                                          "https://download.pytorch.org/whl/cu128"
                                        : "") +
                         ".");
  else
    add_try(finding, gpu.architecture +
                         " is older than this build: take an older PyTorch, or one built from source with "
                         "TORCH_CUDA_ARCH_LIST set to it.");
}

void judge_kernel(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  const FaultWords& words = words_of(stated.fault());
  finding.rule = words.rule;
  finding.message = "A kernel " + std::string(words.sentence) + about_place(stated, finding);
  if (stated.guessed) {
    finding.confidence = Confidence::kHint;
    add_evidence(finding, "recognised", std::string("by single words alone: the message is not known"));
    finding.message = "A line of this text reads as if a kernel had failed: \"" + stated.text +
                      "\". This message is not known to Faultline; by its words the kernel " +
                      std::string(words.sentence) + ", and it may mean something else.";
  }
  if (stated.address != 0) add_evidence(finding, "address", stated.address);
  if (stated.requested) add_evidence(finding, "shared_memory_requested_bytes", stated.requested->middle());
  if (stated.limit) add_evidence(finding, "shared_memory_limit_bytes", stated.limit->middle());
  if (stated.requested && stated.limit)
    finding.message += " It requested " + format_count(stated.requested->middle()) + " bytes, and " +
                       format_count(stated.limit->middle()) + " is the most that this GPU allows.";
  if (stated.fault() == FaultKind::kNoKernelImage && subject.statements().message_only)
    about_unknown_gpu(subject.statements().notes.gpu, finding);
  const bool other = is_of_other(stated) || stated.guessed;
  for (std::string_view advice : {words.advice, words.usually}) {
    if (other && stated.fault() == FaultKind::kNoKernelImage && !advice.empty())
      advice = "Install a build of it that holds code for this device's architecture.";
    // which build it is was told by name
    if (stated.fault() == FaultKind::kNoKernelImage && !finding.tries.empty()) continue;
    if (advice.empty()) continue;
    const bool goes_on = advice == words.usually && !words.with_torch.empty();
    add_try(finding, std::string(advice) + (!goes_on ? "" : other ? "." : "; " + std::string(words.with_torch)));
  }
  if (words.of_access) add_next_steps(subject, true, finding);
  if (stated.guessed) add_try(finding, "Give Faultline the whole log: what stands around the line often says more.");
}

// The library would not take the call as it was: nothing ran, so no kernel is to be looked for.
void judge_refused(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  const std::string library(name_of(stated.library()));
  const auto has = [&](std::string_view part) { return stated.status.find(part) != std::string::npos; };
  finding.message =
      library + " refused the call (" + stated.status + "): " +
      (has("ARCH_MISMATCH")      ? "this device's architecture lacks what was requested"
       : has("VERSION_MISMATCH") ? "its parts are of different versions"
       : has("NOT_SUPPORTED")    ? "it has no way to do it with these types, sizes or this layout on this device"
                                 : "its arguments are not valid to it") +
      "; no kernel was launched for it, and the message does not say that memory ran out.";
  if (has("MISMATCH") || has("INVALID_VALUE")) {
    add_try(finding, "Look for two versions of " + library +
                         ": pip list | grep -i nvidia, and LD_LIBRARY_PATH, which comes before what PyTorch brings "
                         "along; unset it and try.");
  }
  if (has("NOT_SUPPORTED") || has("ARCH"))
    add_try(finding,
            "bfloat16 and float8 need newer devices (bfloat16: compute capability 8.0): try float16 or float32; and "
            ".contiguous() on what goes in.");
  add_try(finding,
          "Print shapes, types and strides of what goes into this line, and compare them with a call that works.");
}

void judge_library(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  const std::string library(name_of(stated.library()));
  add_evidence(finding, "status", stated.status);
  add_evidence(finding, "call", stated.call);
  if (stated.group() == ErrorKind::kNcclCall) {
    finding.confidence = Confidence::kHint;
    finding.message =
        "A CUDA call inside NCCL failed and the message does not say which error it was; out of memory is one of the "
        "possible ones.";
    add_try(finding, "NCCL_DEBUG=INFO " + program_words(subject) +
                         " prints the error (\"Cuda failure 2 'out of memory'\") and the bytes.");
    return add_try(finding, "Look for an earlier error on another rank: NCCL often reports somebody else's failure.");
  }
  finding.confidence = Confidence::kLikely;
  if (stated.group() == ErrorKind::kLibraryStart) {
    const std::string refused = subject.statements().notes.refused;
    const bool jax = stated.other_framework == Framework::kJax;
    constexpr std::uint64_t kLeastHandle = 16 * kMiB;
    const bool is_full = stated.free && stated.capacity && stated.free->max < kLeastHandle;
    if (!refused.empty() || is_full) {
      finding.rule = rule_name::kOutOfMemory;
      finding.message =
          library + " could not start (" + stated.status + "): " +
          (is_full ? shown(*stated.free) + " of the device's " + shown(*stated.capacity) + " was free"
                   : "the driver had refused " + refused + " just before") +
          ", so the device had no memory left for its handle, which is taken beside the pool of " +
          (stated.other_framework == Framework::kNone ? std::string("the framework") : stated.other_words()) +
          ". Who held the rest is not in this text.";
      add_try(finding, jax ? "Leave room beside the pool: XLA_CLIENT_MEM_FRACTION=0.6 (older: "
                             "XLA_PYTHON_CLIENT_MEM_FRACTION), or XLA_PYTHON_CLIENT_PREALLOCATE=false."
                           : "Leave room beside the pool: TF_FORCE_GPU_ALLOW_GROWTH=true, or "
                             "set_logical_device_configuration(memory_limit=…).");
      return add_try(finding,
                     "See who holds the device: nvidia-smi; an earlier run that did not end is the usual one.");
    }
    finding.message = library + " could not start (" + stated.status +
                      "): most often because no memory was left for its handle, otherwise a mismatch of driver and "
                      "library, or an earlier error of a kernel.";
    add_try(finding, "Try with less on the device (a batch of 1): if it works, it was memory.");
    return add_try(finding, "Otherwise look for an earlier error in the log; faultline run -- " +
                                program_words(subject) + " shows what the driver refused, and what was under way.");
  }
  if (row_of(stated.kind).failure == LibraryFailure::kRefused) return judge_refused(subject, finding);
  finding.message = library + " failed (" + stated.status + "): a kernel of it, or one launched before it, went wrong" +
                    about_place(stated, finding);
  if (stated.library() == Library::kCusolver)
    add_try(finding,
            "A matrix with NaN or infinity in it ends so too: check torch.isfinite(x).all() before this line.");
  add_try(
      finding,
      "If an earlier kernel went wrong (an index out of range, for example), this call is only the first to notice.");
  add_next_steps(subject, true, finding);
}

}  // namespace

Finding describe_fault_message(const Case& subject) {
  const StatedError& stated = subject.statements().error;
  Finding finding = begin_stated(subject, rule_name::kLaunchError);
  if (stated.group() != ErrorKind::kFault)
    judge_library(subject, finding);
  else if (stated.fault() == FaultKind::kAssert)
    judge_assertion(subject, finding);
  else
    judge_kernel(subject, finding);
  finish_stated(subject, finding);
  return finding;
}

}  // namespace faultline
