// The source lines around the places that a page names, as far as the files can be read now.
//
// The names of files come from the input, which anybody may have written; a page is meant to be shown to others. So only what is named like source code is opened, only plain
// files, and of each only a few lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace faultline::view {

struct Snippet {
  std::uint32_t first_line = 0;
  std::vector<std::string> lines;
};

class Snippets {
 public:
  // Reads what is not known yet; false where there is nothing to show.
  bool add(const std::string& file, std::uint32_t line);
  const Snippet* find(const std::string& file, std::uint32_t line) const;
  const std::map<std::pair<std::string, std::uint32_t>, Snippet>& all() const { return snippets_; }

 private:
  const std::vector<std::string>& lines_of(const std::string& file);

  std::map<std::pair<std::string, std::uint32_t>, Snippet> snippets_;
  std::map<std::string, std::vector<std::string>> files_;  // empty: it is not to be read
};

bool is_source_name(const std::string& file);

}  // namespace faultline::view
