#include "plan/where.h"

#include <algorithm>
#include <vector>

#include "models/gpus.h"

namespace faultline {

void add_where(Plan& plan) {
  constexpr std::size_t kEach = 3;
  const auto fits_on = [&](const Gpu& gpu, std::uint64_t needed_bytes) {
    return needed_bytes - std::min(needed_bytes, plan.context_bytes) + gpu.context_bytes <= gpu.capacity_bytes;
  };
  std::vector<Gpu> gpus;
  for (const GpuEntry& entry : gpu_catalogue()) gpus.push_back(entry.gpu);
  std::stable_sort(gpus.begin(), gpus.end(),
                   [](const Gpu& a, const Gpu& b) { return a.capacity_bytes < b.capacity_bytes; });
  std::vector<PlanWhere> with;
  for (const Gpu& gpu : gpus) {
    if (plan.tried.where.size() == kEach) break;
    const std::uint64_t in_all = std::max(plan.most_needed(), plan.growth.needed_at_end_bytes);
    if (fits_on(gpu, in_all)) {
      const std::uint64_t needed = in_all - std::min(in_all, plan.context_bytes);
      const std::uint64_t full_at = plan.full_at(gpu.capacity_bytes, needed + gpu.context_bytes, plan.pool.share);
      if (full_at != 0 && plan.growth.loop.steps > full_at) continue;  // its loop goes on
      plan.tried.where.push_back({plan_gpu(gpu), {}, plan.growth.loop.steps == 0 ? full_at : 0});
      continue;
    }
    const PlanChange* least = nullptr;
    for (const PlanChange& change : plan.tried.changes) {
      const bool here = change.tried && !change.grows && fits_on(gpu, change.most_needed()) &&
                        static_cast<std::uint64_t>(gpu.compute_major) >= change.compute && !change.wants_more_gpus;
      if (here && (least == nullptr || change.cost < least->cost)) least = &change;
    }
    const bool is_asked = plan.gpu && plan.gpu->name == plan_gpu(gpu).name;  // told above
    if (least != nullptr && !is_asked && plan.tried.where.empty() && with.size() < kEach)
      with.push_back({plan_gpu(gpu), least->label.empty() ? least->what : least->label, 0});
  }
  plan.tried.where.insert(plan.tried.where.end(), with.begin(), with.end());
}

}  // namespace faultline
