// A page of terminal text being written: it knows the width, the character set and the colours, so that what is said stands apart from how.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "report/place.h"
#include "report/terminal.h"
#include "report/text.h"

namespace faultline {

enum class Style : std::uint8_t {
  kPlain,
  kStrong,
  kDim,
  kError,
  kWarning,
  kNote,
  kGood,
  kAllocated,
  kReserved,
  kLimit
};

struct Piece {
  std::string text;
  Style style = Style::kPlain;
};

class Page {
 public:
  explicit Page(const TerminalOptions& options);

  int width() const { return width_; }
  bool unicode() const { return paths_.unicode; }
  std::string_view glyph(std::string_view unicode_form, std::string_view ascii_form) const {
    return unicode() ? unicode_form : ascii_form;
  }
  Piece yes() const { return {std::string(glyph("✔", "*")), Style::kGood}; }
  Piece no() const { return {std::string(glyph("✘", "x")), Style::kDim}; }
  Piece dot() const { return {std::string(glyph("·", "-"))}; }
  std::string clean(std::string_view text) const { return faultline::clean(text, unicode()); }
  std::string place(const Location& location, int room) const { return describe_place(location, paths_, room); }
  std::string place_in_table(const Location& location, int room) const { return describe_line(location, paths_, room); }
  std::string path(std::string_view file, int room) const { return shorten_path(file, paths_, room); }

  // Where a page of the documentation can be opened; of a rule's page the command that prints it.
  std::string document(const std::string& name) const;
  // A sentence of our own, cleaned, in which every docs/….md is one that can be opened.
  std::string sentence(std::string_view text) const;

  // The text of that line, in a row of its own; nothing where it cannot be read.
  void source_row(const Location& location);

  void blank();  // at most one empty line, none at the top
  void line(std::span<const Piece> pieces);
  void line(std::initializer_list<Piece> pieces) { line(std::span(pieces.begin(), pieces.size())); }
  void paragraph(int indent, std::string_view text, Style style = Style::kPlain);
  // A label and its text, wrapped beside it. Without a label: more of the row above.
  void row(std::string_view label, std::string_view text, Style style = Style::kPlain);
  // One of a list, which may stand beside a label: a marker, and text that hangs behind it.
  void item(const Piece& marker, std::string_view text, std::string_view label = {}, int indent = 2);
  int row_room() const { return width_ - kRowIndent; }
  std::string take() { return std::move(out_); }

  static constexpr int kRowIndent = 14;

 private:
  std::string paint(std::string_view text, Style style) const;

  std::string out_;
  PathStyle paths_;
  std::function<std::string(const std::string&, std::uint32_t)> source_;
  std::string docs_;
  int width_;
  bool colour_;
};

}  // namespace faultline
