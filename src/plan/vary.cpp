#include "plan/vary.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "fmt/format.h"
#include "plan/needs.h"
#include "plan/number_names.h"
#include "plan/rounds.h"

namespace faultline {
namespace {

constexpr std::uint64_t kMostRuns = 8;
constexpr std::size_t kHalves = 4;
constexpr std::uint64_t kWide = 8;                 // a value that fits is less than this part of one that does not
constexpr std::uint64_t kCloseEnough = 64;         // a border known to this part of the value is close enough
constexpr std::string_view kShortArgument = "-b";  // of a batch

std::string with_dashes(std::string_view name) {
  std::string text(name);
  std::replace(text.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, text.size())), text.end(), '_', '-');
  return text;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

bool names_it(std::string_view word, const std::string& name) {
  if (!name.empty()) {
    const std::size_t dot = word.rfind('.');
    const std::string_view last = !word.starts_with('-') && dot != std::string_view::npos ? word.substr(dot + 1) : word;
    return with_dashes("--" + std::string(last)) == with_dashes("--" + name) ||
           with_dashes(word) == with_dashes("--" + name) || word == name;
  }
  if (!word.starts_with('-')) return names_it(word, "batch_size");
  const std::string dashed = with_dashes(word);
  const auto is_it = [&](std::string_view batch) { return dashed == with_dashes("--" + std::string(batch)); };
  return dashed == kShortArgument || std::ranges::any_of(number_names(NumberKind::kBatch), is_it);
}

// One value that was tried.
struct Point {
  std::uint64_t value = 0;
  std::uint64_t needed_bytes = 0;
  bool fits = false;
  std::string problem;  // the number means nothing
  std::string where;    // of a number in the source: where it stands, and what it is there
  std::uint64_t original = 0;
  std::vector<Edit> edited;  // with which it was run, all of its changes; empty: it was changed otherwise
};

}  // namespace

std::optional<InCommand> find_in_command(const std::vector<std::string>& command, const std::string& name) {
  for (std::size_t at = 1; at < command.size(); ++at) {
    const std::string& word = command[at];
    const std::size_t sign = word.find('=');
    if (sign != std::string::npos && names_it(word.substr(0, sign), name)) {
      if (const auto value = number_in(std::string_view(word).substr(sign + 1)))
        return InCommand{at, word.substr(0, sign + 1), word.substr(0, sign), *value};
    }
    if (sign == std::string::npos && word.starts_with('-') && at + 1 < command.size() && names_it(word, name)) {
      if (const auto value = number_in(command[at + 1])) return InCommand{at + 1, "", word, *value};
    }
  }
  return std::nullopt;
}

namespace {

// Where the evaluation of a program that trains does not fit, its own batch comes before that of the training.
std::vector<std::string> names_to_search(const Plan& plan, const std::string& name) {
  if (!name.empty()) return {name};
  std::vector<std::string> names;
  for (const NumberKind kind : {NumberKind::kServed, NumberKind::kBatch}) {
    if (kind == NumberKind::kServed && (!plan.failure.happened || plan.failure.phase != "evaluation")) continue;
    names.insert(names.end(), number_names(kind).begin(), number_names(kind).end());
  }
  return names;
}

bool is_served(std::string_view name) {
  const auto is_it = [&](std::string_view served) {
    return name == served || with_dashes(name) == with_dashes("--" + std::string(served));
  };
  return std::ranges::any_of(number_names(NumberKind::kServed), is_it);
}

std::optional<InCommand> find_one_in_command(const Plan& plan, const std::string& name) {
  for (const std::string& one : names_to_search(plan, name)) {
    if (!is_served(one)) break;
    if (auto found = find_in_command(plan.command, one)) return found;
  }
  return find_in_command(plan.command, name);
}

class Search {
 public:
  Search(const Reruns& reruns, const Plan& plan, const std::string& name, const ProcessSummary& as_run)
      : reruns_(reruns),
        plan_(plan),
        as_run_(as_run),
        accumulates_(as_run.does("backward") && !as_run.does("accumulates") && plan.run.steps > 1),
        in_command_(find_one_in_command(plan, name)),
        current_{0,
                 std::max(plan.need.bytes, plan.growth.unit.empty() ? 0 : plan.growth.needed_at_end_bytes),
                 plan.verdict != Verdict::kDoesNotFit && !plan.is_undecided() && !is_full_in_cut_loop(plan),
                 {},
                 {},
                 0,
                 {}} {
    if (const Offer* batch = as_run.of_number(OfferedNumber::kBatch)) accumulation_ = batch->beside;
  }

