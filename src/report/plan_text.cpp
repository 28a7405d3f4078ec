#include "report/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "base/units.h"

namespace faultline {
namespace {

constexpr std::size_t kNamesShown = 4;
constexpr std::size_t kNotesShown = 3;
constexpr std::size_t kModulesShown = 5;
constexpr std::size_t kTooSmallShown = 2;
constexpr std::size_t kFittingShown = 4;
constexpr std::size_t kChangesShown = 3;

struct Headline {
  Style style;
  std::string_view text;
};
constexpr std::array<Headline, 8> kHeadlines = {
    {{Style::kGood, "FITS"},
     {Style::kWarning, "FITS, BUT TIGHTLY"},
     {Style::kError, "FITS UNTIL ABOUT"},
     {Style::kError, "DOES NOT FIT"},
     {Style::kGood, "NEEDS"},
     {Style::kError, "NOT PLANNED"},
     {Style::kError, "NOT PLANNED TO THE END: the program failed by itself"},
     {Style::kWarning, "NOT PLANNED TO THE END: the program was stopped"}}};  // in the order of verdicts

std::string until_text(const Plan& plan) {
  return fmt::format(" {} {}", plan.until_unit == "round" ? "ROUND" : "STEP", format_count(plan.until_step));
}

// A verdict that holds for what was run.
bool is_partly_seen(const Plan& plan) {
  return plan.verdict == Verdict::kFits || plan.verdict == Verdict::kTight || plan.verdict == Verdict::kMeasured;
}

// What was not reached, and how to reach it.
std::string not_seen_text(const Plan& plan) {
  if (plan.stopped.empty()) return {};
  const std::string seen = plan.steps != 0 ? fmt::format("{} optimizer step{} of the program", format_count(plan.steps),
                                                         plan.steps == 1 ? "" : "s")
                                           : "only a part of the program";
  return fmt::format(" The plan saw {}; what comes after that was not seen (--steps 0 --seconds 0 runs to the end).",
                     seen);
}

Piece headline_of(const Page& page, const Plan& plan) {
  const auto& [style, text] = kHeadlines[static_cast<std::size_t>(plan.verdict)];
  if (!plan.stand_in_line.empty())
    return {"NOT PLANNED TO THE END: the program failed, maybe for a number that a dry run does not compute", style};
  std::string more;
  if (plan.verdict == Verdict::kMeasured) more = " " + format_bytes(plan.needed_bytes);
  if (plan.verdict == Verdict::kFitsUntil) more = until_text(plan);
  if (plan.gpu && plan.verdict < Verdict::kMeasured)
    more += " on " + (plan.devices.empty() ? "" : fmt::format("cuda:{}, ", plan.device)) + plan.gpu->name;
  if (!plan.stopped.empty() && is_partly_seen(plan)) more += ", as far as it was run";
  if (plan.caught_failures != 0 && plan.gpu && is_partly_seen(plan))
    more += fmt::format(", after {} that the program caught",
                        plan.caught_failures == 1 ? "an out-of-memory" : "out-of-memory errors");
  return {page.clean(std::string(text) + more + beside_verdict(plan)), style};
}

// PyTorch keeps what it took for reuse; where that is more than it needs, both are said, so that the sum at the peak is explained.
std::string taken_text(const Plan& plan) {
  const bool shrinks =
      plan.needed_bytes < plan.taken_bytes && format_bytes(plan.needed_bytes) != format_bytes(plan.taken_bytes);
  return shrinks ? fmt::format(" Where there is room it takes {}.", format_bytes(plan.taken_bytes)) : "";
}

// With just what was taken at the fullest the pieces would not lie as they do.
std::string more_than_taken_text(const Plan& plan) {
  if (plan.needed_bytes <= plan.taken_bytes || format_bytes(plan.needed_bytes) == format_bytes(plan.taken_bytes))
    return {};
  return fmt::format(
      " That is {} more than it takes at the fullest, for the way the pieces lie on a GPU of just that size.",
      format_bytes(plan.needed_bytes - plan.taken_bytes));
}

// What fits is the rest: the requests that failed are not in the number.
std::string caught_text(const Plan& plan) {
  if (plan.caught_failures == 0) return {};
  return fmt::format(" It ran out of memory {} and went on; what it asked for then is not in this number.",
                     plan.caught_failures == 1 ? "once" : format_count(plan.caught_failures) + " times");
}

// Sizes that depend on values which a dry run does not compute are taken as large as they can be.
std::string most_text(const Plan& plan) {
  const bool any = std::any_of(plan.notes.begin(), plan.notes.end(),
                               [](const PlanNote& note) { return note.text.ends_with("the most there can be"); });
  return any ? " Where sizes depend on values it counts the most there can be, so it may need less: --real computes "
               "them."
             : "";
}

std::string fits_text(const Plan& plan) {
  const std::string capacity = format_bytes(plan.gpu->capacity_bytes);
  if (plan.filling)
    return fmt::format(
        "It fills the GPU on purpose: it asks how much is free ({}), and took {} less when it was told of {} less. It "
        "took {} of the {}",
        plan.filling->line, format_bytes(plan.filling->took_less_bytes), format_bytes(plan.filling->told_less_bytes),
        format_bytes(plan.needed_bytes), capacity);
  if (plan.together_bytes <= plan.needed_bytes)
    return fmt::format("It needs {} and the GPU has {}: {} to spare", format_bytes(plan.needed_bytes), capacity,
                       format_bytes(plan.spare_bytes()));
  return fmt::format(
      "The processes that ran at one time take up to {} together and the GPU has {}: {} to spare; the one that needs "
      "most needs {}",
      format_bytes(plan.together_bytes), capacity, format_bytes(plan.spare_bytes()), format_bytes(plan.needed_bytes));
}

std::string sizes_of(const Plan& plan) {
  const std::string needed = format_bytes(plan.needed_bytes);
  const std::string capacity = plan.gpu ? format_bytes(plan.gpu->capacity_bytes) : "";
  switch (plan.verdict) {
    case Verdict::kDoesNotFit:
      if (plan.missing_bytes() == 0 && plan.limit_bytes != 0) {
        return fmt::format("The program's own limit of {} was reached; without it {} of the {} would be enough.",
                           format_bytes(plan.limit_bytes), needed, capacity);
      }
      if (plan.missing_bytes() == 0) return "A request could not be served.";
      return fmt::format("It needs {} and the GPU has {}: {} too little.", needed, capacity,
                         format_bytes(plan.missing_bytes())) +
             (plan.failed_in_step > 1
                  ? fmt::format(" It fits until step {}, which fails.", format_count(plan.failed_in_step))
                  : "") +
             more_than_taken_text(plan) + most_text(plan);
    case Verdict::kFitsUntil:
      return fmt::format(
                 "Memory grows with every {}. It needs {} after {} of the {}, and the GPU is full at about {} {}.",
                 plan.until_unit, needed, plan.steps != 0 ? format_count(plan.steps) + " steps" : "what was seen",
                 capacity, plan.until_unit, format_count(plan.until_step)) +
             not_seen_text(plan);
    case Verdict::kUnplanned:
      return fmt::format("{}{}. Whether it fits is not known.", plan.unplanned,
                         plan.unplanned_line.empty() ? "" : " (" + plan.unplanned_line + ")") +
             (plan.peak_reserved_bytes != 0 ? fmt::format(" What was planned needs {}.", needed) : "");
    case Verdict::kFits: return fits_text(plan) + "." + taken_text(plan) + caught_text(plan) + not_seen_text(plan);
    case Verdict::kTight:
      return fits_text(plan) + ", which is less than the figures are sure of." + caught_text(plan) + most_text(plan) +
             not_seen_text(plan);
    case Verdict::kMeasured:
      return fmt::format("{} of it are for the CUDA context and libraries, an assumption.",
                         format_bytes(plan.context_bytes)) +
             taken_text(plan) + not_seen_text(plan);
    case Verdict::kProgramError:
    case Verdict::kInterrupted:
      return (plan.stand_in_line.empty()
                  ? ""
                  : fmt::format("Before it failed it read a stand-in ({}): if it failed on that, the dry run is to "
                                "blame and not the program, and --real computes the number. ",
                                plan.stand_in_line)) +
             fmt::format("Until there it needed {}{}.", needed,
                         plan.gpu ? " of the " + capacity + " of " + plan.gpu->name : "");
  }
  return {};
}

std::string live_text(const std::vector<std::pair<std::string, std::uint64_t>>& live) {
  std::vector<std::pair<std::string, std::uint64_t>> sorted = live;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [category, size_bytes] : sorted) {
    if (size_bytes != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : " + ", format_bytes(size_bytes),
                          category == "other" ? "other tensors" : category);
  }
  return text;
}

std::string peak_text(const Page& page, const Plan& plan) {
  std::uint64_t known = plan.context_bytes + plan.peak_outside_bytes;
  for (const auto& [category, size_bytes] : plan.live_at_peak) known += size_bytes;
  std::string text = page.clean(live_text(plan.live_at_peak));
  if (plan.taken_bytes > known) text += fmt::format(" + {} cached", format_bytes(plan.taken_bytes - known));
  if (plan.peak_outside_bytes != 0)
    text += fmt::format(" + {} outside PyTorch's allocator", format_bytes(plan.peak_outside_bytes));
  text += fmt::format(" + {} context", format_bytes(plan.context_bytes));
  return text.substr(text.starts_with(" + ") ? 3 : 0) + " = " + format_bytes(std::max(known, plan.taken_bytes));
}

std::string shown_command(const Page& page, const Plan& plan) {
  std::string text;
  for (const std::string& word : plan.command) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$&|;<>()*?") == std::string::npos;
    text += (text.empty() ? "" : " ") + (plain ? word : "'" + word + "'");
  }
  return shorten_middle(page.clean(text), 2 * page.row_room(), page.unicode());
}

