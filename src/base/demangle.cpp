#include "base/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "base/characters.h"

namespace faultline {
namespace {

constexpr std::size_t kLongestMangled = 16 * 1024;  // the demangler takes stack in relation to it
constexpr std::size_t kLongestName = 16 * 1024;
constexpr std::uint64_t kMostAtOnce = std::uint64_t{32} << 20;
constexpr std::uint64_t kMostInAll = std::uint64_t{256} << 20;  // of names that may stand for more than kLongestName
constexpr std::uint64_t kNoEnd = std::uint64_t{1} << 62;

// How much a mangled name stands for at most. The demangler goes on to the end, whatever the end is, so this is asked before.
//
// A name has its parts in full ("3add"), letters, each of which is a type, an operator or a mark, references to its own parts ("S1_") and to arguments of its templates ("T_"). A part stands
// before the references to it and is the same at each, so only the first of them may double what there was. Where there are arguments, what a part stands for may change, and what an
// argument is may stand behind it: then each reference may double the whole. A pattern with a pack in it ("Dp") is repeated for each of the pack's members.
class Bound {
 public:
  explicit Bound(std::string_view name) : name_(name) {
    for (at_ = 2; at_ < name_.size();) {
      if (!take_part() && !take_literal() && !take_reference()) take_letter();
    }
  }

  std::uint64_t bytes() const {
    std::uint64_t total = own_ + repeats_ * (knows_parts_ ? longest_part_ : name_.size());
    std::map<std::string_view, std::uint64_t> earlier;
    for (const std::string_view reference : references_) {
      const std::uint64_t is = has_arguments_ ? total : earlier.try_emplace(reference, total).first->second;
      total = std::min(total + is, kNoEnd);
    }
    for (std::size_t pack = 0; pack < packs_; ++pack) total = std::min(total, kNoEnd / name_.size()) * name_.size();
    return total;
  }

 private:
  static constexpr std::uint64_t kOfLetter = 32, kOfStandard = 80;  // "reinterpret_cast<"; std::string, written out

  char at(std::size_t place) const { return place < name_.size() ? name_[place] : '\0'; }

  bool take_part() {
    std::size_t end = at_, length = 0;
    for (; knows_parts_ && end < at_ + 5 && is_digit(at(end)); ++end)
      length = length * 10 + static_cast<std::size_t>(at(end) - '0');
    if (length == 0 || length > name_.size() - end) return false;
    longest_part_ = std::max<std::uint64_t>(longest_part_, length);
    own_ += length + 2;
    at_ = end + length;
    return true;
  }

  // "Lb1E", "Lin4E". Where the type has more letters, nothing tells its end from the number behind it, and from there on no number is taken for a part's length.
  bool take_literal() {
    if (at(at_) != 'L' || !knows_parts_) return false;
    std::size_t end = at_ + 1;
    if (is_digit(at(end)) || at(end) == '_') return false;  // a name's mark
    knows_parts_ = is_lower(at(end));
    end += at(end + 1) == 'n' ? 2 : 1;
    while (is_digit(at(end))) ++end;
    knows_parts_ &= at(end) == 'E';
    if (!knows_parts_) return false;
    own_ += kOfLetter + (end - at_);
    at_ = end + 1;
    return true;
  }

  bool take_reference() {
    if (at(at_) != 'S' && at(at_) != 'T') return false;
    std::size_t end = at_ + 1;
    while (is_digit(at(end)) || is_upper(at(end))) ++end;
    if (at(end) != '_') return false;
    has_arguments_ |= at(at_) == 'T';
    references_.push_back(name_.substr(at_, end + 1 - at_));
    own_ += 2;
    at_ = knows_parts_ ? end + 1 : at_ + 1;
    return true;
  }

  void take_letter() {
    const std::string_view two = name_.substr(at_, 2);
    packs_ += two == "Dp" || two == "sp";
    repeats_ +=
        two.size() == 2 && (two[0] == 'C' || two[0] == 'D') && is_digit(two[1]);  // a constructor: its class's name
    own_ += two[0] == 'S' ? kOfStandard : kOfLetter;
    ++at_;
  }

  std::string_view name_;
  std::size_t at_ = 0, packs_ = 0;
  std::uint64_t own_ = 0, longest_part_ = kOfStandard, repeats_ = 0;
  bool knows_parts_ = true, has_arguments_ = false;
  std::vector<std::string_view> references_;
};

}  // namespace

std::string demangled(std::string_view name) {
  static std::atomic<std::uint64_t> spent = 0;
  std::string whole(name);
  if (!name.starts_with("_Z") || name.size() > kLongestMangled) return whole;
  const std::uint64_t most = Bound(name).bytes();
  const bool may_be_long = most > kLongestName;
  if (most > kMostAtOnce || (may_be_long && spent > kMostInAll)) return whole;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(whole.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  const bool is_known = status == 0 && text != nullptr;
  const std::string_view meaning = is_known ? text.get() : std::string_view();
  if (may_be_long) spent += is_known ? meaning.size() : most;
  return is_known && meaning.size() <= kLongestName ? std::string(meaning) : whole;
}

}  // namespace faultline
