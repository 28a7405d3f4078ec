#include "report/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "base/units.h"
#include "report/finding_text.h"
#include "report/limits_text.h"
#include "report/needs_text.h"
#include "report/phases_text.h"
#include "report/plan_tables.h"
#include "report/remedies_text.h"
#include "report/rule_pages.h"
#include "rules/old_program.h"
#include "trace/framework.h"

namespace faultline {
namespace {

constexpr int kBytesColumns = 14;
constexpr std::string_view kUnplannable = "Unplannable";  // what the dry run itself raises
constexpr std::size_t kErrorShown = 200;                  // characters of an exception's own words

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
  return fmt::format(" {} {}", plan.growth.unit == "round" ? "ROUND" : "STEP", format_count(plan.growth.until));
}

// A verdict that holds for what was run.
bool is_partly_seen(const Plan& plan) {
  return plan.verdict == Verdict::kFits || plan.verdict == Verdict::kTight || plan.verdict == Verdict::kMeasured;
}

// "8 optimizer steps"; of a framework whose steps are told by its calls "8 steps".
std::string steps_text(const Plan& plan, std::uint64_t steps) {
  return fmt::format("{} {}step{}", format_count(steps), plan.pool.framework.empty() ? "optimizer " : "",
                     steps == 1 ? "" : "s");
}

// What a step is, where that is not plain.
std::string round_text(const Plan& plan) {
  if (plan.run.optimizers < 2) return {};
  if (plan.has_unequal_optimizers()) return " of the optimizer that steps most often";
  return fmt::format(" (each a round of the {} optimizers)", plan.run.optimizers);
}

// "12 steps of one optimizer, 6 of the other".
std::string all_steps_text(const Plan& plan) {
  if (!plan.has_unequal_optimizers()) return steps_text(plan, plan.run.steps) + round_text(plan);
  const std::string most = format_count(plan.run.most_turns), least = format_count(plan.run.least_turns);
  return plan.run.optimizers == 2
             ? fmt::format("{} steps of one optimizer, {} of the other", most, least)
             : fmt::format("{} to {} steps of each of {} optimizers", least, most, plan.run.optimizers);
}

// What was not reached, and how to reach it.
std::string not_seen_text(const Plan& plan) {
  if (plan.run.stopped.empty()) return {};
  const std::string seen = plan.run.steps == 0             ? "only a part of the program"
                           : plan.has_unequal_optimizers() ? all_steps_text(plan)
                                                           : steps_text(plan, plan.run.steps) + " of the program";
  return fmt::format(" The plan saw {}; what comes after that was not seen (--steps 0 --seconds 0 runs to the end).",
                     seen);
}

Piece headline_of(const Page& page, const Plan& plan) {
  const auto& [style, text] = kHeadlines[static_cast<std::size_t>(plan.verdict)];
  if (!plan.trouble.stand_in_line.empty())
    return {"NOT PLANNED TO THE END: the program failed, maybe for a number that a dry run does not compute", style};
  if (plan.verdict == Verdict::kMeasured && plan.need.filling)
    return {page.clean("WHAT IT NEEDS DEPENDS ON THE GPU, and none was named (--gpu)" + beside_verdict(plan)),
            Style::kWarning};
  std::string more;
  if (plan.verdict == Verdict::kMeasured) more = " " + needed_text(plan);
  if (plan.verdict == Verdict::kFitsUntil) more = until_text(plan);
  const bool all_fit = !plan.devices.empty() && has_room(plan.verdict);
  if (plan.gpu && all_fit)
    more += fmt::format(" on {} GPUs; cuda:{}, {}, is the fullest",
                        plan.devices.size() == 2 ? "both" : fmt::format("all {}", plan.devices.size()), plan.device,
                        plan.gpu->name);
  else if (plan.gpu && is_judged(plan.verdict))
    more += " on " + (plan.devices.empty() ? "" : fmt::format("cuda:{}, ", plan.device)) + plan.gpu->name;
  if (!plan.run.stopped.empty() && is_partly_seen(plan)) more += ", as far as it was run";
  if (plan.failure.caught != 0 && plan.gpu && is_partly_seen(plan))
    more += fmt::format(", after {} that the program caught",
                        plan.failure.caught == 1 ? "an out-of-memory" : "out-of-memory errors");
  const std::string broken = broken_limits_text(plan);
  return {
      page.clean(std::string(plan.is_undecided() ? "TIGHT, MAY NOT FIT" : text) + more + beside_verdict(plan) + broken),
      broken.empty() ? style : Style::kError};
}

// What fits is the rest: the requests that failed are not in the number.
std::string caught_text(const Plan& plan) {
  if (plan.failure.caught == 0) return {};
  return fmt::format(" It ran out of memory {} and went on; what it requested then is not in this number.",
                     plan.failure.caught == 1 ? "once" : format_count(plan.failure.caught) + " times");
}

std::string fits_text(const Plan& plan) {
  const std::string capacity = format_bytes(plan.gpu->capacity_bytes);
  if (plan.need.filling)
    return fmt::format(
        "It fills the GPU on purpose: it asks how much is free ({}), and took {} less when it was told of {} less. It "
        "took {} of the {}",
        plan.need.filling->line, format_bytes(plan.need.filling->took_less_bytes),
        format_bytes(plan.need.filling->told_less_bytes), format_bytes(plan.need.bytes), capacity);
  if (plan.is_undecided())
    return fmt::format("It needs {} and the GPU has {}, which is between the two: whether it fits is not known",
                       needed_text(plan), capacity);
  if (plan.need.together_bytes <= plan.most_needed())
    return fmt::format("It needs {} and the GPU has {}: {}{} to spare", needed_text(plan), capacity,
                       needed_text(plan) == format_bytes(plan.need.bytes) ? "" : "at least ",
                       format_bytes(plan.spare_bytes()));
  return fmt::format(
      "The processes that ran at one time take up to {} together and the GPU has {}: {} to spare; the one that needs "
      "most needs {}",
      format_bytes(plan.need.together_bytes), capacity, format_bytes(plan.spare_bytes()), needed_text(plan));
}

// A program that asked how much memory there is, and was told of a GPU that nobody named.
std::string sized_text(const Plan& plan) {
  const PlanFilling& filling = *plan.need.filling;
  return fmt::format(
      "It asks how much memory the GPU has ({}) and was told of a size that was made up, {}. It took {} of it{}. Name "
      "the GPU: faultline plan --gpu T4 -- …",
      filling.line, format_bytes(2 * filling.told_less_bytes), format_bytes(plan.need.bytes),
      filling.took_less_bytes != 0
          ? fmt::format(", and {} less when it was told of half", format_bytes(filling.took_less_bytes))
          : ", and whether that follows from the answer is not known");
}

// How many steps the program makes, by the source of its loops.
std::string loop_text(const Plan& plan) {
  if (plan.growth.unit != "step")
    return plan.growth.loop.begun == 0 ? ""
           : plan.growth.loop.rounds == 0
               ? fmt::format(" How many rounds the program's own loop ({}) has is not known.", plan.growth.loop.where)
               : fmt::format(" The program's own loop ({}) has {} rounds.", plan.growth.loop.where,
                             format_count(plan.growth.loop.rounds));
  if (plan.growth.loop.steps == 0) return " How many steps the program makes is not known.";
  return fmt::format(" The program's own loop ({}, {} rounds) makes about {} optimizer steps.", plan.growth.loop.where,
                     format_count(plan.growth.loop.rounds), format_count(plan.growth.loop.steps));
}

// It grows, and comes to its end before the GPU is full.
std::string growing_text(const Plan& plan) {
  if (plan.growth.needed_at_end_bytes == 0) return {};
  const std::string how = plan.growth.unit.empty()
                              ? " Memory grows until what is kept is full."
                              : fmt::format(" Memory grows with every {}{}.{}", unit_text(plan),
                                            plan.growth.unit == "step" ? round_text(plan) : "", loop_text(plan));
  return fmt::format(
      "{} It then needs about {} of the {}{}.", how, format_bytes(plan.growth.needed_at_end_bytes),
      format_bytes(plan.gpu->capacity_bytes),
      is_tight(*plan.gpu, plan.growth.needed_at_end_bytes) ? ", which leaves less than the figures are sure of" : "");
}

// After how many rounds it needs what was seen.
std::string seen_rounds_text(const Plan& plan) {
  const std::uint64_t seen = plan.growth.unit == "round" ? plan.growth.loop.begun : plan.run.steps;
  return seen != 0 ? format_count(seen) + " of them" : "what was seen";
}

// It is full before its loop ends.
std::string at_end_text(const Plan& plan) {
  return plan.growth.needed_at_end_bytes == 0 ? ""
                                              : fmt::format(" To the end of that loop it needs about {}.",
                                                            format_bytes(plan.growth.needed_at_end_bytes));
}

// A signal from outside, which is not the program's doing.
std::string cut_text(const Plan& plan) {
  return plan.run.interrupted
             ? " The plan was stopped by a signal (Ctrl-C, kill, a time limit): runs that were to follow "
               "were not made, or not to their end."
             : "";
}

// Brief: what makes the verdict worth less stays, in a few words; how its numbers come about goes.
std::string sizes_of(const Plan& plan, bool brief) {
  const std::string needed = needed_text(plan);
  const std::string estimated = !brief                        ? estimate_text(plan)
                                : estimate_text(plan).empty() ? ""
                                                              : " Part of it is estimated.";
  const auto more = [&](std::string text) { return brief ? std::string() : text; };
  const std::string most = !brief ? most_text(plan)
                           : most_text(plan).empty()
                               ? ""
                               : " Sizes that depend on values are taken as large as they can be.";
  const std::string not_seen =
      !brief || plan.run.stopped.empty() ? not_seen_text(plan)
      : plan.run.steps == 0
          ? fmt::format(" The dry run stopped it {}; what comes after that was not seen.", plan.run.stopped)
          : fmt::format(" What comes after {} was not seen.", all_steps_text(plan));
  const std::string capacity = plan.gpu ? format_bytes(plan.gpu->capacity_bytes) : "";
  switch (plan.verdict) {
    case Verdict::kDoesNotFit:
      if (plan.missing_bytes() == 0 && plan.need.limit_bytes != 0) {
        return fmt::format("The program's own limit of {} was reached; without it {} of the {} would be enough.",
                           format_bytes(plan.need.limit_bytes), needed, capacity);
      }
      if (plan.missing_bytes() == 0)
        return std::string("A request could not be served.") +
               (plan.need.is_least ? " What it needs in all is not known." : "") + cut_text(plan);
      return (plan.is_known_in_all()
                  ? fmt::format("It needs {} and the GPU has {}: {} too little.", needed, capacity, missing_text(plan))
              : plan.need.is_least
                  ? fmt::format(
                        "It needs at least {} and the GPU has {}: {} too little. What it takes after that is not "
                        "known.",
                        needed, capacity, missing_text(plan))
                  : fmt::format("As far as it was run it needs {} and the GPU has {}: {} too little.", needed, capacity,
                                missing_text(plan))) +
             (plan.failure.in_step > 1
                  ? fmt::format(" It fits until step {}, which fails.", format_count(plan.failure.in_step))
                  : "") +
             estimated +
             more(plan.pool.framework.empty() ? more_than_taken_text(plan) + taken_text(plan) : pool_text(plan)) +
             most + cut_text(plan);
    case Verdict::kFitsUntil:
      return fmt::format(
                 "Memory grows with every {}{}: after {} it needs {} of the {}, and the GPU is full at about {} {}{}.",
                 unit_text(plan), plan.growth.unit == "step" ? round_text(plan) : "", seen_rounds_text(plan), needed,
                 capacity, unit_text(plan), format_count(plan.growth.until),
                 plan.growth.until_latest == 0
                     ? ""
                     : fmt::format(" to {}, because it does not grow evenly", format_count(plan.growth.until_latest))) +
             estimated + loop_text(plan) + more(at_end_text(plan) + not_seen) + cut_text(plan);
    case Verdict::kUnplanned:
      return fmt::format("{}{}. Whether it fits is not known.", plan.trouble.unplanned,
                         plan.trouble.unplanned_line.empty() ? "" : " (" + plan.trouble.unplanned_line + ")") +
             (plan.peak.reserved_bytes != 0 ? fmt::format(" What was planned needs {}.", needed) : "");
    case Verdict::kFits:
      return fits_text(plan) + "." + estimated + growing_text(plan) + more(pool_text(plan) + taken_text(plan)) +
             caught_text(plan) + not_seen + cut_text(plan);
    case Verdict::kTight:
      return fits_text(plan) +
             (plan.gpu && !plan.is_undecided() && is_tight(*plan.gpu, plan.whole_need())
                  ? ", which is less than the figures are sure of."
                  : ".") +
             estimated + growing_text(plan) + more(pool_text(plan) + taken_text(plan)) + caught_text(plan) + most +
             not_seen + cut_text(plan);
    case Verdict::kMeasured:
      if (plan.need.filling) return sized_text(plan);
      return fmt::format("{} of it is for the CUDA context and libraries, an assumption.",
                         format_bytes(plan.context_bytes)) +
             estimated + more(taken_text(plan)) + not_seen;
    case Verdict::kProgramError:
    case Verdict::kInterrupted:
      return (plan.trouble.stand_in_line.empty()
                  ? ""
                  : fmt::format("Before it failed it read a stand-in ({}): if it failed on that, the dry run is to "
                                "blame and not the program, and --real computes the number. ",
                                plan.trouble.stand_in_line)) +
             fmt::format("Until there it needed {}{}.", needed,
                         plan.gpu ? " of the " + capacity + " of " + plan.gpu->name : "");
  }
  return {};
}

std::string peak_text(const Page& page, const Plan& plan) {
  std::uint64_t known = plan.context_bytes + plan.peak.outside_bytes;
  for (const auto& [category, size_bytes] : plan.peak.live) known += size_bytes;
  std::string text = page.clean(live_text(plan.peak.live));
  // a pool that grew where the GPU is full says nothing by what is free in it
  const std::uint64_t taken_bytes =
      plan.failure.happened && !plan.pool.framework.empty() ? known : plan.need.taken_bytes;
  if (taken_bytes > known)
    text += fmt::format(" + {} {}", format_bytes(taken_bytes - known),
                        plan.pool.framework.empty() ? "cached" : "free in the pool");
  if (plan.peak.outside_bytes != 0)
    text += fmt::format(" + {} {}", format_bytes(plan.peak.outside_bytes),
                        plan.pool.framework.empty() ? "outside PyTorch's allocator" : "beside the pool");
  text += fmt::format(
      " + {} {}", format_bytes(plan.context_bytes),
      plan.pool.framework == file_name_of(Framework::kTensorFlow) ? "context and TensorFlow's reserve" : "context");
  return text.substr(text.starts_with(" + ") ? 3 : 0) + " = " + format_bytes(std::max(known, taken_bytes));
}

std::string shown_command(const Page& page, const Plan& plan) {
  std::string text;
  for (const std::string& word : plan.command) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$&|;<>()*?") == std::string::npos;
    text += (text.empty() ? "" : " ") + (plain ? word : "'" + word + "'");
  }
  return shorten_middle(page.clean(text), 2 * page.row_room(), page.unicode());
}

