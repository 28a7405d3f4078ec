// The parts of a page that need no script: findings, what was tried, a plan's account, the report as text.
#pragma once

#include <string>

#include "view/html_page.h"

namespace faultline::view {

// The file or folder that was given, without what leads to it.
std::string input_name(const Report& report);
std::string summary_section(const Report& report);
// Each with the number of its jump; snippets: the source lines that could be read.
std::string findings_section(const Viewed& viewed, const PageOptions& options, const Snippets& snippets);
std::string what_if_section(const Viewed& viewed);
std::string account_section(const Report& report);
// What lived at the peak by call stack, for those whose browser draws nothing.
std::string stacks_section(const Viewed& viewed);
std::string text_section(const Viewed& viewed, const PageOptions& options);

}  // namespace faultline::view
