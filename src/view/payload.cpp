#include "view/payload.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>

namespace faultline::view {
namespace {

using Json = nlohmann::ordered_json;

class Numbers {
 public:
  void add(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  void add_signed(std::int64_t value) {
    add((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  // A run of numbers, each as the difference to the one before.
  template <class Range, class Get>
  void run(const Range& range, Get get) {
    std::uint64_t before = 0;
    for (const auto& item : range) {
      const std::uint64_t value = get(item);
      add_signed(static_cast<std::int64_t>(value - before));
      before = value;
    }
  }
  template <class Range, class Get>
  void each(const Range& range, Get get) {
    for (const auto& item : range) add(get(item));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// The power of two that all have in common.
class CommonShift {
 public:
  void see(std::uint64_t value) { all_ |= value; }
  unsigned shift() const { return all_ == 0 ? 0 : static_cast<unsigned>(std::countr_zero(all_)); }

 private:
  std::uint64_t all_ = 0;
};

struct Shifts {
  unsigned bytes = 0, address = 0;
};

Shifts shifts_of(const Scene& scene) {
  CommonShift bytes, address;
  for (const std::uint64_t value : scene.columns.low) bytes.see(value);
  for (const std::uint64_t value : scene.columns.reserved) bytes.see(value);
  for (const auto& groups : scene.columns.by_group) {
    for (const std::uint64_t value : groups) bytes.see(value);
  }
  for (const WhatIf& one : scene.what_ifs) {
    for (const std::uint64_t value : one.reserved) bytes.see(value);
  }
  for (const std::uint64_t value : scene.rest.bytes) bytes.see(value);
  for (const KeptAllocation& kept : scene.allocations) {
    bytes.see(kept.bytes);
    address.see(kept.address);
  }
  for (const KeptSegment& segment : scene.segments) {
    bytes.see(segment.bytes);
    address.see(segment.address);
  }
  return {bytes.shift(), address.shift()};
}

// 0: it never ends.
std::uint64_t length_of(std::uint32_t begin, std::uint32_t end) {
  return end == kNever ? 0 : end - begin + std::uint64_t{1};
}

void add_columns(const Scene& scene, unsigned shift, Numbers& out) {
  const Columns& columns = scene.columns;
  for (std::size_t at = 0; at < columns.count(); ++at)
    out.add(columns.peak[at] - columns.first - static_cast<std::uint32_t>(at) * columns.stretch);
  out.run(columns.low, [&](std::uint64_t value) { return value >> shift; });
  out.run(columns.reserved, [&](std::uint64_t value) { return value >> shift; });
  out.run(columns.time_ns, [](std::int64_t time_ns) { return static_cast<std::uint64_t>(time_ns / 1000); });
  for (std::size_t grouping = 0; grouping < scene.groupings.size(); ++grouping) {
    const std::size_t groups = scene.groupings[grouping].groups.size();
    for (std::size_t group = 0; group < groups; ++group) {
      std::uint64_t before = 0;
      for (std::size_t at = 0; at < columns.count(); ++at) {
        const std::uint64_t value = columns.by_group[grouping][at * groups + group] >> shift;
        out.add_signed(static_cast<std::int64_t>(value - before));
        before = value;
      }
    }
  }
}

void add_allocations(const Scene& scene, const Shifts& shifts, Numbers& out) {
  const auto& kept = scene.allocations;
  out.run(kept, [](const KeptAllocation& one) { return one.born; });
  out.each(kept, [](const KeptAllocation& one) { return length_of(one.born, one.released); });
  // 0: reusable as soon as it was let go
  out.each(kept, [](const KeptAllocation& one) -> std::uint64_t {
    if (one.released == one.returned) return 0;
    return one.returned == kNever ? 1 : one.returned - one.released + std::uint64_t{1};
  });
  out.each(kept, [&](const KeptAllocation& one) { return one.bytes >> shifts.bytes; });
  out.run(kept, [](const KeptAllocation& one) { return one.bytes - one.requested_bytes; });
  out.run(kept, [&](const KeptAllocation& one) { return one.address >> shifts.address; });
  out.each(kept, [](const KeptAllocation& one) { return one.stack; });
  out.each(kept, [](const KeptAllocation& one) { return one.tensor; });
  for (const Grouping& grouping : scene.groupings)
    out.each(kept, [&](const KeptAllocation& one) { return grouping.of[one.id.index()]; });
}

void add_rest(const Scene& scene, const Shifts& shifts, Numbers& out) {
  out.run(scene.segments, [&](const KeptSegment& one) { return one.address >> shifts.address; });
  out.each(scene.segments, [&](const KeptSegment& one) { return one.bytes >> shifts.bytes; });
  out.each(scene.segments, [](const KeptSegment& one) { return one.born; });
  out.each(scene.segments, [](const KeptSegment& one) { return length_of(one.born, one.gone); });
  out.each(scene.segments, [](const KeptSegment& one) { return one.stream * 2 + (one.expandable ? 1u : 0u); });
  for (std::size_t at = 0; at < scene.stacks.size(); ++at) out.add(at - scene.stacks[at].parent);
  out.run(scene.stacks, [](const StackNode& one) { return one.place; });
  out.run(scene.stacks, [](const StackNode& one) { return one.line; });
  for (const Lane& lane : scene.lanes) out.each(lane.counts, [](std::uint32_t count) { return count; });
  out.run(scene.calls, [](const KeptCall& one) { return one.event; });
  out.each(scene.calls, [](const KeptCall& one) {
    return one.lane * 8u + static_cast<unsigned>(one.kind) * 2u + (one.failed ? 1u : 0u);
  });
  out.each(scene.calls, [](const KeptCall& one) { return one.bytes; });
  out.each(scene.calls, [](const KeptCall& one) { return one.text; });
  out.each(scene.calls, [](const KeptCall& one) { return one.stack; });
  out.run(scene.spans, [](const Span& one) { return one.begin; });
  out.each(scene.spans, [](const Span& one) { return one.end - one.begin; });
  out.each(scene.spans, [](const Span& one) { return one.depth; });
  out.each(scene.spans, [](const Span& one) { return one.text; });
  for (const WhatIf& one : scene.what_ifs)
    out.run(one.reserved, [&](std::uint64_t value) { return value >> shifts.bytes; });
  const RestOfStacks& rest = scene.rest;
  out.run(rest.columns, [](std::uint32_t column) { return column; });
  out.each(rest.stacks, [](const RestOfStacks::Stack& one) { return one.node; });
  out.each(rest.stacks, [](const RestOfStacks::Stack& one) { return one.category; });
  for (std::size_t stack = 0; stack < rest.stacks.size(); ++stack) {
    std::uint64_t before = 0;
    for (std::size_t at = stack; at < rest.bytes.size(); at += rest.stacks.size()) {
      const std::uint64_t value = rest.bytes[at] >> shifts.bytes;
      out.add_signed(static_cast<std::int64_t>(value - before));
      before = value;
    }
  }
}

Json json_of(const Scene& scene, const Shifts& shifts, const Snippets& snippets) {
  Json groupings = Json::array(), places = Json::array(), marks = Json::array(), lanes = Json::array(),
       what_ifs = Json::array();
  for (const Grouping& grouping : scene.groupings)
    groupings.push_back({{"by", grouping.by}, {"groups", grouping.groups}});
  // a path is written once, however many lines of it are named
  std::map<std::string, std::size_t> known;
  Json files = Json::array(), sources = Json::object();
  for (std::size_t at = 0; at < scene.places.size(); ++at) {
    const Place& place = scene.places[at];
    const auto [file, is_new] = known.try_emplace(place.file, files.size());
    if (is_new) files.push_back(place.file);
    places.push_back({file->second, place.line, place.function});
    if (place.kind != PlaceKind::kOwn) places.back().push_back(static_cast<unsigned>(place.kind));
    if (const Snippet* snippet = snippets.find(place.file, place.line))
      sources[std::to_string(at)] = {snippet->first_line, snippet->lines};
  }
  for (const Mark& mark : scene.marks) marks.push_back({mark.event, mark.kind, mark.text});
  for (const Lane& lane : scene.lanes) lanes.push_back(lane.name);
  for (const WhatIf& one : scene.what_ifs)
    what_ifs.push_back({{"name", one.name}, {"told", one.told}, {"peak", one.peak_reserved_bytes}});
  return {{"part", scene.part},
          {"device", scene.device},
          {"name", scene.device_name},
          {"capacity", scene.capacity_bytes},
          {"allowed", scene.allowed_bytes},
          {"peak", scene.peak_bytes},
          {"peakEvent", scene.peak_event},
          {"first", scene.columns.first},
          {"events", scene.columns.events},
          {"stretch", scene.columns.stretch},
          {"columns", scene.columns.count()},
          {"hasTimes", scene.has_times},
          {"hasSegments", scene.has_segments},
          {"shift", shifts.bytes},
          {"addressShift", shifts.address},
          {"groupings", groupings},
          {"allocations", scene.allocations.size()},
          {"allocationCount", scene.allocation_count},
          {"segments", scene.segments.size()},
          {"segmentCount", scene.segment_count},
          {"stacks", scene.stacks.size()},
          {"files", files},
          {"places", places},
          {"sources", sources},
          {"texts", scene.texts},
          {"lanes", lanes},
          {"calls", scene.calls.size()},
          {"callCount", scene.call_count},
          {"spans", scene.spans.size()},
          {"spanCount", scene.span_count},
          {"marks", marks},
          {"markCount", scene.mark_count},
          {"whatIfs", what_ifs},
          {"restStacks", scene.rest.stacks.size()},
          {"restColumns", scene.rest.columns.size()}};
}

}  // namespace

std::string encode(const std::vector<Scene>& scenes, const std::vector<Jump>& jumps, const Snippets& snippets) {
  Json json{{"scenes", Json::array()}, {"jumps", Json::array()}};
  Numbers numbers;
  for (const Scene& scene : scenes) {
    const Shifts shifts = shifts_of(scene);
    json["scenes"].push_back(json_of(scene, shifts, snippets));
    add_columns(scene, shifts.bytes, numbers);
    add_allocations(scene, shifts, numbers);
    add_rest(scene, shifts, numbers);
  }
  for (const Jump& jump : jumps) {
    const auto number = [](std::uint32_t value) { return value == kNever ? Json(nullptr) : Json(value); };
    json["jumps"].push_back(
        {{"scene", number(jump.scene)}, {"event", number(jump.event)}, {"file", jump.file}, {"line", jump.line}});
  }
  const std::string words = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  Numbers length;
  length.add(words.size());
  return length.take() + words + numbers.take();
}

std::string compressed(std::string_view bytes) {
  z_stream stream{};
  FAULTLINE_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  FAULTLINE_CHECK(code == Z_STREAM_END);
  return out;
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t word = 0;
    for (std::size_t byte = 0; byte < 3; ++byte)
      word = word << 8 | (at + byte < bytes.size() ? static_cast<std::uint8_t>(bytes[at + byte]) : 0u);
    for (std::size_t digit = 0; digit < 4; ++digit)
      out += at + digit > bytes.size() ? '=' : kDigits[word >> (18 - 6 * digit) & 63];
  }
  return out;
}

}  // namespace faultline::view
