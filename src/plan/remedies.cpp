#include "plan/remedies.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/units.h"
#include "fmt/format.h"
#include "plan/needs.h"
#include "plan/offers_in_command.h"

namespace faultline {
namespace {

constexpr std::size_t kAtOnce = 2;  // so many runs before the time is looked at
constexpr std::size_t kEnoughCombinations = 3;
constexpr std::size_t kLongShots = 4;  // runs of combinations that are not expected to fit
constexpr double kUnlikely = 1.15;     // of the capacity: what should need more is tried last
constexpr double kHopeless = 3;        // of the capacity: not tried where something else fits
constexpr double kNoLimit = 1e9;
constexpr double kLikely = 1.02;
constexpr std::size_t kMostSets = 200'000;  // to look at, not to run

using Chosen = std::vector<std::size_t>;  // numbers of offers, in order

struct Outcome {
  Chosen chosen;
  bool known = false;  // the run with it came as far as the program as it is
  bool fits = false;
  std::uint64_t needed_bytes = 0;
  bool broke = false;  // the program fails with it, by another error than for want of memory
};

class RemedySearch {
 public:
  RemedySearch(const Reruns& reruns, const ProcessSummary& as_run, Plan& plan)
      : reruns_(reruns), offers_(as_run.offers), lasting_(as_run.lasting), plan_(plan) {
    for (std::vector<Offer> found :
         {batches_in_command(plan.command, as_run), lengths_in_command(plan.command, as_run)}) {
      if (found.empty()) continue;
      std::erase_if(offers_, [&](const Offer& offer) { return offer.number == found.front().number; });
      std::move(found.begin(), found.end(), std::back_inserter(offers_));
    }
    for (const Offer& offer : offers_) {
      const auto running = offer.keeps.find("running");
      running_.try_emplace(offer.name, running == offer.keeps.end() ? 1.0 : running->second);
    }
    outcomes_.push_back({{}, true, false, needed_as_is()});
  }

  void run(const std::function<void()>& search) {
    answered_ = try_answers() && reruns_.seconds_left;
    if (answered_) return tell_what_was_left();
    if (search) search();
    try_singles(Likely::kYes);
    if (!plan_.fits_with_something()) try_combinations();
    if (!plan_.fits_with_something()) try_singles(Likely::kComputesAnother);
    try_singles(Likely::kNo);
    tell_what_was_left();
  }

 private:
  const Offer& offer(std::size_t number) const { return offers_[number]; }
  // With the rounds of a loop that were not run, as with a remedy; what has a limit is full in neither.
  std::uint64_t needed_as_is() const {
    return plan_.growth.unit.empty() ? plan_.need.bytes : std::max(plan_.need.bytes, plan_.growth.needed_at_end_bytes);
  }

  // --- sums

  double share(const Chosen& chosen, const std::string& part) const {
    double all = 1;
    for (const std::size_t number : chosen) {
      const auto kept = offer(number).keeps.find(part);
      if (kept != offer(number).keeps.end()) all *= kept->second;
    }
    return all;
  }

  // What stays from step to step, and the context: it cannot need less.
  double least_bytes(const Chosen& chosen) const {
    double bytes = static_cast<double>(plan_.context_bytes);
    for (const char* part : {"parameters", "gradients", "optimizer"}) {
      if (const auto known = lasting_.find(part); known != lasting_.end())
        bytes += static_cast<double>(known->second) * share(chosen, part);
    }
    return bytes;
  }

  double capacity() const { return static_cast<double>(plan_.gpu->capacity_bytes); }
  bool may_fit(const Chosen& chosen) const { return least_bytes(chosen) <= capacity(); }

  double running_share(std::size_t number) const {
    return 1 - (1 - running_.at(offer(number).name)) * offer(number).dose;
  }

  // From the run that has most of it already.
  double expected_bytes(const Chosen& chosen) const {
    const Outcome* base = nullptr;
    for (const Outcome& outcome : outcomes_) {
      if (outcome.known && (base == nullptr || outcome.chosen.size() > base->chosen.size()) &&
          std::includes(chosen.begin(), chosen.end(), outcome.chosen.begin(), outcome.chosen.end()))
        base = &outcome;
    }
    double rest = std::max(0.0, static_cast<double>(base->needed_bytes) - least_bytes(base->chosen));
    for (const std::size_t number : chosen) {
      if (!std::binary_search(base->chosen.begin(), base->chosen.end(), number)) rest *= running_share(number);
    }
    return least_bytes(chosen) + rest;
  }

