// The page of each rule (docs/rules), which the program holds: `faultline rule NAME` prints it, SARIF has it as help.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "report/terminal.h"

namespace faultline {

struct RulePage {
  std::string_view rule;
  std::string_view in_short;  // what happened, in a few words: the title of a page of `view`
  std::string_view says;      // in a line, as Markdown
  std::string_view text;      // Markdown
};

std::span<const RulePage> rule_pages();  // in the order of docs/rules/README.md

// Of memory/leak, also named leak, memory-leak, docs/rules/memory-leak.md or as it was typed in capitals; nullptr: there is none.
const RulePage* find_rule_page(std::string_view name);

// The command that prints a rule's page: "faultline rule memory/leak". Empty where it has none.
std::string command_for_page(std::string_view rule);

std::string to_terminal(const RulePage& page, const TerminalOptions& options);
std::string to_terminal(std::span<const RulePage> pages, const TerminalOptions& options);  // a line of each

}  // namespace faultline
