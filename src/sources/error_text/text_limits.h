// How far the readers of a text look: every one of them is bounded by these, whatever the text is.
#pragma once

#include <cstddef>
#include <string_view>

namespace faultline {

inline constexpr std::size_t kLongestLine = 4096;  // bytes of a line that are looked at
// of a line about a buffer, which holds the path of its operation
inline constexpr std::size_t kLongestBufferLine = 8192;
inline constexpr std::size_t kMostLogLines = 4000;                    // behind a message
inline constexpr std::size_t kMostTracebackLines = 600;               // of one traceback
inline constexpr std::size_t kMostBufferLines = 1000;                 // of a list of buffers
inline constexpr std::size_t kLookBackBytes = std::size_t{1} << 16;   // in front of a message
inline constexpr std::size_t kLookAheadBytes = std::size_t{1} << 20;  // behind it, for another traceback
inline constexpr std::string_view kTracebackHead = "Traceback (most recent call last)";

}  // namespace faultline
