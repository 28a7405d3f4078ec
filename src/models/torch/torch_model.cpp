#include "models/torch/torch_model.h"

#include <algorithm>

#include "fmt/format.h"
#include "models/torch/candidates.h"
#include "models/torch/proof.h"
#include "models/torch/what_if.h"

namespace faultline {
namespace {

bool knows(const Trace& trace, std::uint16_t device) { return torch_recording(trace, device).has_value(); }

// What the events themselves do not tell must be found out first: whether memory was given back by the program's wish, and what room a failure
// shows there was.
bool needs_findings(const TorchRecording& recording, const ReplayOptions& options) {
  return std::any_of(recording.trace.events.begin(), recording.trace.events.end(), [&](const Event& event) {
    switch (recording.role(event)) {
      case HeapRole::kDriver:
        return (event.kind == EventKind::kFree && !event.has(kFailed)) || event.kind == EventKind::kUnmap;
      case HeapRole::kTorch:
        return event.kind == EventKind::kAllocFailed && event.has(kHasDeviceFree) && !options.segment_budget_bytes;
      case HeapRole::kElsewhere: return false;
    }
    return false;
  });
}

Result<ReplayResult> replay_with_torch(const Trace& trace, const ReplayOptions& options) {
  const std::optional<TorchRecording> recording = torch_recording(trace, options.device);
  if (!recording) return Error{fmt::format("the trace has no PyTorch memory on device {}", options.device), {}, {}};
  const auto recorded = recorded_torch_settings(trace.properties);
  if (!recorded) return recorded.error();
  if (!recorded->settings.native)
    return Error{"the recording was made with backend:cudaMallocAsync, which has no model", {}, {}};
  if (options.proof) {
    if (!options.changes.empty())
      return Error{"a proof compares with the recording and takes no changed settings", {}, {}};
    if (!trace.can(kAddresses)) return Error{"a proof needs addresses, and the trace has none", {}, {}};
    return prove_torch(*recording, *recorded, options.held_bytes).replay;
  }
  TorchSettings settings = recorded->settings;
  if (Status status = apply_changes(settings, recorded->traits, options.changes); !status) return status.error();
  TorchFindings findings;
  if (trace.can(kAddresses) && needs_findings(*recording, options))
    findings = prove_torch(*recording, *recorded).findings;
  return replay_torch(*recording, *recorded, settings, findings, options);
}

}  // namespace

const Model kTorchModel = {
    "torch-native",   knows, replay_with_torch, torch_setting_names, torch_settings_to_try, torch_settings_to_propose,
    torch_instruction};

}  // namespace faultline
