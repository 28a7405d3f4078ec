#include "trace/file_writer.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "trace/file_fields.h"

namespace faultline {
namespace {

void publish_byte(std::uint8_t* at, std::uint8_t value) {
  std::atomic_ref<std::uint8_t>(*at).store(value, std::memory_order_release);
}

std::size_t record_bytes(std::string_view payload) { return 1 + kMostVarintBytes + payload.size(); }

// Writes a record at `at`, its tag last; returns its end.
std::uint8_t* put_record(std::uint8_t* at, RecordTag tag, std::string_view payload) {
  std::uint8_t* const body = put_varint(at + 1, payload.size());
  if (!payload.empty()) std::memcpy(body, payload.data(), payload.size());
  publish_byte(at, static_cast<std::uint8_t>(tag));
  return body + payload.size();
}

}  // namespace

// Closing may need memory that is not there; then the writer stays unfinished, as if its process had been killed.
TraceFileWriter::~TraceFileWriter() {
  try {
    (void)finish();
  } catch (...) {
  }
}

Status TraceFileWriter::append(const Event& event) {
  if (!has_room(kMostEventBytes)) {
    time_ns_ = event.time_ns;
    if (Status status = next_chunk(); !status) return status;
  }
  std::uint8_t* const end = deltas_.encode(event, space_.take_sequence(), at_ + 2);
  at_[1] = static_cast<std::uint8_t>(end - at_ - 2);
  publish_byte(at_, static_cast<std::uint8_t>(static_cast<std::uint8_t>(RecordTag::kFirstEvent) +
                                              static_cast<std::uint8_t>(event.kind)));
  at_ = end;
  time_ns_ = event.time_ns;
  return Ok{};
}

Status TraceFileWriter::publish(RecordTag tag, std::string_view payload) {
  const std::size_t needed = record_bytes(payload);
  if (needed > kTraceUnitBytes / 4) return publish_alone(tag, payload);
  if (!has_room(needed)) {
    if (Status status = next_chunk(); !status) return status;
  }
  at_ = put_record(at_, tag, payload);
  return Ok{};
}

// A large record gets a chunk of its own; the open one goes on after it.
Status TraceFileWriter::publish_alone(RecordTag tag, std::string_view payload) {
  FAULTLINE_CHECK(!finished_);
  if (payload.size() > kMostRecordBytes) {
    ++dropped_;
    return Error{fmt::format("a record of {} bytes is larger than a trace file can hold", payload.size()), {}, {}};
  }
  if (stopped_) return stop(*stopped_);
  Result<MappedChunk> chunk = begin_chunk(record_bytes(payload) + 2, space_.next_sequence());
  if (!chunk) return stop(chunk.error());
  std::uint8_t* at = put_record(chunk->begin + sizeof(ChunkHeader), tag, payload);
  at = put_record(at, RecordTag::kChunkFull, {});
  space_.release(*chunk, at);
  return Ok{};
}

Result<MappedChunk> TraceFileWriter::begin_chunk(std::size_t room_bytes, std::uint64_t next_sequence) const {
  Result<MappedChunk> chunk = space_.take_chunk(room_bytes);
  if (!chunk) return chunk;
  ChunkHeader header;
  header.chunk_bytes = chunk->chunk_bytes;
  header.writer = writer_;
  header.next_sequence = next_sequence;
  header.time_ns = time_ns_;
  constexpr std::size_t kMagicBytes = sizeof header.magic;
  std::memcpy(chunk->begin + kMagicBytes, reinterpret_cast<const std::uint8_t*>(&header) + kMagicBytes,
              sizeof header - kMagicBytes);
  std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(chunk->begin))
      .store(header.magic, std::memory_order_release);
  return chunk;
}

