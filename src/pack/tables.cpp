// Tables whose header names a secret: each cell below it is one, in Markdown, as databases print them, with commas or tabs between.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/characters.h"
#include "pack/readable_text.h"
#include "pack/scrubber.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

constexpr std::size_t kMostLineBytes = 4096, kMostCells = 64, kMostTitle = 64;
constexpr std::string_view kBoxes = "\xe2\x94";  // what begins │, ┃, ─, ┼

struct Cell {
  std::size_t at = 0, length = 0;  // without the blanks and quotes around
};

// Bytes that part the cells of a line at this place; 0: none do.
std::size_t parts(std::string_view rest, char between) {
  if (between == ' ') {  // columns that stand apart
    const std::size_t gap = run(rest, is_gap);
    return gap > 1 ? gap : 0;
  }
  if (between != '|') return rest[0] == between ? 1 : 0;
  if (rest[0] == '|') return 1;
  return rest.starts_with("\xe2\x94\x82") || rest.starts_with("\xe2\x94\x83") ? 3 : 0;
}

std::vector<Cell> cells_of(std::string_view line, char between) {
  std::vector<Cell> cells;
  const auto add = [&](std::size_t begin, std::size_t end) {
    const auto is_around = [](char c) {
      return is_gap(c) || c == '\r' || c == '"' || c == '\'' || c == kEscapedDouble;
    };
    while (begin < end && is_around(line[begin])) ++begin;
    while (end > begin && is_around(line[end - 1])) --end;
    cells.push_back({begin, end - begin});
  };
  std::size_t begin = 0;
  if (between == ' ') {
    begin = run(line, is_gap);
    while (line.size() > begin && (is_gap(line.back()) || line.back() == '\r')) line.remove_suffix(1);
  }
  for (std::size_t at = begin; at < line.size() && cells.size() < kMostCells;) {
    const std::size_t length = parts(line.substr(at), between);
    if (length != 0) {
      add(begin, at);
      begin = at + length;
    }
    at += std::max<std::size_t>(length, 1);
  }
  add(begin, line.size());
  return cells;
}

// Lines between header and rows have neither letters nor digits.
bool is_rule(std::string_view line) {
  return std::none_of(line.begin(), line.end(), is_alphanumeric) && line.find_first_not_of(" \t\r") != npos;
}

class Table {
 public:
  // Is this line a header that names a secret?
  bool begins(std::string_view line) {
    columns_.clear();
    for (const char between : {'|', ',', ';', '\t', ' '}) {
      if (line.find(between) == npos && (between != '|' || line.find(kBoxes) == npos)) continue;
      const std::vector<Cell> cells = cells_of(line, between);
      // a sentence has commas too
      const bool is_plain = std::all_of(cells.begin(), cells.end(), [&](const Cell& cell) {
        const std::string_view title = line.substr(cell.at, cell.length);
        return title.size() <= kMostTitle &&
               (between == '|' || (!title.empty() && run_of(title, "_-.") == title.size()));
      });
      if (cells.size() < 2 || !is_plain ||
          ((between == ',' || between == ';') && line.find(std::string{between, ' '}) != npos))
        continue;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string_view title = line.substr(cells[i].at, cells[i].length);
        if (run_of(title, "_-.") == title.size() && Scrubber::surely_names_secret(title))
          columns_.emplace_back(i, std::string(title));
      }
      between_ = between;
      count_ = cells.size();
      if (!columns_.empty()) return true;
    }
    return false;
  }

  // False: the table has ended.
  bool takes(std::string_view line, std::size_t offset, std::vector<SecretCell>& found) const {
    const std::vector<Cell> cells = cells_of(line, between_);
    if (cells.size() != count_) return is_rule(line);
    if (is_rule(line)) return true;
    for (const auto& [column, title] : columns_) {
      const Cell& cell = cells[column];
      if (cell.length != 0 && Scrubber::is_secret_value(title, line.substr(cell.at, cell.length)))
        found.push_back({offset + cell.at, cell.length, title});
    }
    return true;
  }

 private:
  std::vector<std::pair<std::size_t, std::string>> columns_;
  std::size_t count_ = 0;
  char between_ = '|';
};

}  // namespace

std::vector<SecretCell> secret_cells(std::string_view text) {
  std::vector<SecretCell> found;
  Table table;
  bool is_inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const bool is_short = line.size() <= kMostLineBytes;
    if (is_inside) is_inside = is_short && table.takes(line, at, found);
    if (!is_inside && is_short) is_inside = table.begins(line);
    at = end + 1;
  }
  return found;
}

}  // namespace faultline::pack
