#include "models/bfc/bfc_model.h"

#include <algorithm>

#include "fmt/format.h"
#include "models/bfc/candidates.h"
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
    // Of a limit that was printed rounded the whole number of MiB: that is how people give it.
    const std::uint64_t whole = each.limit_bytes / kMiB * kMiB;
    const std::optional<ByteInterval>& stated = recording.pools[pool].stated.limit;
    if (!found.limit_is_known && stated && whole >= std::max(stated->min, found.peak_reserved_bytes))
      each.limit_bytes = whole;
    if (found.limit_at_most) each.limit_bytes = std::min(each.limit_bytes, *found.limit_at_most);
    const std::string& name = recording.trace.heaps[recording.pools[pool].heap.index()].name;
    each.garbage_collection =
        found.collects.value_or(recording.framework == Framework::kTensorFlow && name.starts_with("GPU_"));
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

BfcFindings findings_of(const BfcRecording& recording) {
  if (recording.trace.can(kAddresses)) return prove_bfc(recording).findings;
  BfcFindings findings;
  for (const BfcRecording::Pool& pool : recording.pools) {
    BfcFindings::Pool told;
    if (pool.stated.limit) told.settings.limit_bytes = pool.stated.limit->max;
    told.settings.growth = pool.stated.growth.value_or(true);
    told.collects = pool.stated.garbage_collection;
    findings.pools.push_back(told);
  }
  return findings;
}

// What is known of each pool's limit: exactly, as it was printed, or only that the failures lay beyond it.
std::vector<PoolLimit> limits_of(const BfcRecording& recording, const BfcProofResult& proof) {
  std::vector<PoolLimit> limits;
  for (std::size_t at = 0; at < recording.pools.size(); ++at) {
    const BfcFindings::Pool& found = proof.findings.pools[at];
    std::optional<ByteInterval> limit = recording.pools[at].stated.limit;
    if (found.limit_is_known)
      limit = ByteInterval::exactly(found.settings.limit_bytes);
    else if (!limit && found.limit_at_most)
      limit = ByteInterval{std::min(found.peak_reserved_bytes, *found.limit_at_most), *found.limit_at_most};
    if (limit) limits.push_back({recording.pools[at].heap, *limit});
  }
  return limits;
}

template <std::vector<SettingChanges> (*choose)(const BfcRecording&, const BfcSettings&)>
std::vector<SettingChanges> candidates(const Trace& trace, std::uint16_t device) {
  const std::optional<BfcRecording> recording = bfc_recording(trace, device);
  if (!recording) return {};
  return choose(*recording, recorded_settings(*recording, findings_of(*recording))[recording->main_pool()]);
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
    proof.replay.pool_limits = limits_of(*recording, proof);
    return std::move(proof.replay);
  }
  const BfcFindings findings = findings_of(*recording);
  const Result<std::vector<BfcSettings>> settings =
      changed(*recording, recorded_settings(*recording, findings), options);
  if (!settings) return settings.error();
  ReplayResult result = replay_bfc(*recording, *settings, findings, options);
  result.settings = written((*settings)[recording->main_pool()], recording->framework);
  return result;
}

}  // namespace

const Model kBfcModel = {"bfc",
                         knows,
                         replay_with_bfc,
                         bfc_setting_names,
                         candidates<bfc_settings_to_try>,
                         candidates<bfc_settings_to_propose>,
                         bfc_instruction};

}  // namespace faultline
