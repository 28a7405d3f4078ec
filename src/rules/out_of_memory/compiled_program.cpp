#include "rules/out_of_memory/compiled_program.h"

#include "base/units.h"
#include "fmt/format.h"
#include "rules/describe.h"
#include "rules/out_of_memory/message_words.h"
#include "rules/stated_error.h"

namespace faultline {
namespace {

constexpr std::uint64_t kSmallRequest = 64 * kMiB;
constexpr const char* kHoldLess =
    "Hold less: a smaller batch or sequence, a smaller type, jax.checkpoint around the layers, or sharding over more "
    "devices.";

}  // namespace

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

void judge_whole_program(const StatedError& stated, const std::string& buffers, Finding& finding) {
  finding.cause = "exhausted";
  conclude(finding, Confidence::kProved,
           "The compiled program needs " + shown(*stated.executable_total) + " of the " + shown(*stated.capacity) +
               " that the device has" + (buffers.empty() ? "." : "; its largest buffers: " + buffers + "."));
  add_try(finding, kHoldLess);
}

void judge_told_room(const StatedError& stated, Finding& finding) {
  const bool is_short = surely_less(*stated.free, *stated.requested);
  finding.cause = is_short ? "exhausted" : surely_at_least(*stated.free, *stated.requested) ? "fragmented" : "";
  conclude(finding, is_short ? Confidence::kProved : Confidence::kLikely,
           shown(*stated.requested) + " was requested, and " + shown(*stated.free) + " was free" +
               (is_short                ? "."
                : finding.cause.empty() ? ": too little, or in pieces; the rounded numbers do not show which."
                                        : ", but not in one piece."));
  if (!finding.cause.empty())
    add_evidence(finding, "inequality",
                 compared({{*stated.free, "free"}}, is_short ? "<" : "≥", {{*stated.requested, "requested"}}));
  add_try(finding, kHoldLess);
}

void tell_request(const StatedError& stated, Finding& finding) {
  if (stated.refused_unified) {
    finding.message +=
        " The pool takes unified memory, which spans GPU memory and host memory, and the "
        "driver had refused " +
        format_bytes(stated.refused_unified->middle()) + " of it before, so both together were not enough.";
    add_try(finding,
            "See what RAM there is beside GPU memory (free -h, and a container's own limit): unified memory "
            "(TF_FORCE_UNIFIED_MEMORY=1 with a fraction above 1) spills into it.");
  }
  if (stated.for_autotuner) {
    finding.message +=
        " XLA's autotuner requested it: it tries kernels on copies of their operands while a program is compiled.";
    add_try(finding,
            "XLA_FLAGS=--xla_gpu_autotune_level=0 compiles without trying kernels (which may be slower ones). "
            "Not confirmed: whether the program itself then fits is not in this text.");
  }
}

void tell_compiled_program(const StatedError& stated, const std::string& buffers, Finding& finding) {
  if (!stated.executable_total) {
    if (!buffers.empty()) finding.message += " The largest buffers of the compiled program: " + buffers + ".";
    return;
  }
  add_evidence(finding, "executable_total_bytes", stated.executable_total->middle());
  if (stated.executable_temporaries)
    add_evidence(finding, "executable_temporaries_bytes", stated.executable_temporaries->middle());
  finding.message +=
      " The compiled program needs " + shown(*stated.executable_total) + " in all" +
      (stated.executable_temporaries ? ", " + shown(*stated.executable_temporaries) + " of it for temporaries"
                                     : std::string()) +
      (buffers.empty() ? "." : "; its largest buffers: " + buffers + ".");
  // of what JAX's pool takes by itself
  if (stated.executable_total->min >= kGiB && finding.cause.empty() && stated.other_framework != Framework::kTensorFlow)
    finding.message += fmt::format(
        " JAX's pool is three quarters of the GPU unless set otherwise: a GPU of less than {} "
        "cannot run it so, whatever else is held.",
        format_bytes(stated.executable_total->middle() / 3 * 4));
}

void add_what_shrinks(const StatedError& stated, const std::string& buffers, Finding& finding) {
  // What is missing is small beside any GPU's memory: what was held before it is the matter, not this program.
  const bool is_small = stated.requested && stated.requested->max <= kSmallRequest &&
                        (!stated.executable_total || stated.executable_total->max <= 4 * kSmallRequest);
  if (is_small && finding.cause.empty() && !stated.refused_unified) {
    finding.message +=
        " So small a request fails only where the pool was full, or in pieces, and could not grow: what is held beside "
        "it, by this program or by another, is the matter.";
    add_try(
        finding,
        "See what is still held, line by line: jax.profiler.save_device_memory_profile(\"memory.prof\") before this "
        "line, then faultline explain memory.prof. Arrays in lists and closures, results that are kept for every "
        "step, and old states beside new ones (donate_argnums of jax.jit) are usual.");
  } else if (!buffers.empty()) {
    add_try(finding,
            "Make the largest of these buffers smaller: a smaller batch or a smaller type at its line, jax.checkpoint "
            "around what keeps it for the backward pass, or work in pieces (jax.lax.map, jax.lax.scan).");
  } else if (stated.executable_temporaries && stated.executable_total &&
             surely_at_least(*stated.executable_temporaries + *stated.executable_temporaries,
                             *stated.executable_total)) {
    add_try(finding,
            "Most of it is temporaries, what is kept between operations: a smaller batch or sequence, a smaller type, "
            "jax.checkpoint around the layers, or work in pieces (jax.lax.map, jax.lax.scan) shrinks them.");
  }
}

}  // namespace faultline
