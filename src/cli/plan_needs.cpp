#include "cli/plan_needs.h"

#include <algorithm>
#include <tuple>

#include "base/units.h"
#include "fmt/format.h"
#include "models/search.h"

namespace faultline::cli {
namespace {

constexpr std::uint64_t kResolution = 2 * kMiB;  // PyTorch takes memory in multiples of it
constexpr double kWorthSaying = 0.01;            // of what is needed; less is no reason to change a setting

bool served(const Trace& trace, const SettingChanges& changes, std::uint64_t segment_bytes) {
  ReplayOptions options;
  options.changes = changes;
  options.segment_budget_bytes = segment_bytes;
  const Result<ReplayResult> result = replay(trace, options);
  return result && result->failure_count == 0;
}

std::string written(const SettingChanges& changes) {
  std::string text;
  for (const auto& [name, value] : changes) text += (text.empty() ? "" : ",") + name + ":" + value;
  return text;
}

}  // namespace

std::uint64_t peak_outside_bytes(const Trace& trace) {
  std::uint64_t now = 0, peak = 0;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kAlloc && event.kind != EventKind::kFree) continue;
    if (event.has(kFailed)) continue;
    const Heap& heap = trace.heaps[event.heap.index()];
    if (heap.kind != HeapKind::kDriver || heap.below == event.heap) continue;
    if (event.kind == EventKind::kAlloc) now += event.size_bytes;
    else now -= std::min(now, event.size_bytes);
    peak = std::max(peak, now);
  }
  return peak;
}

std::optional<std::uint64_t> least_segment_bytes(const Trace& trace, const SettingChanges& changes, std::uint64_t peak_reserved_bytes) {
  std::uint64_t enough = (peak_reserved_bytes + kResolution - 1) / kResolution * kResolution, too_little = 0;
  if (!served(trace, changes, enough)) {
    too_little = enough;
    enough += enough / 4 + 64 * kMiB;
    if (!served(trace, changes, enough)) return std::nullopt;
  }
  while (enough - too_little > kResolution) {
    const std::uint64_t middle = too_little + (enough - too_little) / 2 / kResolution * kResolution;
    (served(trace, changes, middle) ? enough : too_little) = middle;
  }
  return enough;
}

std::vector<PlanFit> fits_on_catalogue(const Trace& trace, std::uint64_t outside_bytes) {
  std::vector<PlanFit> fits;
  for (const GpuEntry& entry : gpu_catalogue()) {
    const Gpu& gpu = entry.gpu;
    const std::uint64_t beside = gpu.context_bytes + outside_bytes;
    PlanFit fit;
    fit.gpu = {std::string(gpu.full_name), gpu.capacity_bytes, std::string(to_string(gpu.capacity_source)), gpu.context_bytes, std::string(to_string(gpu.context_source))};
    fit.fits = gpu.capacity_bytes > beside && served(trace, {}, gpu.capacity_bytes - beside);
    fits.push_back(std::move(fit));
  }
  std::stable_sort(fits.begin(), fits.end(), [](const PlanFit& a, const PlanFit& b) { return a.gpu.capacity_bytes < b.gpu.capacity_bytes; });
  return fits;
}

std::vector<PlanChange> try_settings(const Trace& trace, const SettingsSearch& search) {
  std::vector<PlanChange> helpful;
  for (const SettingChanges& changes : sensible_settings(trace)) {
    const std::optional<std::uint64_t> least = least_segment_bytes(trace, changes, search.peak_reserved_bytes);
    if (!least) continue;
    PlanChange change;
    change.kind = "setting";
    change.what = "Set PYTORCH_CUDA_ALLOC_CONF=" + written(changes);
    change.needed_bytes = *least + search.beside_bytes;
    change.fits = change.needed_bytes <= search.capacity_bytes;
    const double saved = static_cast<double>(search.needed_bytes) - static_cast<double>(change.needed_bytes);
    if (change.fits ? saved > 0 : saved > kWorthSaying * static_cast<double>(search.needed_bytes)) helpful.push_back(std::move(change));
  }
  std::stable_sort(helpful.begin(), helpful.end(), [](const PlanChange& a, const PlanChange& b) { return a.needed_bytes < b.needed_bytes; });
  if (helpful.size() > 1) helpful.resize(1);
  return helpful;
}

}  // namespace faultline::cli