  // What one remedy alone did, for all of its values.
  void learn(const Outcome& outcome) {
    if (!outcome.known || outcome.chosen.size() != 1) return;
    const Offer& one = offer(outcome.chosen.front());
    const double before = static_cast<double>(needed_as_is()) - least_bytes({});
    const double after = static_cast<double>(outcome.needed_bytes) - least_bytes(outcome.chosen);
    if (before <= 0 || one.dose <= 0) return;
    running_[one.name] = std::clamp(1 - (1 - after / before) / one.dose, 0.0, 1.5);
  }

  // --- runs

  bool was_tried(const Chosen& chosen) const {
    return std::any_of(outcomes_.begin(), outcomes_.end(), [&](const Outcome& o) { return o.chosen == chosen; });
  }

  bool has_time() const { return !reruns_.interrupted() && (!reruns_.seconds_left || reruns_.seconds_left() > 0); }

  std::string label(const Chosen& chosen) const {
    std::string text;
    for (std::size_t at = 0; at < chosen.size(); ++at)
      text += (at == 0 ? "" : at + 1 == chosen.size() ? " and " : ", ") + offer(chosen[at]).label;
    return text;
  }

  Attempt attempt(const Chosen& chosen) const {
    Attempt one{"tries/", plan_.command, {}, {}};
    for (const std::size_t number : chosen) {
      const Offer& chosen_one = offer(number);
      std::string value = chosen_one.value.substr(0, chosen_one.value.find('@'));
      std::replace(value.begin(), value.end(), '/', '-');
      one.folder += (number == chosen.front() ? "" : "+") + chosen_one.name +
                    (value == "true" || value == "false" ? "" : "-" + value);
      const bool in_command = !chosen_one.command.empty();
      if (in_command) {
        for (std::size_t word = 0; word < one.command.size() && word < chosen_one.command.size(); ++word) {
          if (chosen_one.command[word] != plan_.command[word]) one.command[word] = chosen_one.command[word];
        }
      }
      const std::string& name = in_command ? chosen_one.beside : chosen_one.name;
      if (name.empty()) continue;
      one.changes[name] = in_command ? "true" : chosen_one.value;
      if (chosen_one.edits.empty()) continue;
      one.edits[name] = chosen_one.edits;
      one.many = std::max(one.many, std::min(chosen_one.many, kMostBatchesTried));
    }
    one.steps = steps_of_trial(plan_, one.many);
    return one;
  }

  PlanChange described(const Chosen& chosen, const DryRunResult& run, Outcome& outcome) const {
    PlanChange change;
    change.kind = ChangeKind::kProgram;
    change.tried = false;
    change.begun = true;
    std::uint64_t many = 1;
    for (const std::size_t number : chosen) {
      const Offer& one = offer(number);
      change.remedies.push_back(one.name);
      change.cost += one.cost;
      change.compute = std::max(change.compute, one.compute);
      change.instructions.push_back(one.what);
      change.wants_more_gpus = change.wants_more_gpus || one.wants_more_gpus;
      if (!one.edits.empty()) many = std::max(many, one.many);
    }
    change.what = chosen.size() == 1 ? offer(chosen.front()).what : "Combine " + label(chosen);
    change.label = label(chosen);
    const Result<Needs> needs = needs_of(run, plan_, std::min(many, kMostBatchesTried));
    if (!needs) {
      change.why_not = needs.error().what;
      outcome.broke = run.main() != nullptr && run.main()->exception && !run.main()->died_of_memory();
      return change;
    }
    const ProcessSummary& main = *run.main();
    for (const std::size_t number : chosen) {
      const Offer& one = offer(number);
      const std::string& name = one.command.empty() ? one.name : one.beside;
      if (name.empty() || main.was_edited(name)) continue;
      const auto done = main.changes.find(name);
      if (done != main.changes.end()) change.without_edit.push_back(one.label);
      if (!one.command.empty()) continue;
      if (done == main.changes.end()) {
        change.why_not = "there was nothing to change";
        return change;
      }
      if (one.tells) change.detail = done->second;
    }
    if (change.without_edit.empty()) {
      change.diff = diff_of(filled_in(main.edited, kManyPlace, many));
      if (many > kMostBatchesTried && !main.edited.empty())
        change.detail = fmt::format("tried with {} batches to a step: more make no difference", kMostBatchesTried);
    }
    outcome.known = change.tried = true;
    outcome.fits = change.fits = fits_to_the_end(*needs, *run.main(), plan_);
    change.grows = needs->grows_bytes != 0 && !run.main()->stopped.empty();
    if (needs->fits && change.grows) {
      const std::uint64_t full_at = needs->full_at(plan_.gpu->capacity_bytes);
      const std::string unit = needs->grows_by_steps ? "step" : "round";
      change.detail += fmt::format(
          "{}memory still grows by {} a {}{}", change.detail.empty() ? "" : "; ", format_bytes(needs->grows_bytes),
          unit,
          change.fits ? fmt::format(" and is full at about {} {}, after the program's end", unit, format_count(full_at))
                      : std::string());
      if (!change.fits) change.until = full_at, change.until_unit = unit;
    }
    outcome.needed_bytes = change.needed_bytes = needs->needed_bytes();
    if (needs->is_estimated) change.needed_most_bytes = needs->most_needed_bytes();
    return change;
  }

