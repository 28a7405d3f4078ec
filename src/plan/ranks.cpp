#include "plan/ranks.h"

#include "base/units.h"
#include "fmt/format.h"
#include "plan/needs.h"

namespace faultline {
namespace {

constexpr std::size_t kMostTries = 3;

struct Tried {
  std::uint64_t ranks = 0;
  Result<Needs> needs;
};

std::vector<Tried> try_numbers(const Reruns& reruns, const Plan& plan, const std::vector<std::uint64_t>& numbers) {
  std::vector<Attempt> attempts;
  for (const std::uint64_t ranks : numbers) {
    Attempt& attempt = attempts.emplace_back();
    attempt.folder = fmt::format("tries/ranks-{}", ranks);
    attempt.command = plan.command;
    attempt.steps = plan.steps_to_repeat();
    attempt.ranks = ranks;
  }
  const std::vector<DryRunResult> results = reruns.run(attempts);
  std::vector<Tried> tried;
  for (std::size_t at = 0; at < results.size(); ++at) {
    const ProcessSummary* main = results[at].main();
    const bool as_asked = main == nullptr || main->ranks == 0 || main->ranks == numbers[at];
    tried.push_back({numbers[at], as_asked ? needs_of(results[at], plan)
                                           : Result<Needs>(Error{fmt::format("the program has {} ranks whatever it is "
                                                                             "started with",
                                                                             main->ranks),
                                                                 {},
                                                                 {}})});
  }
  return tried;
}

bool fits(const Plan& plan, const Needs& needs) { return needs.most_needed_bytes() <= plan.gpu->capacity_bytes; }

void add_more(const Reruns& reruns, std::uint64_t now, Plan& plan) {
  reruns.tell(fmt::format("trying it on {}, {} and {} GPUs", 2 * now, 4 * now, 8 * now));
  for (const Tried& tried : try_numbers(reruns, plan, {2 * now, 4 * now, 8 * now})) {
    PlanChange change{ChangeKind::kProgram,
                      fmt::format("Run it on {} GPUs instead of {}", tried.ranks, now),
                      {},
                      false,
                      false,
                      0,
                      {}};
    if (!tried.needs) {
      change.why_not = tried.needs.error().what;
    } else {
      change.tried = true;
      change.needed_bytes = tried.needs->needed_bytes();
      change.fits = fits(plan, *tried.needs);
      if (tried.needs->is_estimated) change.needed_most_bytes = tried.needs->most_needed_bytes();
    }
    const bool enough = change.fits;
    if (change.tried && plan.saved_bytes(change) == 0) return;  // more of them are no help
    plan.tried.changes.push_back(std::move(change));
    if (enough) return;
  }
}

void add_fewer(const Reruns& reruns, std::uint64_t now, Plan& plan) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t ranks = now / 2; ranks != 0 && numbers.size() < kMostTries; ranks /= 2) numbers.push_back(ranks);
  reruns.tell("trying it on fewer GPUs");
  std::uint64_t fewest = now, fewest_bytes = plan.need.bytes;
  std::string text;
  for (const Tried& tried : try_numbers(reruns, plan, numbers)) {
    if (!tried.needs) {
      text = fmt::format(", and on {} it could not be planned: {}", tried.ranks, tried.needs.error().what);
      break;
    }
    if (!fits(plan, *tried.needs)) {
      text =
          fmt::format(", and not on {}, where each needs {}", tried.ranks, format_bytes(tried.needs->needed_bytes()));
      break;
    }
    fewest = tried.ranks;
    fewest_bytes = tried.needs->needed_bytes();
  }
  if (text.empty()) text = fewest == 1 ? "" : ", the fewest that were tried";
  plan.notes.push_back({NoteKind::kMode,
                        fmt::format("it fits on {} GPU{}, where each needs {}{}", fewest, fewest == 1 ? "" : "s",
                                    format_bytes(fewest_bytes), text),
                        "", 1});
}

}  // namespace

void add_ranks(const Reruns& reruns, const ProcessSummary& as_run, Plan& plan) {
  if (as_run.ranks < 2 || !as_run.does("sharding")) return;
  if (plan.verdict == Verdict::kDoesNotFit)
    add_more(reruns, as_run.ranks, plan);
  else if (has_room(plan.verdict))
    add_fewer(reruns, as_run.ranks, plan);
}

}  // namespace faultline
