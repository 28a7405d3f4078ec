#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "report/account_table.h"
#include "report/exit_status.h"
#include "report/finding_text.h"
#include "report/memory_picture.h"
#include "report/page.h"
#include "report/plan_summary.h"
#include "report/plan_text.h"
#include "report/rule_pages.h"
#include "report/unseen.h"
#include "rules/registry.h"
#include "trace/host_memory.h"

namespace faultline {
namespace {

constexpr std::size_t kFindingsShown = 2;  // in full; more than a screen is read by those who ask for it
constexpr std::size_t kBriefFindings = 3;
constexpr std::size_t kFindingsNamed = 6;
constexpr std::size_t kCountersShown = 32;
constexpr std::size_t kDevicesShown = 4;
constexpr std::size_t kRemarksShown = 3;
constexpr std::size_t kRulesNamed = 2;

std::string plural(std::uint64_t count, std::string_view word) {
  return fmt::format("{} {}{}", format_count(count), word, count == 1 ? "" : "s");
}

std::string input_text(const Page& page, const Report& report, int room) {
  const std::string kind = report.input_kind.empty() ? "the input" : page.clean(report.input_kind);
  return kind + (report.input_path.empty() ? "" : " " + page.path(report.input_path, room));
}

// The failure that a plan's page tells of: where it failed, for what, and who held the memory. All of it is a finding for those who ask.
const Finding* failure_of_plan(const Report& report, const std::vector<FindingGroup>& groups, bool verbose) {
  if (!report.plan || !report.plan->failure.happened || verbose) return nullptr;
  const auto is_it = [](const FindingGroup& group) { return ran_out_of_memory(group.first()); };
  const auto found = std::find_if(groups.begin(), groups.end(), is_it);
  return found == groups.end() ? nullptr : &found->first();
}

// What piles up until the GPU is full: it stands before the out-of-memory that comes of it.
const Finding* leak_of_plan(const Report& report, const std::vector<FindingGroup>& groups) {
  if (!report.plan || !report.plan->failure.happened || groups.empty()) return nullptr;
  const Finding& first = groups.front().first();
  return topic_of(first) == Topic::kGrowth && first.severity == Severity::kError && first.number("full_at_step")
             ? &first
             : nullptr;
}

// One that is likely, and may be meant: it does not come before the failure, but before other remedies.
const Finding* perhaps_leak_of_plan(const Report& report, const std::vector<FindingGroup>& groups) {
  if (!report.plan || !report.plan->failure.happened) return nullptr;
  for (const FindingGroup& group : groups) {
    const Finding& finding = group.first();
    if (topic_of(finding) == Topic::kGrowth && finding.severity == Severity::kWarning && finding.number("full_at_step"))
      return &finding;
  }
  return nullptr;
}

// An operation that refused its operands, or a checkpoint that does not fit.
bool judges_exception(const Report& report) {
  return std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kError && topic_of(finding) == Topic::kTensors;
  });
}

void print_findings(Page& page, const Report& report, std::vector<FindingGroup> groups, const Finding* told,
                    bool verbose) {
  std::erase_if(groups, [&](const FindingGroup& group) { return &group.first() == told; });
  const std::size_t shown =
      verbose ? groups.size() : std::min(groups.size(), kFindingsShown - (told != nullptr ? 1 : 0));
  for (std::size_t at = 0; at < shown; ++at)
    print_finding(page, groups[at], {false, verbose, report.devices.size() > 1, report.plan.has_value()});
  if (shown == groups.size()) return;
  page.blank();
  const std::size_t named = std::min(groups.size(), shown + kFindingsNamed);
  for (std::size_t at = shown; at < named; ++at)
    page.row(at == shown ? "also" : "",
             fmt::format("{}: {}", name_of(groups[at].first().severity), finding_line(page, groups[at])));
  if (named < groups.size()) page.row("", "and " + plural(groups.size() - named, "more finding"), Style::kDim);
}

// A recording from the first call to the driver on: where it has no events, nothing was done.
bool is_run(const Report& report) { return report.input_kind == "run" || report.input_kind == "capture"; }