  // Nothing where no number of that name, or of a usual one, was found.
  std::optional<PlanVary> run(const std::string& name) {
    std::optional<Point> lowest = in_command_ ? std::nullopt : find_in_source(name);
    if (in_command_)
      vary_.name = in_command_->name, vary_.where = "in the command", vary_.current = in_command_->value;
    else if (!lowest)
      return std::nullopt;
    current_.value = vary_.current;
    if (current_.fits)
      search_up();
    else
      search_down(lowest ? std::move(*lowest) : try_value(1));
    if (!in_command_ && trains_with_another()) vary_.current = as_run_.training_batch;
    vary_.accumulated = accumulated_;
    if (accumulated_ && vary_.largest_fitting != 0 && vary_.largest_fitting < vary_.current) find_batch_to_accumulate();
    vary_.runs = measured_;
    if (vary_.largest_fitting != 0 && vary_.largest_fitting != vary_.current) tell_how();
    vary_.tight = vary_.largest_fitting != 0 && is_tight(*plan_.gpu, needed_bytes_);
    return std::move(vary_);
  }

 private:
  // many: so many batches make a step by an edit of the loop; 0: gradients are kept without one.
  // to_the_end: as many steps as the program as it is made, each of many batches.
  std::vector<Point> try_values(const std::vector<std::uint64_t>& values, std::uint64_t many = 0,
                                bool to_the_end = false) {
    std::vector<Attempt> attempts;
    const std::uint64_t tried_many = std::clamp<std::uint64_t>(many, 1, kMostBatchesTried);
    for (const std::uint64_t value : values) {
      Attempt attempt{fmt::format("tries/{}={}", in_command_ ? "argument" : vary_.name, value), plan_.command, {}, {}};
      // a folder holds one run
      for (std::size_t again = 1; !folders_.insert(attempt.folder).second; ++again)
        attempt.folder = fmt::format("tries/{}={}-{}", in_command_ ? "argument" : vary_.name, value, again);
      if (in_command_)
        attempt.command[in_command_->word] = in_command_->head + std::to_string(value);
      else
        put_into_source(attempt, value);
      attempt.steps = to_the_end ? plan_.steps_to_repeat() : steps_of_trial(plan_, tried_many);
      if (accumulates_ && !is_served(vary_.name) && value < vary_.current && !accumulation_.empty())
        attempt.changes[accumulation_] = "true";
      if (many != 0) attempt.edits[accumulation_] = as_run_.accumulation, attempt.many = tried_many;
      attempts.push_back(std::move(attempt));
    }
    runs_ += attempts.size();
    const std::vector<DryRunResult> results = reruns_.run(attempts);
    std::vector<Point> points;
    for (std::size_t at = 0; at < results.size(); ++at) {
      const Result<Needs> needs = needs_of(results[at], plan_, tried_many);
      Point point{values[at],
                  needs ? needs->needed_bytes() : 0,
                  needs && fits_to_the_end(*needs, *results[at].main(), plan_),
                  needs ? std::string() : needs.error().what,
                  {},
                  0,
                  {}};
      if (const ProcessSummary* main = results[at].main()) {
        point.where = main->vary_where;
        point.original = main->vary_value;
        accumulated_ = accumulated_ || main->changes.contains(accumulation_);
        if (std::ranges::all_of(attempts[at].edits, [&](const auto& one) { return main->was_edited(one.first); }))
          point.edited = main->edited;
      }
      if (point.problem.empty()) ++measured_;
      points.push_back(std::move(point));
    }
    return points;
  }
  Point try_value(std::uint64_t value, std::uint64_t many = 0, bool to_the_end = false) {
    return std::move(try_values({value}, many, to_the_end).front());
  }

  bool is_changed(const ProgramNumber& number, std::uint64_t to) const {
    return training_alone_ ? number.value == vary_.current : number.changes_with(to, vary_.current);
  }

