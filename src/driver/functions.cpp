#include "driver/functions.h"

#include <algorithm>
#include <array>

namespace faultline::driver {
namespace {

constexpr Variant kVariants[] = {
#define FAULTLINE_DRIVER_VARIANT(base, version, stream, type) {#base, version, StreamKind::stream},
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_VARIANT
};

}  // namespace

std::span<const Variant> all_variants() { return kVariants; }

std::optional<std::size_t> find_variant(std::string_view base, int version, StreamKind stream) {
  const auto first = std::lower_bound(std::begin(kVariants), std::end(kVariants), base,
                                      [](const Variant& v, std::string_view b) { return v.base < b; });
  std::optional<std::size_t> legacy, per_thread;
  for (const Variant* at = first; at != std::end(kVariants) && at->base == base; ++at) {
    if (at->version > version) continue;
    (at->stream == StreamKind::kLegacy ? legacy : per_thread) = static_cast<std::size_t>(at - kVariants);
  }
  return stream == StreamKind::kPerThread && per_thread ? per_thread : legacy;
}

}  // namespace faultline::driver
