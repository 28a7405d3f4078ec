#include "view/snippets.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/plain_file.h"
#include "base/safe_text.h"

namespace faultline::view {
namespace {

constexpr std::array<std::string_view, 14> kEndings = {".py", ".pyx", ".cu",  ".cuh", ".cpp", ".cc",  ".cxx",
                                                       ".c",  ".h",   ".hpp", ".jl",  ".rs",  ".inl", ".f90"};
constexpr std::size_t kMostFiles = 64, kMostSnippets = 400;
constexpr std::size_t kLargestFile = 4u << 20;
constexpr std::uint32_t kAround = 3;
constexpr std::size_t kLongestLine = 200;

}  // namespace

bool is_source_name(const std::string& file) {
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) { return file.ends_with(ending); });
}

const std::vector<std::string>& Snippets::lines_of(const std::string& file) {
  const auto [at, is_new] = files_.try_emplace(file);
  if (!is_new || files_.size() > kMostFiles || !is_source_name(file) || !file.starts_with('/')) return at->second;
  if (const Result<std::string> text = read_plain_file(file, kLargestFile)) {
    for (std::size_t begin = 0; begin < text->size();) {
      const std::size_t end = std::min(text->find('\n', begin), text->size());
      at->second.push_back(text->substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return at->second;
}

bool Snippets::add(const std::string& file, std::uint32_t line) {
  if (find(file, line) != nullptr) return true;
  if (line == 0 || snippets_.size() >= kMostSnippets) return false;
  const std::vector<std::string>& lines = lines_of(file);
  if (line > lines.size()) return false;
  Snippet snippet;
  snippet.first_line = line > kAround ? line - kAround : 1;
  const std::size_t last = std::min<std::size_t>(lines.size(), line + std::size_t{kAround});
  for (std::size_t at = snippet.first_line; at <= last; ++at) {
    std::string text = lines[at - 1];
    if (!text.empty() && text.back() == '\r') text.pop_back();
    // tabs would become one space
    for (std::size_t tab = text.find('\t'); tab != std::string::npos; tab = text.find('\t', tab))
      text.replace(tab, 1, "    ");
    snippet.lines.push_back(shown(text, kLongestLine));
  }
  snippets_.emplace(std::pair(file, line), std::move(snippet));
  return true;
}

const Snippet* Snippets::find(const std::string& file, std::uint32_t line) const {
  const auto at = snippets_.find({file, line});
  return at == snippets_.end() ? nullptr : &at->second;
}

}  // namespace faultline::view
