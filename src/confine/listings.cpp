#include "confine/listings.h"

#include <cstddef>
#include <cstring>
#include <limits>

namespace faultline::confine {
namespace {

constexpr std::size_t kMostLists = 256;  // those whose end nobody came to

// As the kernel has it; the name follows.
struct Entry {
  std::uint64_t number;
  std::int64_t next;
  std::uint16_t size;
  unsigned char type;
};
constexpr std::size_t kHead = offsetof(Entry, type) + 1;

}  // namespace

void Listings::begin(const Descriptor& descriptor, std::vector<Listed> names) {
  if (lists_.size() >= kMostLists && !lists_.contains(descriptor)) lists_.erase(lists_.begin());
  lists_[descriptor] = {std::move(names), 0};
}

std::string Listings::more(const Descriptor& descriptor, std::size_t room, bool& too_small) {
  std::string bytes;
  too_small = false;
  const auto known = lists_.find(descriptor);
  if (known == lists_.end()) return bytes;
  List& list = known->second;
  for (; list.next < list.names.size(); ++list.next) {
    const Listed& one = list.names[list.next];
    const std::size_t size = (kHead + one.name.size() + 1 + 7) / 8 * 8;
    if (bytes.size() + size > room) {
      too_small = bytes.empty();
      return bytes;
    }
    // The place behind it is none of the kernel's: whoever goes back there finds the end.
    const Entry entry{one.number, std::numeric_limits<std::int64_t>::max(), static_cast<std::uint16_t>(size), one.type};
    const std::size_t at = bytes.size();
    bytes.resize(at + size, '\0');
    std::memcpy(bytes.data() + at, &entry, kHead);
    std::memcpy(bytes.data() + at + kHead, one.name.data(), one.name.size());
  }
  if (bytes.empty()) lists_.erase(known);
  return bytes;
}

}  // namespace faultline::confine
