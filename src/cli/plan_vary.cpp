#include "cli/plan_vary.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "cli/options.h"
#include "fmt/format.h"

namespace faultline::cli {
namespace {

constexpr std::uint64_t kMostRuns = 8;
constexpr std::uint64_t kCloseEnough = 64;  // a border known to this part of the value is close enough
constexpr std::array<std::string_view, 3> kUsualNames = {"batch_size", "batch", "bs"};
constexpr std::array<std::string_view, 6> kUsualArguments = {"--batch-size", "--per-device-train-batch-size", "--train-batch-size", "--batch", "--bs", "-b"};

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

// Where the command line itself carries the number: "--batch-size 8", "--batch-size=8", "batch_size=8", "train.batch_size=8".
struct InCommand {
  std::size_t word = 0;
  std::string head;  // what stands before the number in that word
  std::string name;
  std::uint64_t value = 0;
};

bool names_it(std::string_view word, const std::string& name) {
  if (!name.empty()) {
    const std::size_t dot = word.rfind('.');
    const std::string_view last = !word.starts_with('-') && dot != std::string_view::npos ? word.substr(dot + 1) : word;
    return with_dashes("--" + std::string(last)) == with_dashes("--" + name) || with_dashes(word) == with_dashes("--" + name) || word == name;
  }
  const std::string dashed = with_dashes(word);
  const bool usual = std::find(kUsualArguments.begin(), kUsualArguments.end(), dashed) != kUsualArguments.end();
  return usual || (!word.starts_with('-') && names_it(word, "batch_size"));
}

std::optional<InCommand> find_in_command(const std::vector<std::string>& command, const std::string& name) {
  for (std::size_t at = 1; at < command.size(); ++at) {
    const std::string& word = command[at];
    const std::size_t sign = word.find('=');
    if (sign != std::string::npos && names_it(word.substr(0, sign), name)) {
      if (const auto value = number_in(std::string_view(word).substr(sign + 1))) return InCommand{at, word.substr(0, sign + 1), word.substr(0, sign), *value};
    }
    if (sign == std::string::npos && word.starts_with('-') && at + 1 < command.size() && names_it(word, name)) {
      if (const auto value = number_in(command[at + 1])) return InCommand{at + 1, "", word, *value};
    }
  }
  return std::nullopt;
}

// One value that was tried.
struct Point {
  std::uint64_t value = 0;
  Needed needed;
  std::string where;            // of a number in the source: where it stands, and what it is there
  std::uint64_t original = 0;
};

class Search {
 public:
  Search(const Attempts& attempts, Plan& plan, std::optional<InCommand> in_command) : attempts_(attempts), plan_(plan), in_command_(std::move(in_command)) {}

  std::vector<Point> run(const std::string& name, const std::vector<std::uint64_t>& values) {
    std::vector<DryRunJob> jobs;
    for (const std::uint64_t value : values) {
      DryRunJob job = attempts_.job;
      job.request.overcommit = true;
      if (in_command_) job.command[in_command_->word] = in_command_->head + std::to_string(value);
      else job.request.vary = {name, value};
      job.folder = fmt::format("{}/tries/{}={}", attempts_.job.folder, in_command_ ? "argument" : name, value);
      jobs.push_back(std::move(job));
    }
    runs_ += jobs.size();
    const std::vector<DryRunResult> results = run_quietly(attempts_.parts, jobs, attempts_.input);
    std::vector<Point> points;
    for (std::size_t at = 0; at < results.size(); ++at) {
      Point point{values[at], needed_by(results[at], jobs[at].request), {}, 0};
      if (const ProcessSummary* main = results[at].main()) {
        point.where = main->vary_where;
        point.original = main->vary_value;
      }
      points.push_back(std::move(point));
    }
    return points;
  }

  // Between a value that fits and one that does not. What is needed grows about evenly with a batch, so a straight line leads close.
  void narrow(const std::string& name, Point low, Point high, PlanVary& vary) {
    while (high.value - low.value > std::max<std::uint64_t>(1, low.value / kCloseEnough) && runs_ + 1 < kMostRuns && !interrupted()) {
      const double span = static_cast<double>(high.needed.bytes) - static_cast<double>(low.needed.bytes);
      const double room = static_cast<double>(plan_.gpu->capacity_bytes) - static_cast<double>(low.needed.bytes);
      const double share = span > 0 && !far_off_ ? std::clamp(room / span, 0.0, 1.0) : 0.5;
      const auto guess = low.value + static_cast<std::uint64_t>(share * static_cast<double>(high.value - low.value));
      const std::uint64_t first = std::clamp(guess, low.value + 1, high.value - 1);
      std::vector<std::uint64_t> values = {first};
      if (first + 1 < high.value) values.push_back(first + 1);
      const std::uint64_t before = high.value - low.value;
      for (Point& point : run(name, values)) {
        if (!point.needed.problem.empty()) {
          low.value = high.value;  // this value breaks the program: no more can be said
          break;
        }
        if (point.needed.fits && point.value > low.value) low = std::move(point);
        else if (!point.needed.fits && point.value < high.value) high = std::move(point);
      }
      if (low.value >= high.value) break;
      vary.largest_fitting = low.value;
      vary.smallest_failing = high.value;
      far_off_ = high.value - low.value > before / 2;
    }
  }

