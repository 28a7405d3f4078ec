// Errors of kernels and libraries, from a message: illegal addresses, assertions, launch errors, cuBLAS, cuDNN, NCCL.
#include <algorithm>
#include <array>

#include "base/units.h"
#include "rules/error_text/judgement.h"
#include "sources/error_text/error_text.h"

namespace faultline {
namespace {

// Whether the line in the traceback is the line at fault.
std::string about_place(const Trace& trace, const Finding& finding) {
  if (!finding.location.known()) return "";
  if (stated_word(trace, "asynchronous") == "no") return "; CUDA_LAUNCH_BLOCKING was on (the message lacks its sentence on late errors), so the line shown should be the one that launched it";
  return "; the line shown is where the program noticed, the kernel was launched at or before it";
}

void add_blocking_try(const Trace& trace, Finding& finding) {
  if (stated_word(trace, "asynchronous") == "no") return;
  add_try(finding, "get the line that launched the kernel: CUDA_LAUNCH_BLOCKING=1 " + program_of(trace));
}

struct Explanation {
  std::string_view kind;
  std::string_view sentence;
  std::string_view advice;
};
constexpr std::array kExplanations = {
    Explanation{"illegal-address", "a kernel touched an address that is not mapped on the device",
                "an index out of range, a tensor freed while a kernel still used it, or a custom kernel's own arithmetic; PyTorch's index kernels "
                "check and would have said device-side assert"},
    Explanation{"misaligned-address", "a kernel read or wrote an address that its access is not aligned to",
                "usually a view that starts at an odd offset handed to a kernel that loads several values at once: try .contiguous() or .clone() on "
                "what goes into custom or half-precision kernels"},
    Explanation{"launch-failure", "a kernel was stopped by the hardware without a more precise reason",
                "the same errors as an illegal access can end so; if it comes at random places, check the device too: nvidia-smi -q -d ECC, and "
                "dmesg for lines with Xid"},
    Explanation{"illegal-instruction", "a kernel ran into an instruction the device does not know",
                "a jump through a damaged pointer, or a binary built for another architecture"},
    Explanation{"launch-timeout", "a kernel ran longer than the display driver allows", "split the work, or run on a device that drives no display"},
    Explanation{"launch-resources", "a kernel asked for more registers or shared memory than the device has for one block",
                "use fewer threads per block for it"},
    Explanation{"launch-configuration", "a kernel was launched with a shape the device does not allow",
                "often a tensor with zero elements or more than 65535 blocks in one dimension"},
    Explanation{"no-kernel-image", "the program holds no code for this device's architecture",
                "install a build for it: python -c \"import torch; print(torch.cuda.get_arch_list())\" shows what there is"},
    Explanation{"ecc-error", "the device's memory reported an error it could not correct: hardware, not the program",
                "nvidia-smi -q -d ECC; reset or replace the device"},
    Explanation{"illegal-state", "the runtime refused because of an earlier error", "the first error in the log is the one to look at"},
    Explanation{"shared-memory-limit", "a Triton kernel asked for more shared memory than one block can have",
                "smaller block sizes or fewer stages (num_stages) for that kernel"},
};

bool is_index_check(std::string_view expression) {
  static constexpr std::array<std::string_view, 14> kMarks = {"out of bounds", "out of range", "srcIndex <", "dstIndex <", "n_classes",
                                                              "num_classes",   "N_CLASSES",    "idx_dim",    "index_size", "ind_dim_size",
                                                              "index >= 0",    "idx >= 0",     "target",     "indexValue"};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) { return expression.find(mark) != std::string_view::npos; });
}

std::string index_advice(std::string_view expression, std::string_view kernel) {
  if (expression.find("classes") != std::string_view::npos || expression.find("CLASSES") != std::string_view::npos ||
      expression.find("target") != std::string_view::npos)
    return "a target of the loss is not a class: targets must lie in 0 … classes-1 (labels that start at 1, an ignore value that was not passed as "
           "ignore_index, a head with too few outputs)";
  if (kernel.find("indexSelect") != std::string_view::npos || expression.find("srcIndex") != std::string_view::npos)
    return "an embedding or index_select got an index beyond its table: a token id ≥ the vocabulary size (special tokens added without "
           "resize_token_embeddings), or a position ≥ the longest length";
  return "an index tensor holds a value outside the dimension it indexes";
}

}  // namespace

void judge_kernel_error(const Trace& trace, Finding& finding) {
  const std::string_view kind = stated_word(trace, "kind");
  const auto found = std::find_if(kExplanations.begin(), kExplanations.end(), [&](const Explanation& e) { return e.kind == kind; });
  finding.confidence = Confidence::kProved;
  finding.message = std::string(found == kExplanations.end() ? "the GPU reported an error" : found->sentence) + about_place(trace, finding);
  const Event& event = trace.events.front();
  if (event.has(kAddressKnown)) add_evidence(finding, "address", event.address);
  if (const auto requested = stated_bytes(trace, "requested")) add_evidence(finding, "shared_memory_requested_bytes", requested);
  if (const auto limit = stated_bytes(trace, "limit")) add_evidence(finding, "shared_memory_limit_bytes", limit);
  if (found != kExplanations.end()) add_try(finding, std::string(found->advice));
  const bool access = kind == "illegal-address" || kind == "misaligned-address" || kind == "launch-failure" || kind == "illegal-instruction";
  if (!access) return;
  add_blocking_try(trace, finding);
  add_sanitizer_try(trace, finding);
  add_try(finding, "all later CUDA calls of that process fail as well: only the first error of a log counts, and the process must be started anew");
}

