#include <array>

#include "rules/rule.h"

namespace faultline {

RuleFunction judge_bad_copy, judge_bad_free, judge_broadcast_blowup, judge_cache_churn, judge_checkpoint_mismatch,
    judge_config_no_effect, judge_faults, judge_fragmentation, judge_known_messages, judge_leak, judge_other_error,
    judge_out_of_memory, judge_shape_mismatch, judge_silent_upcast, judge_unreturned_cache, judge_violations;

namespace {

constexpr auto kRules = std::to_array<Rule>({
    {"program/other-error", 0, judge_other_error, false, true},
    {"access/illegal-address", 0, judge_faults, true, true, true,
     "which kernel it was, what address and what tensor: a message names none of them; faultline run --core-dump does"},
    {"access/out-of-bounds", 0, judge_violations, false, false, true},
    {"access/use-after-free", 0, nullptr, false, false, true},
    {"access/uninitialized", 0, nullptr, false, false, true},
    {"access/misaligned", 0, nullptr, true, true, true},
    {"tensor/index-out-of-range", 0, nullptr, true, true, true},
    {"api/launch-error", 0, nullptr, true, true, true},
    {"api/bad-free", 0, judge_bad_free, false, false, true},
    {"api/bad-copy", 0, judge_bad_copy, true, false, true},
    {"memory/out-of-memory", kEvents, judge_out_of_memory, false, true},
    {"memory/host-memory", 0, judge_known_messages, false, true},
    {"config/device-not-usable", 0, nullptr, false, true},
    {"memory/leak", kEvents | kStacks, judge_leak, false, false, false,
     "a message shows one moment; growth needs a recording over several steps"},
    {"memory/fragmentation", kAddresses, judge_fragmentation, false, false, false,
     "a message does not say which blocks pin which segments; a snapshot does"},
    {"memory/unreturned-cache", kAddresses, judge_unreturned_cache},
    {"memory/cache-churn", kEvents | kStacks, judge_cache_churn},
    {"tensor/shape-mismatch", kTensors, judge_shape_mismatch},
    {"tensor/dtype-mismatch", kTensors, nullptr},
    {"tensor/device-mismatch", kTensors, nullptr},
    {"tensor/checkpoint-mismatch", 0, judge_checkpoint_mismatch, false, true},
    {"tensor/silent-upcast", kEvents | kTensors, judge_silent_upcast},
    {"tensor/broadcast-blowup", kEvents | kTensors, judge_broadcast_blowup},
    {"config/no-effect", 0, judge_config_no_effect},
});

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

}  // namespace faultline
