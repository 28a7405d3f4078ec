#include "report/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace faultline {
namespace {

constexpr std::size_t kNotesShown = 2;
constexpr std::size_t kNamesShown = 4;
constexpr std::size_t kModulesShown = 4;
constexpr std::size_t kTooSmallShown = 2;
constexpr std::size_t kFittingShown = 4;

// "3 would have been written (a.pt, b.pt and 1 more)".
std::string counted_names(const Page& page, std::uint64_t count, const std::vector<std::string>& names,
                          std::string_view what) {
  std::string list;
  const std::size_t shown = std::min(names.size(), kNamesShown);
  for (std::size_t at = 0; at < shown; ++at) list += (at == 0 ? "" : ", ") + page.path(names[at], page.row_room());
  if (count > shown && shown != 0) list += fmt::format(" and {} more", format_count(count - shown));
  return fmt::format("{} {}{}", format_count(count), what, list.empty() ? "" : " (" + list + ")");
}

}  // namespace

std::string live_text(const std::vector<std::pair<std::string, std::uint64_t>>& live) {
  std::vector<std::pair<std::string, std::uint64_t>> sorted = live;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [category, size_bytes] : sorted) {
    if (size_bytes != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : " + ", format_bytes(size_bytes),
                          category != "other" ? category
                          : live.size() == 1  ? "tensors"
                                              : "other tensors");
  }
  return text;
}

void print_effects(Page& page, const PlanEffects& effects) {
  if (!effects.confined) {
    page.row("files", "what the program wrote or removed was done for real (--allow-writes)");
    return;
  }
  if (!effects.known)
    page.row("files",
             "what the program would have written is not known: the watch over it was lost; nothing of it was kept");
  if (effects.written_count + effects.removed_count != 0) {
    std::string text = effects.written_count != 0
                           ? counted_names(page, effects.written_count, effects.written, "would have been written")
                           : "";
    if (effects.removed_count != 0)
      text += (text.empty() ? "" : ", ") + counted_names(page, effects.removed_count, effects.removed, "removed");
    page.row("files",
             text + (effects.done_for_real.empty() && !effects.ran_out_of_space ? "; yours are as before" : ""));
  }
  if (!effects.done_for_real.empty()) {
    page.row("for real",
             counted_names(page, effects.done_for_real.size(), effects.done_for_real, "changed") +
                 ": the program was started with it open for writing, or it is the kernel's own (/proc, /sys)");
  }
  if (effects.ran_out_of_space)
    page.row("disk", "a file was too large to be copied for the dry run: the program was told that the disk is full");
  if (effects.input_was_cut)
    page.row("input", "not all that the program read from standard input could be kept, so it was not run again");
  if (effects.unsent_count != 0) {
    page.row("signals", counted_names(page, effects.unsent_count, effects.unsent_signals, "would have been sent") +
                            (effects.unsent_count == 1 ? ": not the program's own process, so it was not"
                                                       : ": not the program's own processes, so they were not"));
  }
  if (effects.connections != 0) {
    page.row("network", fmt::format("{} to other machines {} ({})",
                                    counted_names(page, effects.connections, {},
                                                  effects.connections == 1 ? "connection" : "connections"),
                                    effects.offline ? "refused" : "made, for real",
                                    counted_names(page, effects.machines.size(), effects.machines,
                                                  effects.machines.size() == 1 ? "place" : "places")));
  }
}

