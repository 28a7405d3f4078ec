#include "models/search.h"

#include <algorithm>

#include "models/torch/settings.h"

namespace faultline {

std::vector<SettingChanges> sensible_settings(const Trace& trace) {
  std::vector<SettingChanges> all = {{{"expandable_segments", "True"}}, {{"expandable_segments", "False"}}};
  for (const char* size : {"unlimited", "32", "64", "128", "256", "512"}) all.push_back({{"max_split_size_mb", size}});
  for (const char* divisions : {"0", "2", "4", "8", "16"}) all.push_back({{"roundup_power2_divisions", divisions}});
  for (const char* divisions : {"4", "8"}) all.push_back({{"expandable_segments", "True"}, {"roundup_power2_divisions", divisions}});
  for (const char* size : {"40", "64", "128"}) all.push_back({{"large_segment_size_mb", size}});

  Result<RecordedTorchSettings> recorded = recorded_torch_settings(trace.properties);
  if (!recorded) return all;
  std::vector<SettingChanges> fitting;
  std::vector<TorchSettings> seen{recorded->settings};
  for (SettingChanges& changes : all) {
    TorchSettings changed = recorded->settings;
    if (!apply_changes(changed, recorded->traits, changes)) continue;
    if (std::find(seen.begin(), seen.end(), changed) != seen.end()) continue;
    seen.push_back(changed);
    fitting.push_back(std::move(changes));
  }
  return fitting;
}

}  // namespace faultline