void print_clean(Page& page, const Report& report) {
  if (!report.unseen.empty()) {
    page.paragraph(0, "Nothing was found in what was seen; that is not all there was.", Style::kWarning);
    for (const std::string& sentence : report.unseen) page.paragraph(2, page.sentence(sentence));
    page.paragraph(2, fmt::format("Looked at {} of {}.", plural(report.input_events, "event"),
                                  input_text(page, report, page.width() / 2)));
    return;
  }
  if (report.input_kind == "core-dump") {
    page.paragraph(0, "The core dump holds no exception: no kernel had faulted when it was written.", Style::kGood);
    page.paragraph(2, fmt::format("Looked at {}.", input_text(page, report, page.width() / 2)));
    return;
  }
  if (report.input_events == 0 && !is_run(report)) {
    page.paragraph(0, "This input holds a state and no history: what can be judged of it is in order.");
    page.paragraph(
        2,
        fmt::format("Looked at {}. Record with torch.cuda.memory._record_memory_history() to see growth and failures.",
                    input_text(page, report, page.width() / 2)));
    return;
  }
  page.paragraph(0, "Nothing wrong was found.", Style::kGood);
  if (report.input_events == 0)
    return page.paragraph(2, "The program called the driver, but took no GPU memory and gave the GPU nothing to do.");
  page.paragraph(2, fmt::format("Looked at {} of {}.", plural(report.input_events, "event"),
                                input_text(page, report, page.width() / 2)));
}

// Devices worth a table and a picture: those with trouble; without trouble, the one that used most.
std::vector<const DeviceReport*> devices_to_show(const Report& report, bool every_one) {
  std::vector<const DeviceReport*> chosen;
  for (const DeviceReport& device : report.devices) {
    const auto troubled = [&](const Finding& finding) {
      return finding.device == device.index && finding.process == device.process && finding.severity != Severity::kNote;
    };
    if (every_one || std::any_of(report.findings.begin(), report.findings.end(), troubled)) chosen.push_back(&device);
  }
  if (chosen.empty() && !report.devices.empty()) {
    const auto less = [](const DeviceReport& a, const DeviceReport& b) { return a.peak_reserved < b.peak_reserved; };
    chosen.push_back(&*std::max_element(report.devices.begin(), report.devices.end(), less));
  }
  return chosen;
}

void print_peaks(Page& page, const Report& report, bool verbose) {
  std::size_t told = 0, untold = 0;
  for (const DeviceReport& device : report.devices) {
    if (device.peak_allocated == 0 && device.peak_reserved == 0) continue;
    if (told == kDevicesShown && !verbose) {
      ++untold;
      continue;
    }
    ++told;
    const std::string label = report.devices.size() == 1    ? "peak"
                              : is_host_memory(device.name) ? "host"
                                                            : fmt::format("GPU {}", device.index);
    // an input that knows tensors alone has no word of what was reserved for them
    const std::string reserved =
        device.peak_reserved == 0 ? "" : fmt::format(", {} reserved", format_bytes(device.peak_reserved));
    const bool is_host = label == "peak" && is_host_memory(device.name);
    page.row(label, fmt::format("{} allocated{} (at event {}){}{}", format_bytes(device.peak_allocated),
                                is_host ? " in host memory" : "", format_count(device.peak_event), reserved,
                                device.process.empty() ? "" : ", " + page.clean(device.process)));
  }
  if (untold != 0) page.row("", "and " + plural(untold, "more GPU"), Style::kDim);
}

void print_devices(Page& page, const Report& report, const TerminalOptions& options) {
  const bool holders_told = report.plan || std::any_of(report.findings.begin(), report.findings.end(),
                                                       [](const Finding& finding) { return !finding.holders.empty(); });
  for (const DeviceReport* device : devices_to_show(report, options.verbose)) {
    if (options.verbose) {
      print_account(page, *device);
      print_memory_picture(page, *device);
    }
    if (holders_told && !options.verbose) continue;
    page.blank();
    print_holders(page, "at the peak", device->holders, options.verbose);
  }
  page.blank();
  if (!report.plan || options.verbose) print_peaks(page, report, options.verbose);
}

