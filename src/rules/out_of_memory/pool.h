// What a pool of TensorFlow's or JAX's adds to an out-of-memory: its numbers, who holds what in it, and what to try.
#pragma once

#include <optional>
#include <string_view>

#include "rules/rule.h"

namespace faultline {

inline constexpr std::string_view kServedThen =
    "this request is then served, and all before it; what the program would have requested next was not recorded";

// The failure that a message of the same text tells of: the last request that failed in a pool, and its device's place. Null: there is none.
struct PoolFailure {
  std::size_t slot = 0;
  UsageMoment moment;
};
std::optional<PoolFailure> pool_failure(const Case& subject);

// Cause, confidence, sentence, evidence, holders and tries.
void tell_pool(Case& subject, const PoolFailure& failure, Finding& finding);

}  // namespace faultline