  // Where the source has the number as plain digits the run is of an edited source.
  void put_into_source(Attempt& attempt, std::uint64_t value) const {
    attempt.vary = {vary_.name, value};
    std::vector<Edit> edits;
    for (const ProgramNumber& number : as_run_.numbers) {
      if (number.name != vary_.name || !is_changed(number, value)) continue;
      if (number.edits.empty()) return;
      const std::vector<Edit> filled = filled_in(number.edits, kValuePlace, value);
      edits.insert(edits.end(), filled.begin(), filled.end());
    }
    if (!edits.empty()) attempt.edits[std::string(kVary)] = std::move(edits);
  }

  // Of several numbers of the name the largest fills the memory; what is accumulated makes the one that the training takes.
  bool trains_with_another() const {
    return as_run_.training_batch != 0 && as_run_.training_batch != vary_.current &&
           std::any_of(as_run_.numbers.begin(), as_run_.numbers.end(), [&](const ProgramNumber& number) {
             return number.name == vary_.name && number.value == as_run_.training_batch;
           });
  }

  // Several of it make the batch that the program has, or a little more where nothing near the largest that fits divides that.
  void find_batch_to_accumulate() {
    const std::uint64_t largest = vary_.largest_fitting, current = vary_.current;
    std::uint64_t value = largest;
    while (current % value != 0 && 2 * value > largest) --value;
    if (current % value != 0) {
      const std::uint64_t many = (current + largest - 1) / largest;
      value = (current + many - 1) / many;
    }
    const std::uint64_t many = (current + value - 1) / value;
    if (reruns_.interrupted()) return;
    vary_.without_edit = "the loop that accumulates";
    if (!as_run_.accumulation.empty()) {
      Point point = try_value(value, many);
      // gaps between tensors may grow for some steps: what fits with little to spare is run to its end
      if (point.fits && plan_.run.stopped.empty() && is_tight(*plan_.gpu, point.needed_bytes))
        point = try_value(value, many, true);
      if (point.problem.empty() && point.fits && !point.edited.empty()) {
        vary_.without_edit.clear();
        with_loop_ = filled_in(std::move(point.edited), kManyPlace, many);
      } else if (!point.problem.empty()) {
        vary_.without_edit += " (with an edit of it, " + point.problem + ")";
      }
    }
    if (value != largest && with_loop_.empty()) {
      const Point point = try_value(value);
      if (!point.problem.empty() || !point.fits) return;
    }
    vary_.batch = value;
    vary_.batches = many;
  }

  // The change as it was run: the command, the source, and where it trains on a smaller batch the loop that accumulates.
  void tell_how() {
    const std::uint64_t value = with_loop_.empty() ? vary_.largest_fitting : vary_.batch;
    if (in_command_) {
      vary_.command = plan_.command;
      vary_.command[in_command_->word] = in_command_->head + std::to_string(value);
    }
    vary_.diff = diff_of(with_loop_.empty() ? edits_ : with_loop_);
    if (!in_command_ && vary_.diff.empty()) vary_.without_edit = "the number";
  }

  // A first run with 1 tells where the number stands, and what it is.
  std::optional<Point> find_in_source(const std::string& name) {
    std::vector<std::string> names = names_to_search(plan_, name);
    if (name.empty() && as_run_.ended_in_order)
      std::erase_if(names, [&](const std::string& one) {
        return std::none_of(as_run_.numbers.begin(), as_run_.numbers.end(),
                            [&](const ProgramNumber& number) { return number.name == one; });
      });
    std::optional<Point> idle;  // the first that changes nothing, where there may be another
    std::string idle_name;
    for (const std::string& candidate : names) {
      if (reruns_.interrupted()) break;
      vary_.name = candidate;
      vary_.current = 0;
      Point point = try_value(1);
      if (point.original == 0) continue;
      if (point.problem.empty() && point.needed_bytes >= current_.needed_bytes && as_run_.ended_in_order) {
        if (!idle) idle = std::move(point), idle_name = candidate;
        continue;
      }
      return found(std::move(point));
    }
    if (!idle) return std::nullopt;
    vary_.name = idle_name;
    return found(std::move(*idle));
  }
  Point found(Point point) {
    vary_.where = point.where;
    vary_.current = point.original;
    if (current_.fits || plan_.failure.phase != "training" || !trains_with_another() || reruns_.interrupted())
      return point;
    // the largest of the name is another loader's: it stays where the training's alone is enough
    training_alone_ = true;
    vary_.current = as_run_.training_batch;
    Point alone = try_value(point.value);
    if (alone.problem.empty() && alone.fits && !alone.edited.empty()) {
      vary_.where = place_of_training();
      return alone;
    }
    training_alone_ = false;
    vary_.current = point.original;
    return point;
  }

