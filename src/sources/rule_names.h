// The name of each rule, written here once: for the messages that state what a rule is about, the rule itself and its row in rules/registry.cpp. Whoever treats the findings
// of some rules otherwise than those of others asks for what the row says of them (rules/registry.h), not for a name. `make check` holds both.
#pragma once

#include <string_view>

namespace faultline::rule_name {

inline constexpr std::string_view kOtherError = "program/other-error";
inline constexpr std::string_view kIllegalAddress = "access/illegal-address";
inline constexpr std::string_view kOutOfBounds = "access/out-of-bounds";
inline constexpr std::string_view kUseAfterFree = "access/use-after-free";
inline constexpr std::string_view kUninitialized = "access/uninitialized";
inline constexpr std::string_view kMisaligned = "access/misaligned";
inline constexpr std::string_view kIndexOutOfRange = "tensor/index-out-of-range";
inline constexpr std::string_view kLaunchError = "api/launch-error";
inline constexpr std::string_view kBadFree = "api/bad-free";
inline constexpr std::string_view kBadCopy = "api/bad-copy";
inline constexpr std::string_view kOutOfMemory = "memory/out-of-memory";
inline constexpr std::string_view kHostMemory = "memory/host-memory";
inline constexpr std::string_view kDeviceNotUsable = "config/device-not-usable";
inline constexpr std::string_view kLeak = "memory/leak";
inline constexpr std::string_view kFragmentation = "memory/fragmentation";
inline constexpr std::string_view kUnreturnedCache = "memory/unreturned-cache";
inline constexpr std::string_view kCacheChurn = "memory/cache-churn";
inline constexpr std::string_view kShapeMismatch = "tensor/shape-mismatch";
inline constexpr std::string_view kDtypeMismatch = "tensor/dtype-mismatch";
inline constexpr std::string_view kDeviceMismatch = "tensor/device-mismatch";
inline constexpr std::string_view kCheckpointMismatch = "tensor/checkpoint-mismatch";
inline constexpr std::string_view kSilentUpcast = "tensor/silent-upcast";
inline constexpr std::string_view kBroadcastBlowup = "tensor/broadcast-blowup";
inline constexpr std::string_view kNoEffect = "config/no-effect";
inline constexpr std::string_view kOverBudget = "memory/over-budget";
inline constexpr std::string_view kGrown = "memory/grown";

}  // namespace faultline::rule_name