  std::uint64_t runs() const { return runs_; }

 private:
  const Attempts& attempts_;
  Plan& plan_;
  std::optional<InCommand> in_command_;
  std::uint64_t runs_ = 0;
  bool far_off_ = false;  // the line led astray: halve instead
};

Point as_it_is(const Plan& plan, std::uint64_t value) { return {value, {plan.needed_bytes, plan.verdict != Verdict::kDoesNotFit, {}}, {}, value}; }

// It does not fit as it is: from below.
void search_down(Search& search, const std::string& name, Point lowest, const Plan& plan, PlanVary& vary) {
  if (!lowest.needed.problem.empty() && lowest.value == 1 && vary.current > 2) lowest = search.run(name, {2}).front();  // batch normalisation needs two
  if (!lowest.needed.problem.empty()) {
    vary.why_not = "with " + std::to_string(lowest.value) + ", " + lowest.needed.problem;
    return;
  }
  if (lowest.needed.bytes >= plan.needed_bytes && vary.current > lowest.value) {
    vary.why_not = fmt::format("with {} in place of {} the program needs just as much", lowest.value, vary.current);
    return;
  }
  if (!lowest.needed.fits) {
    vary.smallest_failing = lowest.value;
    return;
  }
  vary.largest_fitting = lowest.value;
  vary.smallest_failing = vary.current;
  search.narrow(name, lowest, as_it_is(plan, vary.current), vary);
}

// It fits as it is: upwards by doubling until it does not.
void search_up(Search& search, const std::string& name, const Plan& plan, PlanVary& vary) {
  Point low = as_it_is(plan, vary.current);
  vary.largest_fitting = low.value;
  while (search.runs() + 2 < kMostRuns && !interrupted()) {
    Point next = search.run(name, {low.value * 2}).front();
    if (!next.needed.problem.empty()) return;
    if (next.needed.bytes <= low.needed.bytes) {
      vary.why_not = fmt::format("with {} in place of {} the program needs no more", next.value, low.value);
      return;
    }
    if (next.needed.fits) {
      low = std::move(next);
      vary.largest_fitting = low.value;
      continue;
    }
    vary.smallest_failing = next.value;
    search.narrow(name, std::move(low), std::move(next), vary);
    return;
  }
}

}  // namespace

void add_search(const Attempts& attempts, const std::string& name, Plan& plan) {
  const std::optional<InCommand> in_command = find_in_command(attempts.job.command, name);
  Search search(attempts, plan, in_command);
  PlanVary vary;
  hint("looking for the largest batch that fits");
  std::optional<Point> lowest;
  if (in_command) {
    vary.name = in_command->name;
    vary.where = "in the command";
    vary.current = in_command->value;
  } else {
    // A first run with 1 tells where the number stands, and what it is.
    std::vector<std::string> names = {name};
    if (name.empty()) names.assign(kUsualNames.begin(), kUsualNames.end());
    for (const std::string& candidate : names) {
      if (interrupted()) return;
      Point point = search.run(candidate, {1}).front();
      if (point.original == 0) continue;
      vary.name = candidate;
      vary.where = point.where;
      vary.current = point.original;
      lowest = std::move(point);
      break;
    }
    if (!lowest) {
      if (name.empty()) return;
      vary.name = name;
      vary.why_not = "no number of this name was found in the command or in the program's own files";
      plan.vary = std::move(vary);
      return;
    }
  }
  if (plan.verdict == Verdict::kDoesNotFit) {
    if (!lowest) lowest = search.run(vary.name, {1}).front();
    search_down(search, vary.name, std::move(*lowest), plan, vary);
  } else {
    search_up(search, vary.name, plan, vary);
  }
  vary.runs = search.runs();
  plan.vary = std::move(vary);
}

}  // namespace faultline::cli
