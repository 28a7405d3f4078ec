// A notebook (.ipynb): its cells' outputs, in the order in which they were run, read as the text they are.
//
// The frames of an error name the cell ("cell [12]") and its line by themselves. Nothing of a notebook is executed, and its sources are not looked at.
#pragma once

#include <span>
#include <string>

#include "base/byte_stream.h"
#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

bool looks_like_notebook(std::span<const std::uint8_t> head);
Result<Trace> read_notebook(ByteStream& stream, const std::string& path);

}  // namespace faultline
