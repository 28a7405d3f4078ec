// What the snapshot tests share: snapshots written as JSON objects and turned into the bytes of a pickle, fixtures, and counting over events.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "sources/source.h"
#include "trace/trace.h"
#include "trace/validate.h"

namespace faultline::snapshot_test {

using Object = nlohmann::ordered_json;

// What stands in braces as the library means it: a list of one is a list. With a plain Object it depends on the compiler, some take the one for a copy.
struct Braced {
  Object object;
  template <class T>
  requires(std::constructible_from<Object, T> && !std::same_as<std::remove_cvref_t<T>, Braced>) Braced(T&& value)
      : object(std::forward<T>(value)) {}
  Braced(Object::initializer_list_t items) : object(items) {}
};

template <class T>
std::string little_endian(T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// ---- pieces of a pickle, as strings of bytes

inline std::string pickled_text(std::string_view text) {
  return std::string("X").append(little_endian(static_cast<std::uint32_t>(text.size()))).append(text);
}

inline std::string pickled_integer(std::int64_t number) {
  if (number >= 0 && number < 256) return std::string("K") + static_cast<char>(number);
  if (number >= INT32_MIN && number <= INT32_MAX)
    return std::string("J").append(little_endian(static_cast<std::int32_t>(number)));
  return std::string("\x8a\x08").append(little_endian(number));
}

inline std::string pickled_float(double number) {
  return std::string("G").append(little_endian(__builtin_bswap64(std::bit_cast<std::uint64_t>(number))));
}

// Opcodes for a JSON value; a list of two under a key that ends in pool_id becomes a tuple, as PyTorch writes it.
inline std::string pickled(const Object& object, bool as_tuple = false) {
  switch (object.type()) {
    case Object::value_t::object: {
      std::string bytes = "}";
      if (object.empty()) return bytes;
      bytes += "(";
      for (const auto& [key, value] : object.items())
        bytes += pickled_text(key) + pickled(value, key.ends_with("pool_id"));
      return bytes + "u";
    }
    case Object::value_t::array: {
      std::string items;
      for (const Object& item : object) items += pickled(item);
      if (as_tuple && object.size() == 2) return items + "\x86";
      return items.empty() ? "]" : "](" + items + "e";
    }
    case Object::value_t::string: return pickled_text(object.get_ref<const std::string&>());
    case Object::value_t::boolean: return object.get<bool>() ? "\x88" : "\x89";
    case Object::value_t::number_float: return pickled_float(object.get<double>());
    case Object::value_t::null: return "N";
    default: return pickled_integer(object.get<std::int64_t>());
  }
}

inline std::string pickle(const std::string& opcodes) { return "\x80\x04" + opcodes + "."; }
inline std::string pickle(const Object& object) { return pickle(pickled(object)); }

// ---- pieces of a snapshot

inline Object entry(std::string action, std::uint64_t address, std::uint64_t size_bytes, std::uint64_t time_us = 0) {
  return {{"action", action}, {"addr", address}, {"size", size_bytes}, {"stream", 0}, {"time_us", time_us}};
}
inline Object with(Object object, const std::string& key, Braced value) {
  object[key] = std::move(value.object);
  return object;
}
inline Object frame(std::string file, std::uint32_t line, std::string function) {
  return {{"filename", std::move(file)}, {"line", line}, {"name", std::move(function)}};
}
inline Object block(std::uint64_t address, std::uint64_t size_bytes, std::string state = "active_allocated") {
  return {{"address", address},
          {"size", size_bytes},
          {"requested_size", size_bytes},
          {"state", std::move(state)},
          {"frames", Object::array()}};
}
inline Object segment(std::uint64_t address, std::uint64_t size_bytes, Braced blocks, int device = 0) {
  return {{"device", device},
          {"address", address},
          {"total_size", size_bytes},
          {"stream", 0},
          {"segment_type", "large"},
          {"segment_pool_id", {0, 0}},
          {"is_expandable", false},
          {"frames", Object::array()},
          {"blocks", std::move(blocks.object)}};
}
inline Object snapshot(Braced entries, Braced segments = Object::array()) {
  return {{"segments", std::move(segments.object)}, {"device_traces", Object::array({std::move(entries.object)})}};
}

// ---- reading

inline std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline Result<Trace> read(std::string_view bytes) {
  ByteStream stream = ByteStream::from_memory(bytes_of(bytes));
  return load(stream, "test");
}

// The trace of a snapshot that must be readable; its invariants are checked on the way.
inline Trace trace_of(const std::string& bytes) {
  Result<Trace> trace = read(bytes);
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  if (!trace) return {};
  const Status holds = check_trace(*trace);
  EXPECT_TRUE(holds.ok()) << holds.error().what;
  return std::move(*trace);
}
inline Trace trace_of(const Object& object) { return trace_of(pickle(object)); }

inline Error refusal_of(const std::string& bytes) {
  Result<Trace> trace = read(bytes);
  EXPECT_FALSE(trace.ok());
  return trace ? Error{} : trace.error();
}

inline std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(FAULTLINE_FIXTURES "/torch")) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(".pickle.xz")) names.push_back(name.substr(0, name.size() - 10));
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string fixture_path(const std::string& name) { return FAULTLINE_FIXTURES "/torch/" + name + ".pickle.xz"; }

