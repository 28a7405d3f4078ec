#include "trace/file_reader.h"

#include <sys/mman.h>

#include <algorithm>
#include <bitset>
#include <cstring>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "trace/file_chunks.h"
#include "trace/file_codec.h"
#include "trace/file_definitions.h"
#include "trace/validate.h"

namespace faultline {
namespace {

// Half of a large trace's reading time is the kernel handing out the pages of its events one by one.
void prefer_large_pages(const std::vector<Event>& events) {
  constexpr std::uintptr_t kLargePageBytes = 2 << 20;
  const auto begin = (reinterpret_cast<std::uintptr_t>(events.data()) + kLargePageBytes - 1) & ~(kLargePageBytes - 1);
  const auto end =
      (reinterpret_cast<std::uintptr_t>(events.data()) + events.capacity() * sizeof(Event)) & ~(kLargePageBytes - 1);
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

// One writer's events in its own order, chunk after chunk.
class WriterEvents {
 public:
  WriterEvents(const TraceBytes& bytes, std::vector<ChunkExtent> chunks) : bytes_(&bytes), chunks_(std::move(chunks)) {}

  // Reads the next event; false at the end. Events of a kind not known here are passed over and counted.
  bool next(Event& event) {
    for (;;) {
      Record record;
      while (read_record(records_, at_, record) != RecordStep::kRecord) {
        if (!next_chunk()) return false;
      }
      at_ = record.end;
      if (!is_event(record.tag)) continue;
      const auto kind = static_cast<std::uint8_t>(static_cast<std::uint8_t>(record.tag) -
                                                  static_cast<std::uint8_t>(RecordTag::kFirstEvent));
      if (!decode(kind, record.payload, event)) {
        ++damaged_chunks;
        at_ = records_.size();
        continue;
      }
      if (kind < kEventKindCount) return true;
      ++unknown_events;
    }
  }
  // Of the event just read.
  std::uint64_t sequence() const { return deltas_.last_sequence(); }

  Event held;  // read, but not yet its turn
  std::uint64_t unknown_events = 0;
  std::uint64_t damaged_chunks = 0;

 private:
  bool next_chunk() {
    if (next_ == chunks_.size()) return false;
    const ChunkExtent& chunk = chunks_[next_++];
    records_ = bytes_->load(chunk.offset, chunk.whole_bytes, buffer_);
    at_ = 0;
    deltas_ = EventDeltas(chunk.next_sequence, chunk.time_ns);
    return true;
  }

  bool decode(std::uint8_t kind, Bytes payload, Event& event) {
    const std::size_t readable = static_cast<std::size_t>(records_.data() + records_.size() - payload.data());
    if (readable >= EventDeltas::kReadableBytes) return deltas_.decode(kind, payload.data(), payload.size(), event);
    std::uint8_t padded[EventDeltas::kReadableBytes] = {};
    if (!payload.empty()) std::memcpy(padded, payload.data(), payload.size());
    return deltas_.decode(kind, padded, payload.size(), event);
  }

  const TraceBytes* bytes_;
  std::vector<ChunkExtent> chunks_;
  std::size_t next_ = 0;
  std::vector<std::uint8_t> buffer_;
  Bytes records_;
  std::size_t at_ = 0;
  EventDeltas deltas_{0, 0};
};

// Takes events in order, gives them the trace's ids, and keeps the trace's invariants.
class EventIntake {
 public:
  EventIntake(Trace& trace, const TraceIds& ids, std::uint64_t most_events)
      : trace_(trace),
        ids_(ids),
        most_allocation_(std::min<std::uint64_t>(most_events * 8 + kAllocationSlack, 0xffffffff)) {
    trace_.events.reserve(most_events + 1);  // one more than there are is tried
    prefer_large_pages(trace_.events);
    for (const Device& device : trace.devices) devices_->set(device.index);
  }

  // Takes the trace's last event, which was read right there, or drops it.
  void take_last() {
    Event& event = trace_.events.back();
    if (!place(event) || !note_allocation(event)) {
      ++unusable_;
      trace_.events.pop_back();
      return;
    }
    name(event);
    if (event.has(kPreexisting)) note_preexisting(event);
  }

  void finish() {
    if (highest_made_ != made_count_ || has_early_names_) renumber();
    trace_.allocation_count = made_count_;
    trace_.count(kLostUnusableEvents, unusable_);
    trace_.count(kLostUnknownReferences, unknown_references_);
  }

 private:
  static constexpr std::uint64_t kAllocationSlack = 1 << 20;

  bool place(Event& event) {
    const std::uint32_t stream = ids_.streams.find(event.stream.value);
    if (stream == IdMap::kUnknown || (event.bits & 3) == 3) return false;
    event.stream = StreamId(stream);
    const std::uint32_t heap = ids_.heaps.find(event.heap.value);
    if (happens_in_heap(event.kind)) {
      if (heap == IdMap::kUnknown) return false;
      event.heap = HeapId(static_cast<std::uint16_t>(heap));
    }
    return !happens_on_device(event.kind) || trace_.devices.empty() || devices_->test(event.device);
  }

  bool is_made(std::uint32_t id) const { return id / 64 < made_.size() && (made_[id / 64] >> id % 64 & 1) != 0; }

  bool note_allocation(Event& event) {
    const std::uint32_t id = event.allocation.value;
    if (makes_allocation(event.kind)) {
      if (id == 0 || id > most_allocation_ || is_made(id)) return false;
      if (id / 64 >= made_.size()) made_.resize(std::max<std::size_t>(id / 64 + 1, made_.size() * 2));
      made_[id / 64] |= std::uint64_t{1} << id % 64;
      ++made_count_;
      highest_made_ = std::max(highest_made_, id);
    } else if (id != 0 && !is_made(id)) {
      if (ends_allocation(event.kind)) {
        event.allocation = {};
        ++unknown_references_;
      } else {
        has_early_names_ = true;
      }
    }
    return true;
  }

  template <class T>
  void rename(T& field, const IdMap& map) {
    const std::uint32_t to = map.find(field);
    field = to == IdMap::kUnknown ? 0 : to;
    if (to == IdMap::kUnknown) ++unknown_references_;
  }

  void name(Event& event) {
    rename(event.stack.value, ids_.stacks);
    if (extra_is_tensor(event.kind)) rename(event.extra, ids_.tensors);
    if (extra_is_string(event.kind)) rename(event.extra, ids_.strings);
    if (extra_is_call(event.kind)) rename(event.extra, ids_.calls[static_cast<std::size_t>(event.kind)]);
  }

  // Only the leading events can be from before the recording.
  void note_preexisting(Event& event) {
    if (trace_.preexisting_count + 1 == trace_.events.size()) {
      ++trace_.preexisting_count;
    } else {
      event.bits = static_cast<std::uint8_t>(event.bits & ~(kPreexisting << 2));
      ++unknown_references_;
    }
  }

  // Closes the holes that lost Allocs leave in the ids, and forgets ids that never got an Alloc.
  void renumber() {
    std::vector<std::uint32_t> to(std::size_t{highest_made_} + 1);
    std::uint32_t next = 0;
    for (std::size_t id = 1; id < to.size(); ++id) {
      if (is_made(static_cast<std::uint32_t>(id))) to[id] = ++next;
    }
    for (Event& event : trace_.events) {
      const std::uint32_t id = event.allocation.value;
      event.allocation = AllocationId(id < to.size() ? to[id] : 0);
      if (id != 0 && event.allocation.value == 0) ++unknown_references_;
    }
  }

  Trace& trace_;
  const TraceIds& ids_;
  std::uint64_t most_allocation_;
  std::unique_ptr<std::bitset<65536>> devices_ = std::make_unique<std::bitset<65536>>();
  std::vector<std::uint64_t> made_;
  std::uint32_t made_count_ = 0;
  std::uint32_t highest_made_ = 0;
  bool has_early_names_ = false;
  std::uint64_t unusable_ = 0;
  std::uint64_t unknown_references_ = 0;
};

TraceIds read_definitions(const TraceBytes& bytes, const ChunkIndex& index, Trace& trace) {
  Definitions definitions(bytes.size());
  std::vector<std::uint8_t> tags;
  std::vector<std::uint8_t> buffer;
  Record record;
  for (const ChunkExtent& chunk : index.chunks) {
    if (!chunk.defines && (chunk.ended || !bytes.may_grow())) continue;
    const Bytes records = load_records(bytes, chunk, tags, buffer);
    for (std::size_t at = 0; read_record(records, at, record) == RecordStep::kRecord; at = record.end) {
      if (!is_event(record.tag) && !ends_chunk(record.tag)) definitions.add(record);
    }
  }
  return definitions.resolve(trace);
}

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

std::vector<WriterEvents> events_by_writer(const TraceBytes& bytes, const ChunkIndex& index) {
  std::map<std::uint32_t, std::vector<ChunkExtent>> chunks;
  for (const ChunkExtent& chunk : index.chunks) {
    if (chunk.events > 0) chunks[chunk.writer].push_back(chunk);
  }
  std::vector<WriterEvents> writers;
  for (auto& [writer, its_chunks] : chunks) writers.emplace_back(bytes, std::move(its_chunks));
  return writers;
}

std::uint64_t highest_sequence(const TraceBytes& bytes, const ChunkIndex& index) {
  std::uint64_t highest = 0;
  for (WriterEvents& writer : events_by_writer(bytes, index)) {
    while (writer.next(writer.held)) highest = std::max(highest, writer.sequence());
  }
  return highest;
}

// All writers' events in the order of their sequence numbers, up to but not including `end`.
void read_events(const TraceBytes& bytes, const ChunkIndex& index, std::uint64_t end, const TraceIds& ids,
                 Trace& trace) {
  std::vector<WriterEvents> writers = events_by_writer(bytes, index);
  using Next = std::pair<std::uint64_t, std::size_t>;  // sequence, writer
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  for (std::size_t i = 0; i < writers.size(); ++i) {
    if (writers[i].next(writers[i].held) && writers[i].sequence() < end) queue.emplace(writers[i].sequence(), i);
  }
  EventIntake intake(trace, ids, index.events);
  std::uint64_t seen = 0;
  std::uint64_t end_sequence = 0;
  while (!queue.empty()) {
    const std::size_t number = queue.top().second;
    queue.pop();
    WriterEvents& writer = writers[number];
    const std::uint64_t until = queue.empty() ? end : queue.top().first;
    trace.events.push_back(writer.held);
    for (;;) {
      intake.take_last();
      ++seen;
      end_sequence = std::max(end_sequence, writer.sequence() + 1);
      const bool more = writer.next(trace.events.emplace_back());
      if (more && writer.sequence() < until) continue;
      writer.held = trace.events.back();
      trace.events.pop_back();
      if (more && writer.sequence() < end) queue.emplace(writer.sequence(), number);
      break;
    }
  }
  intake.finish();
  for (const WriterEvents& writer : writers) {
    seen += writer.unknown_events;
    trace.count(kLostUnknownRecords, writer.unknown_events);
    trace.count(kLostDamagedChunks, writer.damaged_chunks);
  }
  if (end_sequence > seen) trace.count(kLostMissingEvents, end_sequence - seen);
}

// Chunks are looked at one after the other, so in a file that grows an event may be seen and the one that led to it, in a chunk looked at
// before, not. Therefore look twice. If nothing changed, that is how the file stood in between. If it did, take from the second look only
// what is not younger than the youngest event of the first: whatever led to those had been written before the first look was over.
Result<Trace> read_trace(TraceBytes& bytes) {
  Result<ChunkIndex> index = index_chunks(bytes);
  if (!index) return index.error();
  std::uint64_t end = kNoEnd;
  if (bytes.may_grow()) {
    Result<ChunkIndex> again = index_chunks_again(bytes, *index);
    if (!again) return again.error();
    if (again->chunks != index->chunks) end = index->events == 0 ? 0 : highest_sequence(bytes, *index) + 1;
    index = std::move(again);
  }
  Trace trace;
  const TraceIds ids = read_definitions(bytes, *index, trace);
  read_events(bytes, *index, end, ids, trace);
  trace.count(kLostUnfinishedWriters, index->unfinished_writers);
  trace.count(kLostCutChunks, index->cut_chunks);
  trace.count(kLostDamagedChunks, index->damaged_chunks);
  return trace;
}

}  // namespace

Result<Trace> read_trace_file(const std::string& path) {
  Result<TraceBytes> bytes = TraceBytes::open(path);
  if (!bytes) return bytes.error();
  return read_trace(*bytes);
}

Result<Trace> read_trace_bytes(std::span<const std::uint8_t> bytes) {
  TraceBytes trace_bytes(bytes);
  return read_trace(trace_bytes);
}

bool looks_like_trace_file(std::span<const std::uint8_t> first_bytes) {
  return first_bytes.size() >= kTraceFileMagic.size() &&
         std::equal(kTraceFileMagic.begin(), kTraceFileMagic.end(), first_bytes.begin());
}

}  // namespace faultline
