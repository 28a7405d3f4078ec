// A text of any length in bounded memory. Up to half a gibibyte it is read whole; of a longer one its beginning is kept, which says what ran, and its end, which says what failed: what lies
// between is counted, and a line stands for it.
#pragma once

#include <cstdint>
#include <string>

#include "base/byte_stream.h"
#include "base/result.h"

namespace faultline {

struct TextLimits {
  std::uint64_t most = std::uint64_t{4} << 30;  // a longer text is refused
  std::size_t whole = std::size_t{512} << 20;
  std::size_t head = std::size_t{64} << 20, tail = std::size_t{192} << 20;  // of what is longer
};
struct LongText {
  std::string text;
  std::uint64_t left_out = 0;  // bytes
};
Result<LongText> read_long_text(ByteStream& stream, const TextLimits& limits = {});

}  // namespace faultline
