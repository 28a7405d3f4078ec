#include "sources/torch_snapshot/pickle_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace faultline::torch_snapshot {
namespace {

enum Opcode : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyList = ']',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kSetItem = 's',
  kSetItems = 'u',
  kTuple = 't',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinFloat = 'G',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// Names for the refusal, so that a person (or a security team) sees at once what the file tried.
const char* refused_name(std::uint8_t opcode) {
  switch (opcode) {
    case 'c': return "GLOBAL (imports a name)";
    case 0x93: return "STACK_GLOBAL (imports a name)";
    case 'R': return "REDUCE (calls a function)";
    case 'b': return "BUILD (sets an object's state)";
    case 'i': return "INST (makes an object)";
    case 'o': return "OBJ (makes an object)";
    case 0x81: return "NEWOBJ (makes an object)";
    case 0x92: return "NEWOBJ_EX (makes an object)";
    case 'P': return "PERSID (a persistent id)";
    case 'Q': return "BINPERSID (a persistent id)";
    case 0x82:
    case 0x83:
    case 0x84: return "EXT (an extension type)";
    case 'F': return "FLOAT (text form)";
    case 'I': return "INT (text form)";
    case 'L': return "LONG (text form)";
    case 'S': return "STRING (text form)";
    case 'V': return "UNICODE (text form)";
    case 'g': return "GET (text form)";
    case 'p': return "PUT (text form)";
    case 'd': return "DICT";
    case 'l': return "LIST";
    case '0': return "POP";
    case '1': return "POP_MARK";
    case '2': return "DUP";
    case 'T': return "BINSTRING";
    case 'U': return "SHORT_BINSTRING";
    case 'B': return "BINBYTES";
    case 'C': return "SHORT_BINBYTES";
    case 0x8e: return "BINBYTES8";
    case 0x96: return "BYTEARRAY8";
    case 0x97: return "NEXT_BUFFER";
    case 0x98: return "READONLY_BUFFER";
    case 0x8f: return "EMPTY_SET";
    case 0x90: return "ADDITEMS";
    case 0x91: return "FROZENSET";
    default: return nullptr;
  }
}

constexpr std::size_t kMaxStringBytes = std::size_t{64} << 20;
constexpr std::size_t kShort = 16;  // every opcode but the strings and longs fits in this many bytes

template <class T>
T load(const std::uint8_t* at) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// A little-endian two's-complement integer of any length, saturated to 64 bits.
std::int64_t load_long(const std::uint8_t* at, std::size_t count) {
  if (count == 0) return 0;
  const bool negative = at[count - 1] & 0x80;
  const std::uint8_t filler = negative ? 0xff : 0;
  std::uint64_t low = 0;
  for (std::size_t byte = 0; byte < 8; ++byte) low |= std::uint64_t{byte < count ? at[byte] : filler} << (8 * byte);
  bool fits = (static_cast<std::int64_t>(low) < 0) == negative;
  for (std::size_t byte = 8; byte < count; ++byte) fits = fits && at[byte] == filler;
  if (!fits) return negative ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(low);
}

// A stack is written as a row of memo look-ups, and the same row stands in the file again and again. Rows are recognised by their bytes,
// so that a stack seen before costs one comparison instead of a push per frame.
class KnownRows {
 public:
  struct Row {
    std::uint64_t hash = 0;
    std::size_t first = 0;   // into bytes_
    std::uint32_t size = 0;  // 0: an empty place
    StackId stack;
  };
  // The row that began like this the last time, if it stands here again as a whole with APPENDS behind it. `available` bytes may be read.
  const Row* guess(const std::uint8_t* bytes, std::size_t available) const {
    for (const std::uint32_t place : guesses_[start_of(bytes)]) {
      const Row& row = rows_[place];
      if (row.size != 0 && row.size < available && bytes[row.size] == kAppends &&
          std::memcmp(bytes_.data() + row.first, bytes, row.size) == 0)
        return &row;
    }
    return nullptr;
  }
  void remember(const std::uint8_t* bytes, const Row* row) {
    auto& guesses = guesses_[start_of(bytes)];
    std::move_backward(guesses.begin(), guesses.end() - 1, guesses.end());
    guesses[0] = static_cast<std::uint32_t>(row - rows_.data());
  }
  const Row* find(const std::uint8_t* bytes, std::size_t size, std::uint64_t hash) const {
    for (std::size_t at = hash & (rows_.size() - 1);; at = (at + 1) & (rows_.size() - 1)) {
      const Row& row = rows_[at];
      if (row.size == 0) return nullptr;
      if (row.hash == hash && row.size == size && std::memcmp(bytes_.data() + row.first, bytes, size) == 0) return &row;
    }
  }
  const Row* add(const std::uint8_t* bytes, std::size_t size, std::uint64_t hash, StackId stack) {
    // a file of ever new stacks gains nothing from more
    if (bytes_.size() + size > kMostBytes || count_ * 2 >= kPlaces) return nullptr;
    Row* row = &rows_[hash & (rows_.size() - 1)];
    while (row->size != 0) row = row + 1 == rows_.data() + rows_.size() ? rows_.data() : row + 1;
    *row = {hash, bytes_.size(), static_cast<std::uint32_t>(size), stack};
    bytes_.insert(bytes_.end(), bytes, bytes + size);
    ++count_;
    return row;
  }

