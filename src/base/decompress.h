// Decompressors as ByteFillers over another ByteFiller. Each refuses corrupt input with one sentence; none holds more than its format's window,
// and none gives more than most_unpacked_bytes() for what it was given.
#pragma once

#include <memory>
#include <span>

#include "base/byte_stream.h"

namespace faultline {

// `head` is the start of the raw input, already taken from `raw`. Returns null when it is not compressed in a known way.
std::unique_ptr<ByteFiller> make_decompressor(std::span<const std::uint8_t> head, std::unique_ptr<ByteFiller>& raw,
                                              const char** name);

}  // namespace faultline