// What PyTorch took of each; the context comes on top where one is used.
std::string devices_text(const Plan& plan) {
  std::string text;
  for (const PlanDevice& device : plan.devices) {
    text += fmt::format("{}cuda:{} {}", text.empty() ? "" : ", ", device.index,
                        device.reserved_bytes == 0 ? "not used" : format_bytes(device.reserved_bytes));
  }
  return text + fmt::format(" at the fullest, without the context; the plan is about cuda:{}, which {}", plan.device,
                            plan.failure.happened ? "was full" : "is the fullest");
}

// "ValueError: no such file", without the pages that some messages have.
std::string exception_text(const Page& page, const PlanException& exception, bool verbose) {
  std::string words = page.clean(exception.message);
  if (!verbose && words.size() > kErrorShown) words = shorten_middle(words, kErrorShown, page.unicode());
  return page.clean(exception.type) + (words.empty() ? "" : ": " + words);
}

void print_exception(Page& page, const Plan& plan, const PlanContext& context) {
  const int room = page.row_room();
  if (!plan.trouble.exception) {
    if (plan.verdict == Verdict::kInterrupted && !plan.run.stopped.empty())
      page.row("ended", fmt::format("the dry run stopped the program {}", plan.run.stopped));
    else if (plan.verdict == Verdict::kProgramError || plan.verdict == Verdict::kInterrupted)
      page.row("ended", plan.run.exit_status >= 128 ? fmt::format("by signal {}", plan.run.exit_status - 128)
                                                    : fmt::format("with status {}", plan.run.exit_status));
    return;
  }
  if (plan.verdict == Verdict::kUnplanned &&
      plan.trouble.exception->type == kUnplannable) {  // the verdict has its words
    page.row("where", page.place(plan.trouble.exception->location, room), Style::kStrong);
    return page.source_row(plan.trouble.exception->location);
  }
  const std::string words = exception_text(page, *plan.trouble.exception, context.verbose);
  if (plan.failure.happened) {
    page.row("ended", fmt::format("with {}, raised while the out-of-memory was handled", words));
    page.row("", page.place(plan.trouble.exception->location, room));
    return;
  }
  page.row("error", words, Style::kStrong);
  if (context.exception_is_judged && !context.verbose) return;  // its finding has the place
  page.row("where", page.place(plan.trouble.exception->location, room), Style::kStrong);
  page.source_row(plan.trouble.exception->location);
  if (context.exception_is_judged) return;
  page.row("", fmt::format("The program ended with this {}; Faultline does not judge it.",
                           page.clean(plan.trouble.exception->type)));
  if (const std::string_view remedy = remedy_for_old_program(plan.trouble.exception->message); !remedy.empty())
    page.row("try", std::string(remedy));
}