  // A program that gets its source in a way of its own never ran the edited one, and the changes were not made in another way either.
  static bool ran_without_edits(const Attempt& attempt, const DryRunResult& result) {
    const ProcessSummary* main = result.main();
    return main != nullptr && main->ended_in_order && !result.interrupted &&
           std::ranges::any_of(attempt.edits, [&](const auto& one) {
             return !main->was_edited(one.first) && !main->changes.contains(one.first);
           });
  }

  void try_all(const std::vector<Chosen>& sets) {
    for (std::size_t begin = 0; begin < sets.size(); begin += kAtOnce) {
      if (!has_time()) {
        left_.insert(left_.end(), sets.begin() + static_cast<std::ptrdiff_t>(begin), sets.end());
        out_of_time_ = true;
        return;
      }
      const std::size_t end = std::min(begin + kAtOnce, sets.size());
      std::vector<Attempt> attempts;
      std::string said;
      for (std::size_t at = begin; at < end; ++at) {
        attempts.push_back(attempt(sets[at]));
        said += (said.empty() ? "" : "; ") + label(sets[at]);
      }
      reruns_.tell("trying " + said);
      std::vector<DryRunResult> results = reruns_.run(attempts);
      for (std::size_t at = 0; at < attempts.size(); ++at) {
        if (!ran_without_edits(attempts[at], results[at])) continue;
        attempts[at].edits.clear();
        attempts[at].folder += "-unedited";
        attempts[at].steps = steps_of_trial(plan_);
        results[at] = std::move(reruns_.run({attempts[at]}).front());
      }
      for (std::size_t at = begin; at < end; ++at) {
        Outcome outcome{sets[at], false, false, 0};
        plan_.tried.changes.push_back(described(sets[at], results[at - begin], outcome));
        if (outcome.fits)
          reruns_.tell(fmt::format("{} fits: needs {}", label(sets[at]), format_bytes(outcome.needed_bytes)));
        learn(outcome);
        outcomes_.push_back(std::move(outcome));
      }
    }
  }

  // --- one alone

  const Outcome* outcome_of(const Chosen& chosen) const {
    const auto found = std::find_if(outcomes_.begin(), outcomes_.end(),
                                    [&](const Outcome& outcome) { return outcome.chosen == chosen; });
    return found == outcomes_.end() ? nullptr : &*found;
  }

  // Of a remedy with several values the weakest that should be enough, else the strongest; then what its result leaves to be known.
  std::optional<std::size_t> next_value(const std::vector<std::size_t>& values) const {
    std::optional<std::size_t> next;
    bool any = false;
    for (const std::size_t number : values) {
      const Outcome* outcome = outcome_of({number});
      any = any || outcome != nullptr;
      if (outcome != nullptr && outcome->fits) return next;  // a weaker one that should fit, too
      if (outcome != nullptr) {
        next.reset();  // what is weaker does not fit either
        continue;
      }
      if (!may_fit({number})) continue;
      if (expected_bytes({number}) <= capacity() && !next) next = number;
    }
    if (!next && !any && may_fit({values.back()})) return values.back();
    return next;
  }

  // What is of use to nobody, as a graph that no backward pass comes to, is let go of before anything else is asked.
  bool try_answers() {
    for (std::size_t number = 0; number < offers_.size(); ++number) {
      if (offer(number).answers && has_time()) try_all({{number}});
    }
    return fitting_count() != 0;
  }

  // First those that should fit or come near; what should not only with the time that is left.
  enum class Likely : std::uint8_t { kYes, kComputesAnother, kNo };

  // A shorter sequence is another program: it comes after all that leaves the results as they are.
  bool computes_another(std::size_t number) const { return offer(number).computes_another; }

