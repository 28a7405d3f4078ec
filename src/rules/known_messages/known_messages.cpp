// memory/host-memory, config/device-not-usable, and the messages of other rules that have no numbers to judge by: a table from kind to words.
#include "rules/known_messages/known_messages.h"

#include "base/units.h"
#include "fmt/format.h"
#include "rules/cause.h"
#include "rules/describe.h"
#include "rules/inequality.h"
#include "rules/stated_error.h"
#include "sources/messages/programs.h"
#include "sources/messages/xids.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

ByteInterval scaled(ByteInterval bytes, unsigned hundredths) {
  return {bytes.min / 100 * hundredths, bytes.max / 100 * hundredths};
}

void describe_xid(const StatedError& stated, const std::string& program, Finding& finding) {
  const Xid* const known = xid_of(stated.xid);
  finding.rule = known == nullptr ? kLaunchError : known->rule;
  finding.confidence = Confidence::kLikely;
  finding.message =
      "The kernel's log has Xid " + std::to_string(stated.xid.value_or(0)) + ": " +
      (known == nullptr
           ? std::string("an error that the driver reports; what it means stands in NVIDIA's list of Xid errors")
           : std::string(known->meaning)) +
      ".";
  if (!stated.process.empty()) add_evidence(finding, "process", stated.process);
  if (known != nullptr && known->cause == Xid::kHardware) {
    add_try(finding,
            "The program is not at fault: nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER, then reset (nvidia-smi "
            "--gpu-reset) or restart, and replace the card if it comes back.");
    return add_try(finding, "If it comes under load, look at power and heat: nvidia-smi -q -d POWER,TEMPERATURE");
  }
  add_try(finding, (stated.process.empty()
                        ? std::string("Find the process by the time of the line, and run it as faultline run -- ")
                        : "The line names process " + stated.process + ": run it as faultline run -- ") +
                       program + ", which names the launches that can have done it; --core-dump names the line.");
  add_try(finding, "If it follows the card and not the program, test the card: nvidia-smi -q -d ECC, dcgmi diag -r 3");
}

std::string with_program(std::string_view words, const std::string& program) {
  std::string text(words);
  if (const std::size_t at = text.find("PROGRAM"); at != std::string::npos) text.replace(at, 7, program);
  return text;
}

bool is_of_pool_framework(const StatedError& stated) {
  return has_pool(stated.framework) || has_pool(stated.other_framework);
}

// Of a message about the host's memory: PyTorch's settings and calls, and its loader, have nothing to do with it.
bool is_beyond_torch(const KindRow& row, const StatedError& stated) {
  if (!is_of_host(row)) return false;
  const Program* const maker = program_of(stated.maker_name());
  return is_of_pool_framework(stated) || (maker != nullptr && !maker->is_python);
}

void add_try_of_pool(const StatedError& stated, Finding& finding) {
  if (stated.kind != MessageKind::kHostAlloc || !is_of_pool_framework(stated)) return;
  const bool jax = stated.framework == Framework::kJax || stated.other_framework == Framework::kJax;
  add_try(finding, jax ? "If the array was meant for the GPU, JAX runs on the CPU here: python -c \"import jax; "
                         "print(jax.devices())\" shows it."
                       : "Data that does not fit RAM goes through tf.data piece by piece; if the tensor was meant for "
                         "the GPU, look at tf.config.list_physical_devices(\"GPU\").");
}

// vLLM's own numbers, and what follows from them.
void describe_vllm(const StatedError& stated, Finding& finding) {
  const bool is_length = stated.kind == MessageKind::kVllmLength, is_start = stated.kind == MessageKind::kVllmStart;
  if (!stated.free || (!is_length && !is_start)) return;
  add_evidence(finding, "free_bytes", stated.free->middle());
  if (is_length && stated.requested) {
    finding.message = "One request of the model's full length needs " + shown(*stated.requested) +
                      " of key-value cache, and vLLM has room for " + shown(*stated.free) + ".";
    if (surely_less(*stated.free, *stated.requested))
      add_evidence(finding, "inequality", compared({{*stated.free, "free"}}, "<", {{*stated.requested, "requested"}}));
  }
  if (!is_start || !stated.capacity || stated.capacity->min == 0) return;
  add_evidence(finding, "capacity_bytes", stated.capacity->middle());
  finding.message = shown(*stated.free) + " of the device's " + shown(*stated.capacity) +
                    " is free, and vLLM is set to take" +
                    (stated.requested ? " " + shown(*stated.requested) : std::string(" more")) +
                    " (gpu_memory_utilization): something else holds the rest.";
  if (stated.requested && surely_less(*stated.free, *stated.requested))
    add_evidence(finding, "inequality", compared({{*stated.free, "free"}}, "<", {{*stated.requested, "requested"}}));
  const auto hundredths =
      static_cast<unsigned>(static_cast<double>(stated.free->min) * 100.0 / static_cast<double>(stated.capacity->max));
  if (hundredths == 0 || hundredths >= 100) return;
  add_try(finding, fmt::format("Or take less: --gpu-memory-utilization 0.{:02} or lower, {} of {}, fits what is free "
                               "now; whether the model and its cache fit into that is not in this text.",
                               hundredths, shown(scaled(*stated.capacity, hundredths)), shown(*stated.capacity)));
}

bool is_operands(MessageKind kind) {
  return kind == MessageKind::kOperands || kind == MessageKind::kOperandsKeras || kind == MessageKind::kOperandsShapes;
}

// What the limit is one of: "that a block may have".
std::string_view limit_words(MessageKind kind) {
  return kind == MessageKind::kBufferLimit  ? "in one piece"
         : kind == MessageKind::kTpuScratch ? "that a kernel may have"
                                            : "that a block may have";
}