// "3 would have been written (a.pt, b.pt and 1 more)".
std::string counted_names(const Page& page, std::uint64_t count, const std::vector<std::string>& names,
                          std::string_view what) {
  std::string list;
  const std::size_t shown = std::min(names.size(), kNamesShown);
  for (std::size_t at = 0; at < shown; ++at) list += (at == 0 ? "" : ", ") + page.path(names[at], page.row_room());
  if (count > shown && shown != 0) list += fmt::format(" and {} more", format_count(count - shown));
  return fmt::format("{} {}{}", format_count(count), what, list.empty() ? "" : " (" + list + ")");
}

void print_effects(Page& page, const PlanEffects& effects) {
  if (!effects.confined) {
    page.row("files", "what the program wrote or removed was done for real (--allow-writes)");
    return;
  }
  if (!effects.known)
    page.row("files",
             "what the program would have written is not known: the watch over it was ended; nothing of it was kept");
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
  if (effects.connections != 0) {
    page.row("network", fmt::format("{} to other machines {} ({})",
                                    counted_names(page, effects.connections, {},
                                                  effects.connections == 1 ? "connection" : "connections"),
                                    effects.offline ? "refused" : "made, for real",
                                    counted_names(page, effects.machines.size(), effects.machines,
                                                  effects.machines.size() == 1 ? "place" : "places")));
  }
}