  std::string place_of_training() const {
    std::set<std::string> places;
    for (const ProgramNumber& number : as_run_.numbers) {
      if (number.name != vary_.name || number.value != vary_.current || number.edits.empty()) continue;
      const std::string& file = number.edits.front().file;
      places.insert(fmt::format("{}:{}", file.substr(file.rfind('/') + 1), number.edits.front().line));
    }
    return fmt::format("{}", fmt::join(places, ", "));
  }

  // It does not fit as it is: from below.
  void search_down(Point lowest) {
    // batch normalisation needs two
    if (!lowest.problem.empty() && lowest.value == 1 && vary_.current > 2) lowest = try_value(2);
    if (!lowest.problem.empty() && !reruns_.interrupted()) lowest = least_half(std::move(lowest));
    if (!lowest.problem.empty()) {
      vary_.why_not = "with " + std::to_string(lowest.value) + ", " + lowest.problem;
    } else if (lowest.needed_bytes >= current_.needed_bytes && vary_.current > lowest.value) {
      vary_.why_not = fmt::format("with {} in place of {} the program needs just as much", lowest.value, vary_.current);
    } else if (!lowest.fits) {
      vary_.smallest_failing = lowest.value;
    } else {
      narrow(std::move(lowest), current_);
    }
  }

  // A program that refuses small numbers may want a multiple of something: halves of the one it has keep what divides it.
  Point least_half(Point refused) {
    std::vector<std::uint64_t> halves;
    for (std::uint64_t value = vary_.current; value % 2 == 0 && value / 2 > 2 && halves.size() < kHalves; value /= 2)
      halves.push_back(value / 2);
    if (halves.empty()) return refused;
    for (Point& point : try_values(halves)) {
      if (point.problem.empty()) refused = std::move(point);  // the smallest comes last
    }
    runs_ -= halves.size();  // they only tell where to begin
    unit_ = refused.problem.empty() ? refused.value : 1;
    return refused;
  }

  // It fits as it is: upwards by doubling until it does not.
  void search_up() {
    Point low = current_;
    keep(low);
    while (runs_ + 2 < kMostRuns && !reruns_.interrupted()) {
      Point next = try_value(low.value * 2);
      if (!next.problem.empty()) {
        vary_.stopped = fmt::format("with {}, {}", next.value, next.problem);
        return;
      }
      if (!next.fits) return narrow(std::move(low), std::move(next));
      low = std::move(next);
      keep(low);
    }
    // Small batches may well need the same, in segments of the allocator; that no large one needs more means that it is no batch.
    if (low.value > current_.value && low.needed_bytes <= current_.needed_bytes && !reruns_.interrupted()) {
      vary_.why_not = fmt::format("with {} in place of {} the program needs no more", low.value, current_.value);
    }
  }

  void keep(const Point& fitting) {
    vary_.largest_fitting = fitting.value;
    needed_bytes_ = fitting.needed_bytes;
    edits_ = fitting.edited;
  }

