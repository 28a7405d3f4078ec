// Address → allocation, for the one pass that gives allocations their ids: open addressing, no erase (a freed address stays as "seen").
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"

namespace faultline::torch_snapshot {

class AddressTable {
 public:
  struct Slot {
    std::uint64_t key = 0;  // address, device in the top bits; 0 is empty
    std::uint32_t id = 0;   // the live allocation; 0: seen, and free now
    bool pending = false;   // free requested, not completed
    bool in_final = false;  // matched with a block of the end state
  };
  AddressTable() : slots_(1024) {}

  // The slot for this address, made when it is new (then *fresh). The reference lives until the next call.
  Slot& at(std::uint64_t address, std::uint16_t device, bool* fresh) {
    if (used_ * 2 >= slots_.size()) grow();
    const std::uint64_t key = key_of(address, device);
    std::size_t place = hash(key) & (slots_.size() - 1);
    while (slots_[place].key != 0 && slots_[place].key != key) place = (place + 1) & (slots_.size() - 1);
    *fresh = slots_[place].key == 0;
    if (*fresh) {
      slots_[place].key = key;
      ++used_;
    }
    return slots_[place];
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.key != 0) visit(slot);
    }
  }

 private:
  static std::uint64_t key_of(std::uint64_t address, std::uint16_t device) {
    return (address ^ std::uint64_t{device} << 52) + 1;
  }
  std::size_t hash(std::uint64_t key) const { return static_cast<std::size_t>(hash_number(key, secret_)); }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key == 0) continue;
      std::size_t place = hash(slot.key) & (slots_.size() - 1);
      while (slots_[place].key != 0) place = (place + 1) & (slots_.size() - 1);
      slots_[place] = slot;
    }
  }
  HashSecret secret_ = hash_secret();  // at hand: the table is asked for every event
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace faultline::torch_snapshot
