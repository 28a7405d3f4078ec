// Folders and files that belong to their owner alone: a run's hold command lines, and those may hold passwords.
//
// Folders are 0700 and files 0600 whatever the umask. A name in a folder that others can write to (/tmp) may have been made by somebody else before us: what
// we make must be new, or be ours and a real folder; a symbolic link that is not our own is never followed.
#pragma once

#include <string>

#include "base/result.h"

namespace faultline::cli {

// Makes it, or takes one that is there: ours, with nothing in it or closed to others already. What lies above it is made as usual.
Status make_private_folder(const std::string& path);

// False: there is something of that name already.
Result<bool> make_new_private_folder(const std::string& path);

// The whole file or none of it; one that is there is replaced, not written into.
Status write_text(const std::string& path, const std::string& text);

}  // namespace faultline::cli
