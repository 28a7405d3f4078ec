// What TensorFlow's stream-ordered allocator (TF_GPU_ALLOCATOR=cuda_malloc_async) prints when the driver's pool gives nothing: the pool's totals, the device's free memory, and how
// many buffers of each size are alive.
#pragma once

#include <cstdint>
#include <string_view>

#include "sources/error_text/message.h"

namespace faultline {

// Around a message of TensorFlow's or JAX's: its numbers and its largest sizes are added to the message.
void add_async_pool(std::string_view text, std::size_t at, ErrorMessage& message);

}  // namespace faultline
