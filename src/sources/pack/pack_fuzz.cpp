// Whatever an archive holds is unpacked within bounds, and no name of a pack leads out of it.
#include "base/byte_stream.h"
#include "base/result.h"
#include "base/zip.h"
#include "sources/pack/pack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  std::uint64_t all = 0;
  const Status read = read_zip({bytes, size}, [&](const std::string& name, const std::string& content) -> Status {
    all += content.size();
    if (is_packed_name(name)) {
      FAULTLINE_CHECK(name.find("..") == std::string::npos || name.find("/../") == std::string::npos);
      FAULTLINE_CHECK(name.front() != '/' && name.find('\0') == std::string::npos);
    }
    return Ok{};
  });
  FAULTLINE_CHECK(all <= most_unpacked_bytes(size));
  if (!read) FAULTLINE_CHECK(!read.error().what.empty());
  looks_like_pack({bytes, size});
  return 0;
}
