#include "report/remedies_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <tuple>

#include "base/units.h"
#include "plan/needs.h"
#include "plan/rounds.h"

namespace faultline {
namespace {

constexpr std::size_t kRemediesShown = 3;
constexpr std::size_t kDiffLinesShown = 8;
constexpr std::uint64_t kCostOfBatch = 30;  // as a remedy; what asks for less comes before it

// With the rounds of a loop that were not run.
std::uint64_t needed_as_is(const Plan& plan) {
  return is_full_in_cut_loop(plan) ? std::max(plan.need.bytes, plan.growth.needed_at_end_bytes) : plan.need.bytes;
}

std::uint64_t saved_by(const Plan& plan, const PlanChange& change) {
  const std::uint64_t needed = needed_as_is(plan);
  const bool is_whole = change.until == 0 || !is_full_in_cut_loop(plan);
  return change.tried && is_whole && change.needed_bytes < needed ? needed - change.needed_bytes : 0;
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
  const std::string sign = name.starts_with('-') ? " " : " = ";
  const bool is_smaller = vary.largest_fitting < vary.current;
  const bool is_whole = is_smaller && vary.batches != 0 && vary.without_edit.empty();  // with the loop that accumulates
  const std::string batches =
      vary.batches == 0 ? std::string()
                        : fmt::format("{} batches of {} make {}", format_count(vary.batches), format_count(vary.batch),
                                      vary.batches * vary.batch == vary.current
                                          ? "the same " + format_count(vary.current)
                                          : fmt::format("{}, not {}", format_count(vary.batches * vary.batch),
                                                        format_count(vary.current)));
  const std::string_view tightly = vary.tight ? ", but tightly," : "";
  std::string text;
  if (is_whole)  // what to do comes first
    text = fmt::format("Use {}{}{}, with gradients accumulated: {} ({}). {} fits{}", name, sign,
                       format_count(vary.batch), batches, where, format_count(vary.largest_fitting), tightly);
  else if (is_smaller)
    text = fmt::format("Use {}{}{} ({}): it fits{}", name, sign, format_count(vary.largest_fitting), where, tightly);
  else
    text = fmt::format("{}{}{} ({}) fits{}", name, sign, format_count(vary.largest_fitting), where, tightly);
  text += vary.smallest_failing == 0 ? vary.stopped.empty()
                                           ? std::string("; larger values were not tried")
                                           : "; larger ones could not be tried: " + page.clean(vary.stopped)
                                     : fmt::format(" and {} does not", format_count(vary.smallest_failing));
  if (vary.smallest_failing != 0 && !vary.stopped.empty())
    text += "; what is between was not tried to the end: " + page.clean(vary.stopped);
  // gradients that are kept from batch to batch take memory too: what fits with them may be less than what fits alone
  if (vary.accumulated)
    text += vary.smallest_failing == 0 ? " (with accumulated gradients)" : " (both with accumulated gradients)";
  if (!is_whole && !batches.empty()) text += "; " + batches;
  if (vary.batches > kMostBatchesTried && !vary.diff.empty())
    text += fmt::format(", tried with {} to a step", format_count(kMostBatchesTried));
  page.item(page.yes(),
            fmt::format("{}.{}{}", text,
                        vary.runs == 0   ? ""
                        : vary.runs == 1 ? " Confirmed by a dry run."
                                         : fmt::format(" Confirmed by {} dry runs.", vary.runs),
                        vary.without_edit.empty()
                            ? std::string()
                            : " Tried without an edit of the source: " + page.clean(vary.without_edit) + "."));
}

// Changed lines of the program; short: without those that tell where they stand, and only the first.
void print_diff(Page& page, const std::string& diff, bool verbose) {
  std::istringstream lines(diff);
  std::size_t told = 0;
  std::string file;
  for (std::string line; std::getline(lines, line);) {
    if (!verbose && line.starts_with("+++ b/")) file = line.substr(6);
    if (!verbose && (line.starts_with("--- ") || line.starts_with("+++ "))) continue;
    if (!verbose && line.starts_with("@@ -")) line = file + ":" + line.substr(4, line.find(',') - 4);
    if (!verbose && told++ == kDiffLinesShown) {
      page.line({{"        -vv has the rest", Style::kDim}});
      return;
    }
    const Style style = line.starts_with('+') ? Style::kGood : line.starts_with('-') ? Style::kError : Style::kDim;
    page.line({{"        " + page.clean(line), style}});  // whole: it is to be applied
  }
}

void print_jointly(Page& page, const PlanJointly& jointly) {
  std::string list;
  for (const PlanPair& pair : jointly.fitting)
    list += fmt::format("{}{} up to {}", list.empty() ? "" : ", ", format_count(pair.batch), format_count(pair.length));
  page.item(page.yes(), fmt::format("{} with {} (now {} with {}): {}. Each confirmed by a dry run.",
                                    page.clean(jointly.batch_name), page.clean(jointly.length_name),
                                    format_count(jointly.batch), format_count(jointly.length), list));
}

std::string result_of(const Plan& plan, const PlanChange& change, bool wanted) {
  const std::uint64_t saved = saved_by(plan, change);
  const std::uint64_t difference = saved != 0 ? saved
                                   : change.until != 0 && is_full_in_cut_loop(plan)
                                       ? 0
                                       : change.needed_bytes - std::min(change.needed_bytes, needed_as_is(plan));
  std::string result = fmt::format("needs {}", format_bytes(change.needed_bytes));
  if (format_bytes(change.most_needed()) != format_bytes(change.needed_bytes))
    result += fmt::format(" (at most {})", format_bytes(change.most_needed()));
  if (difference != 0) result += fmt::format(", {} {}", format_bytes(difference), saved != 0 ? "less" : "more");
  if (!wanted) return "it " + result;
  if (change.until != 0)
    return fmt::format("it fits until about {} {}: {}", change.until_unit, format_count(change.until), result);
  return (!change.fits                                            ? "it is not enough: "
          : plan.gpu && is_tight(*plan.gpu, change.most_needed()) ? "it fits, but tightly: "
                                                                  : "it fits: ") +
         result;
}

void print_where(Page& page, const Plan& plan) {
  if (plan.tried.where.empty()) return;
  std::string as_is, with;
  bool for_a_while = false;
  for (const PlanWhere& where : plan.tried.where) {
    std::string& list = where.with.empty() ? as_is : with;
    list += (list.empty() ? "" : ", ") + page.clean(where.gpu.name) +
            (where.with.empty() ? "" : " (" + page.clean(where.with) + ")");
    if (where.until == 0) continue;
    for_a_while = true;
    list += fmt::format(" (until about {} {})", plan.run.steps != 0 ? "step" : "round", format_count(where.until));
  }
  if (!as_is.empty())
    page.item(page.dot(), "The smallest GPUs on which it fits as it is" +
                              std::string(for_a_while ? " for a while, because memory grows" : "") +
                              std::string(plan.run.stopped.empty() ? "" : ", as far as it was run") + ": " + as_is +
                              ".");
  if (as_is.empty())
    page.item(page.dot(), std::string("As it is it fits on no GPU of the catalogue") +
                              (plan.growth.is_there ? ", because memory grows." : "."));
  if (!with.empty()) page.item(page.dot(), "Smaller ones on which it fits with a change: " + with + ".");
}

// The first GPU that is enough for the program as it is; empty: none is.
std::string smallest_as_is(const Plan& plan) {
  for (const PlanWhere& where : plan.tried.where) {
    if (where.with.empty() && where.until == 0) return where.gpu.name;
  }
  return {};
}

// The least intrusive first. Unless all are asked for: those that make it fit, or where none does those that help alone.
std::vector<const PlanChange*> changes_to_tell(const Plan& plan, bool wanted, bool verbose) {
  const bool any_fits = std::any_of(plan.tried.changes.begin(), plan.tried.changes.end(),
                                    [](const PlanChange& c) { return c.tried && c.fits; });
  std::vector<const PlanChange*> told;
  for (const PlanChange& change : plan.tried.changes) {
    const bool helps = saved_by(plan, change) != 0 && change.remedies.size() <= 1;
    if (verbose || (change.tried && (wanted && any_fits ? change.fits : helps))) told.push_back(&change);
  }
  const auto rank = [](const PlanChange& change) { return std::tuple(!change.tried, !change.fits, change.cost); };
  std::stable_sort(told.begin(), told.end(),
                   [&](const PlanChange* a, const PlanChange* b) { return rank(*a) < rank(*b); });
  return told;
}

// What has no diff because the run was not made with one.
std::string without_edit(const Page& page, const PlanChange& change) {
  if (change.without_edit.empty()) return {};
  if (change.remedies.size() == 1) return " Tried without an edit of the source.";
  return fmt::format(" Tried without an edit of the source: {}.",
                     page.clean(fmt::format("{}", fmt::join(change.without_edit, ", "))));
}

// One remedy: what to do, and what it brings by which trial.
void print_change(Page& page, const Plan& plan, const PlanChange& change, bool wanted, bool verbose) {
  const std::string what = page.clean(change.what);
  const std::string detail = change.detail.empty() ? "" : " (" + page.clean(change.detail) + ")";
  if (!change.tried) {
    page.item(page.dot(),
              fmt::format("{}{}: {}, {}.", what, detail, change.begun ? "begun without a result" : "not tried",
                          page.clean(change.why_not)));
    return;
  }
  const bool saves = saved_by(plan, change) != 0;
  page.item(
      change.fits || (!wanted && saves) ? page.yes() : page.no(),
      fmt::format("{}{}. In {} {}.{}", what, detail, change.kind == ChangeKind::kSetting ? "a replay" : "a dry run",
                  result_of(plan, change, wanted), without_edit(page, change)));
  if (!verbose || change.instructions.size() <= 1) return;
  for (const std::string& one : change.instructions) page.paragraph(6, page.clean(one), Style::kDim);
}

// What was said to be tried, and has no row: it had no result.
void print_unfinished(Page& page, const Plan& plan) {
  std::string list;
  for (const PlanChange& change : plan.tried.changes) {
    if (!change.begun || change.tried) continue;
    list += (list.empty() ? "" : "; ") + page.clean(change.label.empty() ? change.what : change.label) + ": " +
            page.clean(change.why_not);
  }
  if (!list.empty()) page.paragraph(2, "Begun without a result: " + list + ".");
}

}  // namespace

void print_remedies(Page& page, const Plan& plan, bool verbose, const Finding* perhaps_leak) {
  const bool wanted = plan.verdict == Verdict::kDoesNotFit || plan.is_undecided() || is_full_in_cut_loop(plan);
  const std::vector<const PlanChange*> told = changes_to_tell(plan, wanted, verbose);
  const auto tried = static_cast<std::size_t>(std::count_if(plan.tried.changes.begin(), plan.tried.changes.end(),
                                                            [](const PlanChange& change) { return change.tried; }));
  const bool batch_fits = plan.tried.vary && plan.tried.vary->largest_fitting != 0;
  // That nobody asked for it and nothing was found is worth a line only where there is nothing better.
  const bool any_fits = std::any_of(told.begin(), told.end(), [](const PlanChange* change) { return change->fits; });
  const bool batch_is_told =
      plan.tried.vary && (verbose || told.empty() || plan.tried.vary->why_not.empty() ||
                          plan.tried.vary->name != "batch size" || (!plan.pool.framework.empty() && !any_fits));
  const bool none_helps = wanted && told.empty() && tried != 0 && !plan.tried.vary;
  if (told.empty() && !batch_is_told && !none_helps && plan.tried.skipped.empty() && plan.tried.where.empty() &&
      perhaps_leak == nullptr)
    return;
  page.blank();
  page.paragraph(0, wanted ? "What would make it fit" : "What was tried", Style::kStrong);
  bool diff_shown = false;
  if (perhaps_leak != nullptr)
    page.item(page.dot(), fmt::format("{} of what it needs piled up at one line (memory/leak, below): unless that is "
                                      "intended, fix it first; it fills a larger GPU, too.",
                                      format_bytes(perhaps_leak->bytes)));
  if (batch_is_told) {
    print_vary(page, *plan.tried.vary);
    if (!plan.tried.vary->command.empty())
      page.line({{"        " + page.clean(fmt::format("{}", fmt::join(plan.tried.vary->command, " "))), Style::kGood}});
    print_diff(page, plan.tried.vary->diff, verbose);
    diff_shown = !plan.tried.vary->diff.empty();
  }
  if (plan.tried.jointly) print_jointly(page, *plan.tried.jointly);
  const std::size_t most = verbose ? told.size() : kRemediesShown - (batch_fits ? 1 : 0);
  for (std::size_t at = 0; at < told.size() && at < most; ++at) {
    print_change(page, plan, *told[at], wanted, verbose);
    if (told[at]->diff.empty() || (!verbose && (diff_shown || !told[at]->fits))) continue;
    print_diff(page, told[at]->diff, verbose);
    diff_shown = true;
  }
  if (none_helps)
    page.paragraph(2, fmt::format("{} tried, and nothing that was tried helps (-vv lists it).",
                                  tried == 1 ? "One change was" : format_count(tried) + " changes were"));
  if (wanted && !any_fits && !told.empty() && !batch_fits) page.paragraph(2, "None of these is enough.");
  if (!verbose && told.size() > most)
    page.paragraph(2, fmt::format("and {} more; -vv lists them", told.size() - most), Style::kDim);
  if (!verbose) print_unfinished(page, plan);
  if (!plan.tried.skipped.empty()) page.paragraph(2, page.clean(plan.tried.skipped));
  print_where(page, plan);
}

void print_best_remedy(Page& page, const Plan& plan, const Finding* perhaps_leak) {
  const bool wanted = plan.verdict == Verdict::kDoesNotFit || plan.is_undecided() || is_full_in_cut_loop(plan);
  if (!wanted) return;
  const bool ends_it = std::ranges::any_of(plan.tried.changes, [](const PlanChange& change) {
    return change.tried && change.fits && change.remedies == std::vector<std::string>{"no_grad"};
  });
  if (perhaps_leak != nullptr && !ends_it)
    return page.row("fix", fmt::format("{} piled up at one line (memory/leak, below): fix that first, unless it is "
                                       "intended.",
                                       format_bytes(perhaps_leak->bytes)));
  const std::vector<const PlanChange*> told = changes_to_tell(plan, wanted, false);
  const bool batch_fits = plan.tried.vary && plan.tried.vary->why_not.empty() && plan.tried.vary->largest_fitting != 0;
  const bool change_fits = !told.empty() && told.front()->fits;
  if (!batch_fits && !change_fits) {
    const auto tried = std::count_if(plan.tried.changes.begin(), plan.tried.changes.end(),
                                     [](const PlanChange& change) { return change.tried; });
    if (!plan.tried.skipped.empty())
      page.row("fix", page.clean(plan.tried.skipped));
    else if (tried != 0)
      page.row("fix", tried == 1 ? "One change was tried, and is not enough."
                                 : fmt::format("{} changes were tried, and none is enough.", tried));
    const std::string enough = smallest_as_is(plan);
    if (!enough.empty())
      page.row(tried != 0 || !plan.tried.skipped.empty() ? "" : "fix",
               fmt::format("The smallest GPU on which it fits: {}.", page.clean(enough)));
    return;
  }
  page.blank();
  if (batch_fits && !(change_fits && told.front()->cost < kCostOfBatch)) {
    print_vary(page, *plan.tried.vary);
    if (!plan.tried.vary->command.empty())
      page.line({{"        " + page.clean(fmt::format("{}", fmt::join(plan.tried.vary->command, " "))), Style::kGood}});
    return print_diff(page, plan.tried.vary->diff, false);
  }
  print_change(page, plan, *told.front(), wanted, false);
  print_diff(page, told.front()->diff, false);
}

}  // namespace faultline
