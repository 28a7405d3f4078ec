// Calls that find, open, change, make, move and remove files. `folder` and `path` are numbers of arguments.
#pragma once

#include "confine/asked.h"

namespace faultline::confine {

Decision read_call(const Asked& call, int folder, int path, bool follow);
// Of a call that tells which file it is: a process that had files open before it was watched is to find those it knows.
Decision with_identity(const Asked& call, Decision decision);
Decision list_call(const Asked& call);
Decision change_folder(const Asked& call);
Decision working_folder(const Asked& call);

// What is asked of an open, however it is said.
struct Opening {
  int folder = kNoFolder;
  int path = 0;
  std::uint64_t flags = 0;
  std::uint64_t mode = 0;
  std::uint64_t resolve = 0;  // of openat2
};
Decision open_call(const Asked& call, const Opening& asked);
Decision open_with_how(const Asked& call);

// Changes of mode, owner, times, length and attributes: of a copy aside, by the kernel.
Decision attribute_call(const Asked& call, int folder, int path, bool follow, bool owner_only);
Decision times_call(const Asked& call);
Decision mode_call(const Asked& call, int mode);
Decision owner_call(const Asked& call, int folder, int path, std::uint64_t flags);
Decision descriptor_owner_call(const Asked& call);
Decision xattr_call(const Asked& call);
Decision xattr_at_call(const Asked& call);

Decision make_folder_call(const Asked& call, int folder, int path);
Decision make_node_call(const Asked& call, int folder, int path);
Decision make_link_call(const Asked& call, int folder, int path);
Decision remove_call(const Asked& call, int folder, int path, bool is_folder);
Decision rename_call(const Asked& call, int from_folder, int from_path, int to_folder, int to_path,
                     std::uint64_t flags);
Decision link_call(const Asked& call, int from_folder, int from_path, int to_folder, int to_path, std::uint64_t flags);

}  // namespace faultline::confine