void print_failure(Page& page, const Plan& plan, const PlanContext& context) {
  if (!plan.failure.happened) return;
  std::string place =
      plan.failure.at.known() ? page.place(plan.failure.at, page.row_room()) : "at a line that is not known";
  if (plan.failure.in_step != 0)
    place += fmt::format(", in step {}", plan.failure.in_step);
  else if (plan.failure.steps_before != 0)
    place += fmt::format(
        ", {}after {}",
        plan.failure.phase.empty() || plan.failure.phase == "training" ? "" : "in " + plan.failure.phase + " ",
        plan.has_unequal_optimizers()
            ? fmt::format("at least {} step{} of each optimizer", format_count(plan.failure.steps_before),
                          plan.failure.steps_before == 1 ? "" : "s")
            : steps_text(plan, plan.failure.steps_before));
  page.row(plan.is_undecided() ? "may fail at" : "fails at", place, Style::kStrong);
  if (context.brief) page.source_row(plan.failure.at);
  if (context.failure == nullptr || context.verbose) return;
  const Finding& failure = *context.failure;
  for (const Related& item : failure.related) {
    if (item.role == Related::kInside) page.row("inside", page.place(item.location, page.row_room()), Style::kDim);
  }
  for (const Location& caller : failure.call_path) {
    if (caller.file == plan.failure.at.file && caller.line == plan.failure.at.line) continue;
    page.row("called from", page.place(caller, page.row_room()));
    break;
  }
  std::string memory = page.clean(failure.memory);
  if (context.brief) memory = first_sentences(memory, page.row_room() - kBytesColumns, 1);
  page.row("requested", format_bytes(failure.bytes) + (memory.empty() ? "" : ". " + memory));
  if (!context.brief) page.row("read", command_for_page(failure.rule), Style::kDim);
  if (!failure.cause.empty() && failure.cause != "exhausted") page.row("because", page.clean(failure.message));
}

