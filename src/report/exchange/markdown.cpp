// Markdown, for an issue or a chat: the verdict to read at once, the whole report folded behind it.
#include <algorithm>

#include "base/characters.h"
#include "base/safe_text.h"
#include "base/units.h"
#include "report/exchange/exchange.h"
#include "report/finding_text.h"
#include "report/place.h"
#include "report/terminal.h"

namespace faultline {
namespace {

bool is_alphanumeric(char c) { return is_letter(c) || is_digit(c); }

// What GitHub makes a link of without any mark: "www.", "GH-12". Here is the character that must not stand as it is.
bool is_within_link(std::string_view text, std::size_t at) {
  const auto follows = [&](std::string_view word) {
    if (at < word.size() || (at > word.size() && is_alphanumeric(text[at - word.size() - 1]))) return false;
    const std::string_view before = text.substr(at - word.size(), word.size());
    return std::equal(before.begin(), before.end(), word.begin(),
                      [](char a, char b) { return a == b || (is_upper(a) && a - 'A' + 'a' == b); });
  };
  return (text[at] == '.' && follows("www")) ||
         (text[at] == '-' && follows("gh") && at + 1 < text.size() && is_digit(text[at + 1]));
}

std::size_t longest_run(std::string_view text, char c) {
  std::size_t longest = 0, run = 0;
  for (const char here : text) longest = std::max(longest, run = here == c ? run + 1 : 0);
  return longest;
}

std::string block(std::string_view text) {
  const std::string marks(std::max<std::size_t>(longest_run(text, '`') + 1, 3), '`');
  return marks + "text\n" + std::string(text) + (text.ends_with('\n') ? "" : "\n") + marks + "\n";
}

std::string_view sign_of(Severity severity) {
  return severity == Severity::kError ? "Error" : severity == Severity::kWarning ? "Warning" : "Note";
}

void write_finding(std::string& out, const FindingGroup& group, const PathStyle& paths) {
  constexpr int kWide = 200;
  const Finding& finding = group.first();
  out += "\n**" + std::string(sign_of(finding.severity)) + "** " + markdown_code(finding.rule) + " (" +
         std::string(name_of(finding.confidence)) + ")";
  if (group.count() > 1) out += " ×" + format_count(group.count());
  out += "\n\n" + markdown_text(finding.message) + "\n\n";
  const auto row = [&](const char* label, const Location& place) {
    if (place.known())
      out += std::string("- ") + label + " " + markdown_code(describe_place(place, paths, kWide)) + "\n";
  };
  row("at", place_to_look(finding));
  row("allocated at", finding.allocated_at);
  row("freed at", finding.freed_at);
  for (const Try& attempt : finding.tries) {
    if (attempt.confirmed == false) continue;
    out += std::string("- ") + (attempt.confirmed ? "**confirmed**: " : "try: ") + markdown_text(attempt.what) + "\n";
  }
}

}  // namespace

std::string markdown_text(std::string_view input) {
  const std::string text = shown(input);
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool within_word =
        at > 0 && at + 1 < text.size() && is_alphanumeric(text[at - 1]) && is_alphanumeric(text[at + 1]);
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '@')
      out += "&#64;";
    else if (c == '#')
      out += "&#35;";
    else if (c == ':' && text.compare(at, 3, "://") == 0)
      out += "&#58;";
    else if (is_within_link(text, at))
      out += c == '.' ? "&#46;" : "&#45;";
    else if (std::string_view("\\`*[]|~").find(c) != std::string_view::npos || (c == '_' && !within_word))
      out += {'\\', c};
    else
      out += c;
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  const std::string inside = shown(text);
  const std::string marks(longest_run(inside, '`') + 1, '`');
  const char* room = inside.starts_with('`') || inside.ends_with('`') ? " " : "";
  return marks + room + inside + room + marks;
}

std::string to_markdown(std::span<const Report> reports, const ExchangeOptions& options) {
  const PathStyle paths{options.cwd, "", true};
  std::string out;
  for (const Report& report : reports) {
    if (!out.empty()) out += "\n---\n\n";
    out += "### Faultline: " + markdown_text(summary_of(report)) + "\n";
    if (!report.input_path.empty())
      out += "\nRead: " + markdown_code(shorten_path(report.input_path, paths, 200)) + "\n";
    for (const FindingGroup& group : group_findings(report.findings)) {
      if (group.first().severity != Severity::kNote) write_finding(out, group, paths);
    }
    TerminalOptions terminal;
    terminal.width = 100;
    terminal.cwd = options.cwd;
    out +=
        "\n<details><summary>The whole report</summary>\n\n" + block(to_terminal(report, terminal)) + "\n</details>\n";
  }
  return out;
}

}  // namespace faultline
