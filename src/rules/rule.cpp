#include "rules/rule.h"

#include <algorithm>

#include "models/torch/segment_sizes.h"

namespace faultline {

bool Case::model_is_trusted(std::size_t device_slot) const {
  const ReplayResult* known = proof(device_slot);
  // A lost beginning costs a few placements; a model that is wrong about the allocator misses many.
  return known != nullptr && known->placements != 0 && known->exact * 100 >= known->placements * 99;
}

bool has_history(const Trace& trace, std::string_view rule, std::vector<NotJudged>& not_judged) {
  const auto begin = trace.events.begin() + trace.preexisting_count;
  if (trace.can(kCompleteFromStart) && begin == trace.events.begin()) return true;  // all there was, be it nothing
  if (std::any_of(begin, trace.events.end(), [](const Event& event) { return event.kind == EventKind::kAlloc; }))
    return true;
  not_judged.push_back({rule, "the recording holds no allocations over time, only a state"});
  return false;
}

FreeSpace Case::free_space(std::uint16_t device, std::uint32_t event) const {
  const TorchSegmentSizes sizes = torch_segment_sizes(trace_);
  return picture_free_space(trace_, facts_.lifetimes, device, event, {sizes.small_bytes, sizes.large_bytes});
}

const ReplayResult* Case::what_if(std::size_t device_slot, const SettingChanges& changes,
                                  std::optional<std::uint64_t> segment_budget_bytes) {
  std::string key =
      std::to_string(device_slot) + "/" + (segment_budget_bytes ? std::to_string(*segment_budget_bytes) : "-");
  for (const auto& [name, value] : changes) key += "/" + name + "=" + value;
  const auto [at, fresh] = answers_.try_emplace(key);
  if (fresh) {
    ReplayOptions options;
    options.changes = changes;
    options.segment_budget_bytes = segment_budget_bytes;
    options.device = trace_.devices[device_slot].index;
    Result<ReplayResult> answer = replay(trace_, options);
    if (answer) at->second = std::move(*answer);
  }
  return at->second ? &*at->second : nullptr;
}

}  // namespace faultline