void print_facts(Page& page, const Plan& plan, const PlanContext& context) {
  page.row("command", shown_command(page, plan));
  print_exception(page, plan, context);
  print_failure(page, plan, context);
  if (plan.failure.caught != 0)
    page.row("on the way",
             fmt::format("out of memory {} and the program went on",
                         plan.failure.caught == 1 ? "once" : format_count(plan.failure.caught) + " times"));
  if (!plan.peak.live.empty()) page.row("at the peak", peak_text(page, plan));
  if (!plan.devices.empty()) page.row("each GPU", devices_text(plan));
  for (const auto& [label, text] : limit_rows(plan)) page.row(label, page.clean(text));
  const bool is_sure = plan.gpu && plan.gpu->capacity_source != "assumed" && plan.gpu->context_source != "assumed";
  if (plan.gpu && (context.verbose || !is_sure)) {
    page.row("the GPU", fmt::format("{} ({}), of which the CUDA context and libraries take {} ({})",
                                    format_bytes(plan.gpu->capacity_bytes), page.clean(plan.gpu->capacity_source),
                                    format_bytes(plan.gpu->context_bytes), page.clean(plan.gpu->context_source)));
  }
  const bool is_whole = plan.run.steps == 0 && plan.run.stopped.empty() && !plan.trouble.exception;
  std::string seen = fmt::format("{} in {:.1f} s, imports included",
                                 is_whole              ? "the whole program"
                                 : plan.run.steps == 0 ? "a part of the program"
                                                       : all_steps_text(plan),
                                 plan.run.seconds);
  if (!plan.run.stopped.empty())
    seen += fmt::format("; the dry run stopped the program {}", page.clean(plan.run.stopped));
  if (plan.run.processes > 1)
    seen += fmt::format("; {} processes used a GPU, this is the one that needs most", format_count(plan.run.processes));
  page.row("seen", seen);
  if (plan.failure.happened && !context.verbose && !plan.notes.empty())
    page.row("assumed", note_text(page, plan.notes.front()) +
                            (plan.notes.size() == 1 ? "" : fmt::format("; and {} more (-vv)", plan.notes.size() - 1)));
  print_effects(page, plan.effects);
}

}  // namespace

