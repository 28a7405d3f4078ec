// What the forms for other tools (SARIF, Markdown, GitHub's annotations, JUnit) share: each is made from reports, one or several, and is whole in itself.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "report/report.h"

namespace faultline {

struct ExchangeOptions {
  std::string cwd;                                                   // files below it are named relative to it
  std::string version;                                               // of this tool
  std::function<std::string(std::string_view rule)> rule_page = {};  // its page, as Markdown; empty: none
};

using ExchangeForm = std::string(std::span<const Report> reports, const ExchangeOptions& options);
ExchangeForm to_sarif, to_markdown, to_github, to_junit;

// Text of others in Markdown. In running text nothing in it is a mark, a tag, a mention, a reference or a link; as code it is code whatever it holds.
std::string markdown_text(std::string_view text);
std::string markdown_code(std::string_view text);

// The file relative to the folder that it is below; else as it is.
std::string_view below(std::string_view folder, std::string_view file);

// "Try: …", a line each: what a replay or a dry run refuted is no advice.
std::string advice(const Finding& finding);

}  // namespace faultline
