// TraceFileWriter: one thread's hand on a trace file. write_trace_file: a whole trace at once.
//
// Every call that returns ok has put a whole record where a kill -9 cannot take it back. The order of events is the order in which
// append() was entered, over all writers of the file, so a Free that follows its Alloc in the program follows it in the trace.
// Ids are the caller's: they are dense from 1, a definition names only what was defined before (by any writer), and an event only what is
// defined. No lock is taken except to grow the file, once in several chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/file_codec.h"
#include "trace/file_format.h"
#include "trace/file_space.h"
#include "trace/trace.h"

namespace faultline {

// Where the trace comes from and what it can tell: the fields of the same names in Trace.
struct TraceOrigin {
  std::string_view source_kind;
  std::string_view source_path;
  std::uint64_t source_events = 0;
  std::uint32_t capabilities = 0;
};

class TraceFileWriter {
 public:
  explicit TraceFileWriter(TraceSpace& space) : space_(space), writer_(space.take_writer()) {}
  ~TraceFileWriter();
  TraceFileWriter(const TraceFileWriter&) = delete;
  TraceFileWriter& operator=(const TraceFileWriter&) = delete;

  Status append(const Event& event);

  Status define_string(StringId id, std::string_view text);
  Status define_frame(FrameId id, const Frame& frame);
  Status define_stack(StackId id, StackId caller, FrameId frame);
  Status define_tensor(TensorId id, const Tensor& tensor);
  // A launch, a copy, a fault or a violation.
  template <class CallId, class Call>
  Status define_call(CallId id, const Call& call);
  // A later definition of the same heap, stream, device, property or origin replaces the earlier one.
  Status define_heap(HeapId id, const Heap& heap);
  Status define_stream(StreamId id, const Stream& stream);
  Status define_device(std::uint32_t position, const Device& device);
  Status define_property(std::string_view key, std::string_view value);
  Status define_origin(const TraceOrigin& origin);
  // Counts add up over all writers.
  Status count(std::string_view what, std::uint64_t times);
  Status define_final_state(std::span<const FinalSegment> segments, std::span<const FinalBlock> blocks);

  // Says that this writer is done. Nothing may be written after.
  Status finish();
  // Records that found no room, and so are not in the file.
  std::uint64_t dropped() const { return dropped_; }

 private:
  // What a chunk keeps back so that a writer without room for more can still say so, and how much it lost.
  static constexpr std::size_t kKeptBackBytes = 128;
  static constexpr std::size_t kMostEventBytes = 2 + EventDeltas::kMostPayloadBytes;

  template <class Id, class Value>
  Status define(Id id, const Value& value);
  Status publish(RecordTag tag, std::string_view payload);
  Status publish_alone(RecordTag tag, std::string_view payload);
  Status next_chunk();
  Result<MappedChunk> begin_chunk(std::size_t room_bytes, std::uint64_t next_sequence) const;
  void end_chunk(RecordTag tag);
  Status stop(const Error& error);
  bool has_room(std::size_t bytes) const {
    return at_ != nullptr && !stopped_ && bytes + kKeptBackBytes <= static_cast<std::size_t>(chunk_.end - at_);
  }

  TraceSpace& space_;
  std::uint32_t writer_;
  MappedChunk chunk_;
  std::uint8_t* at_ = nullptr;  // where the next record goes; null: no chunk
  EventDeltas deltas_{0, 0};
  std::int64_t time_ns_ = 0;  // of the last event: where the next chunk's times count from
  std::uint64_t dropped_ = 0;
  std::optional<Error> stopped_;
  bool finished_ = false;
};

// Writes beside `path` and moves it there when whole. A trace that check_trace refuses is not written.
Status write_trace_file(const Trace& trace, const std::string& path);

}  // namespace faultline
