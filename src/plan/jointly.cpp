#include "plan/jointly.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "plan/needs.h"
#include "plan/number_names.h"
#include "plan/vary.h"

namespace faultline {
namespace {

constexpr std::size_t kMostRows = 4;
constexpr std::uint64_t kLeastLength = 16;
constexpr std::size_t kMostRuns = 12;
constexpr std::uint64_t kSteps = 8;  // a length between two is found to an eighth of the smaller

// A number of the command, or of the source.
struct Number {
  std::string name;
  std::uint64_t value = 0;
  std::optional<InCommand> in_command;
};

// The largest of them, in the command if one is there.
std::optional<Number> find_number(NumberKind one_kind, NumberKind other_kind, const Plan& plan,
                                  const ProcessSummary& as_run) {
  std::vector<std::string_view> names;
  for (const NumberKind kind : {one_kind, other_kind})
    names.insert(names.end(), number_names(kind).begin(), number_names(kind).end());
  std::optional<Number> found;
  const auto keep = [&](Number number) {
    if (!found || number.value > found->value) found = std::move(number);
  };
  for (const std::string_view name : names) {
    if (auto there = find_in_command(plan.command, std::string(name)))
      keep({there->name, there->value, std::move(there)});
  }
  if (found) return found;
  for (const ProgramNumber& number : as_run.numbers) {
    if (std::find(names.begin(), names.end(), number.name) != names.end()) keep({number.name, number.value, {}});
  }
  return found;
}

class JointSearch {
 public:
  JointSearch(const Reruns& reruns, const ProcessSummary& as_run, Plan& plan, Number batch, Number length)
      : reruns_(reruns), as_run_(as_run), plan_(plan), batch_(std::move(batch)), length_(std::move(length)) {}

  // From the batch as it is to smaller ones. What is needed grows about with the product of both, so half of a batch is begun with twice the length.
  void run() {
    Pair failing{batch_.value, length_.value, plan_.need.bytes, true, false};
    std::optional<Pair> fitting;
    std::uint64_t batch = batch_.value;
    for (; rows_.size() < kMostRows && batch >= 1 && may_go_on(); batch /= 2) {
      std::optional<Pair> fits, fails;
      if (batch == batch_.value) fails = failing;
      if (fitting) fits = Pair{batch, fitting->length, 0, true, true};  // less of the one needs less
      std::uint64_t next = fitting ? 2 * fitting->length : length_.value / 2;
      while (next >= kLeastLength && may_go_on()) {
        const Pair one = tried(batch, next);
        if (!one.known) break;
        if (one.fits) {
          fits = one;
          break;
        }
        fails = one;
        if (is_idle(one)) return;
        if (fitting) break;  // what a larger batch has is known to fit
        next /= 2;
      }
      if (fits && fails && fails->length > fits->length && may_go_on()) fits = closer(*fits, *fails);
      if (!fits) continue;
      if (fits->needed_bytes != 0) rows_.push_back({batch, fits->length, fits->needed_bytes});
      if (!fitting && batch >= 4) run_beside({{batch / 2, 2 * fits->length}, {batch / 4, 4 * fits->length}});
      fitting = fits;
    }
    if (rows_.empty()) return;
    plan_.tried.jointly = PlanJointly{batch_.name, length_.name, batch_.value, length_.value, rows_};
  }

 private:
  struct Pair {
    std::uint64_t batch = 0, length = 0, needed_bytes = 0;
    bool known = false, fits = false;
  };

  bool may_go_on() const {
    return known_.size() < kMostRuns && !reruns_.interrupted() && (!reruns_.seconds_left || reruns_.seconds_left() > 0);
  }
  // The length decides nothing.
  bool is_idle(const Pair& one) const { return one.batch == batch_.value && one.needed_bytes >= plan_.need.bytes; }

