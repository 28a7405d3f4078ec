// Work on a recording, done in a process of its own: whatever happens to it (a crash, no memory, somebody ends it), the process that holds the
// program's status lives on.
#pragma once

#include <functional>
#include <string>

namespace faultline::process {

struct ApartEnd {
  int status = 0;       // what `work` returned
  std::string trouble;  // not empty: it came to no end of its own; why, to stand behind "because"
};

// Standard output and error are this process's. When memory runs out the kernel takes that process before others. A request to end ends it.
ApartEnd do_apart(const std::function<int()>& work);

}  // namespace faultline::process