Status TraceFileWriter::next_chunk() {
  FAULTLINE_CHECK(!finished_);
  if (stopped_) return stop(*stopped_);
  const std::uint64_t sequence = space_.next_sequence();
  Result<MappedChunk> chunk = begin_chunk(kTraceUnitBytes / 2, sequence);
  if (!chunk) return stop(chunk.error());
  if (at_ != nullptr) end_chunk(RecordTag::kChunkFull);
  chunk_ = *chunk;
  at_ = chunk_.begin + sizeof(ChunkHeader);
  deltas_ = EventDeltas(sequence, time_ns_);
  return Ok{};
}

void TraceFileWriter::end_chunk(RecordTag tag) {
  at_ = put_record(at_, tag, {});
  space_.release(chunk_, at_);
  at_ = nullptr;
}

Status TraceFileWriter::stop(const Error& error) {
  ++dropped_;
  if (!stopped_) {
    stopped_ = error;
    if (at_ != nullptr) at_ = put_record(at_, RecordTag::kCounter, Payload().text(kLostWriterStopped).number(1));
  }
  return *stopped_;
}

Status TraceFileWriter::finish() {
  if (finished_) return Ok{};
  if (at_ == nullptr && !stopped_) {
    // Even a writer that wrote nothing says that it is done: an empty trace is a whole one.
    if (Status status = next_chunk(); !status) return status;
  }
  finished_ = true;
  if (at_ == nullptr) return *stopped_;
  if (dropped_ > 0) at_ = put_record(at_, RecordTag::kCounter, Payload().text(kLostDroppedRecords).number(dropped_));
  end_chunk(RecordTag::kWriterFinished);
  if (stopped_) return *stopped_;
  return Ok{};
}

template <class Id, class Value>
Status TraceFileWriter::define(Id id, const Value& value) {
  Payload payload;
  fields(payload.field(id), value);
  return publish(kRecordTag<Value>, payload);
}

Status TraceFileWriter::define_string(StringId id, std::string_view text) {
  return publish(RecordTag::kString, Payload().field(id).field(text));
}
Status TraceFileWriter::define_frame(FrameId id, const Frame& frame) { return define(id, frame); }
Status TraceFileWriter::define_stack(StackId id, StackId caller, FrameId frame) {
  return define(id, StackNode{caller, frame});
}
Status TraceFileWriter::define_tensor(TensorId id, const Tensor& tensor) { return define(id, tensor); }
Status TraceFileWriter::define_heap(HeapId id, const Heap& heap) { return define(id, heap); }
Status TraceFileWriter::define_stream(StreamId id, const Stream& stream) { return define(id, stream); }
Status TraceFileWriter::define_device(std::uint32_t position, const Device& device) { return define(position, device); }

template <class CallId, class Call>
Status TraceFileWriter::define_call(CallId id, const Call& call) {
  return define(id, call);
}
template Status TraceFileWriter::define_call(LaunchId, const Launch&);
template Status TraceFileWriter::define_call(CopyId, const Copy&);
template Status TraceFileWriter::define_call(FaultId, const Fault&);
template Status TraceFileWriter::define_call(ViolationId, const Violation&);

Status TraceFileWriter::define_property(std::string_view key, std::string_view value) {
  return publish(RecordTag::kProperty, Payload().text(key).text(value));
}

Status TraceFileWriter::define_origin(const TraceOrigin& origin) {
  return publish(RecordTag::kSource, Payload()
                                         .text(origin.source_kind)
                                         .text(origin.source_path)
                                         .number(origin.source_events)
                                         .number(origin.capabilities));
}

Status TraceFileWriter::count(std::string_view what, std::uint64_t times) {
  return publish(RecordTag::kCounter, Payload().text(what).number(times));
}

Status TraceFileWriter::define_final_state(std::span<const FinalSegment> segments, std::span<const FinalBlock> blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (Status status = define(i, blocks[i]); !status) return status;
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (Status status = define(i, segments[i]); !status) return status;
  }
  return publish(RecordTag::kFinalState, Payload().number(segments.size()).number(blocks.size()));
}

}  // namespace faultline
