// Hashes of what an input says. Whoever writes the input also chooses the keys of every table made from it; with a known hash they choose keys that all
// fall on one place, and a table becomes a list. So the hash has a secret, drawn once for each process, and is strong enough that keys which fall together
// cannot be found without it (multiplication to 128 bits, as in wyhash).
//
// Two runs hash differently: nothing that is shown may depend on the order of a hash table.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/ids.h"

namespace faultline {

struct HashSecret {
  std::uint64_t a = 0, b = 0, c = 0;
};
const HashSecret& hash_secret();

inline std::uint64_t hash_mix(std::uint64_t x, std::uint64_t y) {
  const auto product = static_cast<unsigned __int128>(x) * y;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Goes on from an earlier hash; hash_secret().a begins.
inline std::uint64_t hash_onto(std::uint64_t hash, std::uint64_t number, const HashSecret& secret = hash_secret()) {
  return hash_mix(hash ^ number ^ secret.b, secret.c ^ (number << 32 | number >> 32));
}
inline std::uint64_t hash_number(std::uint64_t number, const HashSecret& secret = hash_secret()) {
  return hash_onto(secret.a, number, secret);
}
std::uint64_t hash_bytes(const void* bytes, std::size_t size);

struct SeededHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return static_cast<std::size_t>(hash_bytes(text.data(), text.size()));
  }
  std::size_t operator()(std::integral auto number) const noexcept {
    return static_cast<std::size_t>(hash_number(static_cast<std::uint64_t>(number)));
  }
  template <class Tag, class Rep>
  std::size_t operator()(Id<Tag, Rep> id) const noexcept {
    return (*this)(id.value);
  }
};

template <class Key, class Value>
using HashMap = std::unordered_map<Key, Value, SeededHash, std::equal_to<>>;
template <class Key, class Value>
using HashMultimap = std::unordered_multimap<Key, Value, SeededHash, std::equal_to<>>;
template <class Key>
using HashSet = std::unordered_set<Key, SeededHash, std::equal_to<>>;

}  // namespace faultline
