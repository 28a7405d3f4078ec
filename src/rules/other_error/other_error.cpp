// program/other-error: what ended the program, where a text tells of GPU memory and the program then ended in an error of another kind. It is named and placed, and not judged.
#include <charconv>

#include "rules/describe.h"
#include "rules/old_program.h"
#include "rules/rule.h"

namespace faultline {
namespace {

// A run whose tensors were recorded, and whose last word was an exception of another kind.
void judge_run(const Case& subject, std::vector<Finding>& findings) {
  const Trace& trace = subject.trace();
  const Ending& ending = subject.statements().ending;
  const auto word = [&](const char* name) {
    const auto found = trace.properties.find(name);
    return found == trace.properties.end() ? std::string() : found->second;
  };
  const bool was_refused =
      !trace.events.empty() && trace.events.back().kind == EventKind::kOpEnd && trace.events.back().has(kFailed);
  if (trace.source_kind != "tensors" || ending.exception_type.empty() || was_refused ||
      !word("process.exception.kind").empty() || ending.exception_type == "KeyboardInterrupt")
    return;
  Finding finding;
  finding.rule = rule_name::kOtherError;
  finding.severity = Severity::kNote;
  finding.confidence = Confidence::kLikely;
  const std::string line = word("process.exception.at.line");
  std::uint32_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  finding.location = {word("process.exception.at.file"), number, word("process.exception.at.function"), {}, {}};
  std::string said = ending.exception_message.substr(0, ending.exception_message.find('\n'));
  if (said.ends_with('.')) said.pop_back();
  finding.message = "The program ended in " + ending.exception_type + (said.empty() ? "" : ": " + said) +
                    ". Not judged: this is not a memory error, and its own words say the reason.";
  const std::string_view remedy = remedy_for_old_program(ending.exception_message);
  if (!remedy.empty()) add_try(finding, std::string(remedy));
  finding.fingerprint = fingerprint(finding.rule, finding.location);
  findings.push_back(std::move(finding));
}

}  // namespace

void judge_other_error(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const StatedError& stated = subject.statements().error;
  if (!subject.statements().message_only) return judge_run(subject, findings);
  const TextNotes& notes = subject.statements().notes;
  const std::string& quoted_by = notes.quoted_by;
  const bool ended = !stated.ended_by.empty() && !stated.ended_while_handled;
  if (!ended && quoted_by.empty()) return;
  Finding finding;
  finding.rule = rule_name::kOtherError;
  finding.severity = Severity::kNote;
  finding.confidence = Confidence::kLikely;
  finding.location = {
      notes.ended_at.file, static_cast<std::uint32_t>(notes.ended_at.line), notes.ended_at.function, {}, {}};
  finding.message = "The program ended in " + (ended ? stated.ended_by : quoted_by) +
                    ". Not judged: this is no error of " +
                    "GPU memory, and its own words say the reason. What the text says of GPU memory comes next.";
  finding.fingerprint = fingerprint(finding.rule, finding.location);
  findings.push_back(std::move(finding));
}

}  // namespace faultline
