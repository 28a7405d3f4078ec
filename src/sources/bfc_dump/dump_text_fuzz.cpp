// Any text is a number of dumps whose chunks lie in their regions and do not overlap, and that make a trace that holds.
#include "base/result.h"
#include "sources/bfc_dump/dump_text.h"
#include "sources/bfc_dump/dump_trace.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const PoolDumps found = read_pool_dumps({reinterpret_cast<const char*>(bytes), size});
  for (const PoolDump& dump : found.dumps) {
    for (const DumpedRegion& region : dump.regions) {
      std::uint64_t end = region.address;
      for (std::uint32_t at = region.first_chunk; at < region.first_chunk + region.chunk_count; ++at) {
        FAULTLINE_CHECK(dump.chunks[at].address >= end);
        end = dump.chunks[at].address + dump.chunks[at].size_bytes;
      }
      FAULTLINE_CHECK(end <= region.address + region.size_bytes);
    }
    Trace trace;
    trace.streams.emplace_back();
    const std::vector<PoolPlace> places = add_pools(trace, {&dump, 1});
    add_failed_request(trace, dump, places.front(), StackId());
    FAULTLINE_CHECK(check_trace(trace).ok());
  }
  return 0;
}
