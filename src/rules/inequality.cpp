#include "rules/inequality.h"

#include "base/units.h"
#include "fmt/format.h"

namespace faultline {
namespace {

std::string number(ByteInterval bytes, bool lower, bool to_the_byte) {
  const std::uint64_t bound = lower ? bytes.min : bytes.max;
  const std::string prefix = bytes.min == bytes.max || (!to_the_byte && !is_wide(bytes)) ? ""
                             : lower                                                     ? "at least "
                                                                                         : "at most ";
  return prefix +
         (to_the_byte ? format_count(bound) + " bytes" : format_bytes(prefix.empty() ? bytes.middle() : bound));
}

struct Printed {
  std::string text;
  double bytes = 0;  // what a reader adds up
};
Printed sum(const std::vector<Term>& terms, bool lower, bool to_the_byte) {
  Printed printed;
  for (const Term& term : terms) {
    const std::string one = number(term.bytes, lower, to_the_byte);
    printed.text += fmt::format("{}{} {}", printed.text.empty() ? "" : " + ", one, term.what);
    if (to_the_byte) continue;
    // none of a size that no device has
    const Result<std::uint64_t> read = parse_bytes(std::string_view(one).substr(one.find_first_of("0123456789")));
    printed.bytes += static_cast<double>(read ? *read : lower ? term.bytes.min : term.bytes.max);
  }
  return printed;
}

}  // namespace

bool is_wide(ByteInterval bytes) { return bytes.max - bytes.min > bytes.max / 48; }

ByteInterval total(const std::vector<Term>& terms) {
  ByteInterval all;
  for (const Term& term : terms) all = all + term.bytes;
  return all;
}

std::string compared(const std::vector<Term>& left, const char* sign, const std::vector<Term>& right) {
  const bool is_less = *sign == '<', is_more = *sign == '>';
  for (const bool to_the_byte : {false, true}) {
    const Printed a = sum(left, !is_less, to_the_byte), b = sum(right, is_less, to_the_byte);
    if (to_the_byte || (is_less ? a.bytes < b.bytes : is_more ? a.bytes > b.bytes : a.bytes >= b.bytes))
      return fmt::format("{} {} {}", a.text, sign, b.text);
  }
  return {};
}

std::string sum_words(const std::vector<Term>& terms) {
  std::string text;
  for (const Term& term : terms)
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", format_bytes(term.bytes.middle()), term.what);
  return text;
}

std::string range_words(ByteInterval bytes) {
  const std::string low = format_bytes(bytes.min), high = format_bytes(bytes.max);
  return low == high ? low : low + " to " + high;
}

}  // namespace faultline