  // One more between a length that fits and one that does not, by a straight line.
  Pair closer(const Pair& fits, const Pair& fails) {
    if (fits.needed_bytes == 0 || fails.needed_bytes <= fits.needed_bytes) {
      const Pair middle = tried(fits.batch, (fits.length + fails.length) / 2);
      if (middle.known && middle.fits) return middle;
      return fits.needed_bytes != 0 ? fits : tried(fits.batch, fits.length);
    }
    const std::uint64_t unit = std::max<std::uint64_t>(fits.length / kSteps, 1);
    const double share = static_cast<double>(plan_.gpu->capacity_bytes - fits.needed_bytes) /
                         static_cast<double>(fails.needed_bytes - fits.needed_bytes);
    const auto more = static_cast<std::uint64_t>(share * static_cast<double>(fails.length - fits.length)) / unit * unit;
    if (more == 0 || fits.length + more >= fails.length) return fits;
    const Pair one = tried(fits.batch, fits.length + more);
    return one.known && one.fits ? one : fits;
  }

  Pair tried(std::uint64_t batch, std::uint64_t length) {
    const std::pair<std::uint64_t, std::uint64_t> key(batch, length);
    if (!known_.contains(key)) run_beside({key});
    return known_.at(key);
  }

  void run_beside(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& wanted) {
    std::vector<Attempt> attempts;
    std::string said;
    for (const auto& [batch, length] : wanted) {
      attempts.push_back(attempt(batch, length));
      said += fmt::format("{}{} {} with {} {}", said.empty() ? "" : "; ", batch_.name, batch, length_.name, length);
    }
    reruns_.tell("trying " + said);
    const std::vector<DryRunResult> results = reruns_.run(attempts);
    for (std::size_t at = 0; at < wanted.size(); ++at) {
      const auto& [batch, length] = wanted[at];
      const Result<Needs> needs = needs_of(results[at], plan_);
      known_[wanted[at]] =
          needs ? Pair{batch, length, needs->needed_bytes(), true, needs->fits} : Pair{batch, length, 0, false, false};
    }
  }

  Attempt attempt(std::uint64_t batch, std::uint64_t length) const {
    Attempt one{fmt::format("tries/batch={}+length={}", batch, length), plan_.command, {}, {}, steps_of_trial(plan_)};
    put(one, batch_, OfferedNumber::kBatch, batch);
    put(one, length_, OfferedNumber::kLength, length);
    return one;
  }

  void put(Attempt& attempt, const Number& number, OfferedNumber kind, std::uint64_t value) const {
    if (number.in_command) {
      attempt.command[number.in_command->word] = number.in_command->head + std::to_string(value);
      return;
    }
    const Offer* remedy = as_run_.of_number(kind);
    if (remedy == nullptr) return;
    attempt.changes[remedy->name] = fmt::format("{}={}", number.name, value);
    std::vector<Edit>& edits = attempt.edits[remedy->name];
    for (const ProgramNumber& one : as_run_.numbers) {
      if (one.name != number.name || !one.changes_with(value, number.value)) continue;
      const std::vector<Edit> filled = filled_in(one.edits, kValuePlace, value);
      edits.insert(edits.end(), filled.begin(), filled.end());
    }
  }

  const Reruns& reruns_;
  const ProcessSummary& as_run_;
  Plan& plan_;
  const Number batch_, length_;
  std::vector<PlanPair> rows_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Pair> known_;
};

}  // namespace

void add_jointly(const Reruns& reruns, const ProcessSummary& as_run, Plan& plan) {
  if (as_run.does("backward") || as_run.steps != 0 || !plan.gpu || !plan.pool.framework.empty()) return;
  std::optional<Number> batch = find_number(NumberKind::kBatch, NumberKind::kServed, plan, as_run);
  std::optional<Number> length = find_number(NumberKind::kGenerated, NumberKind::kLength, plan, as_run);
  if (!batch || !length || batch->value < 2 || length->value < 2 * kLeastLength) return;
  JointSearch(reruns, as_run, plan, std::move(*batch), std::move(*length)).run();
}

}  // namespace faultline
