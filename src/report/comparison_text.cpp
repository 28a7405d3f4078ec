#include "report/comparison_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/json_archive.h"
#include "base/safe_text.h"
#include "base/units.h"
#include "report/finding_text.h"
#include "report/page.h"

namespace faultline {
namespace {

constexpr std::size_t kRowsShown = 12;

std::string count_words(std::size_t count, const char* one, const char* many) {
  return count == 1 ? std::string(one) : fmt::format("{} {}", format_count(count), many);
}

std::string gpu_words(const PeakChange& peak) {
  std::string words = fmt::format("GPU {}", peak.device_after);
  if (peak.device_before != peak.device_after)
    words = fmt::format("GPU {}, before GPU {}", peak.device_after, peak.device_before);
  if (peak.only_before) return words + ", used before only";
  if (peak.only_after) return words + ", not used before";
  return words;
}

// Before and after of a line, as far as they are known.
std::pair<std::string, std::string> sides_of(const LineChange& line) {
  if (line.fate == LineFate::kNew) return {"new", format_bytes(line.bytes.after)};
  if (line.fate == LineFate::kGone) return {format_bytes(line.bytes.before), "gone"};
  const auto words = [](std::uint64_t most, std::uint64_t unlisted) {
    return (unlisted != 0 ? "at most " : "") + format_bytes(most);
  };
  return {words(line.most_before(), line.unlisted_before), words(line.most_after(), line.unlisted_after)};
}

// Of a line whose other side is not listed, or not all of it: the least that it changed.
std::string change_words(const LineChange& line) {
  if (line.is_exact()) return words_of(line.bytes);
  return line.sure().differs() ? words_of(line.sure()) + " or more" : "not known";
}

std::string count_change(const LineChange& line) {
  if (!line.count.differs() || line.count.before == 0 || line.count.after == 0) return {};
  return fmt::format("{}, before {}", count_words(line.count.after, "1 allocation", "allocations"),
                     format_count(line.count.before));
}

std::string moved_words(const LineChange& line) {
  return line.fate == LineFate::kMoved ? fmt::format("line {} before", line.line_before) : std::string();
}

std::string joined(std::initializer_list<std::string> parts) {
  std::string all;
  for (const std::string& part : parts) {
    if (!part.empty()) all += (all.empty() ? "" : "; ") + part;
  }
  return all;
}

// Rows of a change, before, after and what it is of, in columns.
struct TableRow {
  std::string change, before, after;
  Location location;
  std::string name, below;  // without a location its name; what stands below it
  bool grew = false;
};

void print_table(Page& page, const std::vector<TableRow>& rows, bool every_row) {
  const std::size_t shown = every_row ? rows.size() : std::min(rows.size(), kRowsShown);
  int change_columns = 6, before_columns = 6, after_columns = 5;
  for (std::size_t at = 0; at < shown; ++at) {
    change_columns = std::max(change_columns, display_width(rows[at].change));
    before_columns = std::max(before_columns, display_width(rows[at].before));
    after_columns = std::max(after_columns, display_width(rows[at].after));
  }
  page.line({{fmt::format("  {}  {}  {}", pad_left("change", change_columns), pad_left("before", before_columns),
                          pad_left("after", after_columns)),
              Style::kDim}});
  const int indent = 2 + change_columns + 2 + before_columns + 2 + after_columns + 2;
  const int room = std::max(page.width() - indent, 20);
  for (std::size_t at = 0; at < shown; ++at) {
    const TableRow& row = rows[at];
    std::vector<std::string> name = wrap(page.clean(row.name), room);
    if (row.location.known() || name.empty()) name = {page.place_in_table(row.location, room)};
    page.line({{"  " + pad_left(row.change, change_columns), row.grew ? Style::kStrong : Style::kPlain},
               {fmt::format("  {}  {}  {}", pad_left(row.before, before_columns), pad_left(row.after, after_columns),
                            name.front())}});
    for (std::size_t more = 1; more < name.size(); ++more)
      page.line({{std::string(static_cast<std::size_t>(indent), ' ') + name[more]}});
    if (!row.below.empty()) page.paragraph(indent, page.clean(row.below), Style::kDim);
  }
  if (shown < rows.size())
    page.paragraph(2, fmt::format("and {} (-v lists them)", count_words(rows.size() - shown, "one more", "more")),
                   Style::kDim);
}

TableRow row_of(const NamedChange& named) {
  return {words_of(named.bytes), format_bytes(named.bytes.before), format_bytes(named.bytes.after), {}, named.name, {},
          named.bytes.grew()};
}

std::vector<TableRow> rows_of(const std::vector<NamedChange>& changes) {
  std::vector<TableRow> rows;
  for (const NamedChange& one : changes) rows.push_back(row_of(one));
  return rows;
}

std::vector<TableRow> rows_of(const PeakChange& peak) {
  std::vector<TableRow> rows;
  for (const LineChange& line : peak.lines) {
    const auto [before, after] = sides_of(line);
    const std::string detail = line.location.known() ? line.detail : std::string();
    rows.push_back({change_words(line), before, after, line.location,
                    line.detail.empty() ? "recorded without a stack" : line.detail,
                    joined({line.category_words(), moved_words(line), detail, count_change(line)}),
                    line.sure().grew()});
  }
  if (peak.unlisted.differs()) rows.push_back(row_of({"lines that are not listed, together", peak.unlisted}));
  return rows;
}

std::string_view of_listed(const PeakChange& peak) {
  return peak.unlisted.before != 0 || peak.unlisted.after != 0 ? ", of the lines that are listed" : "";
}

std::vector<TableRow> peak_rows(const PeakChange& peak) {
  return {row_of({"allocated at the peak", peak.allocated}), row_of({"reserved at the most", peak.reserved})};
}

void print_finding_list(Page& page, const char* label, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    const FindingGroup group{{&finding}};
    page.item({label, Style::kStrong}, fmt::format("{} {}", name_of(finding.severity), finding_line(page, group)));
    page.paragraph(6, page.clean(finding.message));
  }
}

Json json_of_change(const Change& change) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto difference = change.grew() ? static_cast<std::int64_t>(std::min(change.growth(), kMost))
                                        : -static_cast<std::int64_t>(std::min(change.shrinkage(), kMost));
  return {{"before", change.before}, {"after", change.after}, {"change", difference}};
}

