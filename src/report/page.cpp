#include "report/page.h"

#include <algorithm>
#include <array>

#include "report/rule_pages.h"

namespace faultline {
namespace {

constexpr int kNarrowest = 48;  // tables need so much
constexpr int kWidest = 120;    // longer lines are hard to read

std::string_view code_of(Style style) {
  static constexpr std::array<std::string_view, 10> kCodes = {// in the order of the styles
                                                              "",           "\x1b[1m",    "\x1b[2m",  "\x1b[1;31m",
                                                              "\x1b[1;33m", "\x1b[1;36m", "\x1b[32m", "\x1b[34m",
                                                              "\x1b[33m",   "\x1b[31m"};
  return kCodes[static_cast<std::size_t>(style)];
}

}  // namespace

Page::Page(const TerminalOptions& options)
    : paths_{options.cwd, options.home, options.unicode},
      source_(options.source),
      docs_(options.docs),
      width_(std::clamp(options.width, kNarrowest, kWidest)),
      colour_(options.colour) {}

std::string Page::document(const std::string& name) const {
  if (const std::string command = name.starts_with("docs/rules/") ? command_for_page(name) : ""; !command.empty())
    return command;
  return clean(docs_.empty() ? name + " (of Faultline's sources)" : docs_ + "/" + name);
}

std::string Page::sentence(std::string_view text) const {
  std::string shown;
  for (std::size_t at = text.find("docs/"); at != std::string_view::npos; at = text.find("docs/")) {
    const std::size_t end = text.find(".md", at);
    if (end == std::string_view::npos || text.substr(at, end - at).find(' ') != std::string_view::npos) break;
    shown += clean(text.substr(0, at)) + document(std::string(text.substr(at, end + 3 - at)));
    text.remove_prefix(end + 3);
  }
  return shown + clean(text);
}

std::string Page::paint(std::string_view text, Style style) const {
  const std::string_view code = code_of(style);
  if (!colour_ || code.empty() || text.find_first_not_of(' ') == std::string_view::npos) return std::string(text);
  return std::string(code) + std::string(text) + "\x1b[0m";
}

void Page::blank() {
  if (!out_.empty() && !out_.ends_with("\n\n")) out_ += '\n';
}

void Page::line(std::span<const Piece> pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += paint(piece.text, piece.style);
  text.erase(text.find_last_not_of(' ') + 1);
  out_ += text + '\n';
}

void Page::paragraph(int indent, std::string_view text, Style style) {
  for (const std::string& part : wrap(text, width_ - indent))
    line({{std::string(static_cast<std::size_t>(indent), ' ')}, {part, style}});
}

void Page::row(std::string_view label, std::string_view text, Style style) {
  std::string head = pad_right("  " + std::string(label), kRowIndent);
  for (const std::string& part : wrap(text, row_room())) {
    line({{head, Style::kDim}, {part, style}});
    head = std::string(kRowIndent, ' ');
  }
}

void Page::source_row(const Location& location) {
  std::string text = source_ && location.line != 0 ? clean(source_(location.file, location.line)) : std::string();
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  if (text.empty()) return;
  line({{std::string(kRowIndent + 2, ' ')}, {shorten_middle(text, row_room() - 2, unicode()), Style::kNote}});
}

void Page::item(const Piece& marker, std::string_view text, std::string_view label, int indent) {
  std::string head = pad_right("  " + std::string(label), indent);
  Piece mark = {marker.text + " ", marker.style};
  const int mark_columns = display_width(mark.text);
  for (const std::string& part : wrap(text, width_ - indent - mark_columns)) {
    line({{head, Style::kDim}, mark, {part}});
    head = std::string(static_cast<std::size_t>(indent), ' ');
    mark = {std::string(static_cast<std::size_t>(mark_columns), ' ')};
  }
}

}  // namespace faultline
