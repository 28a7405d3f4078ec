// memory/host-memory, config/device-not-usable, and the messages of other rules that have no numbers to judge by: a table from kind to words.
#include "rules/known_messages/known_messages.h"

#include <algorithm>
#include <array>

#include "base/units.h"
#include "rules/cause.h"
#include "rules/describe.h"
#include "rules/known_messages/meanings.h"
#include "rules/stated_error.h"
#include "sources/text_notes.h"

namespace faultline {
namespace {

struct Xid {
  std::string_view number;
  bool of_hardware;
  std::string_view rule, meaning;
};
constexpr auto kXids = std::to_array<Xid>({
    {"13", false, kLaunch,
     "a kernel of this process did something illegal (graphics engine exception): most often an access out of range or "
     "a bad instruction of the program, rarely the hardware"},
    {"31", false, "access/illegal-address", "a kernel touched an address that is not mapped (MMU fault)"},
    {"43", false, kLaunch,
     "the device stopped a process's work after a fault of that process; the device itself is well"},
    {"45", false, kLaunch,
     "work was cleaned up because the process had ended or failed: a consequence, look for the error before it"},
    {"32", false, kLaunch, "the device got commands it could not read: driver or bus, rarely the program"},
    {"8", false, kLaunch, "a kernel ran longer than the driver allows"},
    {"48", true, kLaunch, "a memory error that could not be corrected (double-bit ECC)"},
    {"61", true, kLaunch, "an internal breakpoint or warning of the device's microcontroller"},
    {"62", true, kLaunch, "the device's microcontroller halted"},
    {"63", true, kLaunch, "a page of the device's memory was retired or remapped after ECC errors"},
    {"64", true, kLaunch, "a page of the device's memory could not be retired or remapped"},
    {"69", false, kLaunch,
     "the device was given work that its engine does not know (graphics engine class error): program or driver, rarely "
     "the hardware"},
    {"74", true, kLaunch, "an NVLink error"},
    {"79", true, kLaunch, "the GPU has fallen off the bus: power, heat, the slot or the card"},
    {"94", true, kLaunch, "a contained memory error (ECC): the process that used that memory was ended"},
    {"95", true, kLaunch, "an uncontained memory error (ECC): the device needs a reset"},
    {"109", false, kLaunch, "a program's work did not give the device free in time (context switch timeout)"},
    {"140", true, kLaunch, "a memory error that could not be recovered (ECC)"},
    {"145", true, kLaunch, "an NVLink error"},
    {"149", true, kLaunch, "an NVLink error"},
    {"154", false, kLaunch,
     "the driver tells what would bring the device back (a reset or a restart, as the line says): a consequence, look "
     "for the Xid before it"},
    {"119", true, kLaunch, "the device's system processor (GSP) does not answer"},
    {"120", true, kLaunch, "the device's system processor (GSP) failed"},
});

void describe_xid(const StatedError& stated, const std::string& program, Finding& finding) {
  const auto known = std::find_if(kXids.begin(), kXids.end(), [&](const Xid& xid) { return xid.number == stated.xid; });
  finding.rule = known == kXids.end() ? kLaunch : known->rule;
  finding.confidence = Confidence::kLikely;
  finding.message =
      "The kernel's log has Xid " + stated.xid + ": " +
      (known == kXids.end()
           ? std::string("an error that the driver reports; what it means stands in NVIDIA's list of Xid errors")
           : std::string(known->meaning)) +
      ".";
  if (!stated.process.empty()) add_evidence(finding, "process", stated.process);
  if (known != kXids.end() && known->of_hardware) {
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

// False: its words are not known.
bool describe_known(const Case& subject, const StatedError& stated, Finding& finding) {
  const std::string program = program_words(subject);
  if (stated.name == "operands") {
    describe_operands(subject, finding);
    return true;
  }
  if (stated.name == "xid") {
    describe_xid(stated, program, finding);
    return true;
  }
  const Meaning* meaning = meaning_of(stated.name);
  if (meaning == nullptr) return false;
  finding.rule = meaning->rule;
  finding.confidence = meaning->confidence;
  finding.message = std::string(meaning->message) + ".";
  if (stated.name.starts_with("harmless-")) finding.severity = Severity::kNote;
  if (stated.requested && meaning->rule == kHost)
    finding.message = asked_for(*stated.requested) + ". " + finding.message;
  if (stated.requested) {
    finding.bytes = stated.requested->middle();
    add_evidence(finding, "requested_bytes", finding.bytes);
  }
  if (stated.shared_memory_limit) add_evidence(finding, "limit_bytes", stated.shared_memory_limit->middle());
  if (stated.requested && stated.shared_memory_limit && surely_less(*stated.shared_memory_limit, *stated.requested))
    add_evidence(finding, "inequality",
                 format_bytes(stated.requested->middle()) + " used > " +
                     format_bytes(stated.shared_memory_limit->middle()) + " that a block may have");
  const bool counts = stated.name == "vllm-length" && !stated.status.empty();
  if (counts)
    add_try(finding,
            "Set --max-model-len " + stated.status + " or less: by the message that is what there is room for.");
  for (const std::string_view what : meaning->tries) {
    if (counts && what.starts_with("Set --max-model-len")) continue;
    if (what.find("mmap=True") != std::string_view::npos && is_torch_before(stated, 2, 1)) continue;
    if (!what.empty()) add_try(finding, with_program(what, program));
  }
  return true;
}

}  // namespace

void judge_known_messages(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const Statements& statements = subject.statements();
  if (statements.error.kind != ErrorKind::kKnown) return;
  if (Finding finding = begin_stated(subject, "memory/host-memory");
      describe_known(subject, statements.error, finding)) {
    finish_stated(subject, finding);
    findings.push_back(std::move(finding));
  }
  if (!statements.message_only) return;
  for (const StatedError& stated : read_text_notes(subject.trace()).further) {
    Finding finding;
    finding.severity = Severity::kError;
    if (!describe_known(subject, stated, finding)) continue;
    add_evidence(finding, "line_in_text", stated.line);
    add_evidence(finding, "text", stated.text);
    finding.fingerprint = fingerprint(finding.rule, finding.location, stated.name + stated.xid);
    findings.push_back(std::move(finding));
  }
}

}  // namespace faultline