Json json_of_names(const std::vector<NamedChange>& changes) {
  Json list = Json::array();
  for (const NamedChange& one : changes) {
    Json row = {{"name", one.name}};
    row.update(json_of_change(one.bytes));
    list.push_back(std::move(row));
  }
  return list;
}

Json json_of_place(const Location& location) {
  return {{"file", location.file},
          {"line", location.line},
          {"function", location.function},
          {"op", location.op},
          {"kernel", location.kernel}};
}

Json json_of_line(const LineChange& line) {
  Json json = {{"location", json_of_place(line.location)}, {"fate", name_of(line.fate)}};
  json.update(json_of_change(line.bytes));
  json["count"] = {{"before", line.count.before}, {"after", line.count.after}};
  json["category"] = line.category;
  json["detail"] = line.detail;
  if (line.fate == LineFate::kMoved) json["line_before"] = line.line_before;
  if (line.fate == LineFate::kUnlistedBefore || line.fate == LineFate::kUnlistedAfter) {
    json["unlisted_at_most"] = std::max(line.unlisted_before, line.unlisted_after);
  } else if (!line.is_exact()) {
    json["unlisted_before_at_most"] = line.unlisted_before;
    json["unlisted_after_at_most"] = line.unlisted_after;
  }
  return json;
}