  void try_singles(Likely likely) {
    const bool unlikely = likely == Likely::kNo;
    std::map<std::string, std::vector<std::size_t>> by_name;
    for (std::size_t number = 0; number < offers_.size(); ++number) {
      if (!offer(number).is_searched && offer(number).wants.empty()) by_name[offer(number).name].push_back(number);
    }
    const double most = unlikely && plan_.fits_with_something() ? kHopeless : kNoLimit;
    while (has_time()) {
      std::vector<Chosen> round;
      for (const auto& [name, values] : by_name) {
        const std::optional<std::size_t> next = next_value(values);
        if (!next || was_tried({*next})) continue;
        const double expected = expected_bytes({*next}) / capacity();
        const bool is_its_turn = computes_another(*next)
                                     ? likely == Likely::kComputesAnother
                                     : likely != Likely::kComputesAnother && (expected > kUnlikely) == unlikely;
        if (is_its_turn && expected <= most) round.push_back({*next});
      }
      std::stable_sort(round.begin(), round.end(),
                       [&](const Chosen& a, const Chosen& b) { return offer(a.front()).cost < offer(b.front()).cost; });
      if (round.empty()) break;
      try_all(round);
    }
  }

  // --- several together

  std::uint64_t cost(const Chosen& chosen) const {
    return std::accumulate(chosen.begin(), chosen.end(), std::uint64_t{0},
                           [&](std::uint64_t sum, std::size_t number) { return sum + offer(number).cost; });
  }

  bool go_together(const Chosen& chosen, std::size_t more) const {
    const auto excludes = [&](const Offer& one, const Offer& other) {
      return std::find(one.excludes.begin(), one.excludes.end(), other.name) != one.excludes.end();
    };
    return std::none_of(chosen.begin(), chosen.end(), [&](std::size_t number) {
      return offer(number).name == offer(more).name || excludes(offer(number), offer(more)) ||
             excludes(offer(more), offer(number));
    });
  }

  bool has_what_it_wants(const Chosen& chosen) const {
    return std::all_of(chosen.begin(), chosen.end(), [&](std::size_t number) {
      return offer(number).wants.empty() || std::any_of(chosen.begin(), chosen.end(), [&](std::size_t other) {
               return offer(other).name == offer(number).wants;
             });
    });
  }

  // A remedy of which a run has shown that it does nothing, or breaks the program, is in no combination.
  bool is_useless(std::size_t number) const {
    const std::string& name = offer(number).name;
    const bool breaks = std::ranges::any_of(outcomes_, [&](const Outcome& one) {
      return one.broke && one.chosen.size() == 1 && offer(one.chosen.front()).name == name;
    });
    if (breaks && offer(number).number == OfferedNumber::kNone) return true;  // a number may want another number
    const Outcome* outcome = outcome_of({number});
    return outcome != nullptr && (!outcome->known || outcome->needed_bytes >= needed_as_is());
  }

  std::vector<Chosen> all_sets() const {
    std::vector<Chosen> sets = {{}};
    for (std::size_t number = 0; number < offers_.size() && sets.size() < kMostSets; ++number) {
      if (is_useless(number)) continue;
      const std::size_t before = sets.size();
      for (std::size_t at = 0; at < before; ++at) {
        if (!go_together(sets[at], number)) continue;
        sets.push_back(sets[at]);
        sets.back().push_back(number);
      }
    }
    std::erase_if(sets, [&](const Chosen& chosen) {
      return chosen.size() < 2 || !has_what_it_wants(chosen) || !may_fit(chosen);
    });
    std::stable_sort(sets.begin(), sets.end(), [&](const Chosen& a, const Chosen& b) { return cost(a) < cost(b); });
    return sets;
  }

  // It has something in it that broke the program, or something that fits by itself, with no more of each remedy.
  bool says_nothing_new(const Chosen& chosen) const {
    return std::any_of(outcomes_.begin(), outcomes_.end(), [&](const Outcome& outcome) {
      if (!outcome.known)
        return std::includes(chosen.begin(), chosen.end(), outcome.chosen.begin(), outcome.chosen.end());
      if (!outcome.fits) return false;
      return std::all_of(outcome.chosen.begin(), outcome.chosen.end(), [&](std::size_t number) {
        return std::any_of(chosen.begin(), chosen.end(), [&](std::size_t other) {
          return offer(other).name == offer(number).name && offer(other).cost >= offer(number).cost;
        });
      });
    });
  }

