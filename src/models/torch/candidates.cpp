#include "models/torch/candidates.h"

#include <algorithm>

#include "models/search.h"
#include "models/torch/settings.h"

namespace faultline {
namespace {

struct Row {
  SettingChanges changes;
  bool proposed = false;
};

std::vector<Row> table() {
  std::vector<Row> rows;
  const auto add = [&](const char* name, std::initializer_list<const char*> values, std::string_view proposed) {
    for (const char* value : values) rows.push_back({{{name, value}}, proposed == value});
  };
  add("expandable_segments", {"True", "False"}, "True");
  add("max_split_size_mb", {"unlimited", "32", "64", "128", "256", "512"}, "128");
  add("roundup_power2_divisions", {"0", "2", "4", "8", "16"}, "8");
  for (const char* divisions : {"4", "8"})
    rows.push_back({{{"expandable_segments", "True"}, {"roundup_power2_divisions", divisions}}});
  add("large_segment_size_mb", {"40", "64", "128"}, "");
  return rows;
}

}  // namespace

std::vector<SettingChanges> torch_settings_to_propose(const Trace&, std::uint16_t) {
  std::vector<SettingChanges> proposed;
  for (Row& row : table()) {
    if (row.proposed) proposed.push_back(std::move(row.changes));
  }
  return proposed;
}

std::vector<SettingChanges> torch_settings_to_try(const Trace& trace, std::uint16_t) {
  const Result<RecordedTorchSettings> recorded = recorded_torch_settings(trace.properties);
  std::vector<SettingChanges> fitting;
  std::vector<TorchSettings> seen;
  if (recorded) seen.push_back(recorded->settings);
  for (Row& row : table()) {
    if (recorded) {
      TorchSettings changed = recorded->settings;
      if (!apply_changes(changed, recorded->traits, row.changes) ||
          std::find(seen.begin(), seen.end(), changed) != seen.end())
        continue;
      seen.push_back(changed);
    }
    fitting.push_back(std::move(row.changes));
  }
  return fitting;
}

std::string torch_instruction(const SettingChanges& changes) {
  return "Set PYTORCH_CUDA_ALLOC_CONF=" + written(changes) + " before the program starts";
}

}  // namespace faultline