Json json_of_peak(const PeakChange& peak) {
  Json lines = Json::array();
  for (const LineChange& line : peak.lines) lines.push_back(json_of_line(line));
  return {{"index", peak.device_after},
          {"index_before", peak.device_before},
          {"process", peak.process_after},
          {"process_before", peak.process_before},
          {"only", peak.only_before  ? "before"
                   : peak.only_after ? "after"
                                     : ""},
          {"allocated", json_of_change(peak.allocated)},
          {"reserved", json_of_change(peak.reserved)},
          {"categories", json_of_names(peak.categories)},
          {"lines", std::move(lines)},
          {"equal_lines", peak.equal_lines},
          {"unlisted", json_of_change(peak.unlisted)}};
}

Json json_of_finding(const Finding& finding) {
  return {{"rule", finding.rule},
          {"severity", name_of(finding.severity)},
          {"confidence", name_of(finding.confidence)},
          {"message", finding.message},
          {"location", json_of_place(place_to_look(finding))},
          {"bytes", finding.bytes},
          {"fingerprint", finding.fingerprint}};
}

Json json_of_findings(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) list.push_back(json_of_finding(finding));
  return list;
}

Json json_of_input(const Report& report) {
  return {{"kind", report.input_kind}, {"path", report.input_path}, {"events", report.input_events}};
}

std::string markdown_rows(const std::vector<TableRow>& rows, const PathStyle& paths) {
  std::string out = "| change | before | after | |\n|--:|--:|--:|---|\n";
  for (const TableRow& row : rows) {
    const std::string what =
        row.location.known() ? markdown_code(describe_place(row.location, paths, 160)) : markdown_text(row.name);
    std::string cell = what + (row.below.empty() ? "" : " " + markdown_text(row.below));
    // a bar ends a cell even within code
    for (std::size_t at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2)) {
      if (at == 0 || cell[at - 1] != '\\') cell.insert(at, "\\");
    }
    out += fmt::format("| {} | {} | {} | {} |\n", row.change, row.before, row.after, cell);
  }
  return out;
}

std::string name_of_input(const Report& report) {
  return report.input_path.empty() || report.input_path == "-" ? "standard input" : report.input_path;
}

}  // namespace

std::string summary_of(const Comparison& change) {
  std::string words;
  for (const PeakChange& peak : change.peaks) {
    if (&peak != &change.peaks.front()) words += "; ";
    words += fmt::format("GPU {}: peak {}", peak.device_after,
                         peak.allocated.differs()
                             ? fmt::format("{} ({})", format_bytes(peak.allocated.after), words_of(peak.allocated))
                             : fmt::format("{}, as before", format_bytes(peak.allocated.after)));
    if (peak.reserved.differs())
      words += fmt::format(", reserved {} ({})", format_bytes(peak.reserved.after), words_of(peak.reserved));
    const auto grown = static_cast<std::size_t>(
        std::count_if(peak.lines.begin(), peak.lines.end(), [](const LineChange& line) { return line.sure().grew(); }));
    if (grown != 0) words += fmt::format(", {}", count_words(grown, "1 line holds more", "lines hold more"));
  }
  if (!change.new_findings.empty())
    words += "; " + count_words(change.new_findings.size(), "1 new finding", "new findings");
  if (!change.gone_findings.empty())
    words += "; " + count_words(change.gone_findings.size(), "1 finding gone", "findings gone");
  return words;
}

std::string to_terminal(const Comparison& change, const ComparedReports& compared, const TerminalOptions& options) {
  Page page(options);
  page.row("before", page.path(name_of_input(compared.before), page.row_room()));
  page.row("after", page.path(name_of_input(compared.after), page.row_room()));
  for (const PeakChange& peak : change.peaks) {
    page.blank();
    page.line({{gpu_words(peak), Style::kStrong}});
    print_table(page, peak_rows(peak), true);
    if (const std::vector<TableRow> rows = rows_of(peak); !rows.empty()) {
      page.blank();
      page.line({{"by line, at the peak"}});
      print_table(page, rows, options.verbose);
    }
    if (peak.equal_lines != 0)
      page.paragraph(
          2, count_words(peak.equal_lines, "One line holds what it held", "lines hold what they held") + " before.",
          Style::kDim);
    if (!peak.categories.empty()) {
      page.blank();
      page.line({{"by category, at the peak" + std::string(of_listed(peak))}});
      print_table(page, rows_of(peak.categories), true);
    }
  }
  if (change.needed) {
    page.blank();
    page.line({{"the plans"}});
    print_table(page, {row_of({"the smallest GPU that is enough", *change.needed})}, true);
  }
  if (!change.modules.empty()) {
    page.blank();
    page.line({{"by module, at the peak"}});
    print_table(page, rows_of(change.modules), options.verbose);
  }
  if (!change.new_findings.empty() || !change.gone_findings.empty()) {
    page.blank();
    page.line({{"findings"}});
    print_finding_list(page, "new", change.new_findings);
    print_finding_list(page, "gone", change.gone_findings);
  }
  if (!change.notes.empty()) page.blank();
  for (const std::string& note : change.notes) page.paragraph(0, page.clean(note));
  page.blank();
  page.paragraph(0, "SUMMARY: " + page.clean(summary_of(change)), Style::kStrong);
  return page.take();
}

