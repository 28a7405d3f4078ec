#include "view/headline.h"

#include <vector>

#include "base/units.h"
#include "facts/stack_facts.h"
#include "report/finding_text.h"
#include "report/rule_pages.h"

namespace faultline::view {
namespace {

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

// The words of a command as it was typed, quotes taken off.
std::vector<std::string> words_of_command(std::string_view typed) {
  std::vector<std::string> words;
  bool quoted = false, open = false;
  for (const char letter : typed) {
    if (letter == ' ' && !quoted) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (letter == '\'')
      quoted = !quoted;
    else
      words.back() += letter;
  }
  return words;
}

std::string program_of_command(const std::vector<std::string>& words) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (words[at].ends_with(".py") || words[at].ends_with(".ipynb")) return base_name(words[at]);
    if (words[at] == "-m" && at + 1 < words.size() && base_name(words[0]).starts_with("python"))
      return "python -m " + words[at + 1];
  }
  return words.empty() ? std::string() : base_name(words.front());
}

bool is_script(std::string_view file) {
  return file.ends_with(".py") && file.find("/ipykernel_") == std::string_view::npos && !is_library_file(file);
}

// The user's own file in which most of what a finding or the stacks tell begins.
std::string program_of_stacks(const Report& report, const Input& input) {
  for (const Finding& finding : report.findings) {
    for (auto place = finding.call_path.rbegin(); place != finding.call_path.rend(); ++place) {
      if (is_script(place->file)) return base_name(place->file);
    }
  }
  for (const InputPart& part : input.parts) {
    const Trace& trace = part.trace;
    for (std::uint32_t at = 1; at < trace.stacks.size(); ++at) {
      const Frame& frame = trace.stacks.frame(StackId(at));
      const std::string_view file = trace.strings.at(frame.file);
      if (trace.strings.at(frame.function) == "<module>" && is_script(file)) return base_name(file);
    }
  }
  return {};
}

std::string what_happened(const Plan& plan) {
  const std::string where = plan.gpu ? " on " + plan.gpu->name : std::string();
  switch (plan.verdict) {
    case Verdict::kFits: return "fits" + where;
    case Verdict::kTight: return (plan.is_undecided() ? "may not fit" : "fits tightly") + where;
    case Verdict::kFitsUntil: return "fits for a while" + where;
    case Verdict::kDoesNotFit: return "does not fit" + where;
    case Verdict::kMeasured: return "its need of GPU memory";
    case Verdict::kUnplanned: return "not planned";
    case Verdict::kProgramError: return "ended in an error" + where;
    case Verdict::kInterrupted: return "stopped" + where;
  }
  return {};
}

}  // namespace

std::string program_of(const Report& report, const Input& input) {
  if (report.plan && !report.plan->command.empty()) return program_of_command(report.plan->command);
  for (const InputPart& part : input.parts) {
    if (const auto typed = part.trace.properties.find("run.command"); typed != part.trace.properties.end())
      return program_of_command(words_of_command(typed->second));
  }
  return program_of_stacks(report, input);
}

std::string_view words_of(std::string_view rule) {
  const RulePage* page = find_rule_page(rule);
  return page == nullptr ? std::string_view() : page->in_short;
}

std::string what_happened(const Report& report) {
  if (report.plan) return what_happened(*report.plan);
  std::size_t warnings = 0;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::kError) {
      const std::string_view words = words_of(finding.rule);
      return words.empty() ? finding.rule : std::string(words);
    }
    if (finding.severity == Severity::kWarning) ++warnings;
  }
  if (warnings != 0) return warnings == 1 ? "1 warning" : format_count(warnings) + " warnings";
  return report.unseen.empty() ? "nothing wrong was found" : "nothing found in what was seen";
}

}  // namespace faultline::view
