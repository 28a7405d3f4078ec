// Paths for variables that separate their entries: LD_PRELOAD by spaces and colons, PYTHONPATH by colons. Neither has a way to quote, so a file whose path
// holds such a character is named through a symbolic link that has none.
//
// The link lies in a folder that only this user can write: in the run's own folder where that path is plain, else in faultline-<user id> in the folder for
// temporary files. It stays there, and serves the next run too: processes that outlive the run still name it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace faultline::process {

inline constexpr std::string_view kPreloadSeparators = " :$";  // $: the loader replaces $ORIGIN, $LIB and $PLATFORM
inline constexpr std::string_view kSearchPathSeparators = ":";

// `path` itself where it has none of these characters. `folder`: the run's own, may be empty.
Result<std::string> plain_path(const std::string& path, std::string_view separators, const std::string& folder);

}  // namespace faultline::process
