#include "rules/stated_error.h"

#include <algorithm>

#include "rules/describe.h"

namespace faultline {
namespace {

// The traceback around the message; a recording beside it has stacks of its own, none of which is the message's.
StackId stack_of(const Case& subject) { return subject.statements().message_only && !subject.trace().events.empty() ? subject.trace().events.front().stack : StackId(); }

}  // namespace

Finding begin_stated(const Case& subject, std::string_view rule) {
  const std::uint16_t device = subject.trace().devices.empty() ? std::uint16_t{0} : subject.trace().devices.front().index;
  Finding finding = finding_at(subject.facts(), rule, Severity::kError, Confidence::kProved, device, stack_of(subject));
  finding.count = subject.statements().error.count;
  return finding;
}

void finish_stated(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  if (stated.count > 1) {
    add_evidence(finding, "messages", stated.count);
    add_evidence(finding, "different_messages", stated.distinct);
  }
  for (const std::string& before : stated.survived) add_evidence(finding, "survived_before", before);
  if (!stated.ended_by.empty()) {
    finding.severity = std::max(finding.severity, Severity::kWarning);
    finding.message = "The program ended in " + stated.ended_by + ", which is no error of GPU memory. Before that, and survived: " + finding.message;
    add_evidence(finding, "ended_by", stated.ended_by);
  }
  if (stated.line != 0) add_evidence(finding, "line_in_text", stated.line);
  add_evidence(finding, "writer", stated.writer);
  add_evidence(finding, "text", stated.text);
  finding.fingerprint = fingerprint(finding.rule, finding.location, stated.name);
}

std::string program_words(const Case& subject) {
  std::string file;
  for (const Location& caller : callers_of(subject.facts(), stack_of(subject), 64)) {
    if (caller.file.ends_with(".py")) file = caller.file;
  }
  const Location own = location_of(subject.facts(), stack_of(subject));
  if (file.empty() && own.file.ends_with(".py") && !is_library_file(own.file)) file = own.file;
  file = file.substr(file.find_last_of("/\\") + 1);
  return "python " + (file.empty() ? std::string("train.py") : file);
}

std::string device_words(const Case& subject) {
  const std::string& device = subject.statements().error.device;
  return device.empty() ? "the GPU" : "GPU " + device;
}

}  // namespace faultline
