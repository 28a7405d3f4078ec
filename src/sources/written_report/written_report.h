// A report of Faultline's own as JSON (--format json, report.json of a folder), to be shown again in any form. What it says is for those who read reports.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/byte_stream.h"
#include "base/result.h"
#include "sources/input.h"

namespace faultline {

bool looks_like_report(std::span<const std::uint8_t> head);
Result<Input> read_report(ByteStream& stream, const std::string& path);

}  // namespace faultline
