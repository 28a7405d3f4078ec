// Files that nobody named on a command line: those found in a folder, and those that an input names. Such a name may lead to a pipe on which nobody writes,
// to a device, or to a file of 200 GiB with nothing in it; opening the one hangs, reading the other never ends. Only plain files are opened.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace faultline {

// What the system said, as a sentence for the user; `what` is "cannot be opened".
Error file_error(const char* what, int code);

// A descriptor of a plain file, for the caller to close. Links are followed.
Result<int> open_plain_file(const std::string& path);

// The whole content, refused above `limit` bytes.
Result<std::string> read_plain_file(const std::string& path, std::size_t limit);

// A reason not to read the file when it is all holes: it claims more than 64 MiB, and 64 times what the disk holds of it.
std::optional<Error> hollow_file(int file, const struct stat& status);

}  // namespace faultline
