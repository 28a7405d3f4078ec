// What a line of progress says, and how it fits into a terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace faultline::process {

// "reading NAME", of an input as the user named it.
std::string reading(const std::string& path);

// How far this process has read the file: bytes, and of how many. None where it has not opened it, or not to read it in order.
std::optional<std::pair<std::uint64_t, std::uint64_t>> position_in(const std::string& path);

// A line for a terminal of so many columns: plain, on one line, with "…" or "..." where it was cut.
std::string fitted(const std::string& text, int columns, bool unicode);

}  // namespace faultline::process
