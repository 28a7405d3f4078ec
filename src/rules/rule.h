// A rule: reads facts, emits findings. Rules do not know each other, nor how findings look.
//
// What a rule may look at is a Case: one trace with its facts and what the input states beside it, the proof replay of each device where a model knows its allocator, and a way to
// ask "what if". A rule that cannot judge says why; it never just stays silent for want of evidence.
// docs/architecture.md tells how to add one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.h"
#include "models/replay.h"
#include "rules/finding.h"
#include "rules/registry.h"
#include "sources/rule_names.h"
#include "sources/statements.h"
#include "trace/trace.h"

namespace faultline {

class Case {
 public:
  Case(const Trace& trace, const Statements& statements, const Facts& facts,
       std::span<const std::optional<ReplayResult>> proofs)
      : trace_(trace), statements_(statements), facts_(facts), proofs_(proofs) {}

  const Trace& trace() const { return trace_; }
  const Statements& statements() const { return statements_; }
  const Facts& facts() const { return facts_; }
  // The address picture of a device right after an event.
  FreeSpace free_space(std::uint16_t device, std::uint32_t event) const;
  // The proof of the device in this slot of Trace::devices; null where no model could be run.
  const ReplayResult* proof(std::size_t device_slot) const {
    return proofs_[device_slot] ? &*proofs_[device_slot] : nullptr;
  }
  // The model gave (nearly) the recording's own placements, so its what-ifs can be believed.
  bool model_is_trusted(std::size_t device_slot) const;

  // The same requests under other settings. Each question is answered once; null when the model cannot answer.
  const ReplayResult* what_if(std::size_t device_slot, const SettingChanges& changes,
                              std::optional<std::uint64_t> segment_budget_bytes);

 private:
  const Trace& trace_;
  const Statements& statements_;
  const Facts& facts_;
  std::span<const std::optional<ReplayResult>> proofs_;
  std::map<std::string, std::optional<ReplayResult>> answers_;
};

// The recording saw allocations being made; else the rule is noted as not judged.
bool has_history(const Trace& trace, std::string_view rule, std::vector<NotJudged>& not_judged);

}  // namespace faultline
