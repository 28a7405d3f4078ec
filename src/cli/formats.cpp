#include "cli/formats.h"

#include <algorithm>
#include <array>

#include "base/result.h"
#include "report/json.h"

namespace faultline::cli {

namespace {

std::string in_words(std::span<const Report> reports, const ReportsOptions& options) {
  std::string text;
  for (const Report& report : reports) text += (text.empty() ? "" : "\n") + to_terminal(report, options.terminal);
  return text;
}

std::string as_json(std::span<const Report> reports, const ReportsOptions& options) {
  std::string text;
  for (const Report& report : reports) text += (text.empty() ? "" : ",\n") + to_json(report);
  return options.as_list || reports.size() != 1 ? "[" + text + "]\n" : text;
}

template <ExchangeForm* to_form>
std::string exchanged(std::span<const Report> reports, const ReportsOptions& options) {
  return to_form(reports, options.exchange);
}

constexpr std::string_view kReportVerbs = " explain run plan ";

constexpr auto kFormats = std::to_array<Format>({
    {.name = format_name::kTerminal, .verbs = " explain run plan replay diff doctor ", .of_reports = in_words},
    {.name = format_name::kJson, .verbs = " explain run plan replay diff doctor ", .of_reports = as_json},
    {.name = "sarif", .verbs = kReportVerbs, .of_reports = exchanged<to_sarif>},
    {.name = format_name::kMarkdown, .verbs = " explain run plan diff ", .of_reports = exchanged<to_markdown>},
    {.name = "github", .verbs = kReportVerbs, .of_reports = exchanged<to_github>},
    {.name = "junit", .verbs = kReportVerbs, .of_reports = exchanged<to_junit>},
    {.name = "perfetto", .verbs = " explain run plan replay ", .of_recordings = write_perfetto, .is_binary = true},
    {.name = "text-trace", .verbs = " explain ", .of_recordings = write_text_trace},
});

}  // namespace

std::span<const Format> all_formats() { return kFormats; }

const Format& format_named(std::string_view name) {
  const auto known =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& format) { return format.name == name; });
  FAULTLINE_CHECK(known != kFormats.end());
  return *known;
}

}  // namespace faultline::cli