// The numbers that the message states, and the sentences that they add.
void describe_numbers(const StatedError& stated, Finding& finding) {
  const auto& requested = stated.requested;
  if (requested) {
    finding.bytes = stated_bytes(*requested);
    add_stated_bytes(finding, "requested_bytes", *requested);
  }
  if (const auto& limit = stated.limit) {
    add_evidence(finding, "limit_bytes", limit->middle());
    const bool is_more = requested && surely_less(*limit, *requested);
    const bool is_buffer = stated.kind == MessageKind::kBufferLimit;
    if (is_more)
      add_evidence(finding, "inequality",
                   compared({{*requested, is_buffer ? "requested" : "used"}}, ">",
                            {{*limit, std::string(limit_words(stated.kind))}}));
    if (requested && stated.kind == MessageKind::kTpuScratch)
      finding.message += " It needs " + shown(*requested) + " of " + stated.scratch + ", of which there are " +
                         shown(*limit) + (is_more ? "." : ", as rounded.");
    if (requested && is_buffer)
      finding.message += " " + asked_for(*requested) + ", and the limit is " + shown(*limit) + ".";
  }
  if (stated.kind != MessageKind::kRematerialization || !requested || !stated.allowed) return;
  finding.message +=
      " It needs " + shown(*requested) + " as it is compiled, and XLA plans with " + shown(*stated.allowed) + ".";
  if (surely_less(*stated.allowed, *requested))
    add_evidence(finding, "inequality",
                 compared({{*requested, "needed"}}, ">", {{*stated.allowed, "that XLA plans with"}}));
}

void add_tries_of(const KindRow& row, const StatedError& stated, const std::string& program, Finding& finding) {
  const bool counts = stated.kind == MessageKind::kVllmLength && stated.tokens;
  if (counts)
    add_try(finding, "Set --max-model-len " + std::to_string(*stated.tokens) +
                         " or less: the message says there is room for that.");
  const bool has_number = counts || (stated.kind == MessageKind::kVllmStart && stated.capacity);
  const bool is_torch = !is_beyond_torch(row, stated);
  const auto suits = [&](Suits whom) {
    switch (whom) {
      case Suits::kAll: return true;
      case Suits::kTorch: return is_torch;
      case Suits::kTorchSince21: return is_torch && !is_torch_before(stated, 2, 1);
      case Suits::kWithoutNumber: return !has_number;
    }
    return false;
  };
  for (const MessageTry& one : row.tries) {
    if (!one.what.empty() && suits(one.suits)) add_try(finding, with_program(one.what, program));
  }
}

// False: its words are not known.
bool describe_known(const Case& subject, const StatedError& stated, Finding& finding) {
  const std::string program = program_words(subject);
  if (is_operands(stated.kind)) {
    describe_operands(subject, finding);
    return true;
  }
  if (stated.kind == MessageKind::kXid) {
    describe_xid(stated, program, finding);
    return true;
  }
  const KindRow& row = row_of(stated.kind);
  if (row.meaning.empty()) return false;
  finding.rule = row.rule;
  finding.confidence = row.confidence;
  const bool is_other = !row.meaning_beyond_torch.empty() && is_beyond_torch(row, stated);
  finding.message = std::string(is_other ? row.meaning_beyond_torch : row.meaning) + ".";
  if (row.is_harmless) finding.severity = Severity::kNote;
  if (stated.requested && is_of_host(row))
    finding.message = asked_for(*stated.requested) +
                      (stated.free ? ", and " + shown(*stated.free) + " are there" : std::string()) + ". " +
                      finding.message;
  if (stated.kind == MessageKind::kModelVram && stated.free)
    finding.message += " It may use " + shown(*stated.free) + ".";
  // It is raised in the main process, wherever that is when it is told.
  if ((stated.kind == MessageKind::kHostWorker || stated.kind == MessageKind::kHostBus) && finding.location.known())
    finding.message += " The line shown is where the main process noticed, not what the worker was doing.";
  describe_numbers(stated, finding);
  add_tries_of(row, stated, program, finding);
  // "Loaded runtime CuDNN library: 8.2.1 but source was compiled with: 8.6.0."
  if (stated.kind == MessageKind::kSetupLibraryVersion)
    finding.message += " The text says: " + stated.text.substr(0, stated.text.find(". ")) + ".";
  describe_vllm(stated, finding);
  add_try_of_pool(stated, finding);
  if (!stated.tensor_shape.empty()) {
    finding.memory = "tensor of shape " + stated.tensor_shape + ", type " + stated.tensor_type;
    add_evidence(finding, "shape", stated.tensor_shape);
  }
  return true;
}

}  // namespace

void judge_known_messages(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const Statements& statements = subject.statements();
  if (statements.error.group() != ErrorKind::kKnown) return;
  if (Finding finding = begin_stated(subject, rule_name::kHostMemory);
      describe_known(subject, statements.error, finding)) {
    finish_stated(subject, finding);
    findings.push_back(std::move(finding));
  }
  if (!statements.message_only) return;
  for (const StatedError& stated : subject.statements().notes.further) {
    Finding finding;
    finding.severity = Severity::kError;
    if (!describe_known(subject, stated, finding)) continue;
    add_evidence(finding, "line_in_text", stated.line);
    add_evidence(finding, "text", stated.text);
    finding.fingerprint =
        fingerprint(finding.rule, finding.location,
                    std::string(name_of(stated.kind)) + (stated.xid ? std::to_string(*stated.xid) : std::string()));
    findings.push_back(std::move(finding));
  }
}

}  // namespace faultline