inline Trace fixture(const std::string& name) {
  Result<Trace> trace = load(fixture_path(name));
  EXPECT_TRUE(trace.ok()) << name << ": " << trace.error().message();
  return trace ? std::move(*trace) : Trace{};
}

inline std::string unpacked_fixture(const std::string& name) {
  Result<ByteStream> stream = ByteStream::open(fixture_path(name));
  EXPECT_TRUE(stream.ok());
  return *stream->read_all(std::size_t{1} << 30);
}

// ---- looking at events

inline std::vector<Event> of_kind(const Trace& trace, EventKind kind) {
  std::vector<Event> found;
  std::copy_if(trace.events.begin(), trace.events.end(), std::back_inserter(found),
               [&](const Event& event) { return event.kind == kind; });
  return found;
}

inline bool is_torch(const Trace& trace, const Event& event) {
  return trace.heaps[event.heap.index()].kind == HeapKind::kTorchCaching;
}

inline std::uint64_t counter(const Trace& trace, const std::string& name) {
  const auto found = trace.lost.find(name);
  return found == trace.lost.end() ? 0 : found->second;
}

struct LiveBlock {
  std::uint64_t size_bytes = 0;
  bool pending = false;
  friend bool operator==(const LiveBlock&, const LiveBlock&) = default;
};
using LiveBlocks = std::map<std::pair<std::uint16_t, std::uint64_t>, LiveBlock>;  // by device and address

// The framework's live blocks after the last event. A failure is added for whatever no sound recording has: an allocation on top of
// a live one, or a free of memory that is not allocated.
inline LiveBlocks live_at_end(const Trace& trace) {
  LiveBlocks live;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kAlloc && event.kind != EventKind::kFree) continue;
    if (!is_torch(trace, event)) continue;
    const std::pair key(event.device, event.address);
    if (event.kind == EventKind::kAlloc) {
      EXPECT_TRUE(live.emplace(key, LiveBlock{event.size_bytes, false}).second)
          << "allocated twice at " << event.address;
      continue;
    }
    const auto found = live.find(key);
    if (found == live.end()) {
      ADD_FAILURE() << "freed, but not allocated: " << event.address;
    } else if (event.phase() == FreePhase::kRequested) {
      EXPECT_FALSE(found->second.pending);
      found->second.pending = true;
    } else {
      EXPECT_EQ(found->second.pending, event.phase() == FreePhase::kCompleted);
      live.erase(found);
    }
  }
  return live;
}

inline LiveBlocks live_in_end_state(const Trace& trace) {
  LiveBlocks live;
  for (const FinalSegment& segment : trace.final_segments) {
    for (std::uint32_t at = segment.first_block; at < segment.first_block + segment.block_count; ++at) {
      const FinalBlock& held = trace.final_blocks[at];
      if (held.state == FinalBlock::State::kFree) continue;
      live[{segment.device, held.address}] = {held.requested_bytes, held.state == FinalBlock::State::kPendingFree};
    }
  }
  return live;
}

}  // namespace faultline::snapshot_test