void print_model(Page& page, const DeviceReport& device) {
  const ModelReport& model = device.model;
  const std::string name = page.clean(model.name);
  if (!model.why_not.empty()) {
    page.row("model", fmt::format("{}not run: {}", name.empty() ? "" : name + " was ", page.clean(model.why_not)));
    return;
  }
  if (model.name.empty()) return;
  if (model.placements == 0 && model.segment_events == 0) return;  // nothing to replay
  if (model.is_source) {
    page.row("model",
             fmt::format("the addresses are those of {}, Faultline's model of {}: nothing was recorded on a GPU", name,
                         model.name == "bfc" ? "TensorFlow's and JAX's pool" : "PyTorch's allocator"));
    return;
  }
  std::string text = fmt::format("a replay with {} put {} of {} allocations", name, format_count(model.exact),
                                 format_count(model.placements));
  if (model.segment_events != 0) {
    text += fmt::format(" and {} of {} segments", format_count(model.segment_events_exact),
                        format_count(model.segment_events));
  }
  const bool exact = model.exact == model.placements && model.segment_events_exact == model.segment_events;
  page.row("model", text + " where the recording has them" + (exact ? "" : "; what-if numbers are estimates"));
}

// What no input of a kind can show is told to those who ask, and where something is open that it might have settled.
bool could_have_mattered(const Report& report, const NotJudged& item) {
  if (!item.always) return true;
  bool any_error = false;
  for (const Finding& finding : report.findings) {
    if (finding.severity != Severity::kError) continue;
    any_error = true;
    if (finding.confidence != Confidence::kProved && group_of(finding.rule) == group_of(item.rule)) return true;
  }
  return !any_error && !report.unseen.empty() && !report.plan;
}

// What the page for those who ask has beyond this one; empty: nothing.
std::string what_else_there_is(const Report& report, bool all_told) {
  const bool has_memory = std::any_of(report.devices.begin(), report.devices.end(), [](const DeviceReport& device) {
    return device.peak_allocated != 0 || device.peak_reserved != 0;
  });
  const bool has_numbers = std::any_of(report.findings.begin(), report.findings.end(),
                                       [](const Finding& finding) { return finding.evidence.size() > 1; });
  std::vector<std::string_view> parts;
  if (has_memory) parts.push_back("who holds what");
  if (has_numbers) parts.push_back("the numbers behind each finding");
  if (has_memory) parts.push_back("memory over time");
  if (!all_told && !parts.empty()) parts.push_back("what was not judged");
  return fmt::format("{}", fmt::join(parts, ", "));
}

// A plan's page has the peak and names its program; both are told for those who ask.
void print_footnotes(Page& page, const Report& report, bool clean, bool verbose) {
  const std::size_t models = verbose ? report.devices.size() : 0;
  for (std::size_t at = 0; at < models; ++at) print_model(page, report.devices[at]);
  if ((!clean && (!report.plan || verbose)) || !report.parts.empty()) {
    const std::string parts = report.parts.empty() ? "" : fmt::format(", {} parts", report.parts.size());
    page.row("input", fmt::format("{}{}, {}", input_text(page, report, page.row_room() - 20), parts,
                                  plural(report.input_events, "event")));
  }
  for (const std::string& sentence : report.unseen) {
    if (!clean || report.plan) page.row("not seen", page.sentence(sentence), Style::kWarning);
  }
  for (const std::string& sentence : report.left_out) page.row("left out", page.clean(sentence), Style::kWarning);
  const std::size_t notes = verbose ? report.notes.size() : std::min(report.notes.size(), kRemarksShown);
  for (std::size_t at = 0; at < notes; ++at) page.row("note", page.clean(report.notes[at]), Style::kWarning);
  if (notes < report.notes.size()) page.row("", "and " + plural(report.notes.size() - notes, "more note"), Style::kDim);
  std::string lost;
  std::size_t told = 0, untold = 0;
  for (const auto& [name, count] : report.lost) {
    if (count == 0 || (told == kCountersShown && ++untold != 0)) continue;
    ++told;
    lost += (lost.empty() ? "" : ", ") + page.clean(loss_words(name, count));
  }
  if (untold != 0) lost += fmt::format(", and {} more kinds", format_count(untold));
  if (!lost.empty()) page.row("lost or odd", lost, Style::kWarning);

  std::map<std::string, std::vector<std::string>> rules_by_reason;
  bool all_told = true;
  for (const NotJudged& item : report.not_judged) {
    if (verbose || could_have_mattered(report, item))
      rules_by_reason[item.why].push_back(page.clean(item.rule));
    else
      all_told = false;
  }
  for (const auto& [why, rules] : rules_by_reason) {
    const std::string named = verbose || rules.size() <= kRulesNamed ? fmt::format("{}", fmt::join(rules, ", "))
                                                                     : plural(rules.size(), "rule");
    page.row("not judged:", named + ": " + page.clean(why), Style::kDim);
  }
  if (const std::string more = verbose ? std::string() : what_else_there_is(report, all_told); !more.empty())
    page.row("more", "-vv: " + more, Style::kDim);
}