std::string to_json(const Comparison& change, const ComparedReports& compared) {
  Json json = {{"schema", "faultline.diff/1"},
               {"before", json_of_input(compared.before)},
               {"after", json_of_input(compared.after)},
               {"grew", change.grew()},
               {"devices", Json::array()}};
  for (const PeakChange& peak : change.peaks) json["devices"].push_back(json_of_peak(peak));
  json["needed"] = change.needed ? json_of_change(*change.needed) : Json(nullptr);
  json["modules"] = json_of_names(change.modules);
  Json kept = Json::array();
  for (const FindingChange& one : change.kept_findings) {
    Json finding = json_of_finding(one.finding);
    finding.update(json_of_change(one.bytes));
    kept.push_back(std::move(finding));
  }
  json["findings"] = {{"new", json_of_findings(change.new_findings)},
                      {"gone", json_of_findings(change.gone_findings)},
                      {"kept", std::move(kept)}};
  json["files"] = Json::array();
  for (const auto& [before, after] : change.files) json["files"].push_back({{"before", before}, {"after", after}});
  json["notes"] = change.notes;
  return escaped_json(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string to_markdown(const Comparison& change, const ComparedReports& compared, const ExchangeOptions& options) {
  const PathStyle paths{options.cwd, "", true};
  std::string out = "### Faultline: " + markdown_text(summary_of(change)) + "\n\n";
  for (const auto& [label, report] : {std::pair("Before", &compared.before), std::pair("After", &compared.after)})
    out += fmt::format("- {}: {}\n", label, markdown_code(shorten_path(name_of_input(*report), paths, 200)));
  for (const PeakChange& peak : change.peaks) {
    out += fmt::format("\n**{}**\n\n{}", gpu_words(peak), markdown_rows(peak_rows(peak), paths));
    if (const std::vector<TableRow> rows = rows_of(peak); !rows.empty())
      out += "\nBy line, at the peak:\n\n" + markdown_rows(rows, paths);
    if (!peak.categories.empty())
      out += fmt::format("\nBy category{}:\n\n", of_listed(peak)) + markdown_rows(rows_of(peak.categories), paths);
  }
  if (change.needed) out += "\n" + markdown_rows({row_of({"the smallest GPU that is enough", *change.needed})}, paths);
  if (!change.modules.empty()) out += "\nBy module:\n\n" + markdown_rows(rows_of(change.modules), paths);
  const auto list = [&](const char* label, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      const Location& place = place_to_look(finding);
      out += fmt::format("- {}: {} {}{}: {}\n", label, name_of(finding.severity), markdown_code(finding.rule),
                         place.known() ? " at " + markdown_code(describe_place(place, paths, 160)) : "",
                         markdown_text(finding.message));
    }
  };
  if (!change.new_findings.empty() || !change.gone_findings.empty()) out += "\nFindings:\n\n";
  list("**new**", change.new_findings);
  list("gone", change.gone_findings);
  for (const std::string& note : change.notes) out += "\n" + markdown_text(note) + "\n";
  return out;
}

}  // namespace faultline
