// What TensorFlow's and XLA's allocator prints of its pool when a request fails ("BFCAllocator dump", "Stats:"), as the few numbers that decide: its limit, what was in use, its largest free piece.
#pragma once

#include <string>
#include <string_view>

namespace faultline {

// "limit in_use largest_free" in bytes, of the last dump in the text, "-" for what it does not say; empty where there is none.
std::string pool_dump(std::string_view text);

}  // namespace faultline
