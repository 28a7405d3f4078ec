#include "base/units.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace faultline {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<Unit, 14> kUnits = {{{"", 1},
                                          {"b", 1},
                                          {"k", 1024.0},
                                          {"kib", 1024.0},
                                          {"kb", 1e3},
                                          {"m", 1048576.0},
                                          {"mib", 1048576.0},
                                          {"mb", 1e6},
                                          {"g", 1073741824.0},
                                          {"gib", 1073741824.0},
                                          {"gb", 1e9},
                                          {"t", 1099511627776.0},
                                          {"tib", 1099511627776.0},
                                          {"tb", 1e12}}};

}  // namespace

std::string format_bytes(std::uint64_t size_bytes) {
  char text[48];
  const auto value = static_cast<double>(size_bytes);
  if (size_bytes < kKiB) {
    std::snprintf(text, sizeof text, "%llu B", static_cast<unsigned long long>(size_bytes));
  } else if (size_bytes < kMiB) {
    std::snprintf(text, sizeof text, "%.2f KiB", value / static_cast<double>(kKiB));
  } else if (size_bytes < kGiB) {
    std::snprintf(text, sizeof text, "%.2f MiB", value / static_cast<double>(kMiB));
  } else if (size_bytes < kTiB) {
    std::snprintf(text, sizeof text, "%.2f GiB", value / static_cast<double>(kGiB));
  } else {
    std::snprintf(text, sizeof text, "%.2f TiB", value / static_cast<double>(kTiB));
  }
  return text;
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const Error bad{"'" + std::string(text) + "' is not a size", {}, "Write for example 16GiB, 512MiB or 24GB."};
  double number = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || !std::isfinite(number) || number < 0) return bad;
  std::string unit;
  for (const char* at = stop; at != text.data() + text.size(); ++at) {
    if (*at != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
  }
  for (const Unit& known : kUnits) {
    if (known.name != unit) continue;
    const double bytes = number * known.bytes;
    if (bytes > 1e18) return bad;
    return static_cast<std::uint64_t>(std::llround(bytes));
  }
  return bad;
}

}  // namespace faultline