// What PyTorch took of each; the context comes on top where one is used.
std::string devices_text(const Plan& plan) {
  std::string text;
  for (const PlanDevice& device : plan.devices) {
    text += fmt::format("{}cuda:{} {}", text.empty() ? "" : ", ", device.index,
                        device.reserved_bytes == 0 ? "not used" : format_bytes(device.reserved_bytes));
  }
  return text + fmt::format(" at the fullest, without the context; the plan is about cuda:{}, which {}", plan.device,
                            plan.failed ? "was full" : "has least to spare");
}

void print_facts(Page& page, const Plan& plan) {
  const int room = page.row_room();
  page.row("command", shown_command(page, plan));
  if (plan.exception) {
    page.row("error",
             page.clean(plan.exception->type + (plan.exception->message.empty() ? "" : ": " + plan.exception->message)),
             Style::kStrong);
    page.row("where", page.place(plan.exception->location, room), Style::kStrong);
  } else if (plan.verdict == Verdict::kProgramError || plan.verdict == Verdict::kInterrupted) {
    page.row("ended", plan.exit_status >= 128 ? fmt::format("by signal {}", plan.exit_status - 128)
                                              : fmt::format("with status {}", plan.exit_status));
  }
  if (plan.failed) {
    std::string place = plan.failed_at.known() ? page.place(plan.failed_at, room) : "at a line that is not known";
    if (plan.failed_in_step != 0)
      place += fmt::format(", in step {}", plan.failed_in_step);
    else if (plan.steps != 0)
      place += fmt::format(", after {} optimizer step{}", format_count(plan.steps), plan.steps == 1 ? "" : "s");
    page.row("fails at", place, Style::kStrong);
  }
  if (plan.caught_failures != 0)
    page.row("on the way",
             fmt::format("out of memory {} and the program went on",
                         plan.caught_failures == 1 ? "once" : format_count(plan.caught_failures) + " times"));
  if (!plan.live_at_peak.empty()) page.row("at the peak", peak_text(page, plan));
  if (!plan.devices.empty()) page.row("each GPU", devices_text(plan));
  if (plan.gpu) {
    page.row("the GPU", fmt::format("{} ({}), of which the CUDA context and libraries take {} ({})",
                                    format_bytes(plan.gpu->capacity_bytes), page.clean(plan.gpu->capacity_source),
                                    format_bytes(plan.gpu->context_bytes), page.clean(plan.gpu->context_source)));
  }
  std::string seen = fmt::format("{} optimizer step{} in {:.1f} s, imports included", format_count(plan.steps),
                                 plan.steps == 1 ? "" : "s", plan.seconds);
  if (!plan.stopped.empty()) seen += fmt::format("; the dry run stopped the program {}", page.clean(plan.stopped));
  if (plan.processes > 1)
    seen += fmt::format("; {} processes used a GPU, this is the one that needs most", format_count(plan.processes));
  page.row("seen", seen);
  print_effects(page, plan.effects);
}

