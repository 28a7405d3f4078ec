// config/no-effect: allocator settings that the program asks for and that do nothing.
//
// Some cannot do anything by construction (a garbage collection threshold without a memory limit, a rounding limit without a split limit);
// others made no difference to this recording, which a replay without them shows.
#include <algorithm>

#include "models/torch/settings.h"
#include "rules/describe.h"
#include "rules/rule.h"

namespace faultline {
namespace {

Finding no_effect(const std::string& setting, std::string message, Severity severity, Confidence confidence,
                  std::string advice) {
  Finding finding;
  finding.rule = rule_name::kNoEffect;
  finding.severity = severity;
  finding.confidence = confidence;
  finding.message = std::move(message);
  finding.evidence.push_back({"setting", setting});
  if (!advice.empty()) add_try(finding, std::move(advice));
  finding.fingerprint = fingerprint(finding.rule, {}, setting);
  return finding;
}

// A memory limit leaves traces: a request that failed although the device had room, or segments given back while others were taken.
bool shows_memory_limit(const Trace& trace) {
  for (const Event& event : trace.events) {
    const bool driver_free = event.kind == EventKind::kFree && !event.has(kFailed) &&
                             trace.heaps[event.heap.index()].kind == HeapKind::kDriver;
    if (event.kind == EventKind::kAllocFailed || driver_free || event.kind == EventKind::kUnmap) return true;
  }
  return false;
}

bool has_event(const Trace& trace, EventKind kind, bool in_driver) {
  return std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
    return event.kind == kind && !event.has(kPreexisting) &&
           (!in_driver || trace.heaps[event.heap.index()].kind == HeapKind::kDriver);
  });
}

struct Removal {
  const char* name;
  const char* neutral;  // the value that stands for "not set"
  bool set;
};

}  // namespace

void judge_config_no_effect(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  const Trace& trace = subject.trace();
  const auto lacks = [&](const std::string& why) { not_judged.push_back({rule_name::kNoEffect, why}); };
  if (!trace.properties.contains("torch.alloc_conf"))
    return lacks("this input does not carry the allocator's settings");
  Result<RecordedTorchSettings> recorded = recorded_torch_settings(trace.properties);
  if (!recorded) return lacks("the allocator's settings could not be read: " + recorded.error().what);
  const TorchSettings& now = recorded->settings;
  const TorchSettings plain;
  const bool unlimited_split = now.max_split_bytes == kUnlimitedBytes;

  if (now.gc_threshold > 0 && now.memory_fraction >= 1 && !shows_memory_limit(trace)) {
    findings.push_back(no_effect("garbage_collection_threshold",
                                 "garbage_collection_threshold is set, but PyTorch looks at it only where the program "
                                 "also limits its memory, and neither the settings nor this "
                                 "recording show a limit: nothing is ever collected.",
                                 Severity::kWarning, Confidence::kLikely,
                                 "Add per_process_memory_fraction (2.10 and later) or call "
                                 "torch.cuda.set_per_process_memory_fraction(f) with f below 1, or drop the setting."));
  }
  const std::string& raw = trace.properties.at("torch.alloc_conf");
  if (raw.find("max_non_split_rounding_mb") != std::string::npos && unlimited_split) {
    findings.push_back(no_effect(
        "max_non_split_rounding_mb",
        "max_non_split_rounding_mb is set, but it only concerns blocks above max_split_size_mb, which is not set.",
        Severity::kWarning, Confidence::kProved, "Set max_split_size_mb too, or drop it."));
  }
  const bool only_ones =
      std::all_of(now.roundup_divisions.begin(), now.roundup_divisions.end(), [](std::uint32_t d) { return d <= 1; });
  const bool some_ones =
      std::any_of(now.roundup_divisions.begin(), now.roundup_divisions.end(), [](std::uint32_t d) { return d == 1; });
  if (only_ones && some_ones) {
    findings.push_back(no_effect("roundup_power2_divisions",
                                 "roundup_power2_divisions is 1 wherever it is set, and one division rounds nothing.",
                                 Severity::kWarning, Confidence::kProved, "Use 2 or more, or drop it."));
  }
  const bool wanted = raw.find("expandable_segments:True") != std::string::npos ||
                      raw.find("expandable_segments:true") != std::string::npos;
  if (wanted && has_event(trace, EventKind::kAlloc, true) && !has_event(trace, EventKind::kMap, false)) {
    findings.push_back(no_effect("expandable_segments",
                                 "expandable_segments:True is set, but every segment of this recording was taken "
                                 "whole: the setting was not in force (the platform does not support it, "
                                 "or the program changed it).",
                                 Severity::kWarning, Confidence::kLikely, ""));
  }
  // The others: did they change anything at all? A replay without them tells.
  const std::size_t devices = trace.devices.size();
  for (std::size_t slot = 0; slot < devices; ++slot) {
    if (!subject.model_is_trusted(slot)) return;
  }
  const Removal removals[] = {{"max_split_size_mb", "unlimited", !unlimited_split && !now.expandable},
                              {"roundup_power2_divisions", "0", !only_ones},
                              {"large_segment_size_mb", "20", now.large_segment_bytes != plain.large_segment_bytes}};
  for (const Removal& removal : removals) {
    if (!removal.set) continue;
    bool same = devices != 0;
    for (std::size_t slot = 0; same && slot < devices; ++slot) {
      const ReplayResult* with = subject.what_if(slot, {}, std::nullopt);
      const ReplayResult* without = subject.what_if(slot, {{removal.name, removal.neutral}}, std::nullopt);
      same = with != nullptr && without != nullptr && with->peak_reserved_bytes == without->peak_reserved_bytes &&
             with->peak_allocated_bytes == without->peak_allocated_bytes &&
             with->segments_taken == without->segments_taken && with->end_reserved_bytes == without->end_reserved_bytes;
    }
    if (same) {
      findings.push_back(
          no_effect(removal.name,
                    std::string(removal.name) +
                        " made no difference here: the same requests replayed without it reserve the same memory.",
                    Severity::kNote, Confidence::kProved, ""));
    }
  }
}

}  // namespace faultline