struct Summary {
  std::string found;
  std::string read;
  Style style;
};

Summary summarise(const Page& page, const Report& report, const std::vector<FindingGroup>& groups) {
  const auto count = [&](Severity severity) {
    return static_cast<std::uint64_t>(std::count_if(
        groups.begin(), groups.end(), [&](const FindingGroup& g) { return g.first().severity == severity; }));
  };
  std::string found;
  for (const Severity severity : {Severity::kError, Severity::kWarning, Severity::kNote}) {
    if (const std::uint64_t number = count(severity); number != 0)
      found += (found.empty() ? "" : ", ") + plural(number, name_of(severity));
  }
  const int status = exit_status(report);
  const bool clean = status == 0 || status == kHoldsInPart;
  const bool has_trouble = count(Severity::kError) + count(Severity::kWarning) != 0;
  const std::string verdict = !report.unseen.empty()             ? "nothing found in what was seen, which is not all"
                              : report.input_kind == "core-dump" ? "no exception in the core dump"
                              : report.input_events == 0 && !is_run(report)
                                  ? "nothing found in a state without its history"
                                  : "clean";
  if (!has_trouble && !report.plan) found = found.empty() ? verdict : verdict + ", " + found;
  if (has_trouble) {
    found += ": " + finding_line(page, groups.front());
    if (const std::optional<std::int64_t> round = groups.front().first().number("full_at_step"); round && report.plan) {
      const auto end = std::find_if(groups.begin(), groups.end(),
                                    [](const FindingGroup& group) { return ran_out_of_memory(group.first()); });
      found += fmt::format(", which fills the GPU in about round {}", format_count(static_cast<std::uint64_t>(*round)));
      if (end != groups.end()) found += "; it ends in " + finding_line(page, *end);
    } else if (report.plan && count(Severity::kError) > 1 && groups[1].first().severity == Severity::kError) {
      found += ", " + finding_line(page, groups[1]);
    } else if (const Finding* leak = perhaps_leak_of_plan(report, groups); leak != nullptr) {
      const auto group =
          std::find_if(groups.begin(), groups.end(), [&](const FindingGroup& one) { return &one.first() == leak; });
      found += "; perhaps of " + finding_line(page, *group);
    }
  }
  if (report.plan) found = page.clean(summary_of(*report.plan)) + (found.empty() ? "" : "; " + found);
  std::uint64_t placements = 0, exact = 0;
  for (const DeviceReport& device : report.devices) {
    if (device.model.is_source) continue;
    placements += device.model.placements;
    exact += device.model.exact;
  }
  std::string read = fmt::format(" {} {} read", page.glyph("·", "-"), plural(report.input_events, "event"));
  if (placements != 0)
    read += fmt::format(", {} of {} placements exact", format_count(exact), format_count(placements));
  const bool is_error = !clean && (!has_trouble || count(Severity::kError) != 0);
  const Style style = status == 0 && report.unseen.empty() ? Style::kGood
                      : clean                              ? Style::kWarning
                      : is_error                           ? Style::kError
                                                           : Style::kWarning;
  return {std::move(found), std::move(read), style};
}