void print_modules(Page& page, const Plan& plan, bool verbose) {
  if (plan.modules.empty()) return;
  std::uint64_t all = 0;
  for (const PlanModule& module : plan.modules) all += module.bytes;
  if (all == 0) return;
  page.blank();
  page.paragraph(0, "What fills the memory at the peak", Style::kStrong);
  const std::size_t shown = verbose ? plan.modules.size() : std::min(plan.modules.size(), kModulesShown);
  const auto name = [&](const PlanModule& module) {
    return page.clean(module.path) +
           (module.count > 1 ? fmt::format(" ({} {})", format_count(module.count), page.glyph("×", "x")) : "");
  };
  int columns = 0;
  for (std::size_t at = 0; at < shown; ++at) columns = std::max(columns, display_width(name(plan.modules[at])));
  columns = std::min(columns, page.width() / 2);
  for (std::size_t at = 0; at < shown; ++at) {
    const PlanModule& module = plan.modules[at];
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
  if (shown < plan.modules.size())
    page.paragraph(2, fmt::format("and {} more; --verbose lists them", plan.modules.size() - shown), Style::kDim);
}

void print_vary(Page& page, const PlanVary& vary) {
  const std::string name = page.clean(vary.name);
  if (!vary.why_not.empty()) {
    page.item(page.dot(), fmt::format("{}: {}.", name, page.clean(vary.why_not)));
    return;
  }
  const std::string where =
      fmt::format("{}{}now {}", page.clean(vary.where), vary.where.empty() ? "" : ", ", format_count(vary.current));
  if (vary.largest_fitting == 0) {
    page.item(page.no(),
              fmt::format("{} ({}): even {} does not fit.", name, where, format_count(vary.smallest_failing)));
    return;
  }
  std::string text =
      fmt::format("{} = {} fits{}", name, format_count(vary.largest_fitting), vary.tight ? ", but tightly," : "");
  text += vary.smallest_failing == 0 ? vary.stopped.empty()
                                           ? std::string("; larger values were not tried")
                                           : "; larger ones could not be tried: " + page.clean(vary.stopped)
                                     : fmt::format(" and {} does not", format_count(vary.smallest_failing));
  if (vary.smallest_failing != 0 && !vary.stopped.empty())
    text += "; what is between was not tried to the end: " + page.clean(vary.stopped);
  page.item(page.yes(), fmt::format("{} ({}). Confirmed by {} dry runs.", text, where, vary.runs));
}

void print_changes(Page& page, const Plan& plan, bool verbose) {
  const bool wanted = plan.verdict == Verdict::kDoesNotFit;
  if (plan.changes.empty() && !plan.vary && plan.changes_skipped.empty()) return;
  page.blank();
  page.paragraph(0, wanted ? "What would make it fit" : "What was tried", Style::kStrong);
  std::vector<const PlanChange*> sorted;
  for (const PlanChange& change : plan.changes) {
    if (change.tried || verbose) sorted.push_back(&change);
  }
  const auto rank = [](const PlanChange& change) {
    return std::tuple(!change.tried, !change.fits, change.needed_bytes);
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const PlanChange* a, const PlanChange* b) { return rank(*a) < rank(*b); });
  const bool any_fits =
      std::any_of(sorted.begin(), sorted.end(), [](const PlanChange* change) { return change->fits; });
  if (plan.vary) print_vary(page, *plan.vary);
  std::size_t told = 0;
  for (const PlanChange* change : sorted) {
    if (!verbose && told == kChangesShown) {
      page.paragraph(2, fmt::format("and {} more; --verbose lists them", sorted.size() - kChangesShown), Style::kDim);
      break;
    }
    const std::string what = page.clean(change->what);
    const std::string detail = change->detail.empty() ? "" : " (" + page.clean(change->detail) + ")";
    if (!change->tried) {
      page.item(page.dot(), fmt::format("{}{}: not tried, {}.", what, detail, page.clean(change->why_not)));
      continue;
    }
    const std::uint64_t saved = plan.saved_bytes(*change);
    const bool saves = saved != 0;
    if (!saves && !change->fits && !verbose) continue;
    ++told;
    const std::uint64_t difference = saves ? saved : change->needed_bytes - plan.needed_bytes;
    const std::string by = change->kind == "setting" ? "a replay" : "a dry run";
    std::string result = fmt::format("needs {}", format_bytes(change->needed_bytes));
    if (difference != 0) result += fmt::format(", {} {}", format_bytes(difference), saves ? "less" : "more");
    if (wanted)
      result = (!change->fits                                           ? "not enough: "
                : plan.gpu && is_tight(*plan.gpu, change->needed_bytes) ? "fits, but tightly: "
                                                                        : "fits: ") +
               result;
    page.item(change->fits || (!wanted && saves) ? page.yes() : page.no(),
              fmt::format("{}{}. By {}, {}.", what, detail, by, result));
  }
  if (wanted && !any_fits && told == 0 && !sorted.empty() && !plan.vary)
    page.paragraph(2,
                   fmt::format("{} tried, and nothing that was tried helps (--verbose lists it).",
                               sorted.size() == 1 ? "One change was" : format_count(sorted.size()) + " changes were"));
  if (wanted && !any_fits && told != 0 && !(plan.vary && plan.vary->largest_fitting != 0))
    page.paragraph(2, "None of these is enough.");
  if (!plan.changes_skipped.empty()) page.paragraph(2, page.clean(plan.changes_skipped));
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
               {fit.fits ? "fits" : "does not fit", fit.fits ? Style::kGood : Style::kError}});
  }
  if (end < plan.fits.size()) {
    const bool all_fit = std::all_of(plan.fits.begin() + static_cast<std::ptrdiff_t>(end), plan.fits.end(),
                                     [](const PlanFit& fit) { return fit.fits; });
    page.paragraph(2,
                   fmt::format("and {} larger GPUs{}; --verbose lists them", plan.fits.size() - end,
                               all_fit ? ", where it fits too" : ""),
                   Style::kDim);
  }
}

