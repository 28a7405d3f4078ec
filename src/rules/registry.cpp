#include "rules/registry.h"

#include <algorithm>
#include <array>

#include "sources/rule_names.h"
#include "trace/trace.h"

namespace faultline {

RuleFunction judge_bad_copy, judge_bad_free, judge_broadcast_blowup, judge_cache_churn, judge_checkpoint_mismatch,
    judge_config_no_effect, judge_faults, judge_fragmentation, judge_known_messages, judge_leak, judge_other_error,
    judge_out_of_memory, judge_shape_mismatch, judge_silent_upcast, judge_unreturned_cache, judge_violations;

namespace {

constexpr auto kRules = std::to_array<Rule>({
    {.name = rule_name::kOtherError, .topic = Topic::kEnding, .judge = judge_other_error, .reads_messages = true},
    {.name = rule_name::kIllegalAddress,
     .topic = Topic::kAccess,
     .judge = judge_faults,
     .reads_calls = true,
     .reads_messages = true,
     .reads_driver = true,
     .beyond_messages = "which kernel it was, what address and what tensor: a message names none of them; faultline "
                        "run --core-dump does"},
    {.name = rule_name::kOutOfBounds,
     .topic = Topic::kAccess,
     .judge = judge_violations,
     .reads_driver = true,
     .reads_accesses = true},
    {.name = rule_name::kUseAfterFree, .topic = Topic::kAccess, .reads_driver = true, .reads_accesses = true},
    {.name = rule_name::kUninitialized, .topic = Topic::kAccess, .reads_driver = true, .reads_accesses = true},
    {.name = rule_name::kMisaligned,
     .topic = Topic::kAccess,
     .reads_calls = true,
     .reads_messages = true,
     .reads_driver = true},
    {.name = rule_name::kIndexOutOfRange,
     .topic = Topic::kTensors,
     .reads_calls = true,
     .reads_messages = true,
     .reads_driver = true,
     .beyond_dry_runs = "indices that a dry run does not compute; those whose values are the program's own are looked "
                        "at"},
    {.name = rule_name::kLaunchError,
     .topic = Topic::kCall,
     .reads_calls = true,
     .reads_messages = true,
     .reads_driver = true},
    {.name = rule_name::kBadFree, .topic = Topic::kCall, .judge = judge_bad_free, .reads_driver = true},
    {.name = rule_name::kBadCopy,
     .topic = Topic::kCall,
     .judge = judge_bad_copy,
     .reads_calls = true,
     .reads_driver = true},
    {.name = rule_name::kOutOfMemory,
     .topic = Topic::kExhausted,
     .needs = kEvents,
     .judge = judge_out_of_memory,
     .reads_messages = true},
    {.name = rule_name::kHostMemory, .topic = Topic::kMachine, .judge = judge_known_messages, .reads_messages = true},
    {.name = rule_name::kDeviceNotUsable, .reads_messages = true},
    {.name = rule_name::kLeak,
     .topic = Topic::kGrowth,
     .needs = kEvents | kStacks,
     .judge = judge_leak,
     .beyond_messages = "a message shows one moment; growth needs a recording over several steps",
     .at_the_end = "what was still held at the end"},
    {.name = rule_name::kFragmentation,
     .topic = Topic::kWaste,
     .needs = kAddresses,
     .judge = judge_fragmentation,
     .beyond_messages = "a message does not say which blocks pin which segments; a snapshot does"},
    {.name = rule_name::kUnreturnedCache,
     .topic = Topic::kWaste,
     .needs = kAddresses,
     .judge = judge_unreturned_cache,
     .depends_on_room = true},
    {.name = rule_name::kCacheChurn, .topic = Topic::kWaste, .needs = kEvents | kStacks, .judge = judge_cache_churn},
    {.name = rule_name::kShapeMismatch, .topic = Topic::kTensors, .needs = kTensors, .judge = judge_shape_mismatch},
    {.name = rule_name::kDtypeMismatch, .topic = Topic::kTensors, .needs = kTensors},
    {.name = rule_name::kDeviceMismatch, .topic = Topic::kTensors, .needs = kTensors},
    {.name = rule_name::kCheckpointMismatch,
     .topic = Topic::kTensors,
     .judge = judge_checkpoint_mismatch,
     .reads_messages = true},
    {.name = rule_name::kSilentUpcast,
     .topic = Topic::kTensors,
     .needs = kEvents | kTensors,
     .judge = judge_silent_upcast},
    {.name = rule_name::kBroadcastBlowup,
     .topic = Topic::kTensors,
     .needs = kEvents | kTensors,
     .judge = judge_broadcast_blowup,
     .of_one_result = true},
    {.name = rule_name::kNoEffect, .topic = Topic::kSettings, .judge = judge_config_no_effect},
    {.name = rule_name::kOverBudget, .topic = Topic::kLimit},
    {.name = rule_name::kGrown, .topic = Topic::kLimit, .holders = "grown"},
});
constexpr Rule kUnknown;

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

const Rule& rule_named(std::string_view name) {
  const auto known = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& rule) { return rule.name == name; });
  return known == kRules.end() ? kUnknown : *known;
}

}  // namespace faultline
