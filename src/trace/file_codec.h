// How numbers and events become bytes in a trace file, both directions side by side so that they cannot drift apart.
//
// An event is written as what differs from the event of the same kind before it in its chunk: a mask of the fields that differ, then those
// fields. Sequence and time go on from the event before, whatever its kind. A chunk starts from zero (and its header's sequence and time), so
// it decodes alone. Encoder and decoder hold the same EventDeltas; the writer calls encode, the reader decode, nobody else comes here.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/leb128.h"
#include "trace/event.h"
#include "trace/validate.h"

namespace faultline {

inline constexpr std::size_t kMostVarintBytes = 10;

inline std::uint8_t* put_varint(std::uint8_t* at, std::uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<std::uint8_t>(value);
  return at;
}

constexpr std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(difference) >> 63);
}
constexpr std::uint64_t unzigzag(std::uint64_t value) { return value >> 1 ^ (~(value & 1) + 1); }

// Allocators place and size blocks in multiples of 512.
inline constexpr unsigned kBlockBits = 9;
constexpr bool is_in_blocks(std::uint64_t difference) { return (difference & ((1u << kBlockBits) - 1)) == 0; }
constexpr std::uint64_t shift_down(std::uint64_t difference) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(difference) >> kBlockBits);
}

// Reads varints without looking where they end: the caller makes sure that enough bytes follow, and asks afterwards where it stands.
struct VarintReader {
  static constexpr std::size_t kLookaheadBytes = 8;  // read, not used, behind the last varint

  const std::uint8_t* at;
  bool bad = false;

  std::uint64_t next() {
    if (*at < 0x80) return *at++;
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    const std::uint64_t ends = ~word & 0x8080808080808080;
    if (ends == 0) return next_long();
    // All bytes of the varint at once: cut off what follows it, then push its groups of seven bits together.
    const int last_bit = std::countr_zero(ends);
    at += last_bit / 8 + 1;
    word &= (~std::uint64_t{0} >> (63 - last_bit)) & 0x7f7f7f7f7f7f7f7f;
    word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
    word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
    return (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
  }
  std::uint64_t at_most(std::uint64_t limit) {
    const std::uint64_t value = next();
    bad |= value > limit;
    return value;
  }

 private:
  std::uint64_t next_long() {
    std::uint64_t value = 0;
    bad |= !read_varint([&] { return *at++; }, value);
    return value;
  }
};

class EventDeltas {
 public:
  // the mask and twelve fields; an encoded one is shorter
  static constexpr std::size_t kMostPayloadBytes = 13 * kMostVarintBytes;
  static constexpr std::size_t kReadableBytes = kMostPayloadBytes + VarintReader::kLookaheadBytes;

  EventDeltas(std::uint64_t next_sequence, std::int64_t time_ns)
      : next_sequence_(next_sequence), time_ns_(static_cast<std::uint64_t>(time_ns)) {}

  // Writes the payload at `out`, which has room for kMostPayloadBytes; returns its end.
  std::uint8_t* encode(const Event& event, std::uint64_t sequence, std::uint8_t* out) {
    Event& last = last_[static_cast<std::size_t>(event.kind)];
    const std::uint64_t time_step = static_cast<std::uint64_t>(event.time_ns) - time_ns_;
    const std::uint64_t address_step = event.address - last.address;
    const std::uint32_t allocation = expected_allocation(event.kind, last);
    std::uint32_t mask = 0;
    if (time_step != 0) mask |= kTime;
    if (address_step != 0) mask |= is_in_blocks(address_step) ? kAddress | kAddressInBlocks : kAddress;
    if (event.size_bytes != last.size_bytes) mask |= is_in_blocks(event.size_bytes) ? kSize | kSizeInBlocks : kSize;
    if (event.allocation.value != allocation) mask |= kAllocation;
    if (event.stack != last.stack) mask |= kStack;
    if (event.extra != last.extra) mask |= kExtra;
    if (event.stream != last.stream) mask |= kStream;
    if (event.bits != last.bits) mask |= kBits;
    if (sequence != next_sequence_) mask |= kSequence;
    if (event.thread != last.thread) mask |= kThread;
    if (event.heap != last.heap) mask |= kHeap;
    if (event.device != last.device) mask |= kDevice;

    out = put_varint(out, mask);
    if (mask & kSequence) out = put_varint(out, sequence - next_sequence_);
    if (mask & kTime) out = put_varint(out, zigzag(time_step));
    if (mask & kAddress)
      out = put_varint(out, zigzag(mask & kAddressInBlocks ? shift_down(address_step) : address_step));
    if (mask & kSize) out = put_varint(out, mask & kSizeInBlocks ? event.size_bytes >> kBlockBits : event.size_bytes);
    if (mask & kAllocation) out = put_varint(out, zigzag(std::uint64_t{event.allocation.value} - allocation));
    if (mask & kStack) out = put_varint(out, zigzag(std::uint64_t{event.stack.value} - last.stack.value));
    if (mask & kExtra) out = put_varint(out, zigzag(std::uint64_t{event.extra} - last.extra));
    if (mask & kStream) out = put_varint(out, event.stream.value);
    if (mask & kBits) out = put_varint(out, event.bits);
    if (mask & kThread) out = put_varint(out, event.thread.value);
    if (mask & kHeap) out = put_varint(out, event.heap.value);
    if (mask & kDevice) out = put_varint(out, event.device);

    next_sequence_ = sequence + 1;
    time_ns_ = static_cast<std::uint64_t>(event.time_ns);
    last = event;
    return out;
  }

