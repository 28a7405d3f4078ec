// What the page shows of one device of one recording, as data: memory over time in columns, the allocations that are shown one by one, segments, calls.
//
// A page must open at once and move smoothly whatever the length of the recording, so everything in it is bounded. The recording's events, in their
// order, are the horizontal axis, cut into columns of equal numbers of events. A column stands for its highest moment: the bytes of its groups are those
// of that one moment, so they add up to the byte, and no short peak is lost. Single allocations are kept where they can be seen: all of them where there are few, else
// those that take most memory for longest, and of every stretch of time its largest. What is left out is counted, and is in the columns all the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "facts/lifetimes.h"
#include "rules/judge.h"
#include "trace/trace.h"

namespace faultline::view {

inline constexpr std::size_t kMostColumns = 16384;
inline constexpr std::size_t kMostGroups = 12;  // the last stands for all others
inline constexpr std::size_t kMostAllocations = 80'000;
inline constexpr std::size_t kMostSegments = 20'000;
inline constexpr std::size_t kMostCalls = 20'000;
inline constexpr std::size_t kMostSpans = 4'000;
inline constexpr std::size_t kMostStackNodes = 20'000;
inline constexpr std::size_t kMostRestStacks = 256;    // beside those of single allocations
inline constexpr std::size_t kMostRestMoments = 1024;  // when these are told
inline constexpr std::size_t kMostLargestStacks = 12;  // in words
inline constexpr std::size_t kMostLanes = 12;
inline constexpr std::size_t kMostWhatIfs = 7;
inline constexpr std::uint64_t kMostReplayedEvents = 20'000'000;  // by all replays together: about a second

// One way to divide the memory: by category, by line, by module.
struct Grouping {
  std::string by;
  std::vector<std::string> groups;
  std::vector<std::uint8_t> of;  // by allocation id; [0] is memory that is no allocation, pages mapped by hand
};

struct Columns {
  std::uint32_t first = 0;                           // event: the first moment that is shown
  std::uint32_t events = 0;                          // from there on
  std::uint32_t stretch = 1;                         // events a column
  std::vector<std::uint32_t> peak;                   // event: the highest moment of each column
  std::vector<std::uint64_t> low;                    // least that was allocated
  std::vector<std::uint64_t> reserved;               // most that was taken from the driver
  std::vector<std::int64_t> time_ns;                 // at the highest moment; empty where nothing recorded it
  std::vector<std::vector<std::uint64_t>> by_group;  // [grouping][column × groups + group]: at the highest moment
  std::size_t count() const { return peak.size(); }
};

struct KeptAllocation {
  AllocationId id;
  std::uint32_t born = 0, released = kNever, returned = kNever;  // events
  std::uint64_t bytes = 0;                                       // what its heap set aside
  std::uint64_t requested_bytes = 0;
  std::uint64_t address = 0;  // 0: unknown
  std::uint32_t stack = 0;    // into Scene::stacks; 0: none
  std::uint32_t tensor = 0;   // into Scene::texts; 0: none
};

struct KeptSegment {
  std::uint32_t born = 0, gone = kNever;
  std::uint64_t address = 0, bytes = 0;
  std::uint32_t stream = 0;
  bool expandable = false;
};

enum class PlaceKind : std::uint8_t { kOwn, kLibrary, kNative };  // the user's, a library's Python, its compiled code
PlaceKind kind_of_place(std::string_view file);
struct Place {
  std::string file, function;
  std::uint32_t line = 0;
  PlaceKind kind = PlaceKind::kOwn;
  friend bool operator==(const Place&, const Place&) = default;
};
struct StackNode {
  std::uint32_t parent = 0;
  std::uint32_t place = 0;
  std::uint32_t line = 0;  // the place to show for a stack that ends here; 0: none
};

// What the allocations that are not kept one by one hold, by call stack, at the moments of some columns.
struct RestOfStacks {
  struct Stack {
    std::uint32_t node = 0;  // as in KeptAllocation
    std::uint8_t category = 0;
  };
  std::vector<Stack> stacks;
  std::vector<std::uint32_t> columns;
  std::vector<std::uint64_t> bytes;  // [column of these × stacks + stack]
};
// One of the peak's call stacks, in words.
struct HeldStack {
  std::string path, category;
  std::uint64_t bytes = 0, count = 0;
};

enum class LaneKind : std::uint8_t { kLaunch, kCopy, kSet, kWait };
inline constexpr std::size_t kLaneKinds = 4;
struct KeptCall {
  std::uint32_t event = 0;
  std::uint8_t lane = 0;
  LaneKind kind = LaneKind::kLaunch;
  bool failed = false;
  std::uint64_t bytes = 0;
  std::uint32_t text = 0;   // the kernel, or from where to where
  std::uint32_t stack = 0;  // as in KeptAllocation
};
struct Lane {
  std::string name;
  std::vector<std::uint32_t> counts;  // [column × kLaneKinds + kind]
};
// Something with a name and an extent, as the program or its framework marked it.
struct Span {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t depth = 0;
  std::uint32_t text = 0;
};
// A moment to be seen at every zoom: a failed request, a fault, an access that was caught, the end of a step.
struct Mark {
  std::uint32_t event = 0;
  std::string kind;  // failure, fault, violation, step
  std::string text;  // of a step none
};

// A replay of the recording under another setting, on another GPU, or with room for all of it.
struct WhatIf {
  std::string name;  // "expandable_segments:True"
  std::string told;  // "out of memory at train.py:12"
  bool fits = false;
  std::uint64_t peak_reserved_bytes = 0, peak_allocated_bytes = 0;
  std::uint64_t room_bytes = 0;         // that it may take from the driver; 0: as much as it asks for, or as recorded
  std::uint32_t failure = kNever;       // event: the first request that is refused
  std::vector<std::uint64_t> reserved;  // most of each column
};

struct Scene {
  std::string part;
  std::uint16_t device = 0;
  std::string device_name;
  std::uint64_t capacity_bytes = 0, allowed_bytes = 0;  // 0: unknown, none
  std::uint64_t peak_bytes = 0;
  std::uint32_t peak_event = 0;
  bool has_segments = false, has_times = false;
  std::vector<Grouping> groupings;
  Columns columns;
  std::vector<KeptAllocation> allocations;  // in the order in which they were made
  std::uint64_t allocation_count = 0;       // of all that the columns count
  RestOfStacks rest;
  std::vector<HeldStack> largest;  // of the peak
  std::uint64_t stack_count = 0;   // of the peak, as they are told in words
  std::vector<KeptSegment> segments;
  std::uint64_t segment_count = 0;
  std::vector<Place> places;       // [0] is none
  std::vector<StackNode> stacks;   // [0] is none
  std::vector<std::string> texts;  // [0] is empty
  std::vector<Lane> lanes;
  std::vector<KeptCall> calls;
  std::uint64_t call_count = 0;
  std::vector<Span> spans;
  std::uint64_t span_count = 0;
  std::vector<Mark> marks;
  std::uint64_t mark_count = 0;
  std::vector<WhatIf> what_ifs;
  bool is_planned = false;    // what is called recorded below is what a dry run came to
  std::string recorded_told;  // of the recording itself what a WhatIf tells; empty where nothing was replayed
  std::uint64_t recorded_failures = 0;
  std::vector<std::string> what_ifs_told;  // what has to be known of them, in sentences
  std::vector<std::uint32_t> moments;      // of each finding of the judgement: the event to look at; kNever: none
};

// `part`: which of several recordings it is of. `share`: of how many scenes this is one; the bounds above are for all together.
Scene make_scene(const std::string& part, const Judgement& judgement, std::size_t device_slot, std::size_t share = 1);

// Whether there is anything to draw of the device.
bool has_scene(const Judgement& judgement, std::size_t device_slot);

}  // namespace faultline::view