void print_modules(Page& page, const Plan& plan, bool verbose) {
  if (plan.peak.modules.empty()) return;
  std::uint64_t all = 0;
  for (const PlanModule& module : plan.peak.modules) all += module.bytes;
  if (all == 0) return;
  page.blank();
  page.paragraph(0, "What fills the memory at the peak", Style::kStrong);
  const std::size_t shown = verbose
                                ? plan.peak.modules.size()
                                : std::min(plan.peak.modules.size(), kModulesShown - (plan.failure.happened ? 1 : 0));
  const auto name = [&](const PlanModule& module) {
    return page.clean(module.path) +
           (module.count > 1 ? fmt::format(" ({} {})", format_count(module.count), page.glyph("×", "x")) : "");
  };
  int columns = 0;
  for (std::size_t at = 0; at < shown; ++at) columns = std::max(columns, display_width(name(plan.peak.modules[at])));
  columns = std::min(columns, page.width() / 2);
  for (std::size_t at = 0; at < shown; ++at) {
    const PlanModule& module = plan.peak.modules[at];
    const std::string numbers = fmt::format("  {} {:>3.0f} %  ", pad_left(format_bytes(module.bytes), 10),
                                            100.0 * static_cast<double>(module.bytes) / static_cast<double>(all));
    const std::string label = pad_right(shorten_middle(name(module), columns, page.unicode()), columns);
    const int room = page.width() - display_width(numbers) - columns - 2;
    const std::string parts = module.path.starts_with('(') ? "" : live_text(module.live);
    const auto largest =
        std::max_element(module.live.begin(), module.live.end(),
                         [](const auto& left, const auto& right) { return left.second < right.second; });
    const bool most = largest != module.live.end() && 2 * largest->second > module.bytes;
    const std::string first =
        parts.empty() || !most ? "" : fmt::format("{} {}", module.live.size() > 1 ? "mostly" : "all", largest->first);
    const std::string said = display_width(parts) <= room ? parts : first;
    page.line({{numbers}, {label + "  "}, {display_width(said) <= room ? page.clean(said) : "", Style::kDim}});
  }
  if (shown < plan.peak.modules.size())
    page.paragraph(2, fmt::format("and {} more; -vv lists them", plan.peak.modules.size() - shown), Style::kDim);
}

// The GPUs around the border between too small and large enough; all of them for those who ask.
void print_fits(Page& page, const Plan& plan, bool verbose) {
  if (plan.fits.empty()) return;
  page.blank();
  page.paragraph(0, "Where it fits", Style::kStrong);
  int columns = 0;
  for (const PlanFit& fit : plan.fits) columns = std::max(columns, display_width(page.clean(fit.gpu.name)));
  columns = std::min(columns, page.width() - 40);
  const auto first_fit = static_cast<std::size_t>(
      std::find_if(plan.fits.begin(), plan.fits.end(), [](const PlanFit& fit) { return fit.fits; }) -
      plan.fits.begin());
  const std::size_t begin = verbose || first_fit < kTooSmallShown ? 0 : first_fit - kTooSmallShown;
  const std::size_t end = verbose ? plan.fits.size() : std::min(plan.fits.size(), first_fit + kFittingShown);
  if (begin != 0) page.paragraph(2, fmt::format("{} smaller GPUs are too small", begin), Style::kDim);
  for (std::size_t at = begin; at < end; ++at) {
    const PlanFit& fit = plan.fits[at];
    const std::string name = pad_right(shorten_middle(page.clean(fit.gpu.name), columns, page.unicode()), columns);
    page.line({{fmt::format("  {}  {}  ", name, pad_left(format_bytes(fit.gpu.capacity_bytes), 10))},
               {fit.fits      ? "fits"
                : fit.perhaps ? "may fit"
                              : "does not fit",
                fit.fits      ? Style::kGood
                : fit.perhaps ? Style::kWarning
                              : Style::kError}});
  }
  if (end < plan.fits.size()) {
    const bool all_fit = std::all_of(plan.fits.begin() + static_cast<std::ptrdiff_t>(end), plan.fits.end(),
                                     [](const PlanFit& fit) { return fit.fits; });
    page.paragraph(2,
                   fmt::format("and {} larger GPUs{}; -vv lists them", plan.fits.size() - end,
                               all_fit ? ", where it fits too" : ""),
                   Style::kDim);
  }
}

// "a number was read (train.py:15, 3 times)".
std::string note_text(const Page& page, const PlanNote& note) {
  std::string tail;
  if (!note.line.empty()) {
    const std::size_t colon = note.line.rfind(':');
    tail = page.path(note.line.substr(0, colon), page.width() / 2) +
           (colon == std::string::npos ? "" : page.clean(note.line.substr(colon)));
  }
  if (note.count > 1) tail += fmt::format("{}{} times", tail.empty() ? "" : ", ", format_count(note.count));
  return page.clean(note.text) + (tail.empty() ? "" : " (" + tail + ")");
}

void print_notes(Page& page, const Plan& plan, bool verbose) {
  if (plan.notes.empty()) return;
  if (plan.failure.happened && !verbose) return;  // the first stands among the facts
  page.blank();
  page.paragraph(0, "What the dry run assumed", Style::kStrong);
  const std::size_t shown = verbose ? plan.notes.size() : std::min(plan.notes.size(), kNotesShown);
  for (std::size_t at = 0; at < shown; ++at) page.item(page.dot(), note_text(page, plan.notes[at]));
  if (shown < plan.notes.size())
    page.paragraph(2, fmt::format("and {} more; -vv lists them", plan.notes.size() - shown), Style::kDim);
}

}  // namespace faultline