  void try_combinations() {
    std::vector<Chosen> sets = all_sets();
    std::size_t long_shots = 0;
    while (has_time() && fitting_count() < kEnoughCombinations) {
      std::vector<Chosen> round;
      std::erase_if(sets, [&](const Chosen& chosen) { return was_tried(chosen) || says_nothing_new(chosen); });
      for (const Chosen& chosen : sets) {
        if (expected_bytes(chosen) <= kLikely * capacity()) round.push_back(chosen);
        if (round.size() == kAtOnce) break;
      }
      if (round.empty()) {
        if (fitting_count() != 0 || sets.empty() || ++long_shots * kAtOnce > kLongShots) return;
        std::vector<Chosen> nearest = sets;
        std::stable_sort(nearest.begin(), nearest.end(),
                         [&](const Chosen& a, const Chosen& b) { return expected_bytes(a) < expected_bytes(b); });
        round.assign(nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(std::min(kAtOnce, nearest.size())));
      }
      try_all(round);
    }
    if (!has_time() && fitting_count() == 0 && !sets.empty()) out_of_time_ = true;
  }

  std::size_t fitting_count() const {
    return static_cast<std::size_t>(
        std::count_if(outcomes_.begin(), outcomes_.end(), [](const Outcome& outcome) { return outcome.fits; }));
  }

  // --- what was not tried

  void tell_what_was_left() {
    std::set<std::string> tried;
    for (const PlanChange& change : plan_.tried.changes) tried.insert(change.remedies.begin(), change.remedies.end());
    for (std::size_t number = 0; number < offers_.size(); ++number) {
      const Offer& one = offer(number);
      const bool strongest = number + 1 == offers_.size() || offers_[number + 1].name != one.name;
      if (one.is_searched || !strongest || !one.wants.empty() || tried.contains(one.name)) continue;
      PlanChange change;
      change.kind = ChangeKind::kProgram;
      change.what = one.what;
      change.tried = false;
      change.remedies = {one.name};
      change.cost = one.cost;
      change.label = one.label;
      change.instructions = {one.what};
      change.compute = one.compute;
      change.why_not =
          !may_fit({number})
              ? fmt::format(
                    "it cannot be enough alone: parameters, gradients, optimizer state and the context still take {}",
                    format_bytes(static_cast<std::uint64_t>(least_bytes({number}))))
          : reruns_.interrupted() ? std::string("the search was interrupted")
          : answered_             ? std::string("without graphs that nobody needs it fits")
          : !has_time()           ? std::string("the time for trying was over (--try takes as long as it takes)")
                                  : fmt::format("by a guess it would still need about {}",
                                                format_bytes(static_cast<std::uint64_t>(expected_bytes({number}))));
      out_of_time_ = out_of_time_ || (may_fit({number}) && !has_time());
      plan_.tried.changes.push_back(std::move(change));
    }
    if (out_of_time_ && plan_.tried.skipped.empty() && !reruns_.interrupted())
      plan_.tried.skipped = "Not all was tried in the time for it; --try takes as long as it takes.";
    std::stable_sort(plan_.tried.changes.begin(), plan_.tried.changes.end(),
                     [](const PlanChange& a, const PlanChange& b) {
                       return std::pair(!a.tried, a.cost) < std::pair(!b.tried, b.cost);
                     });
  }

  const Reruns& reruns_;
  std::vector<Offer> offers_;
  const std::map<std::string, std::uint64_t>& lasting_;
  Plan& plan_;
  std::map<std::string, double> running_;  // by remedy: the share of all else that stays
  std::vector<Outcome> outcomes_;          // the first: the program as it is
  std::vector<Chosen> left_;
  bool out_of_time_ = false;
  bool answered_ = false;  // by what nobody has anything against
};

}  // namespace

void add_remedies(const Reruns& reruns, const ProcessSummary& as_run, Plan& plan, const std::function<void()>& search) {
  RemedySearch(reruns, as_run, plan).run(search);
}

void limit_settings_by_growth(Plan& plan) {
  for (PlanChange& change : plan.tried.changes) {
    if (change.kind != ChangeKind::kSetting || !change.fits || plan.growth.bytes_a_round == 0) continue;
    change.grows = true;
    const std::uint64_t full_at = plan.full_at(plan.gpu->capacity_bytes, change.most_needed(), change.pool_share);
    if (plan.growth.loop.steps != 0 && full_at >= plan.growth.loop.steps) continue;
    change.fits = false;
    change.until = full_at;
    change.until_unit = plan.run.steps != 0 ? "step" : "round";
  }
}

}  // namespace faultline