void print_notes(Page& page, const Plan& plan, bool verbose) {
  if (plan.notes.empty()) return;
  page.blank();
  page.paragraph(0, "What the dry run assumed", Style::kStrong);
  const std::size_t shown = verbose ? plan.notes.size() : std::min(plan.notes.size(), kNotesShown);
  for (std::size_t at = 0; at < shown; ++at) {
    const PlanNote& note = plan.notes[at];
    std::string tail;
    if (!note.line.empty()) {
      const std::size_t colon = note.line.rfind(':');
      tail = page.path(note.line.substr(0, colon), page.width() / 2) +
             (colon == std::string::npos ? "" : page.clean(note.line.substr(colon)));
    }
    if (note.count > 1) tail += fmt::format("{}{} times", tail.empty() ? "" : ", ", format_count(note.count));
    page.item(page.dot(), page.clean(note.text) + (tail.empty() ? "" : " (" + tail + ")"));
  }
  if (shown < plan.notes.size())
    page.paragraph(2, fmt::format("and {} more; --verbose lists them", plan.notes.size() - shown), Style::kDim);
}

}  // namespace

void print_plan(Page& page, const Plan& plan, bool verbose) {
  page.line({headline_of(page, plan)});
  page.paragraph(2, page.clean(sizes_of(plan)));
  page.blank();
  print_facts(page, plan);
  print_modules(page, plan, verbose);
  print_fits(page, plan, verbose);
  print_changes(page, plan, verbose);
  print_notes(page, plan, verbose);
}

std::string summary_of(const Plan& plan) {
  switch (plan.verdict) {
    case Verdict::kFits:
    case Verdict::kTight:
      return fmt::format("fits{}{}, {} to spare", plan.verdict == Verdict::kTight ? " tightly" : "",
                         plan.stopped.empty() ? "" : " as far as it was run", format_bytes(plan.spare_bytes())) +
             beside_verdict(plan);
    case Verdict::kFitsUntil:
      return fmt::format("fits until about {} {}", plan.until_unit, format_count(plan.until_step));
    case Verdict::kUnplanned: return "not planned: " + plan.unplanned;
    case Verdict::kDoesNotFit:
      return plan.missing_bytes() == 0 ? "does not fit"
                                       : fmt::format("does not fit, {} too little", format_bytes(plan.missing_bytes()));
    case Verdict::kMeasured: return "needs " + format_bytes(plan.needed_bytes);
    case Verdict::kProgramError:
      return std::string(plan.stand_in_line.empty()
                             ? "the program failed by itself"
                             : "the program failed, maybe for a number that a dry run does not compute") +
             (plan.exception ? " (" + plan.exception->type + ")" : "");
    case Verdict::kInterrupted: return "the program was stopped";
  }
  return {};
}

}  // namespace faultline
