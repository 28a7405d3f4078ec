#include "models/bfc/bfc_model.h"

#include <algorithm>

#include "fmt/format.h"
#include "models/bfc/proof.h"
#include "models/bfc/what_if.h"

namespace faultline {
namespace {

bool knows(const Trace& trace, std::uint16_t device) { return bfc_recording(trace, device).has_value(); }

// What was in force, with what a framework does by itself where nothing tells: TensorFlow's pools of a GPU collect garbage.
std::vector<BfcSettings> recorded_settings(const BfcRecording& recording, const BfcFindings& findings) {
  std::vector<BfcSettings> settings;
  for (std::size_t pool = 0; pool < recording.pools.size(); ++pool) {
    const BfcFindings::Pool& found = findings.pools[pool];
    BfcSettings each = found.settings;
    if (found.limit_at_most) each.limit_bytes = std::min(each.limit_bytes, *found.limit_at_most);
    const std::string& name = recording.trace.heaps[recording.pools[pool].heap.index()].name;
    each.garbage_collection =
        found.collects.value_or(recording.framework == BfcFramework::kTensorFlow && name.starts_with("GPU_"));
    settings.push_back(each);
  }
  return settings;
}

// Growth and collection are the program's, a limit is one pool's: the one that most is asked of.
Result<std::vector<BfcSettings>> changed(const BfcRecording& recording, std::vector<BfcSettings> settings,
                                         const ReplayOptions& options) {
  const std::uint32_t main = recording.main_pool();
  const BfcTarget target{recording.framework, options.gpu};
  for (std::uint32_t pool = 0; pool < settings.size(); ++pool) {
    const std::uint64_t own_limit = settings[pool].limit_bytes;
    const bool grew = settings[pool].growth;
    if (Status status = apply_changes(settings[pool], target, options.changes); !status) return status.error();
    if (pool != main) settings[pool].limit_bytes = own_limit;
    if (settings[pool].limit_bytes < kBfcNoLimit || settings[pool].growth || !grew) continue;
    if (!options.segment_budget_bytes)
      return Error{"without growth a pool takes its whole limit at once, and the recording does not state the limit",
                   {},
                   "Give it with memory_limit, in MiB, or name the GPU with --gpu."};
    settings[pool].limit_bytes = std::min(*options.segment_budget_bytes, kBfcNoLimit);
  }
  return settings;
}

Result<ReplayResult> replay_with_bfc(const Trace& trace, const ReplayOptions& options) {
  const std::optional<BfcRecording> recording = bfc_recording(trace, options.device);
  if (!recording) return Error{fmt::format("the trace has no BFC pool on device {}", options.device), {}, {}};
  if (options.proof) {
    if (!options.changes.empty())
      return Error{"a proof compares with the recording and takes no changed settings", {}, {}};
    if (!trace.can(kAddresses)) return Error{"a proof needs addresses, and the trace has none", {}, {}};
    BfcProofResult proof = prove_bfc(*recording, options.held_bytes);
    proof.replay.settings =
        written(recorded_settings(*recording, proof.findings)[recording->main_pool()], recording->framework);
    return std::move(proof.replay);
  }
  BfcFindings findings;
  if (trace.can(kAddresses)) {
    findings = prove_bfc(*recording).findings;
  } else {
    for (const BfcRecording::Pool& pool : recording->pools) {
      BfcFindings::Pool told;
      if (pool.stated.limit) told.settings.limit_bytes = pool.stated.limit->max;
      told.settings.growth = pool.stated.growth.value_or(true);
      told.collects = pool.stated.garbage_collection;
      findings.pools.push_back(told);
    }
  }
  const Result<std::vector<BfcSettings>> settings =
      changed(*recording, recorded_settings(*recording, findings), options);
  if (!settings) return settings.error();
  ReplayResult result = replay_bfc(*recording, *settings, findings, options);
  result.settings = written((*settings)[recording->main_pool()], recording->framework);
  return result;
}

}  // namespace

const Model kBfcModel = {"bfc", knows, replay_with_bfc, bfc_setting_names};

}  // namespace faultline