 private:
  static constexpr std::size_t kPlaces = 1 << 16;
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  std::vector<Row> rows_ = std::vector<Row>(kPlaces);
  // By the first two or three look-ups: the rows seen last.
  static std::size_t start_of(const std::uint8_t* bytes) {
    return static_cast<std::size_t>(
        (load<std::uint64_t>(bytes) ^ std::rotl(load<std::uint64_t>(bytes + 8), 23)) * 0x9E3779B97F4A7C15ull >> 54);
  }
  std::vector<std::array<std::uint32_t, 4>> guesses_ = std::vector<std::array<std::uint32_t, 4>>(1024);
  std::vector<std::uint8_t> bytes_;
  std::size_t count_ = 0;
};

class Reader {
 public:
  Reader(ByteStream& stream, ObjectMachine& machine)
      : stream_(stream), machine_(machine), at_(stream.begin()), end_(stream.end()) {}
  Status run();

 private:
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::uint64_t offset() const { return stream_.offset_of(at_); }
  Error here(std::string what, std::string next = {}) const { return {std::move(what), offset(), std::move(next)}; }
  Error cut() const { return here("the pickle ends in the middle", "The file was cut short: write or copy it again."); }

  bool refill(std::size_t need) {
    Result<const std::uint8_t*> moved = stream_.more(at_, need);
    if (!moved) {
      read_error_ = moved.error();
      end_ = at_;
      return false;
    }
    at_ = *moved;
    end_ = stream_.end();
    return left() >= need;
  }
  bool have(std::size_t need) { return left() >= need || refill(need); }
  Error short_of() { return read_error_ ? *read_error_ : cut(); }

  // A string of `length` bytes behind `prefix` bytes of opcode and length field.
  Status take_string(std::size_t prefix, std::uint64_t length) {
    const auto declared_past_end = stream_.plain_size() && offset() + prefix + length > *stream_.plain_size();
    if (declared_past_end)
      return here("a string claims " + std::to_string(length) + " bytes, more than the file has",
                  "The file is cut short or not a snapshot.");
    if (length > kMaxStringBytes)
      return here("a string claims " + std::to_string(length) + " bytes; no snapshot has strings over 64 MiB");
    if (!have(prefix + length)) return short_of();
    machine_.push_string({reinterpret_cast<const char*>(at_ + prefix), static_cast<std::size_t>(length)});
    at_ += prefix + length;
    return Ok{};
  }
  Status take_long(std::size_t prefix, std::uint64_t length) {
    if (length > 1024) return here("an integer claims " + std::to_string(length) + " bytes");
    if (!have(prefix + length)) return short_of();
    machine_.push_integer(load_long(at_ + prefix, static_cast<std::size_t>(length)));
    at_ += prefix + length;
    return Ok{};
  }
  Status get(std::uint64_t index) {
    const std::span<const Value> memo = machine_.memo();
    if (index >= memo.size()) return here("memo entry " + std::to_string(index) + " is used before it is made");
    machine_.push(memo[index]);
    return Ok{};
  }
  void common_run();
  std::optional<Error> push_row(const std::uint8_t* after);
  Status step(std::uint8_t opcode);
  Status located(Status status) const {
    if (!status && !status.error().offset) status.error().offset = offset();
    return status;
  }

