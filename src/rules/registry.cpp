#include <array>

#include "rules/bad_copy/bad_copy.h"
#include "rules/bad_free/bad_free.h"
#include "rules/broadcast_blowup/broadcast_blowup.h"
#include "rules/cache_churn/cache_churn.h"
#include "rules/config_no_effect/config_no_effect.h"
#include "rules/fragmentation/fragmentation.h"
#include "rules/illegal_address/illegal_address.h"
#include "rules/leak/leak.h"
#include "rules/out_of_memory/out_of_memory.h"
#include "rules/rule.h"
#include "rules/shape_mismatch/shape_mismatch.h"
#include "rules/silent_upcast/silent_upcast.h"
#include "rules/unreturned_cache/unreturned_cache.h"
#include "rules/violation/violation.h"

namespace faultline {
namespace {

constexpr auto kRules = std::to_array<Rule>({
    {"access/illegal-address", 0, judge_faults, true, true, "which kernel it was, what address and what tensor: a message names none of them; faultline run --core-dump does"},
    {"access/out-of-bounds", 0, judge_violations},
    {"access/use-after-free", 0, nullptr},
    {"access/uninitialized", 0, nullptr},
    {"access/misaligned", 0, nullptr, true, true},
    {"tensor/index-out-of-range", 0, nullptr, true, true},
    {"api/launch-error", 0, nullptr, true, true},
    {"api/bad-free", 0, judge_bad_free},
    {"api/bad-copy", 0, judge_bad_copy, true},
    {"memory/out-of-memory", kEvents, judge_out_of_memory, false, true},
    {"memory/leak", kEvents | kStacks, judge_leak, false, false, "a message shows one moment; growth needs a recording over several steps"},
    {"memory/fragmentation", kAddresses, judge_fragmentation, false, false, "a message does not say which blocks pin which segments; a snapshot does"},
    {"memory/unreturned-cache", kEvents | kAddresses, judge_unreturned_cache},
    {"memory/cache-churn", kEvents | kStacks, judge_cache_churn},
    {"tensor/shape-mismatch", kTensors, judge_shape_mismatch},
    {"tensor/silent-upcast", kEvents | kTensors, judge_silent_upcast},
    {"tensor/broadcast-blowup", kEvents | kTensors, judge_broadcast_blowup},
    {"config/no-effect", 0, judge_config_no_effect},
});

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

}  // namespace faultline