  // Between a value that fits and one that does not. What is needed grows about evenly with a batch, so a straight line leads close.
  void narrow(Point low, Point high) {
    bool far_off = false;  // the line led astray: halve instead
    int misses = 0;        // rounds in a row of which nothing fitted
    while (true) {
      keep(low);
      vary_.smallest_failing = high.value;
      const std::uint64_t before = high.value - low.value;
      if (before <= std::max<std::uint64_t>(unit_, low.value / kCloseEnough) || runs_ + 1 >= kMostRuns ||
          reruns_.interrupted())
        return;
      const double span = static_cast<double>(high.needed_bytes) - static_cast<double>(low.needed_bytes);
      const double room = static_cast<double>(plan_.gpu->capacity_bytes) - static_cast<double>(low.needed_bytes);
      const double share = span > 0 && !far_off ? std::clamp(room / span, 0.0, 1.0) : 0.5;
      const auto guess = low.value + static_cast<std::uint64_t>(share * static_cast<double>(before));
      const std::uint64_t above = (low.value / unit_ + 1) * unit_, below = (high.value - 1) / unit_ * unit_;
      if (above > below) return;
      const auto within = [&](std::uint64_t value) { return std::clamp(value / unit_ * unit_, above, below); };
      const bool is_wide =
          (far_off || misses >= 2) && high.value / kWide > low.value;  // two that are far from each other say more
      const std::uint64_t first = within(is_wide ? high.value / kWide : guess);
      const std::uint64_t second = is_wide ? within(high.value / 2) : first + unit_;
      std::vector<std::uint64_t> values = {first};
      if (second > first && second < high.value) values.push_back(second);
      bool refused = false;
      std::vector<Point> fitting;
      for (Point& point : try_values(values)) {
        if (!point.problem.empty() && vary_.current % (2 * unit_) == 0 && 2 * unit_ < before) {
          refused = true;  // maybe it wants a multiple of something
          continue;
        }
        if (!point.problem.empty()) {  // this value breaks the program: no more can be said
          vary_.stopped = fmt::format("with {}, {}", point.value, point.problem);
          keep(low);
          vary_.smallest_failing = high.value;
          return;
        }
        if (point.fits)
          fitting.push_back(std::move(point));
        else if (point.value < high.value)
          high = std::move(point);
      }
      // gaps between tensors are not larger with each larger batch: one that fits above one that does not is no border
      for (Point& point : fitting) {
        if (point.value > low.value && point.value < high.value) low = std::move(point);
      }
      if (refused) unit_ *= 2;
      misses = fitting.empty() ? misses + 1 : 0;
      far_off = high.value - low.value > before / 2;
    }
  }

  const Reruns& reruns_;
  const Plan& plan_;
  const ProcessSummary& as_run_;
  const bool accumulates_;  // in the runs with a smaller batch
  const std::optional<InCommand> in_command_;
  Point current_;  // the program as it is
  PlanVary vary_;
  std::uint64_t runs_ = 0;          // started
  std::uint64_t measured_ = 0;      // of them, that told what a value needs
  std::uint64_t needed_bytes_ = 0;  // with the largest that fits
  std::vector<Edit> edits_;         // of the source, with that
  std::vector<Edit> with_loop_;     // with the batch that is accumulated
  std::string accumulation_;        // the remedy that keeps gradients from one batch to the next; empty: there is none
  std::uint64_t unit_ = 1;          // values that are tried are multiples of it
  std::set<std::string> folders_;
  bool accumulated_ = false;
  bool training_alone_ = false;  // of several numbers of the name only the training's is another
};

}  // namespace

void add_search(const Reruns& reruns, const std::string& name, const ProcessSummary& as_run, Plan& plan) {
  reruns.tell("looking for the largest " + (name.empty() ? std::string("batch") : name) + " that fits");
  plan.tried.vary = Search(reruns, plan, name, as_run).run(name);
  constexpr std::string_view kInterrupted = "the search was interrupted";
  if (plan.tried.vary) {
    if (plan.tried.vary->largest_fitting != 0 && plan.tried.vary->largest_fitting != plan.tried.vary->current)
      reruns.tell(fmt::format("{} = {} fits", plan.tried.vary->name, plan.tried.vary->largest_fitting));
    if (reruns.interrupted() && plan.tried.vary->stopped.empty())
      (plan.tried.vary->largest_fitting != 0 ? plan.tried.vary->stopped : plan.tried.vary->why_not) = kInterrupted;
    return;
  }
  const std::string found_none =
      name.empty()
          ? fmt::format(
                "no number called {} was found in the command or in the program's own files; --vary NAME names another",
                fmt::join(number_names(NumberKind::kBatch), ", "))
          : std::string("no number of this name was found in the command or in the program's own files");
  plan.tried.vary.emplace().name = name.empty() ? "batch size" : name;
  plan.tried.vary->why_not = reruns.interrupted() ? std::string(kInterrupted) : found_none;
}

}  // namespace faultline