// What the longer page has of this one.
std::string what_more_there_is(const Report& report, std::size_t findings_untold) {
  std::vector<std::string> parts;
  if (findings_untold != 0) parts.push_back(plural(findings_untold, "more finding"));
  if (report.plan) {
    const PlanTried& tried = report.plan->tried;
    const bool batch_fits = tried.vary && tried.vary->largest_fitting != 0;
    const auto fits = [](const PlanChange& change) { return change.fits; };
    if (std::ranges::count_if(tried.changes, fits) + (batch_fits ? 1 : 0) > 1)
      parts.push_back("what else would make it fit");
  }
  if (!report.devices.empty() && (report.plan || !report.findings.empty())) parts.push_back("who holds the memory");
  if (!report.notes.empty()) parts.push_back(plural(report.notes.size(), "note"));
  const auto is_lost = [](const auto& lost) { return lost.second != 0; };
  if (std::any_of(report.lost.begin(), report.lost.end(), is_lost)) parts.push_back("what was lost or odd");
  return fmt::format("{}", fmt::join(parts, ", "));
}

// What somebody reads first: each finding in a few lines, what was not seen, and where the rest is.
void print_brief(Page& page, const Report& report, const std::vector<FindingGroup>& groups, const Finding* told) {
  std::size_t shown = 0, untold = 0;
  std::string read = told == nullptr ? "" : command_for_page(told->rule);
  for (const FindingGroup& group : groups) {
    if (&group.first() == told) continue;
    if (group.first().severity == Severity::kNote || shown == kBriefFindings) {
      ++untold;
      continue;
    }
    ++shown;
    print_finding(page, group, {true, false, report.devices.size() > 1, report.plan.has_value()});
    if (read.empty()) read = command_for_page(group.first().rule);
  }
  page.blank();
  if (shown == 0 && !report.plan) print_peaks(page, report, false);
  for (const std::string& sentence : report.unseen) {
    if (exit_status(report) != 0 || report.plan) page.row("not seen", page.sentence(sentence), Style::kWarning);
  }
  for (const std::string& sentence : report.left_out) page.row("left out", page.clean(sentence), Style::kWarning);
  const std::string more = what_more_there_is(report, untold);
  if (!more.empty()) page.row("more", "-v: " + more, Style::kDim);
  if (!read.empty()) page.row(more.empty() ? "more" : "", read, Style::kDim);
}

}  // namespace

std::string to_terminal(const Report& report, const TerminalOptions& options) {
  Page page(options);
  const std::vector<FindingGroup> groups = group_findings(report.findings);
  const int status = exit_status(report);
  const bool clean = status == 0 || status == kHoldsInPart;
  const Finding* told = failure_of_plan(report, groups, options.verbose);
  const bool judged = judges_exception(report);
  // the program's own error comes first, and what was seen of its memory after it
  const bool error_first =
      report.plan && report.plan->verdict == Verdict::kProgramError && judged && !options.verbose && !options.brief;
  if (error_first) {
    print_findings(page, report, groups, told, options.verbose);
    page.blank();
  }
  if (report.plan)
    print_plan(page, *report.plan,
               {told, leak_of_plan(report, groups), perhaps_leak_of_plan(report, groups), judged, options.verbose,
                options.brief, error_first});
  if (clean && !report.plan) print_clean(page, report);
  if (options.brief) {
    print_brief(page, report, groups, told);
  } else {
    if (!error_first) print_findings(page, report, groups, told, options.verbose);
    print_devices(page, report, options);
    print_footnotes(page, report, clean, options.verbose);
  }
  const Summary summary = summarise(page, report, groups);
  page.blank();
  page.line({{"SUMMARY: " + summary.found, summary.style}, {summary.read}});
  return page.take();
}

std::string summary_of(const Report& report) {
  return summarise(Page(TerminalOptions{}), report, group_findings(report.findings)).found;
}

}  // namespace faultline
