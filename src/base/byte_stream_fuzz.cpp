// Any bytes, taken for packed ones: they end, with an Error or without, and what comes out stays in relation to what went in.
#include "base/byte_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  ByteStream stream = ByteStream::from_memory({bytes, size});
  std::uint64_t unpacked = 0;
  for (const std::uint8_t* at = stream.begin();;) {
    unpacked += static_cast<std::uint64_t>(stream.end() - at);
    const Result<const std::uint8_t*> next = stream.more(stream.end(), 1);
    if (!next || *next == stream.end()) break;
    at = *next;
  }
  FAULTLINE_CHECK(unpacked <= most_unpacked_bytes(size) + ByteStream::kWindowBytes);
  return 0;
}
