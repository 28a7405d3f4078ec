#include "plan/offer.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <tuple>

#include "fmt/format.h"

namespace faultline {

std::string_view name_of(OfferedNumber number) {
  return number == OfferedNumber::kBatch ? "batch" : number == OfferedNumber::kLength ? "length" : "";
}

namespace {

// As a person names it who stands in the working folder.
std::string shown_path(const std::string& file) {
  std::error_code problem;
  const std::filesystem::path here = std::filesystem::current_path(problem);
  const std::filesystem::path path =
      problem ? std::filesystem::path() : std::filesystem::path(file).lexically_relative(here);
  return path.empty() || *path.begin() == ".." ? std::filesystem::path(file).filename().string() : path.string();
}

}  // namespace

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
  std::int64_t shift = 0;
  for (const Edit& edit : edits) {
    if (edit.file != file) {
      file = edit.file;
      const std::string name = shown_path(file);
      text += fmt::format("--- a/{}\n+++ b/{}\n", name, name);
      shift = 0;
    }
    const std::size_t olds = edit.old_lines.size(), news = edit.new_lines.size();
    // A range without lines names the line before it.
    const std::uint64_t old_first = olds == 0 ? edit.line - 1 : edit.line;
    const std::int64_t new_first = static_cast<std::int64_t>(edit.line) + shift - (news == 0 ? 1 : 0);
    text += fmt::format("@@ -{},{} +{},{} @@\n", old_first, olds, new_first, news);
    for (const std::string& line : edit.old_lines) text += "-" + line + "\n";
    for (const std::string& line : edit.new_lines) text += "+" + line + "\n";
    shift += static_cast<std::int64_t>(news) - static_cast<std::int64_t>(olds);
  }
  return text;
}

}  // namespace faultline
