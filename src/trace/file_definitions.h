// What the definition records of a trace file say, collected from all chunks in any order and then made into the trace's tables.
//
// The file's ids are the writer's. They may have holes (a thread killed between taking an id and writing its definition) and doubles (two
// threads that met the same string), so the trace gets its own, in the order of the file's: where the file's are dense they are the same.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "trace/file_chunks.h"
#include "trace/file_fields.h"
#include "trace/trace.h"

namespace faultline {

// From an id in the file to the id in the trace.
class IdMap {
 public:
  static constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t find(std::uint64_t id) const { return id < ids_.size() ? ids_[id] : kUnknown; }
  void set(std::uint32_t id, std::uint32_t to) {
    if (id >= ids_.size()) ids_.resize(std::size_t{id} + 1, kUnknown);
    ids_[id] = to;
  }
  // False: the file does not define it.
  template <class Tag, class Rep>
  bool rename(Id<Tag, Rep>& id) const {
    const std::uint32_t to = find(id.value);
    id.value = static_cast<Rep>(to);
    return to != kUnknown;
  }

 private:
  std::vector<std::uint32_t> ids_;
};

struct TraceIds {
  IdMap strings, frames, stacks, tensors, heaps, streams;
  std::array<IdMap, kEventKindCount> calls;  // by the kind of the events that name them
};

class Definitions {
 public:
  // Ids beyond what a file of this size can have defined are refused, so that no table is larger than the file justifies.
  explicit Definitions(std::uint64_t file_bytes);

  // Takes a record with a tag below kFirstEvent. Counts what it does not know or cannot use.
  void add(const Record& record);
  // Fills every part of the trace but the events.
  TraceIds resolve(Trace& trace);

 private:
  template <class T>
  using Defined = std::vector<std::pair<std::uint32_t, T>>;

  bool take(RecordTag tag, PayloadFields& fields);
  void resolve_strings(Trace& trace, TraceIds& ids);
  void resolve_stacks(Trace& trace, TraceIds& ids);
  void resolve_tensors(Trace& trace, TraceIds& ids);
  void resolve_calls(Trace& trace, TraceIds& ids);
  void resolve_places(Trace& trace, TraceIds& ids);
  void resolve_final_state(Trace& trace, const TraceIds& ids);

  std::uint32_t most_id_;
  // Ids in them are the file's.
  Defined<std::string> strings_;
  Defined<Frame> frames_;
  Defined<StackNode> stacks_;
  Defined<Tensor> tensors_;
  std::tuple<Defined<Launch>, Defined<Copy>, Defined<Fault>, Defined<Violation>> calls_;
  Defined<Heap> heaps_;
  Defined<Stream> streams_;
  Defined<Device> devices_;
  Defined<FinalBlock> final_blocks_;
  Defined<FinalSegment> final_segments_;
  std::uint64_t final_segment_count_ = 0;
  std::uint64_t final_block_count_ = 0;
  Trace small_;  // properties, counters and origin, as they come
};

}  // namespace faultline
