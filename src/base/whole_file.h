// A file that is there whole or not at all: it is written under a name of its own beside its place, and then put there. What others have there is not
// removed, whatever it is called: the name beside is new, and without leave nothing is replaced.
#pragma once

#include <string>

#include "base/result.h"

namespace faultline {

// Whether something is there already; a link that leads nowhere is something.
bool is_there(const std::string& path);

// The plain file that a name leads to, or the name itself where nothing is there yet: to replace anything else would be its end.
Result<std::string> replaceable(const std::string& path);

// A name in the same folder that nobody has.
std::string name_beside(const std::string& path);

// What was written beside gets its name. 0 or an errno: EEXIST where something is there and nothing may be replaced. On trouble it is gone.
int put_in_place(const std::string& written, const std::string& path, bool replaces);

}  // namespace faultline
