#include "plan/offer.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <tuple>

#include "fmt/format.h"

namespace faultline {

std::vector<Edit> filled_in(std::vector<Edit> edits, std::string_view word, std::uint64_t number) {
  const std::string text = std::to_string(number);
  for (Edit& edit : edits) {
    for (std::string& line : edit.new_lines) {
      for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + text.size()))
        line.replace(at, word.size(), text);
    }
  }
  return edits;
}

std::string diff_of(std::vector<Edit> edits) {
  // What is put in before a line comes before what changes it.
  const auto place = [](const Edit& edit) {
    return std::tuple(std::string_view(edit.file), edit.line, !edit.old_lines.empty());
  };
  std::stable_sort(edits.begin(), edits.end(), [&](const Edit& a, const Edit& b) { return place(a) < place(b); });
  std::string text, file;
  std::uint64_t free_from = 0;  // lines before it are changed already
  std::int64_t shift = 0;
  for (const Edit& edit : edits) {
    if (edit.file != file) {
      file = edit.file;
      const std::string name = std::filesystem::path(file).filename().string();
      text += fmt::format("--- a/{}\n+++ b/{}\n", name, name);
      free_from = 0;
      shift = 0;
    }
    if (edit.line < free_from) continue;
    const std::size_t olds = edit.old_lines.size(), news = edit.new_lines.size();
    // A range without lines names the line before it.
    const std::uint64_t old_first = olds == 0 ? edit.line - 1 : edit.line;
    const std::int64_t new_first = static_cast<std::int64_t>(edit.line) + shift - (news == 0 ? 1 : 0);
    text += fmt::format("@@ -{},{} +{},{} @@\n", old_first, olds, new_first, news);
    for (const std::string& line : edit.old_lines) text += "-" + line + "\n";
    for (const std::string& line : edit.new_lines) text += "+" + line + "\n";
    free_from = edit.line + olds;
    shift += static_cast<std::int64_t>(news) - static_cast<std::int64_t>(olds);
  }
  return text;
}

}  // namespace faultline
