#include <array>

#include "rules/config_no_effect/config_no_effect.h"
#include "rules/fragmentation/fragmentation.h"
#include "rules/leak/leak.h"
#include "rules/out_of_memory/out_of_memory.h"
#include "rules/rule.h"
#include "rules/unreturned_cache/unreturned_cache.h"

namespace faultline {
namespace {

constexpr std::array<Rule, 5> kRules = {{
    {"memory/out-of-memory", kEvents, judge_out_of_memory},
    {"memory/leak", kEvents | kStacks, judge_leak},
    {"memory/fragmentation", kAddresses, judge_fragmentation},
    {"memory/unreturned-cache", kEvents | kAddresses, judge_unreturned_cache},
    {"config/no-effect", 0, judge_config_no_effect},
}};

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

}  // namespace faultline
