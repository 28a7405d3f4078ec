#include "sources/error_text/printed_bytes.h"

#include <array>
#include <string>

#include "base/characters.h"

namespace faultline {
namespace {

using Wide = unsigned __int128;

struct Unit {
  std::string_view name;  // lower case
  std::uint64_t low;      // bytes per unit
  std::uint64_t high;     // differs from low where the spelling is used for both powers
};
constexpr std::uint64_t kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024;
constexpr std::array<Unit, 15> kUnits = {{{"bytes", 1, 1},
                                          {"byte", 1, 1},
                                          {"b", 1, 1},
                                          {"kib", kKi, kKi},
                                          {"mib", kMi, kMi},
                                          {"gib", kGi, kGi},
                                          {"tib", kTi, kTi},
                                          {"kb", 1000, kKi},
                                          {"mb", 1000000, kMi},
                                          {"gb", 1000000000, kGi},
                                          {"tb", 1000000000000, kTi},
                                          {"k", kKi, kKi},
                                          {"m", kMi, kMi},
                                          {"g", kGi, kGi},
                                          {"t", kTi, kTi}}};

std::uint64_t clamp(Wide value) {
  constexpr Wide kTop = std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(value > kTop ? kTop : value);
}

}  // namespace

std::optional<SizeToken> parse_printed_size(std::string_view text, std::size_t at, SizeStyle style) {
  const std::size_t start = at;
  Wide digits = 0;
  Wide scale = 1;  // ten to the number of decimals
  int count = 0;
  bool fraction = false;
  while (at < text.size()) {
    const char c = text[at];
    if (is_digit(c)) {
      if (++count > 24) return std::nullopt;
      digits = digits * 10 + static_cast<unsigned>(c - '0');
      if (fraction) scale *= 10;
    } else if ((c == '.' || c == ',') && !fraction && count > 0 && at + 1 < text.size() && is_digit(text[at + 1])) {
      std::size_t group = 0;
      while (group < 5 && at + 1 + group < text.size() && is_digit(text[at + 1 + group])) ++group;
      fraction = c == '.' || group != 3;  // "1,024" groups thousands, "1900,00" is a decimal comma
    } else {
      break;
    }
    ++at;
  }
  if (count == 0) return std::nullopt;
  // numpy rounds to three digits and writes "745. GiB"
  const bool whole_rounded = !fraction && at + 1 < text.size() && text[at] == '.' && text[at + 1] == ' ';
  if (whole_rounded) {
    fraction = true;
    ++at;
  }
  std::size_t unit_at = at;
  if (unit_at < text.size() && text[unit_at] == ' ') ++unit_at;
  std::string word;
  while (unit_at < text.size() && is_letter(text[unit_at]) && word.size() < 8) {
    word += static_cast<char>(text[unit_at] | 0x20);
    ++unit_at;
  }
  for (const Unit& unit : kUnits) {
    if (unit.name != word) continue;
    const std::uint64_t low = style == SizeStyle::kMetal ? unit.high : unit.low;
    const Wide twice = digits * 2;
    ByteInterval bytes;
    if (!fraction) {
      bytes = {clamp(digits * low), clamp(digits * unit.high)};
    } else {
      const Wide lower = twice == 0 ? 0 : (twice - 1) * low;
      bytes.min = clamp((lower + 2 * scale - 1) / (2 * scale));
      bytes.max = clamp((twice + 1) * unit.high / (2 * scale));
    }
    if (style == SizeStyle::kXla && unit.high > 1) bytes = bytes + ByteInterval{0, unit.high / 1024};
    return SizeToken{bytes, unit_at - start};
  }
  return std::nullopt;
}

}  // namespace faultline
