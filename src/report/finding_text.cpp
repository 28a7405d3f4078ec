#include "report/finding_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/units.h"
#include "facts/stack_facts.h"
#include "report/rule_pages.h"
#include "rules/judge.h"
#include "rules/line_words.h"
#include "rules/registry.h"

namespace faultline {
namespace {

constexpr std::size_t kCallersShown = 2;
constexpr std::size_t kHoldersShown = 3;
constexpr std::size_t kTriesShown = 3;
constexpr std::size_t kDevicesShown = 8;
constexpr std::size_t kRelatedShown = 4;  // of one role
constexpr std::size_t kBriefLines = 3;
constexpr std::size_t kBriefHolders = 2;
constexpr std::size_t kBriefRelated = 3;
constexpr int kPlaceColumns = 22;  // with less, a holder's place takes a line of its own

bool same_line(const Location& a, const Location& b) { return a.file == b.file && a.line == b.line; }

std::string_view explain_cause(std::string_view cause) {
  if (cause == "exhausted") return "what is in use and the request are together more than there was";
  if (cause == "fragmented") return "enough memory was free, but not in one piece";
  if (cause == "idle-cache")
    return "memory that the framework kept for reuse was free but could not serve this request";
  if (cause == "outside-framework")
    return "memory taken outside the framework (CUDA itself, libraries such as NCCL) was missing";
  if (cause == "other-process") return "another process held memory of this GPU";
  if (cause == "own-limit") return "the program's own limit was reached, not the GPU's capacity";
  return {};
}

// "train.py:12"
std::string file_and_line(const Page& page, const Location& location) {
  if (location.file.empty()) return {};
  return shorten_middle(page.clean(location.file.substr(location.file.rfind('/') + 1)), 40, page.unicode()) +
         (location.line != 0 ? line_behind(location.file, location.line) : "");
}

void print_headline(Page& page, const FindingGroup& group, bool brief) {
  const Finding& finding = group.first();
  const Style style = finding.severity == Severity::kError     ? Style::kError
                      : finding.severity == Severity::kWarning ? Style::kWarning
                                                               : Style::kNote;
  std::string severity(name_of(finding.severity));
  for (char& letter : severity) letter = static_cast<char>(letter - 'a' + 'A');
  const std::string times =
      group.count() > 1 ? fmt::format("  {}{}", page.glyph("×", "x"), format_count(group.count())) : "";
  page.line({{severity, style},
             {"  " + page.clean(finding.rule) + times, Style::kStrong},
             {fmt::format("  ({})", finding.confidence == Confidence::kHint ? "a hint" : name_of(finding.confidence)),
              Style::kDim}});
  const std::string message = page.clean(finding.message);
  page.paragraph(2, brief ? first_sentences(message, page.width() - 2, kBriefLines) : message);
}

void print_devices(Page& page, const FindingGroup& group) {
  std::set<std::pair<std::string, std::uint16_t>> devices;
  for (const Finding* member : group.members) devices.emplace(member->process, member->device);
  std::string text;
  std::size_t told = 0;
  for (const auto& [process, device] : devices) {
    if (told++ == kDevicesShown) break;
    text += fmt::format("{}GPU {}{}", text.empty() ? "" : ", ", device,
                        process.empty() ? "" : " of " + page.clean(process));
  }
  if (told > kDevicesShown) text += fmt::format(" and {} more", devices.size() - kDevicesShown);
  page.row("on", text);
}

void print_where(Page& page, const Finding& finding, bool every_line) {
  const int room = page.row_room();
  const Location& look = place_to_look(finding);
  if (look.known()) {
    page.row("where", page.place(look, room), Style::kStrong);
  } else {
    page.row("where", "unknown: this input has no stack for it");
  }
  std::size_t shown = 0, hidden = 0;
  for (const Location& caller : finding.call_path) {
    if (same_line(caller, look)) continue;
    if (every_line || shown < kCallersShown) {
      page.row(shown++ == 0 ? "called from" : "", page.place(caller, room));
    } else {
      ++hidden;
    }
  }
  if (hidden != 0) page.row("", fmt::format("and {} more", hidden), Style::kDim);
  if (&look != &finding.location && finding.location.known())
    page.row("inside", page.place(finding.location, room), Style::kDim);
}

// Where in a library the request was made, below the user's own line.
void print_inside(Page& page, const Finding& finding) {
  for (const Related& item : finding.related) {
    if (item.role == Related::kInside) page.row("inside", page.place(item.location, page.row_room()), Style::kDim);
  }
}

std::string_view label_of(std::string_view role) {
  if (role == "argument" || role == "operand") return "given";
  if (role == "candidate") return "may be";
  return role;  // launched, kernel, noticed
}

void print_related(Page& page, const std::vector<Related>& related, bool every_line) {
  std::string last;
  std::size_t shown = 0, hidden = 0;
  for (const Related& item : related) {
    if (item.role == Related::kInside) continue;
    shown = item.role == last ? shown + 1 : 1;
    if (!every_line && shown > kRelatedShown) {
      ++hidden;
      continue;
    }
    std::string text = page.clean(item.what);
    if (item.location.known())
      text += (text.empty() ? "" : item.role == "operand" ? " at " : ", ") + page.place(item.location, page.row_room());
    if (!text.empty()) page.row(item.role == last ? "" : label_of(item.role), text);
    last = item.role;
  }
  if (hidden != 0) page.row("", fmt::format("and {} more", hidden), Style::kDim);
}

bool has_word(std::string_view name, std::string_view word) {
  const std::string padded = "_" + std::string(name) + "_";
  return padded.find("_" + std::string(word) + "_") != std::string::npos;
}

std::string number_text(std::string_view name, double value) {
  if (!std::isfinite(value)) return "not a number";
  if (has_word(name, "bytes") && std::abs(value) < 1e18) {
    return (value < 0 ? "-" : "") + format_bytes(static_cast<std::uint64_t>(std::llround(std::abs(value))));
  }
  if (has_word(name, "ns")) return format_duration(value);
  if (has_word(name, "percent")) return fmt::format("{:.1f} %", value);
  if (has_word(name, "ratio") || has_word(name, "fraction") || has_word(name, "share"))
    return fmt::format("{:.1f} %", value * 100);
  return fmt::format("{:.4g}", value);
}

std::string number_text(std::string_view name, std::int64_t value) {
  if (has_word(name, "ns") || has_word(name, "percent")) return number_text(name, static_cast<double>(value));
  const std::uint64_t size = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  return (value < 0 ? "-" : "") + (has_word(name, "bytes") ? format_bytes(size) : format_count(size));
}

// The unit is in the number once it is printed: bytes_per_step reads "per step", limit_bytes "limit".
std::string name_text(std::string_view name) {
  for (const std::string_view unit : {"_bytes", "_ns", "_percent", "_fraction"}) {
    if (name.ends_with(unit) && name.size() > unit.size()) name.remove_suffix(unit.size());
  }
  if (name.starts_with("bytes_")) name.remove_prefix(6);
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

// The inequality alone says why; the numbers behind it are for those who ask.
void print_evidence(Page& page, const std::vector<Evidence>& evidence, bool every_line) {
  struct Row {
    std::string value, name;
  };
  std::vector<Row> numbers;
  int columns = 0;
  for (const Evidence& item : evidence) {
    std::string value;
    if (const auto* whole = std::get_if<std::int64_t>(&item.value)) value = number_text(item.name, *whole);
    if (const auto* real = std::get_if<double>(&item.value)) value = number_text(item.name, *real);
    if (value.empty() || !every_line) continue;
    columns = std::max(columns, display_width(value));
    numbers.push_back({value, page.clean(name_text(item.name))});
  }
  std::string_view label = "because";
  for (const Row& row : numbers) {
    const int room = std::max(page.row_room() - columns - 2, 12);
    page.line({{pad_right("  " + std::string(label), Page::kRowIndent), Style::kDim},
               {pad_left(row.value, columns) + "  "},
               {shorten_middle(row.name, room, page.unicode())}});
    label = "";
  }
  for (const Evidence& item : evidence) {
    const auto* word = std::get_if<std::string>(&item.value);
    if (word == nullptr || (!every_line && item.name != "inequality")) continue;
    page.row(label, (every_line ? page.clean(name_text(item.name)) + ": " : "") + page.clean(*word));
    label = "";
  }
}

// The two lines that hold most, and the sum of the others.
void print_holders_in_a_row(Page& page, const Finding& finding) {
  std::string text;
  std::uint64_t rest_bytes = 0;
  for (std::size_t at = 0; at < finding.holders.size(); ++at) {
    const Holder& holder = finding.holders[at];
    if (at >= kBriefHolders) {
      rest_bytes += holder.bytes;
      continue;
    }
    const std::string place =
        holder.location.file.empty() ? page.clean(holder.detail) : file_and_line(page, holder.location);
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", format_bytes(holder.bytes), page.clean(holder.category),
                        place.empty() ? "" : " (" + place + ")");
  }
  if (rest_bytes != 0) text += fmt::format(", {} elsewhere", format_bytes(rest_bytes));
  if (!text.empty()) page.row(rule_named(finding.rule).holders, text);
}

// One of each role: what was launched, which kernel, which tensor.
void print_first_related(Page& page, const std::vector<Related>& related) {
  std::string_view last;
  std::size_t told = 0;
  for (const Related& item : related) {
    if (item.role == Related::kInside || item.role == last || told == kBriefRelated) continue;
    last = item.role;
    ++told;
    print_related(page, {item}, false);
  }
}

void print_tries(Page& page, const std::vector<Try>& all, const FindingDetail& detail) {
  std::vector<Try> tries = all;
  if (detail.plan_told) std::erase_if(tries, [](const Try& attempt) { return attempt.by_dry_run; });
  std::string_view label = "try";
  const auto print = [&](const Try& attempt) {
    const std::string what = page.clean(attempt.what);
    const std::string stop = what.empty() || what.ends_with('.') ? " " : ". ";
    const bool saves = attempt.saves_bytes != 0;
    std::string text = what;
    if (!attempt.confirmed) {
      if (saves)
        text += fmt::format("{}Should save about {} (not something a replay can check).", stop,
                            format_bytes(attempt.saves_bytes));
      else if (stop != " ")
        text += ".";
    } else if (*attempt.confirmed) {
      const std::string gain = saves ? fmt::format(": it saves {}", format_bytes(attempt.saves_bytes)) : "";
      text += fmt::format("{}Confirmed by {}{}.", stop, attempt.by_dry_run ? "a dry run" : "a replay of this recording",
                          gain);
    } else {
      text += stop + "A replay of this recording showed that it does not help.";
    }
    page.item(!attempt.confirmed   ? page.dot()
              : *attempt.confirmed ? page.yes()
                                   : page.no(),
              text, label, Page::kRowIndent);
    label = "";
  };
  // What is known to work first, then advice; what was refuted only for those who ask.
  std::size_t told = 0;
  for (const std::optional<bool> result : {std::optional(true), std::optional<bool>(), std::optional(false)}) {
    if (result == false && !detail.every_line) break;
    for (const Try& attempt : tries) {
      if (attempt.confirmed == result && (detail.every_line || told++ < (detail.brief ? 1 : kTriesShown)))
        print(attempt);
    }
  }
}

}  // namespace

void print_holders(Page& page, std::string_view label, const std::vector<Holder>& holders, bool every_line) {
  if (holders.empty()) return;
  const std::size_t shown = every_line ? holders.size() : std::min(holders.size(), kHoldersShown);
  int bytes_columns = 0, count_columns = 0, category_columns = 0;
  const auto count_text = [&](const Holder& holder) {
    return fmt::format("{}{}", page.glyph("×", "x"), format_count(holder.count));
  };
  const auto category = [&](const Holder& holder) {
    return shorten_middle(page.clean(holder.category), 14, page.unicode());
  };
  for (std::size_t at = 0; at < shown; ++at) {
    bytes_columns = std::max(bytes_columns, display_width(format_bytes(holders[at].bytes)));
    count_columns = std::max(count_columns, display_width(count_text(holders[at])));
    category_columns = std::max(category_columns, display_width(category(holders[at])));
  }
  for (std::size_t at = 0; at < shown; ++at) {
    const Holder& holder = holders[at];
    const std::string numbers =
        fmt::format("{}  {}  {}  ", pad_left(format_bytes(holder.bytes), bytes_columns),
                    pad_right(count_text(holder), count_columns), pad_right(category(holder), category_columns));
    const int indent = Page::kRowIndent + bytes_columns + 2;
    const int room = page.row_room() - display_width(numbers);
    const bool one_line = room >= kPlaceColumns;
    std::string place = page.place_in_table(holder.location, one_line ? room : page.width() - indent);
    if (place.empty()) place = holder.detail.empty() ? "place unknown" : page.clean(holder.detail);
    const Piece head = {pad_right("  " + std::string(label), Page::kRowIndent), Style::kDim};
    if (one_line) {
      page.line({head, {numbers}, {shorten_middle(place, room, page.unicode())}});
    } else {
      page.line({head, {numbers}});
      page.paragraph(indent, place);
    }
    if (holder.location.known() && !holder.detail.empty())
      page.paragraph(indent, page.clean(holder.detail), Style::kDim);
    label = "";
  }
  if (shown == holders.size()) return;
  std::uint64_t rest_bytes = 0;
  for (std::size_t at = shown; at < holders.size(); ++at) rest_bytes += holders[at].bytes;
  page.row("", fmt::format("{}  elsewhere", pad_left(format_bytes(rest_bytes), bytes_columns)), Style::kDim);
}

std::uint64_t FindingGroup::count() const {
  std::uint64_t sum = 0;
  for (const Finding* member : members) sum += member->count;
  return sum;
}

std::uint64_t FindingGroup::size_bytes() const {
  std::uint64_t sum = 0;
  for (const Finding* member : members) sum += member->bytes;
  return sum;
}

std::vector<FindingGroup> group_findings(const std::vector<Finding>& findings) {
  std::vector<FindingGroup> groups;
  // Of different processes or files only what says the same to the word: one sentence must be so for all of them.
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::size_t> known;
  for (const Finding& finding : findings) {
    const std::string_view words = finding.process.empty() ? std::string_view() : std::string_view(finding.message);
    const auto [at, is_new] = known.try_emplace({finding.rule, finding.fingerprint, words}, groups.size());
    if (is_new || finding.fingerprint.empty()) {
      groups.emplace_back().members.push_back(&finding);
    } else {
      groups[at->second].members.push_back(&finding);
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const FindingGroup& a, const FindingGroup& b) { return comes_before(a.first(), b.first()); });
  return groups;
}

const Location& place_to_look(const Finding& finding) {
  const auto is_location = [&](const Location& caller) { return same_line(caller, finding.location); };
  const bool on_path = std::any_of(finding.call_path.begin(), finding.call_path.end(), is_location);
  const bool own = !finding.location.file.empty() && !is_library_file(finding.location.file);
  return own || on_path || finding.call_path.empty() ? finding.location : finding.call_path.front();
}

namespace {

void print_brief(Page& page, const FindingGroup& group, const FindingDetail& detail) {
  const Finding& finding = group.first();
  const Location& look = place_to_look(finding);
  page.blank();
  if (detail.name_devices) print_devices(page, group);
  if (look.known()) page.row("where", page.place(look, page.row_room()), Style::kStrong);
  page.source_row(look);
  // who called whom is what matters where the line is a library's own
  if (&look != &finding.location && finding.location.known())
    page.row("inside", page.place(finding.location, page.row_room()), Style::kDim);
  print_inside(page, finding);
  print_first_related(page, finding.related);
  if (finding.allocated_at.known() && !same_line(finding.allocated_at, look))
    page.row("allocated", page.place(finding.allocated_at, page.row_room()));
  if (finding.freed_at.known()) page.row("freed", page.place(finding.freed_at, page.row_room()));
  if (!detail.plan_told || topic_of(finding) != Topic::kExhausted) print_holders_in_a_row(page, finding);
  if (const std::string_view words = explain_cause(finding.cause); !finding.cause.empty())
    page.row("cause", page.clean(finding.cause) + (finding.confidence == Confidence::kProved ? "" : ", likely") +
                          (words.empty() ? "" : ": " + std::string(words)));
  else if (!finding.memory.empty())
    page.row("memory", first_sentences(page.clean(finding.memory), page.row_room(), kBriefLines));
  print_evidence(page, finding.evidence, false);
  print_tries(page, finding.tries, detail);
}

}  // namespace

void print_finding(Page& page, const FindingGroup& group, const FindingDetail& detail) {
  const Finding& finding = group.first();
  const int room = page.row_room();
  page.blank();
  print_headline(page, group, detail.brief);
  if (detail.brief) return print_brief(page, group, detail);
  page.blank();
  if (detail.name_devices) print_devices(page, group);
  print_where(page, finding, detail.every_line);
  print_inside(page, finding);
  if (!finding.memory.empty()) page.row("memory", page.clean(finding.memory));
  if (group.members.size() > 1) {
    page.row("seen",
             fmt::format("{} times, {} together", format_count(group.count()), format_bytes(group.size_bytes())));
  }
  if (finding.allocated_at.known() && (detail.every_line || !same_line(finding.allocated_at, place_to_look(finding))))
    page.row("allocated", page.place(finding.allocated_at, room));
  if (finding.freed_at.known()) page.row("freed", page.place(finding.freed_at, room));
  print_related(page, finding.related, detail.every_line);
  if (const std::string_view words = explain_cause(finding.cause); !finding.cause.empty()) {
    page.row("cause", page.clean(finding.cause) + (words.empty() ? "" : ": " + std::string(words)));
  }
  // a broken limit is about who holds the memory, and a leak of several lines has not one
  const Rule& rule = rule_named(finding.rule);
  const bool is_limit = rule.topic == Topic::kLimit;
  const bool is_shared = rule.topic == Topic::kGrowth && finding.holders.size() > 1;
  if (!detail.plan_told || detail.every_line || is_limit || is_shared) {
    print_holders(page, rule.holders, finding.holders, detail.every_line);
    if (!finding.holders.empty() && !finding.held_when.empty())
      page.row("", "at " + page.clean(finding.held_when), Style::kDim);
  }
  print_evidence(page, finding.evidence, detail.every_line);
  print_tries(page, finding.tries, detail);
  if (const std::string command = command_for_page(finding.rule); !command.empty())
    page.row("read", command, Style::kDim);
}

std::string finding_line(const Page& page, const FindingGroup& group) {
  const std::string place = file_and_line(page, place_to_look(group.first()));
  return page.clean(group.first().rule) + (place.empty() ? "" : " at " + place);
}

}  // namespace faultline