  ByteStream& stream_;
  ObjectMachine& machine_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::optional<Error> read_error_;
  std::optional<Error> failed_;
  KnownRows rows_;
};

Status Reader::run() {
  while (true) {
    if (left() < kShort) refill(kShort);
    if (left() == 0) return short_of();
    if (left() >= kShort) common_run();
    if (failed_) return *failed_;
    if (machine_.has_too_many(offset())) return here("the pickle is made of empty objects", "No memory snapshot is.");
    if (left() == 0) continue;
    const std::uint8_t opcode = *at_;
    if (opcode == kStop) {
      if (machine_.depth() != 1 || machine_.mark_count() != 0)
        return here("the pickle stops with " + std::to_string(machine_.depth()) + " objects instead of one");
      return Ok{};
    }
    if (Status done = step(opcode); !done) return located(done);
  }
}

// The opcodes that make up nearly all of a snapshot, as far as the window reaches; stops before anything else, or anything odd, which
// step() then handles with all checks.
void Reader::common_run() {
  const std::uint8_t* at = at_;
  const std::uint8_t* const last = end_ - kShort;
  while (at <= last) {
    switch (*at) {
      case kLongBinGet: {
        const std::span<const Value> memo = machine_.memo();
        do {
          const auto index = load<std::uint32_t>(at + 1);
          if (index >= memo.size()) goto stop;
          machine_.push(memo[index]);
          at += 5;
        } while (at <= last && *at == kLongBinGet);
        continue;
      }
      case kBinGet: {
        const std::span<const Value> memo = machine_.memo();
        if (at[1] >= memo.size()) goto stop;
        machine_.push(memo[at[1]]);
        at += 2;
        continue;
      }
      case kLong1: {
        // Addresses and times: up to eight bytes, sign-extended.
        const unsigned count = at[1];
        if (count == 0 || count > 8) goto stop;
        const int unused = static_cast<int>(64 - 8 * count);
        const auto number = static_cast<std::int64_t>(load<std::uint64_t>(at + 2) << unused) >> unused;
        machine_.push_integer(number);
        at += 2 + count;
        continue;
      }
      case kBinInt:
        machine_.push_integer(load<std::int32_t>(at + 1));
        at += 5;
        continue;
      case kBinInt1:
        machine_.push_integer(at[1]);
        at += 2;
        continue;
      case kBinInt2:
        machine_.push_integer(load<std::uint16_t>(at + 1));
        at += 3;
        continue;
      case kMark: {
        const bool may_be_row = (at[1] == kLongBinGet || at[1] == kBinGet) && machine_.depth() != 0 &&
                                machine_.is_node(machine_.top(), NodeKind::kEmptyList) && machine_.memo_is_stable() &&
                                last - at >= 32;
        if (!may_be_row) {
          machine_.mark();
          ++at;
          continue;
        }
        if (const KnownRows::Row* row = rows_.guess(at + 1, static_cast<std::size_t>(last - at))) {
          machine_.make_top_stack(row->stack);
          at += 2 + row->size;
          continue;
        }
        const std::uint8_t* after = at + 1;
        while (after <= last && (*after == kLongBinGet || *after == kBinGet)) after += *after == kLongBinGet ? 5 : 2;
        const auto size = static_cast<std::size_t>(after - at - 1);
        if (after > last || *after != kAppends) {  // not a row, or one that the window cuts
          machine_.mark();
          ++at;
          continue;
        }
        const std::uint64_t hash = hash_bytes(at + 1, size);
        const KnownRows::Row* row = rows_.find(at + 1, size, hash);
        if (row != nullptr) {
          machine_.make_top_stack(row->stack);
        } else {
          at_ = at;
          if (failed_ = push_row(after); failed_) return;
          if (const std::optional<StackId> stack = machine_.top_stack()) row = rows_.add(at + 1, size, hash, *stack);
        }
        if (row != nullptr) rows_.remember(at + 1, row);
        at = after + 1;
        continue;
      }
      case kEmptyDict:
        machine_.push_empty_dict();
        ++at;
        continue;
      case kSetItems:  // of every entry
        at_ = at;
        if (Status done = located(machine_.set_marked()); !done) {
          failed_ = done.error();
          return;
        }
        ++at;
        continue;
      case kEmptyList:
        machine_.push_empty_list();
        ++at;
        continue;
      case kMemoize:
        if (machine_.depth() == 0) goto stop;
        machine_.memoize();
        ++at;
        continue;
      case kShortBinUnicode: {
        const std::size_t length = at[1];
        if (length > static_cast<std::size_t>(last - at)) goto stop;
        machine_.push_string({reinterpret_cast<const char*>(at + 2), length});
        at += 2 + length;
        continue;
      }
      default: goto stop;
    }
  }
stop:
  at_ = at;
}

// MARK, the look-ups up to `after`, APPENDS: the long way, once for each new row.
std::optional<Error> Reader::push_row(const std::uint8_t* after) {
  machine_.mark();
  for (++at_; at_ < after;) {
    const bool wide = *at_ == kLongBinGet;
    if (Status got = get(wide ? load<std::uint32_t>(at_ + 1) : at_[1]); !got) return got.error();
    at_ += wide ? 5 : 2;
  }
  Status done = located(machine_.append_marked());
  return done ? std::optional<Error>() : done.error();
}

Status Reader::step(std::uint8_t opcode) {
  const auto simple = [&](std::size_t bytes, auto&& act) -> Status {
    if (left() < bytes) return short_of();
    act();
    at_ += bytes;
    return Ok{};
  };
  const auto build = [&](Status done) -> Status {
    if (done) ++at_;
    return done;
  };
  switch (opcode) {
    case kBinGet:
      if (left() < 2) return short_of();
      if (Status got = get(at_[1]); !got) return got;
      at_ += 2;
      return Ok{};
    case kLongBinGet:
      if (left() < 5) return short_of();
      if (Status got = get(load<std::uint32_t>(at_ + 1)); !got) return got;
      at_ += 5;
      return Ok{};
    case kMark: return simple(1, [&] { machine_.mark(); });
    case kMemoize:
      if (machine_.depth() == 0) return here("MEMOIZE finds nothing to remember");
      return simple(1, [&] { machine_.memoize(); });
    case kLong1: return left() < 2 ? Status(short_of()) : take_long(2, at_[1]);
    case kBinInt: return simple(5, [&] { machine_.push_integer(load<std::int32_t>(at_ + 1)); });
    case kBinInt1: return simple(2, [&] { machine_.push_integer(at_[1]); });
    case kBinInt2: return simple(3, [&] { machine_.push_integer(load<std::uint16_t>(at_ + 1)); });
    case kEmptyDict: return simple(1, [&] { machine_.push_empty_dict(); });
    case kEmptyList: return simple(1, [&] { machine_.push_empty_list(); });
    case kSetItems: return build(machine_.set_marked());
    case kAppends: return build(machine_.append_marked());
    case kAppend: return build(machine_.append_one());
    case kSetItem: return build(machine_.set_one());
    case kShortBinUnicode: return left() < 2 ? Status(short_of()) : take_string(2, at_[1]);
    case kBinUnicode: return left() < 5 ? Status(short_of()) : take_string(5, load<std::uint32_t>(at_ + 1));
    case kBinUnicode8: return left() < 9 ? Status(short_of()) : take_string(9, load<std::uint64_t>(at_ + 1));
    case kLong4: {
      if (left() < 5) return short_of();
      const auto length = load<std::int32_t>(at_ + 1);
      return length < 0 ? Status(here("an integer has a negative length"))
                        : take_long(5, static_cast<std::uint64_t>(length));
    }
    case kNone: return simple(1, [&] { machine_.push_none(); });
    case kNewTrue: return simple(1, [&] { machine_.push_bool(true); });
    case kNewFalse: return simple(1, [&] { machine_.push_bool(false); });
    case kBinFloat:
      return simple(
          9, [&] { machine_.push_float(std::bit_cast<double>(__builtin_bswap64(load<std::uint64_t>(at_ + 1)))); });
    case kEmptyTuple: return build(machine_.close_tuple(0));
    case kTuple1: return build(machine_.close_tuple(1));
    case kTuple2: return build(machine_.close_tuple(2));
    case kTuple3: return build(machine_.close_tuple(3));
    case kTuple: return build(machine_.close_marked_tuple());
    case kBinPut:
    case kLongBinPut: {
      const std::size_t bytes = opcode == kBinPut ? 2 : 5;
      if (left() < bytes) return short_of();
      if (machine_.depth() == 0) return here("PUT finds nothing to remember");
      if (Status put = machine_.memo_put(opcode == kBinPut ? at_[1] : load<std::uint32_t>(at_ + 1)); !put) return put;
      at_ += bytes;
      return Ok{};
    }
    case kProto:
      if (left() < 2) return short_of();
      if (at_[1] > 5) return here("pickle protocol " + std::to_string(at_[1]) + " is unknown; 2 to 5 are read");
      at_ += 2;
      return Ok{};
    case kFrame: return simple(9, [] {});
    default: {
      const char* name = refused_name(opcode);
      if (name == nullptr) return here("this is not a pickle: there is no opcode " + std::to_string(opcode));
      return here(std::string("the pickle is refused for its opcode ") + name + ", which no memory snapshot needs,",
                  "Nothing in it was executed.");
    }
  }
}

}  // namespace

bool looks_like_pickle(std::span<const std::uint8_t> head) {
  return head.size() >= 2 && head[0] == kProto && head[1] >= 2 && head[1] <= 5;
}

Status read_pickle(ByteStream& stream, ObjectMachine& machine) { return Reader(stream, machine).run(); }

}  // namespace faultline::torch_snapshot
