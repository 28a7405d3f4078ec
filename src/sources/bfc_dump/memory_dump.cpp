#include "sources/bfc_dump/memory_dump.h"

#include <algorithm>

#include "base/hash.h"
#include "base/protobuf.h"
#include "sources/bfc_dump/dump_trace.h"

namespace faultline {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{256} << 20;
constexpr std::size_t kMostOps = 65536;
constexpr std::uint64_t kMostChunkBytes = std::uint64_t{1} << 48;

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

class MemoryDumpReader {
 public:
  // False: nothing of it could be read.
  bool read(Bytes bytes, Trace& trace) {
    ProtoReader message(bytes);
    for (ProtoField field; message.next(field);) {
      if (field.number == 1 && field.is_bytes) dump_.allocator = field.text().substr(0, kLongestPoolName);
      if (field.number == 3 && field.is_bytes) add_chunk(field.bytes);
      if (field.number == 5 && field.is_bytes) add_statistics(field.bytes);
    }
    trace.count("bytes of the file that could not be read", bytes.size() - message.offset());
    dump_.is_whole_by_form = message.offset() == bytes.size() && dump_.odd_lines == 0;
    settle(dump_);
    return dump_.has_map();
  }
  PoolDump& dump() { return dump_; }

 private:
  void add_chunk(Bytes bytes) {
    DumpedChunk chunk;
    ProtoReader message(bytes);
    std::string_view op;
    for (ProtoField field; message.next(field);) {
      switch (field.number) {
        case 1: chunk.address = field.value; break;
        case 2: chunk.size_bytes = field.value; break;
        case 3: chunk.requested_bytes = field.value; break;
        case 5: op = field.text(); break;
        case 8: chunk.in_use = field.value != 0; break;
        default: break;
      }
    }
    const bool sound = message.ok() && chunk.size_bytes != 0 && chunk.size_bytes <= kMostChunkBytes &&
                       chunk.address <= ~std::uint64_t{0} - chunk.size_bytes;
    std::vector<DumpedChunk>& chunks = dump_.chunks;
    const bool lies_before = !chunks.empty() && chunk.address < chunks.back().address + chunks.back().size_bytes &&
                             chunk.address + chunk.size_bytes > chunks.back().address;
    if (!sound || lies_before || chunks.size() == kMostChunks) {
      ++dump_.odd_lines;
      return;
    }
    if (!chunk.in_use) chunk.requested_bytes = 0;  // of who had it before
    if (!op.empty() && chunk.in_use) {
      const auto [known, is_new] = op_ids_.try_emplace(std::string(op.substr(0, kLongestPoolName)), 0);
      if (is_new && dump_.ops.size() < kMostOps) {
        known->second = static_cast<std::uint32_t>(dump_.ops.size());
        dump_.ops.push_back(known->first);
      }
      chunk.op = known->second;
    }
    // Chunks of a region follow each other; free neighbours of one region would be one chunk.
    const bool continues = !chunks.empty() && chunks.back().address + chunks.back().size_bytes == chunk.address &&
                           (chunk.in_use || chunks.back().in_use);
    if (!continues) dump_.regions.push_back({0, 0, false, static_cast<std::uint32_t>(chunks.size()), 0});
    ++dump_.regions.back().chunk_count;
    chunks.push_back(chunk);
  }

  void add_statistics(Bytes bytes) {
    ProtoReader message(bytes);
    for (ProtoField field; message.next(field);) {
      if (field.is_bytes || field.value >> 62 != 0) continue;
      if (field.number == 1) dump_.allocations = field.value;
      if (field.number == 2) dump_.in_use = ByteInterval::exactly(field.value);
      if (field.number == 3) dump_.peak_in_use = ByteInterval::exactly(field.value);
    }
  }

  PoolDump dump_;
  HashMap<std::string, std::uint32_t> op_ids_;
};

}  // namespace

// A name, and then the first bin or a chunk: 0a LENGTH "GPU_0_bfc" 12 …
bool looks_like_memory_dump(std::span<const std::uint8_t> head) {
  ProtoReader message(head);
  ProtoField field;
  if (!message.next(field) || field.number != 1 || !field.is_bytes || !is_name(field.text())) return false;
  const std::uint64_t behind = message.offset();
  if (behind >= head.size()) return false;
  return (head[behind] == 0x12 || head[behind] == 0x1a) && (message.next(field) || head.size() - behind < 64) &&
         std::find_if(head.begin(), head.end(),
                      [](std::uint8_t byte) { return byte < 9 || (byte > 13 && byte < 27); }) != head.end();
}

Result<Trace> read_memory_dump(ByteStream& stream, const std::string& path) {
  const Result<std::string> bytes = stream.read_all(kMostFileBytes);
  if (!bytes) return bytes.error();
  Trace trace;
  MemoryDumpReader reader;
  if (!reader.read(bytes_of(*bytes), trace))
    return Error{"this memory dump of TensorFlow's allocator holds no chunk that can be read", {}, {}};
  PoolDump& dump = reader.dump();
  trace.source_path = path;
  trace.source_events = dump.chunks.size();
  trace.streams.emplace_back();
  const std::vector<PoolPlace> places = add_pools(trace, {&dump, 1});
  add_failed_request(trace, dump, places.front(), StackId());
  trace.capabilities |= kEvents;
  return trace;
}

}  // namespace faultline
