// Folders and files that belong to their owner alone: a run's hold command lines, and those may hold passwords.
//
// Folders are 0700 and files 0600 whatever the umask. A name in a folder that others can write to (/tmp) may have been made by somebody else before us: what
// we make must be new, or be ours and a real folder; a symbolic link that is not our own is never followed.
#pragma once

#include <string>

#include "base/result.h"

namespace faultline::process {

// Inside a folder that Faultline made: makes it, or takes one that is there already.
Status make_private_folder(const std::string& path);

// False: there is something of that name already.
Result<bool> make_new_private_folder(const std::string& path);

// The whole file or none of it. One of Faultline's own that is there is replaced, not written into.
Status write_text(const std::string& path, const std::string& text);
// A file that the user named. `replaces`: one is there that may go; without it whatever is there stays, and that is said.
Status write_named_file(const std::string& path, const std::string& text, bool replaces);

}  // namespace faultline::process
