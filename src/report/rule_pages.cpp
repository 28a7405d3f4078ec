#include "report/rule_pages.h"

#include <algorithm>
#include <vector>

#include "base/characters.h"
#include "report/page.h"
#include "rule_page_texts.h"

namespace faultline {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Where a link leads, for somebody without the folder it stands in: a rule by its command, another page by its name.
std::string shown_target(std::string_view target) {
  target = target.substr(0, target.find('#'));
  if (target.starts_with("../")) return "docs/" + std::string(target.substr(3));
  if (const RulePage* page = target.ends_with(".md") ? find_rule_page(target) : nullptr)
    return command_for_page(page->rule);
  return target.starts_with("http") ? std::string(target) : std::string();
}

// Without the marks that a terminal has no use for: links as words, emphasis as it reads.
std::string plain(std::string_view text) {
  std::string out;
  bool in_code = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '`') in_code = !in_code;
    if (in_code) {
      out += text[at];
      continue;
    }
    if (text.substr(at).starts_with("**")) {
      ++at;
      continue;
    }
    const std::size_t middle = text[at] == '[' ? text.find("](", at) : std::string_view::npos;
    const std::size_t end = middle == std::string_view::npos ? middle : text.find(')', middle);
    if (end == std::string_view::npos || text.substr(at + 1, middle - at - 1).find('[') != std::string_view::npos) {
      out += text[at];
      continue;
    }
    const std::string name = plain(text.substr(at + 1, middle - at - 1));
    const std::string target = shown_target(text.substr(middle + 2, end - middle - 2));
    // a link that is named as what it leads to says it once
    out +=
        target.empty() || target.ends_with("/" + name) ? (target.empty() ? name : target) : name + " (" + target + ")";
    at = end;
  }
  return out;
}

// A paragraph is longer than what clean() lets an input say, so it goes through word by word.
std::string in_its_letters(const Page& page, const std::string& text) {
  if (page.unicode()) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    out += (at == 0 ? "" : " ") + page.clean(std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// "| a | b |" as "a │ b"; the line below a table's head has nothing to read.
std::string cells(const Page& page, std::string_view row) {
  if (row.find_first_not_of("|-: ") == std::string_view::npos) return {};
  std::string text;
  while (row.size() > 1) {
    row.remove_prefix(1);
    std::size_t end = row.find('|');
    while (end != std::string_view::npos && end != 0 && row[end - 1] == '\\') end = row.find('|', end + 1);
    const std::string cell = plain(trimmed(row.substr(0, end)));
    if (!cell.empty()) text += (text.empty() ? "" : std::string(" ") + std::string(page.glyph("│", "|")) + " ") + cell;
    if (end == std::string_view::npos) break;
    row.remove_prefix(end);
  }
  return text;
}

void print_line(Page& page, std::string_view line) {
  if (line.empty()) return page.blank();
  if (line.starts_with('#')) {
    page.blank();
    page.line({{plain(line.substr(line.find_first_not_of("# "))), Style::kStrong}});
    return;
  }
  if (line.starts_with('|')) {
    if (const std::string text = cells(page, line); !text.empty()) page.item(page.dot(), in_its_letters(page, text));
    return;
  }
  const std::size_t indent = line.find_first_not_of(' ');
  if (line.substr(indent).starts_with("- "))
    return page.item(page.dot(), in_its_letters(page, plain(line.substr(indent + 2))), {},
                     static_cast<int>(indent) + 2);
  page.paragraph(0, in_its_letters(page, plain(line.substr(indent))));
}

}  // namespace

std::span<const RulePage> rule_pages() { return kRulePages; }

const RulePage* find_rule_page(std::string_view name) {
  std::string wanted(name.substr(name.rfind("rules/") == std::string_view::npos ? 0 : name.rfind("rules/") + 6));
  if (wanted.ends_with(".md")) wanted.resize(wanted.size() - 3);
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), [](char c) {
    return c == '_' ? '-' : is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto is_it = [&](const RulePage& page) {
    std::string as_file(page.rule);
    std::replace(as_file.begin(), as_file.end(), '/', '-');
    return page.rule == wanted || as_file == wanted || page.rule.substr(page.rule.find('/') + 1) == wanted;
  };
  const auto found = std::find_if(kRulePages.begin(), kRulePages.end(), is_it);
  return found == kRulePages.end() ? nullptr : &*found;
}

std::string command_for_page(std::string_view rule) {
  const RulePage* page = find_rule_page(rule);
  return page == nullptr ? std::string() : "faultline rule " + std::string(page->rule);
}

std::string to_terminal(const RulePage& rule, const TerminalOptions& options) {
  Page page(options);
  bool is_verbatim = false;
  std::string_view rest = rule.text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with("```")) {
      is_verbatim = !is_verbatim;
    } else if (is_verbatim) {
      page.line({{"  " + in_its_letters(page, std::string(line))}});
    } else {
      print_line(page, line);
    }
  }
  return page.take();
}

std::string to_terminal(std::span<const RulePage> pages, const TerminalOptions& options) {
  Page page(options);
  std::size_t columns = 0;
  for (const RulePage& one : pages) columns = std::max(columns, one.rule.size());
  for (const RulePage& one : pages)
    page.item({pad_right(std::string(one.rule), static_cast<int>(columns) + 1), Style::kStrong},
              in_its_letters(page, plain(one.says)));
  page.blank();
  page.paragraph(0, "faultline rule NAME prints a rule's page.");
  return page.take();
}

}  // namespace faultline
