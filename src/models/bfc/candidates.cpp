#include "models/bfc/candidates.h"

#include <algorithm>

namespace faultline {
namespace {

struct Row {
  SettingChanges changes;
  bool proposed = false;
  Framework framework = Framework::kTensorFlow;
};

const std::vector<Row>& table() {
  static const std::vector<Row> kRows = {
      {{{"TF_FORCE_GPU_ALLOW_GROWTH", "false"}}, true},
      {{{"TF_FORCE_GPU_ALLOW_GROWTH", "true"}}},
      {{{"TF_ENABLE_GPU_GARBAGE_COLLECTION", "true"}}, true},
      {{{"TF_ENABLE_GPU_GARBAGE_COLLECTION", "false"}}},
      {{{"internal_fragmentation_fraction", "0.01"}}, true},
      {{{"internal_fragmentation_fraction", "0.001"}}},
      {{{"TF_FORCE_GPU_ALLOW_GROWTH", "false"}, {"internal_fragmentation_fraction", "0.01"}}, true},
      {{{"XLA_PYTHON_CLIENT_PREALLOCATE", "true"}}, true, Framework::kJax},
      {{{"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}}, false, Framework::kJax},
  };
  return kRows;
}

std::vector<SettingChanges> chosen(const BfcRecording& recording, const BfcSettings& now, bool only_proposed) {
  const std::uint32_t main = recording.main_pool();
  if (!recording.trace.heaps[recording.pools[main].heap.index()].name.starts_with("GPU_")) return {};
  std::vector<BfcSettings> seen = {now};
  std::vector<SettingChanges> fitting;
  for (const Row& row : table()) {
    BfcSettings changed = now;
    if (row.framework != recording.framework || (only_proposed && !row.proposed) ||
        !apply_changes(changed, {}, row.changes) || std::find(seen.begin(), seen.end(), changed) != seen.end())
      continue;
    seen.push_back(changed);
    fitting.push_back(row.changes);
  }
  return fitting;
}

}  // namespace

std::vector<SettingChanges> bfc_settings_to_try(const BfcRecording& recording, const BfcSettings& now) {
  return chosen(recording, now, false);
}

std::vector<SettingChanges> bfc_settings_to_propose(const BfcRecording& recording, const BfcSettings& now) {
  return chosen(recording, now, true);
}

std::string bfc_instruction(const SettingChanges& changes) {
  std::string variables, options;
  for (const auto& [name, value] : changes) {
    const bool is_variable = name.starts_with("TF_") || name.starts_with("XLA_");
    if (is_variable) variables += (variables.empty() ? "" : " ") + name + "=" + value;
    if (name == "internal_fragmentation_fraction")
      options +=
          "gpu_options.experimental.internal_fragmentation_fraction = " + value + " in a tf.compat.v1.ConfigProto";
    if (name == "memory_limit")
      options += "a limit of " + value + " MiB (tf.config.LogicalDeviceConfiguration(memory_limit=" + value + "))";
    if (name == "per_process_gpu_memory_fraction") options += "gpu_options.per_process_gpu_memory_fraction = " + value;
  }
  std::string text = "Set " + variables;
  if (!options.empty()) text += (variables.empty() ? "" : " and ") + options;
  return text + " before the program starts";
}

}  // namespace faultline