// Where the program goes on after what was planned nothing else helps for long, and no GPU is large enough.
static void print_leak(Page& page, const Finding& leak) {
  page.blank();
  page.paragraph(0, "What would make it fit", Style::kStrong);
  page.item(page.dot(),
            fmt::format("Fix the leak shown below: {} of what it needs had piled up when the plan ended, and "
                        "every further round adds to it, on a larger GPU too. What else was tried: -vv.",
                        format_bytes(leak.bytes)));
}

// In about a dozen lines: what a person needs to go on.
static void print_brief(Page& page, const Plan& plan, const PlanContext& context) {
  page.blank();
  print_exception(page, plan, context);
  print_failure(page, plan, context);
  if (!plan.peak.live.empty() && (plan.failure.happened || !plan.gpu)) page.row("at the peak", peak_text(page, plan));
  for (const auto& [label, text] : limit_rows(plan)) page.row(label, page.clean(text));
  if (plan.gpu && (plan.gpu->capacity_source == "assumed" || plan.gpu->context_source == "assumed"))
    page.row("assumed", fmt::format("{} for the CUDA context and libraries", format_bytes(plan.gpu->context_bytes)));
  print_fits(page, plan, false);
  const bool any_fits = std::ranges::any_of(plan.tried.changes, [](const PlanChange& c) { return c.tried && c.fits; });
  if (context.leak != nullptr && !any_fits) return;  // the finding below is what to mend
  print_best_remedy(page, plan, context.perhaps_leak);
}

void print_plan(Page& page, const Plan& plan, const PlanContext& context) {
  page.line({headline_of(page, plan)});
  page.paragraph(2, page.clean(sizes_of(plan, context.brief)));
  if (context.verdict_only) return page.row("command", shown_command(page, plan));
  if (context.brief) return print_brief(page, plan, context);
  page.blank();
  print_facts(page, plan, context);
  print_modules(page, plan, context.verbose);
  if (context.leak != nullptr && !context.verbose) {  // it is told below, with the lines that hold the memory
    const bool any_fits = std::any_of(plan.tried.changes.begin(), plan.tried.changes.end(),
                                      [](const PlanChange& c) { return c.tried && c.fits; });
    if (plan.run.stopped.empty() && any_fits)
      print_remedies(page, plan, false);
    else
      print_leak(page, *context.leak);
    return print_notes(page, plan, false);
  }
  if (context.failure != nullptr && !context.verbose)
    print_holders(page, plan.pool.framework.empty() ? "made at" : "at failure", context.failure->holders, false);
  print_phases(page, plan);
  print_fits(page, plan, context.verbose);
  print_remedies(page, plan, context.verbose, context.perhaps_leak);
  print_notes(page, plan, context.verbose);
}

}  // namespace faultline
