#include "models/search.h"

#include <algorithm>

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

const std::vector<SettingChanges>& proposed_settings() {
  static const std::vector<SettingChanges> kProposed = [] {
    std::vector<SettingChanges> proposed;
    for (Row& row : table()) {
      if (row.proposed) proposed.push_back(std::move(row.changes));
    }
    return proposed;
  }();
  return kProposed;
}

std::string written(const SettingChanges& changes) {
  std::string text;
  for (const auto& [name, value] : changes) text += (text.empty() ? "" : ",") + name + ":" + value;
  return text;
}

std::vector<SettingChanges> sensible_settings(const Trace& trace) {
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

}  // namespace faultline
