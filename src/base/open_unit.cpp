#include "base/open_unit.h"

#include "base/units.h"

namespace faultline {

std::optional<std::string> open_unit_words(std::uint64_t min_bytes, std::uint64_t max_bytes) {
  using Wide = unsigned __int128;
  struct OpenUnit {
    const char* name;
    std::uint64_t low, high;
  };
  static constexpr OpenUnit kOpenUnits[] = {
      {"kB", 1000, kKiB}, {"MB", 1000000, kMiB}, {"GB", 1000000000, kGiB}, {"TB", 1000000000000, kTiB}};
  constexpr int kMostDecimals = 6;
  if (min_bytes >= max_bytes) return std::nullopt;
  for (const OpenUnit& unit : kOpenUnits) {
    if (min_bytes % unit.low == 0 && max_bytes % unit.high == 0 && min_bytes / unit.low == max_bytes / unit.high)
      return std::to_string(min_bytes / unit.low) + " " + unit.name;
    Wide scale = 1;
    for (int decimals = 1; decimals <= kMostDecimals; ++decimals) {
      scale *= 10;
      // rounded to so many decimals: (2·digits ± 1) halves of the last one
      const Wide about = (Wide(max_bytes) * 2 * scale / unit.high) / 2;
      for (Wide digits = about == 0 ? 0 : about - 1; digits <= about; ++digits) {
        if (digits == 0 || ((2 * digits - 1) * unit.low + 2 * scale - 1) / (2 * scale) != min_bytes ||
            (2 * digits + 1) * unit.high / (2 * scale) != max_bytes)
          continue;
        const std::string fraction = std::to_string(static_cast<std::uint64_t>(scale + digits % scale));
        return std::to_string(static_cast<std::uint64_t>(digits / scale)) + "." + fraction.substr(1) + " " + unit.name;
      }
    }
  }
  return std::nullopt;
}

}  // namespace faultline