void judge_assertion(const Trace& trace, Finding& finding) {
  const std::string expression(stated_word(trace, "assert.expression"));
  const std::string kernel(stated_word(trace, "assert.kernel"));
  finding.confidence = Confidence::kProved;
  finding.location.kernel = kernel;
  if (expression.empty()) {
    finding.message =
        "a check inside a kernel failed; which one stands in a line of its own (\"Assertion `…` failed\") on standard error, and this text lacks it" +
        about_place(trace, finding);
    add_try(finding, "keep standard error too: " + program_of(trace) + " > log.txt 2>&1, then: faultline explain log.txt");
  } else if (is_index_check(expression)) {
    finding.rule = "tensor/index-out-of-range";
    finding.fingerprint = finding.rule + finding.fingerprint.substr(finding.fingerprint.find('@'));
    finding.message = "an index lay outside its dimension: " + (kernel.empty() ? std::string("a kernel") : kernel) + " checks " + expression +
                      about_place(trace, finding);
    add_try(finding, index_advice(expression, kernel));
    add_try(finding,
            "find the value: check min() and max() of the index tensor before this line, or run the same line on the CPU, where the error names "
            "index and size");
  } else {
    finding.message =
        "a check inside " + (kernel.empty() ? std::string("a kernel") : kernel) + " failed: " + expression + about_place(trace, finding);
    if (expression.find("probability") != std::string::npos || expression.find("val < zero") != std::string::npos ||
        expression.find("cumdist") != std::string::npos)
      add_try(finding, "the probabilities given to a sampler hold NaN, infinity or negative values: look for overflow in half precision before it");
    else if (expression.find("<= one") != std::string::npos)
      add_try(finding, "binary cross entropy got a value outside 0 … 1: apply a sigmoid, or use the variant with logits");
  }
  add_evidence(finding, "assertion", expression);
  add_evidence(finding, "kernel", kernel);
  add_evidence(finding, "first_block", std::string(stated_word(trace, "assert.block")));
  add_evidence(finding, "first_thread", std::string(stated_word(trace, "assert.thread")));
  if (!stated_word(trace, "assert.lines").empty()) add_evidence(finding, "threads_reporting", counter_of(trace, "assert.lines"));
  add_blocking_try(trace, finding);
}

void judge_library(const Trace& trace, Finding& finding) {
  const std::string_view kind = stated_word(trace, "kind");
  const std::string status(stated_word(trace, "status"));
  const std::string library = kind.starts_with("cudnn")      ? "cuDNN"
                              : kind.starts_with("cublas")   ? "cuBLAS"
                              : kind.starts_with("cusolver") ? "cuSOLVER"
                                                             : "NCCL";
  const auto requested = stated_bytes(trace, "requested");
  finding.confidence = Confidence::kLikely;
  if (requested) finding.bytes = requested->middle();
  add_evidence(finding, "requested_bytes", requested);
  add_evidence(finding, "status", status);
  add_evidence(finding, "call", std::string(stated_word(trace, "call")));
  if (kind == "nccl-oom" || kind.ends_with("-alloc")) {
    finding.confidence = Confidence::kProved;
    finding.message = library + " asked the driver for " + (requested ? shown(*requested) : std::string("memory")) +
                      " and got none; it does not go through PyTorch's allocator, so PyTorch did not give its idle cache back first, and nothing "
                      "here says who held the memory";
    add_try(finding,
            "torch.cuda.empty_cache() before this line can help here, unlike with PyTorch's own error; if it does, the memory was idle cache");
    if (library == "NCCL")
      add_try(finding, "leave room for it: torch.cuda.set_per_process_memory_fraction(0.9) keeps PyTorch from taking the last of the device");
    else
      add_try(finding, "make its handle while there is room: one small matrix product or convolution at the start of the program");
    add_try(finding, "see who holds the device: nvidia-smi");
    add_recording_tries(trace, finding);
  } else if (kind.ends_with("-init") || kind == "cudnn-internal") {
    finding.message =
        library + " could not start (" + status +
        "): most often because no memory was left for its handle, otherwise a mismatch of driver and library, or an earlier error of a kernel";
    add_try(finding, "try with less on the device (a batch of 1): if it works, it was memory");
    add_try(finding, "otherwise look for an earlier error in the log, and run with CUDA_LAUNCH_BLOCKING=1 " + program_of(trace));
  } else if (kind == "nccl-cuda-error") {
    finding.confidence = Confidence::kHint;
    finding.message = "a CUDA call inside NCCL failed and the message does not say which error it was; out of memory is one of the possible ones";
    add_try(finding, "NCCL_DEBUG=INFO " + program_of(trace) + " prints the error (\"Cuda failure 2 'out of memory'\") and the bytes");
    add_try(finding, "look for an earlier error on another rank: NCCL often reports somebody else's failure");
  } else {
    finding.message = library + " failed (" + status + "): a kernel of it, or one launched before it, went wrong" + about_place(trace, finding);
    add_try(finding, "an index out of range in an earlier kernel often shows up here first");
    add_blocking_try(trace, finding);
    add_sanitizer_try(trace, finding);
  }
}

}  // namespace faultline