  // Reads the payload of `size` bytes at `in`; kReadableBytes from there must be readable. False: the payload is no event's. Bytes after
  // the fields known here are a newer version's and are passed over. A kind not known here still moves sequence and time on.
  bool decode(std::uint8_t kind, const std::uint8_t* in, std::size_t size, Event& out) {
    VarintReader reader{in};
    const std::uint64_t mask = reader.next();
    if (mask & kSequence) next_sequence_ += reader.next();
    ++next_sequence_;
    if (mask & kTime) time_ns_ += unzigzag(reader.next());
    if (kind >= kEventKindCount) return ended_within(reader, in, size);

    // Copy first, then change both: a whole event read right after its fields were stored one by one would wait for them.
    Event& last = last_[kind];
    out = last;
    out.kind = static_cast<EventKind>(kind);
    out.time_ns = static_cast<std::int64_t>(time_ns_);
    if (mask & kAddress) {
      const std::uint64_t step = unzigzag(reader.next());
      out.address = last.address += mask & kAddressInBlocks ? step << kBlockBits : step;
    }
    if (mask & kSize) {
      const std::uint64_t value = reader.next();
      out.size_bytes = last.size_bytes = mask & kSizeInBlocks ? value << kBlockBits : value;
    }
    if (makes_allocation(out.kind)) out.allocation.value = ++last.allocation.value;
    if (mask & kAllocation) out.allocation.value = add(last.allocation.value, reader);
    if (mask & kStack) out.stack.value = add(last.stack.value, reader);
    if (mask & kExtra) out.extra = add(last.extra, reader);
    if (mask & kStream) out.stream.value = set(last.stream.value, reader);
    if (mask & kBits) out.bits = set(last.bits, reader);
    if (mask & kThread) out.thread.value = set(last.thread.value, reader);
    if (mask & kHeap) out.heap.value = set(last.heap.value, reader);
    if (mask & kDevice) out.device = set(last.device, reader);
    return ended_within(reader, in, size);
  }
  std::uint64_t last_sequence() const { return next_sequence_ - 1; }

 private:
  // The first seven are what a typical event changes, so that its mask is one byte.
  enum Field : std::uint32_t {
    kTime = 1,
    kAddress = 2,
    kAddressInBlocks = 4,
    kSize = 8,
    kSizeInBlocks = 16,
    kAllocation = 32,
    kStack = 64,
    kExtra = 128,
    kStream = 256,
    kBits = 512,
    kSequence = 1024,
    kThread = 2048,
    kHeap = 4096,
    kDevice = 8192,
  };

  // A new allocation usually has the number after the last one.
  static std::uint32_t expected_allocation(EventKind kind, const Event& last) {
    return last.allocation.value + (makes_allocation(kind) ? 1 : 0);
  }
  static bool ended_within(const VarintReader& reader, const std::uint8_t* in, std::size_t size) {
    return !reader.bad && static_cast<std::size_t>(reader.at - in) <= size;
  }
  static std::uint32_t add(std::uint32_t& field, VarintReader& reader) {
    const std::uint64_t value = field + unzigzag(reader.next());
    reader.bad |= value > std::numeric_limits<std::uint32_t>::max();
    return field = static_cast<std::uint32_t>(value);
  }
  template <class T>
  static T set(T& field, VarintReader& reader) {
    return field = static_cast<T>(reader.at_most(std::numeric_limits<T>::max()));
  }

  std::array<Event, kEventKindCount> last_{};
  std::uint64_t next_sequence_;
  std::uint64_t time_ns_;  // unsigned: differences wrap
};

}  // namespace faultline
