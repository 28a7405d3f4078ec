#include "base/hash.h"

#include <sys/random.h>
#include <time.h>

#include <cstring>

namespace faultline {
namespace {

HashSecret draw_secret() {
  HashSecret secret;
  if (::getrandom(&secret, sizeof secret, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof secret)) {
    // Before the system has gathered randomness: a place and a moment that the writer of an input does not know either.
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    secret.a = hash_mix(static_cast<std::uint64_t>(now.tv_nsec) ^ 0x9E3779B97F4A7C15ull,
                        reinterpret_cast<std::uintptr_t>(&secret) | 1);
    secret.b = hash_mix(secret.a ^ static_cast<std::uint64_t>(now.tv_sec), 0xBF58476D1CE4E5B9ull);
    secret.c = hash_mix(secret.b ^ reinterpret_cast<std::uintptr_t>(&draw_secret), 0x94D049BB133111EBull);
  }
  secret.b |= std::uint64_t{1} << 63;  // never zero: a factor of zero forgets the other
  secret.c |= std::uint64_t{1} << 63;
  return secret;
}

std::uint64_t load(const std::uint8_t* at, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, size);
  return word;
}

}  // namespace

const HashSecret& hash_secret() {
  static const HashSecret secret = draw_secret();
  return secret;
}

std::uint64_t hash_bytes(const void* bytes, std::size_t size) {
  const HashSecret& secret = hash_secret();
  const auto* at = static_cast<const std::uint8_t*>(bytes);
  std::uint64_t hash = secret.a ^ hash_mix(size ^ secret.c, secret.b);
  std::size_t left = size;
  for (; left > 16; at += 16, left -= 16) hash = hash_mix(load(at, 8) ^ secret.b ^ hash, load(at + 8, 8) ^ secret.c);
  if (left == 0) return hash;
  const std::uint64_t first = load(at, left < 8 ? left : 8);
  const std::uint64_t second = left > 8 ? load(at + 8, left - 8) : 0;
  hash = hash_mix(first ^ secret.b ^ hash, second ^ secret.c);
  return hash_mix(hash ^ secret.a, secret.b);
}

}  // namespace faultline
