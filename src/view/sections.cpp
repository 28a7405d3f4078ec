#include "view/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"
#include "report/account_table.h"
#include "report/finding_text.h"
#include "report/plan_summary.h"
#include "view/html.h"
#include "view/replay_pictures.h"
#include "view/source_links.h"
#include "view/treemap.h"

namespace faultline::view {
namespace {

constexpr std::size_t kMostCards = 200;
constexpr std::size_t kMostCardBytes = 700'000;
constexpr std::size_t kMostTextBytes = 300'000;
constexpr std::size_t kTriesOnCard = 4;

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string place_html(const Location& place) {
  if (!place.known()) return {};
  std::string text = file_name(place.file) + (place.line != 0 ? fmt::format(":{}", place.line) : "");
  if (!place.function.empty()) text += (text.empty() ? "in " : " in ") + place.function;
  if (!place.op.empty()) text += (text.empty() ? "" : ", ") + place.op;
  if (!place.kernel.empty()) text += (text.empty() ? "" : ", ") + ("kernel " + place.kernel);
  return fmt::format("<code title=\"{}\">{}</code>", escaped(place.file), escaped(text));
}

std::string try_html(const Try& attempt) {
  const char* mark = !attempt.confirmed ? "·" : *attempt.confirmed ? "✔" : "✘";
  const char* style = !attempt.confirmed ? "dim" : *attempt.confirmed ? "yes" : "no";
  const std::string by = attempt.by_dry_run ? "a dry run" : "a replay of this recording";
  std::string result;
  if (attempt.confirmed && *attempt.confirmed)
    result = "Confirmed by " + by +
             (attempt.saves_bytes != 0 ? ": it saves " + format_bytes(attempt.saves_bytes) : std::string()) + ".";
  else if (attempt.confirmed)
    result = capital(by) + " showed that it does not help.";
  return fmt::format("<li><span class=\"{}\">{}</span> {} <span class=\"dim\">{}</span></li>\n", style, mark,
                     escaped(attempt.what), result);
}

std::string source_html(const Snippets& snippets, const Location& place) {
  const Snippet* snippet = snippets.find(place.file, place.line);
  if (snippet == nullptr) return {};
  std::string out = "<pre class=\"source\">";
  for (std::size_t at = 0; at < snippet->lines.size(); ++at) {
    const std::size_t number = snippet->first_line + at;
    const bool here = number == place.line;
    out += fmt::format("<span{}>{:>5}{}{}\n</span>", here ? " class=\"here\"" : "", number, here ? " ▶ " : "   ",
                       escaped(snippet->lines[at], 1024));
  }
  return out + "</pre>\n";
}

std::string card(const FindingGroup& group, std::size_t number, bool can_jump, const PageOptions& options,
                 const Snippets& snippets) {
  const Finding& finding = group.first();
  const Location& look = place_to_look(finding);
  std::string out = fmt::format(
      "<article class=\"finding {0}\" id=\"finding-{1}\" aria-labelledby=\"finding-{1}-title\">\n"
      "<h3 id=\"finding-{1}-title\"><span class=\"badge\">{0}</span> <code>{2}</code>{3} <span "
      "class=\"dim\">({4})</span></h3>\n<p>{5}</p>\n",
      name_of(finding.severity), number, escaped(finding.rule),
      group.count() > 1 ? " ×" + format_count(group.count()) : "",
      finding.confidence == Confidence::kHint ? "a hint" : name_of(finding.confidence), escaped(finding.message));
  if (!finding.process.empty()) out += fmt::format("<p class=\"dim\">{}</p>\n", escaped(finding.process));
  if (const std::string place = place_html(look); !place.empty())
    out += "<p>" + place + " " + source_links(look.file, look.line) + "</p>\n";
  out += source_html(snippets, look);
  if (can_jump)
    out += fmt::format(
        "<p><button type=\"button\" class=\"jump\" data-finding=\"{}\" hidden>Show the moment<span class=\"unseen\"> "
        "of finding {}</span></button></p>\n",
        number, number + 1);
  if (!finding.tries.empty()) {
    out += "<ul class=\"tries\">\n";
    std::vector<Try> tries = finding.tries;  // what is known to work first, as on the terminal
    std::stable_partition(tries.begin(), tries.end(), [](const Try& attempt) { return attempt.confirmed == true; });
    for (std::size_t at = 0; at < std::min(tries.size(), kTriesOnCard); ++at) out += try_html(tries[at]);
    out += "</ul>\n";
  }
  Page text(options.text);
  print_finding(text, group, {true, false, false});
  return out + "<details><summary>Details</summary><pre>" + escaped_lines(text.take()) +
         "</pre></details>\n</article>\n";
}

std::string category_class(std::string_view category) {
  for (const char* known : {"parameters", "gradients", "optimizer", "activations", "temporaries"}) {
    if (category == known) return known;
  }
  return "other";
}

struct Bar {
  std::string what;
  std::uint64_t bytes = 0;
  const char* style = "now";
  std::string told;
  bool known = true;
};

// Bars side by side, on one scale, with the line of what there is.
std::string bars(const std::vector<Bar>& rows, std::uint64_t limit, std::string_view heading) {
  std::uint64_t most = limit;
  for (const Bar& row : rows) most = std::max(most, row.bytes);
  if (most == 0) return {};
  const auto percent = [&](std::uint64_t bytes) {
    return 98.0 * static_cast<double>(bytes) / static_cast<double>(most);
  };
  std::string out = fmt::format(
      "<div class=\"scroll\"><table class=\"whatif\"><thead><tr><th scope=\"col\">{}</th><th scope=\"col\">what it "
      "comes to</th><th scope=\"col\" "
      "class=\"number\">bytes</th><th scope=\"col\">result</th></tr></thead><tbody>\n",
      heading);
  for (const Bar& row : rows) {
    out += fmt::format(
        "<tr><td>{}</td><td><svg viewBox=\"0 0 100 16\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
        "class=\"back\" width=\"100\" height=\"16\"/>",
        escaped(row.what));
    if (row.known)
      out += fmt::format("<rect class=\"{}\" width=\"{:.2f}\" height=\"16\"/>", row.style, percent(row.bytes));
    if (limit != 0)
      out += fmt::format(
          "<line class=\"limit\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"0\" y2=\"16\" "
          "vector-effect=\"non-scaling-stroke\"/>",
          percent(limit));
    out += fmt::format("</svg></td><td class=\"number\">{}</td><td>{}</td></tr>\n",
                       row.known ? format_bytes(row.bytes) : "", escaped(row.told));
  }
  return out + "</tbody></table></div>\n";
}

std::string plan_bars(const Plan& plan) {
  std::vector<Bar> rows = {{"As it is", plan.need.bytes, "now",
                            plan.gpu ? (plan.missing_bytes() == 0 ? "fits" : "does not fit") : "", true}};
  for (const PlanChange& change : plan.tried.changes) {
    const std::string what = change.label.empty() ? change.what : change.label;
    if (!change.tried)
      rows.push_back({what, 0, "now", change.why_not.empty() ? "not tried" : change.why_not, false});
    else
      rows.push_back({what, change.needed_bytes,
                      change.needed_bytes < plan.need.bytes   ? "better"
                      : change.needed_bytes > plan.need.bytes ? "worse"
                                                              : "now",
                      change.fits         ? "fits"
                      : change.until != 0 ? fmt::format("fits until about {} {}", change.until_unit, change.until)
                      : plan.gpu          ? "does not fit"
                                          : "",
                      true});
  }
  if (rows.size() == 1) return {};
  const std::uint64_t limit = plan.gpu ? plan.gpu->capacity_bytes : 0;
  return fmt::format(
             "<section aria-labelledby=\"whatif-title\"><h2 id=\"whatif-title\">What if</h2>\n<p class=\"dim\">What "
             "the program needs with each change that was tried{}.</p>\n",
             limit != 0 ? fmt::format("; the line is the GPU's {}", format_bytes(limit)) : "") +
         bars(rows, limit, "change") + "</section>\n";
}

}  // namespace

std::string input_name(const Report& report) {
  std::string path = report.input_path;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.empty() || path == "-" ? "standard input" : file_name(path);
}

std::string summary_section(const Report& report) {
  std::string out;
  if (report.plan) {
    const Plan& plan = *report.plan;
    out += fmt::format("<p class=\"verdict\">{}{}</p>\n", escaped(capital(summary_of(plan))),
                       plan.gpu ? ", on " + escaped(plan.gpu->name) : "");
    std::string command;
    for (const std::string& word : plan.command) command += (command.empty() ? "" : " ") + word;
    if (!command.empty()) out += "<p><code>" + escaped(command) + "</code></p>\n";
  }
  const auto count = [&](Severity severity) {
    return std::count_if(report.findings.begin(), report.findings.end(),
                         [&](const Finding& finding) { return finding.severity == severity; });
  };
  const auto told = [](std::ptrdiff_t number, const char* word) {
    return fmt::format("{} {}{}", format_count(static_cast<std::uint64_t>(number)), word, number == 1 ? "" : "s");
  };
  out += fmt::format("<p class=\"dim\">{}: {}, {} event{}. {}, {}, {}.</p>\n", escaped(input_name(report)),
                     escaped(report.input_kind), format_count(report.input_events), report.input_events == 1 ? "" : "s",
                     told(count(Severity::kError), "error"), told(count(Severity::kWarning), "warning"),
                     told(count(Severity::kNote), "note"));
  return out;
}

std::string findings_section(const Viewed& viewed, const PageOptions& options, const Snippets& snippets) {
  const Report& report = viewed.report;
  std::string out =
      "<section id=\"findings\" aria-labelledby=\"findings-title\"><h2 id=\"findings-title\">Findings</h2>\n";
  for (const std::string& sentence : report.unseen) out += "<p>" + escaped(sentence) + "</p>\n";
  const std::vector<FindingGroup> groups = group_findings(report.findings);
  std::size_t told = 0;
  for (; told < std::min(groups.size(), kMostCards) && out.size() < kMostCardBytes; ++told) {
    const auto number = static_cast<std::size_t>(&groups[told].first() - report.findings.data());
    out += card(groups[told], number, viewed.jumps[number].scene != kNever, options, snippets);
  }
  if (told < groups.size())
    out += fmt::format("<p class=\"dim\">{} more are left out here; faultline explain -v shows them all.</p>\n",
                       format_count(groups.size() - told));
  if (groups.empty()) out += "<p>There is nothing to report.</p>\n";
  return out + "</section>\n";
}

std::string what_if_section(const Viewed& viewed) {
  const Report& report = viewed.report;
  const std::string replays = replay_section(viewed);
  if (report.plan) return plan_bars(*report.plan) + replays;
  if (!replays.empty()) return replays;
  std::uint64_t reserved = 0;
  for (const DeviceReport& device : report.devices) reserved = std::max(reserved, device.peak_reserved);
  std::vector<Bar> rows = {{"As it was recorded", reserved, "now", "", true}};
  for (const Finding& finding : report.findings) {
    for (const Try& attempt : finding.tries) {
      const bool is_told =
          std::any_of(rows.begin(), rows.end(), [&](const Bar& row) { return row.what == attempt.what; });
      if (!attempt.confirmed || is_told) continue;
      if (*attempt.confirmed && attempt.saves_bytes != 0)
        rows.push_back({attempt.what, reserved - std::min(reserved, attempt.saves_bytes), "better",
                        "saves " + format_bytes(attempt.saves_bytes), true});
      else
        rows.push_back({attempt.what, 0, "now", *attempt.confirmed ? "the request is served" : "does not help", false});
    }
  }
  if (rows.size() == 1 || reserved == 0) return {};
  return "<section aria-labelledby=\"whatif-title\"><h2 id=\"whatif-title\">What if</h2>\n<p class=\"dim\">Replays of "
         "this recording: the most that is reserved with each.</p>\n" +
         bars(rows, 0, "setting") + "</section>\n";
}

std::string account_section(const Report& report) {
  std::vector<TreemapCell> cells;
  std::string title;
  if (report.plan && !report.plan->peak.modules.empty()) {
    title = "What fills the memory at the peak, by module";
    for (const PlanModule& module : report.plan->peak.modules) {
      std::string detail = module.count > 1 ? fmt::format("{} ×", module.count) : "";
      const auto most = std::max_element(module.live.begin(), module.live.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      const std::string category = most == module.live.end() ? "" : most->first;
      if (!category.empty() && !module.path.starts_with('('))
        detail += (detail.empty() ? "mostly " : ", mostly ") + category;
      cells.push_back({module.path, detail, category_class(category), module.bytes});
    }
  } else {
    title = "Who held the memory at the peak, by line";
    for (const DeviceReport& device : report.devices) {
      if (!cells.empty()) break;  // the first that tells: they are ordered by what matters
      for (const Holder& holder : device.holders) {
        const std::string place = holder.location.file.empty()
                                      ? holder.location.op
                                      : file_name(holder.location.file) + fmt::format(":{}", holder.location.line);
        cells.push_back({place.empty() ? (holder.detail.empty() ? "place unknown" : holder.detail) : place,
                         fmt::format("{} ×, {}", format_count(holder.count), holder.category),
                         category_class(holder.category), holder.bytes});
      }
    }
  }
  if (cells.size() < 2) return {};
  std::string out =
      fmt::format("<section aria-labelledby=\"account-title\"><h2 id=\"account-title\">{}</h2>\n", title) +
      treemap(title, cells);
  out +=
      "<details><summary>As a table</summary><div class=\"scroll\"><table><thead><tr><th scope=\"col\">what</th><th "
      "scope=\"col\" class=\"number\">bytes</th><th scope=\"col\"></th></tr></thead><tbody>\n";
  for (const TreemapCell& cell : cells)
    out += fmt::format("<tr><td>{}</td><td class=\"number\">{}</td><td>{}</td></tr>\n", escaped(cell.name),
                       format_bytes(cell.bytes), escaped(cell.detail));
  return out + "</tbody></table></div></details></section>\n";
}

std::string stacks_section(const Viewed& viewed) {
  constexpr std::size_t kMostLists = 4;
  std::string out;
  for (std::size_t number = 0; number < std::min(viewed.scenes.size(), kMostLists); ++number) {
    const Scene& scene = viewed.scenes[number];
    if (scene.largest.empty() || scene.peak_bytes == 0 || scene.stacks.size() < 2) continue;  // no stack is known
    std::string of = viewed.scenes.size() < 2 ? "" : fmt::format(", GPU {}", scene.device);
    if (!of.empty() && !scene.part.empty()) of += " of " + escaped(scene.part);
    out += fmt::format("<section><h2>What lived at the peak, by call stack{}</h2>\n<ol class=\"stacks\">\n", of);
    for (const HeldStack& stack : scene.largest)
      out += fmt::format("<li>{}, {:.1f} %, {} ×, mostly {}: <code>{}</code></li>\n", format_bytes(stack.bytes),
                         100.0 * static_cast<double>(stack.bytes) / static_cast<double>(scene.peak_bytes),
                         format_count(stack.count), escaped(stack.category), escaped(stack.path));
    out += "</ol>\n";
    if (scene.stack_count > scene.largest.size())
      out += fmt::format("<p class=\"dim\">{} more call stacks held less.</p>\n",
                         format_count(scene.stack_count - scene.largest.size()));
    out += "</section>\n";
  }
  return out;
}

std::string text_section(const Viewed& viewed, const PageOptions& options) {
  TerminalOptions text = options.text;
  text.verbose = true;
  std::string out = "<section aria-labelledby=\"text-title\"><h2 id=\"text-title\">The report as text</h2>\n";
  for (const std::string& sentence : viewed.left_out) out += "<p>" + escaped(sentence) + "</p>\n";
  std::string report = to_terminal(viewed.report, text);
  if (report.size() > kMostTextBytes)
    report = report.substr(0, report.rfind('\n', kMostTextBytes)) + "\n… the rest is left out here.\n";
  return out +
         "<details><summary>What faultline explain -v prints: accounts, what was not judged, notes</summary><pre>" +
         escaped_lines(report) + "</pre></details></section>\n";
}

}  // namespace faultline::view
