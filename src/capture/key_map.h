// A map from the hash of something long to the id it was given. 128 bits of hash stand for the thing itself: two different stacks or
// launches would have to meet in all of them. Open addressing, one thread's own.
#pragma once

#include <cstdint>
#include <vector>

namespace faultline::capture {

struct Key {
  std::uint64_t low = 0x243F6A8885A308D3ull;
  std::uint64_t high = 0x13198A2E03707344ull;

  void add(std::uint64_t word) {
    const auto mixed = static_cast<unsigned __int128>(low ^ word) * 0x9FB21C651E98DF25ull;
    low = static_cast<std::uint64_t>(mixed) + high;
    high = (high ^ static_cast<std::uint64_t>(mixed >> 64) ^ word) * 0xD6E8FEB86659FD93ull;
    high ^= high >> 32;
  }
  friend bool operator==(const Key&, const Key&) = default;
};

class KeyMap {
 public:
  static constexpr std::uint32_t kNone = 0;  // ids start at 1

  std::uint32_t find(const Key& key) const {
    if (slots_.empty()) return kNone;
    for (std::size_t at = key.low & mask();; at = (at + 1) & mask()) {
      if (slots_[at].id == kNone || slots_[at].key == key) return slots_[at].id;
    }
  }
  void insert(const Key& key, std::uint32_t id) {
    if (count_ >= kMost) {  // something in this program never repeats: begin again rather than grow for ever
      slots_.clear();
      count_ = 0;
    }
    if (4 * (count_ + 1) > 3 * slots_.size()) grow();
    place(key, id);
    ++count_;
  }

 private:
  struct Slot {
    Key key;
    std::uint32_t id = kNone;
  };
  static constexpr std::size_t kMost = 1 << 17;
  std::size_t mask() const { return slots_.size() - 1; }
  void place(const Key& key, std::uint32_t id) {
    std::size_t at = key.low & mask();
    while (slots_[at].id != kNone) at = (at + 1) & mask();
    slots_[at] = {key, id};
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 256 : 2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.id != kNone) place(slot.key, slot.id);
    }
  }
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace faultline::capture
