// program/other-error: what ended the program, where a text tells of GPU memory and the program then ended in an error of another kind. It is named and placed, and not judged.
#include "rules/describe.h"
#include "rules/rule.h"
#include "sources/text_notes.h"

namespace faultline {

void judge_other_error(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const StatedError& stated = subject.statements().error;
  if (!subject.statements().message_only) return;
  const TextNotes notes = read_text_notes(subject.trace());
  const std::string& quoted_by = notes.quoted_by;
  const bool ended = !stated.ended_by.empty() && !stated.ended_while_handled;
  if (!ended && quoted_by.empty()) return;
  Finding finding;
  finding.rule = "program/other-error";
  finding.severity = Severity::kNote;
  finding.confidence = Confidence::kLikely;
  finding.location = {notes.ended_at.file, notes.ended_at.line, notes.ended_at.function, {}, {}};
  finding.message = "The program ended in " + (ended ? stated.ended_by : quoted_by) +
                    ". Not judged: this is no error of " +
                    "GPU memory, and the reason stands in its own words. What the text says of GPU memory comes next.";
  finding.fingerprint = fingerprint(finding.rule, finding.location);
  findings.push_back(std::move(finding));
}

}  // namespace faultline
