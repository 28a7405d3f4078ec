// A trace as Perfetto reads it (perfetto.dev, TracePacket): tracks in a tree, and on them counters, slices and moments.
//
// Strings are written once each and named by number; packets are written in the order of their time, whatever the order in which they were added, so that no reader has to
// sort them. Every text passes base/safe_text.h: what comes out is valid UTF-8 on one line. The numbers of the fields are Perfetto's own (tests/python/test_perfetto.py reads
// the result with Perfetto's schema).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/proto_writer.h"

namespace faultline::view {

using TrackId = std::uint64_t;  // 0: none, at the top

struct Annotation {
  std::string_view name;
  std::variant<std::uint64_t, std::string> value;  // a number, or text; empty text is left out
};

class PerfettoWriter {
 public:
  // Children stand in the order in which they are added. The description is shown where the track is selected.
  TrackId add_track(TrackId parent, std::string_view name, std::string_view description = {});
  // In bytes. Counters of one axis are drawn to the same scale.
  TrackId add_counter(TrackId parent, std::string_view name, std::string_view axis = {},
                      std::string_view description = {});

  void count(TrackId counter, std::int64_t time_ns, std::uint64_t bytes);
  void instant(TrackId track, std::int64_t time_ns, std::string_view name, std::string_view category,
               const std::vector<Annotation>& annotations = {});
  // Slices of one track lie within one another.
  void slice(TrackId track, std::int64_t begin_ns, std::int64_t end_ns, std::string_view name,
             std::string_view category);

  std::string take();  // the whole file

 private:
  struct Packet {
    std::int64_t time_ns = 0;
    std::uint64_t offset = 0;  // of its event, in events_
    std::uint32_t size = 0;
  };
  // One kind of string, by number.
  class Interned {
   public:
    std::uint64_t number(std::string_view text);
    const std::map<std::string, std::uint64_t, std::less<>>& all() const { return numbers_; }

   private:
    std::map<std::string, std::uint64_t, std::less<>> numbers_;
  };

  TrackId describe(TrackId parent, std::string_view name, std::string_view description, const ProtoWriter* counter);
  void add(std::int64_t time_ns, const ProtoWriter& event);

  std::vector<std::uint32_t> children_;  // by track: how many it has
  ProtoWriter tracks_;
  std::string events_;
  std::vector<Packet> packets_;
  Interned names_, categories_, annotation_names_, annotation_texts_;
};

}  // namespace faultline::view
