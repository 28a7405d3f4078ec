#include "report/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "facts/libraries.h"
#include "report/text.h"
#include "rules/line_words.h"

namespace faultline {
namespace {

bool take_folder(std::string_view& path, std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  if (folder.size() < 2 || !path.starts_with(folder) || path.size() <= folder.size() || path[folder.size()] != '/')
    return false;
  path.remove_prefix(folder.size() + 1);
  return true;
}

// Folders give way from the middle: first/…/last/name, …/last/name, …/name, and at last the name's own middle.
std::string drop_folders(const std::string& path, int width, bool unicode) {
  if (display_width(path) <= width) return path;
  const std::string gap = unicode ? "…" : "...";
  const std::size_t name = path.rfind('/');
  if (name == std::string::npos) return shorten_middle(path, width, unicode);
  const std::string head = path.substr(0, path.find('/', 1) + 1);
  std::string with_head, without_head;
  for (std::size_t cut = name; cut != std::string::npos && cut >= head.size();) {
    const std::string tail = gap + path.substr(cut);
    if (display_width(tail) > width) break;  // those with more folders are longer still
    without_head = tail;
    if (display_width(head + tail) <= width && cut != name) with_head = head + tail;
    cut = cut == 0 ? std::string::npos : path.rfind('/', cut - 1);
  }
  if (!with_head.empty()) return with_head;
  return !without_head.empty() ? without_head : shorten_middle(path.substr(name + 1), width, unicode);
}

}  // namespace

std::string shorten_path(std::string_view path, const PathStyle& style, int width) {
  std::string text(installed_part(path));
  if (text.empty()) {
    if (take_folder(path, style.cwd)) {
      text = path;
    } else if (take_folder(path, style.home)) {
      text = "~/" + std::string(path);
    } else {
      text = path;
    }
  }
  return drop_folders(clean(text, style.unicode), width, style.unicode);
}

std::string describe_place(const Location& location, const PathStyle& style, int width) {
  const auto name = [&](std::string_view text) {
    return shorten_middle(clean(text, style.unicode), std::max(width - 4, 20), style.unicode);
  };
  std::string text;
  if (!location.file.empty()) {
    const std::string line = location.line == 0 ? std::string() : line_behind(location.file, location.line);
    text = shorten_path(location.file, style, std::max(width - display_width(line), 8)) + line;
  }
  // A line outside every function needs no name for where it is not.
  if (!location.function.empty() && location.function != "<module>")
    text += (text.empty() ? "in " : " in ") + name(location.function);
  if (!location.op.empty()) text += (text.empty() ? "op " : ", op ") + name(location.op);
  if (!location.kernel.empty()) text += (text.empty() ? "kernel " : ", kernel ") + name(location.kernel);
  return text;
}

std::string describe_line(const Location& location, const PathStyle& style, int width) {
  if (std::string text = describe_place(location, style, width); display_width(text) <= width) return text;
  Location bare = location;
  bare.function.clear();
  if (!bare.file.empty()) bare.op.clear(), bare.kernel.clear();
  return shorten_middle(describe_place(bare, style, width), width, style.unicode);
}

}  // namespace faultline
