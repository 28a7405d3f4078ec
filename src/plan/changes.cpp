#include "plan/changes.h"

#include <algorithm>

#include "base/units.h"
#include "facts/categories.h"
#include "fmt/format.h"
#include "models/search.h"

namespace faultline {
namespace {

// of what is needed, and a tenth of what is missing; less is no reason to change a setting that is not enough
constexpr double kWorthSaying = 0.01;

std::uint64_t at_peak(const Plan& plan, Category category) {
  const auto found = std::find_if(plan.peak.live.begin(), plan.peak.live.end(),
                                  [&](const auto& part) { return part.first == name_of(category); });
  return found == plan.peak.live.end() ? 0 : found->second;
}

}  // namespace

void add_settings(const Trace& trace, const Needs& needs, Plan& plan) {
  std::optional<PlanChange> best;
  std::optional<std::pair<Needs, SettingChanges>> best_needs;
  const std::uint16_t device = trace.devices[needs.slot].index;
  std::vector<SettingChanges> settings = sensible_settings(trace, device);
  if (needs.pool == Framework::kJax) {
    // JAX takes one of the two names, and refuses both at once
    const auto chosen = trace.properties.find("dry-run.share_setting");
    const std::string name = chosen != trace.properties.end() ? chosen->second : "XLA_CLIENT_MEM_FRACTION";
    for (const char* share : {"0.9", "0.95"}) settings.push_back({{name, share}});
  }
  for (const SettingChanges& changes : settings) {
    const std::optional<Needs> under = needs_under(changes, trace, needs);
    if (!under || (best && under->needed_bytes() >= best->needed_bytes)) continue;
    PlanChange change;
    change.kind = ChangeKind::kSetting;
    change.what = needs.pool ? instruction(trace, device, changes) : "Set PYTORCH_CUDA_ALLOC_CONF=" + written(changes);
    change.fits = under->fits;
    change.needed_bytes = under->needed_bytes();
    change.label = written(changes);
    change.pool_share = under->share;
    const std::uint64_t saved = plan.saved_bytes(change);
    if (saved > (change.fits ? 0
                             : std::max(static_cast<std::uint64_t>(kWorthSaying * static_cast<double>(plan.need.bytes)),
                                        plan.missing_bytes() / 10)))
      best = change, best_needs = {*under, changes};
  }
  if (!best) return;
  add_ends(best_needs->second, trace, best_needs->first);
  if (best_needs->first.is_estimated) {
    best->fits = best->fits && best_needs->first.fits;
    best->needed_most_bytes = best_needs->first.most_needed_bytes();
  }
  plan.tried.changes.push_back(std::move(*best));
}

std::string why_no_batch_is_enough(const Plan& plan) {
  const std::uint64_t lasting = at_peak(plan, Category::kParameters) + at_peak(plan, Category::kOptimizer);
  if (!plan.gpu || plan.context_bytes + lasting <= plan.gpu->capacity_bytes) return {};
  return fmt::format(
      "none is small enough: parameters and the optimizer's state alone take {}, and with the context's {} that is "
      "more than {}",
      format_bytes(lasting), format_bytes(plan.context_bytes), format_bytes(plan.gpu->capacity_bytes));
}

}  // namespace faultline
