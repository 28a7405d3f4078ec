// Core dumps made of chosen tables: the bytes say of which type each section is, where it lies, how long its rows are and which section stands above it. So
// that the fuzzer meets tables over the same bytes, rows of one byte, and names without end, which changing single bytes of a dump does not lead to.
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/result.h"
#include "sources/core_dump/core_dump.h"
#include "trace/validate.h"

namespace {

class DumpChoices {
 public:
  DumpChoices(const std::uint8_t* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}
  bool empty() const { return at_ == end_; }
  std::uint32_t next() { return at_ == end_ ? 0 : *at_++; }
  std::uint64_t size() {  // small ones often, large ones now and then
    const std::uint32_t shift = next() % 18;
    return std::uint64_t{next()} << shift;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

template <class Number>
void put(std::string& to, Number value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

constexpr std::array<std::uint32_t, 17> kTypes = {
    2,          3,          11,         0x80000005, 0x80000007, 0x80000009, 0x8000000a, 0x8000000b, 0x8000000c,
    0x8000000d, 0x8000000e, 0x8000000f, 0x80000010, 0x80000011, 0x80000012, 0x80000013, 0x80000016};

std::string dump_of(DumpChoices from) {
  std::string body(64, '\0');
  const std::uint64_t body_bytes = from.size() & 0xffff;
  while (body.size() < 64 + body_bytes) body += static_cast<char>(from.next());
  const std::uint64_t sections_at = body.size();
  body.append(64, '\0');
  std::uint64_t count = 1;
  while (!from.empty() && count < 60'000) {
    const std::uint64_t times = 1 + (from.next() % 8 == 0 ? from.size() % 20'000 : 0);
    const std::uint32_t type = kTypes[from.next() % kTypes.size()];
    const std::uint64_t offset = 64 + from.size() % (body_bytes + 1);
    const std::uint64_t size = from.next() % 2 == 0 ? sections_at - offset : from.size();
    const std::uint64_t link = from.next(), info = from.next(), entry = from.size(), address = from.size(),
                        flags = from.next();
    for (std::uint64_t i = 0; i < times && count < 60'000; ++i, ++count) {
      put<std::uint32_t>(body, 0), put(body, type), put(body, flags), put(body, address), put(body, offset),
          put(body, size);
      put(body, static_cast<std::uint32_t>(link)), put(body, static_cast<std::uint32_t>(info + i)),
          put<std::uint64_t>(body, 0), put(body, entry);
    }
  }
  const std::array<std::uint8_t, 20> start = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 0,    0,
                                              0,    0,   0,   0,   0, 0, 4, 0,    0xbe, 0};
  std::memcpy(body.data(), start.data(), start.size());
  std::memcpy(body.data() + 40, &sections_at, sizeof sections_at);
  const std::array<std::uint16_t, 3> tail = {64, static_cast<std::uint16_t>(count), 0};
  std::memcpy(body.data() + 58, tail.data(), sizeof tail);
  return body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const std::string dump = dump_of(DumpChoices(bytes, size));
  const Result<Trace> trace =
      read_core_dump(std::span(reinterpret_cast<const std::uint8_t*>(dump.data()), dump.size()));
  if (trace) FAULTLINE_CHECK(check_trace(*trace).ok());
  return 0;
}
