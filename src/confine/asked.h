// One call of a confined program, what its words lead to, and the plain answers to it. For the files beside this one.
#pragma once

#include <optional>
#include <string>

#include "confine/calls.h"

namespace faultline::confine {

inline constexpr int kNoFolder = -1;  // the call has no argument for a folder: it counts from the working folder

// One call and what it is looked at with.
struct Asked {
  Confinement& confinement;
  const Tracee& tracee;
  const Registers& registers;

  FileLayer& files() const { return confinement.files; }
  std::uint64_t number(int index) const { return argument(registers, index); }
  int small(int index) const { return static_cast<int>(argument(registers, index)); }
};

// Where the words of a call lead, or what becomes of it without going there. Words that cannot be read end the call: what is not known is not let through.
struct Named {
  Place place;
  std::optional<Decision> settled;
  bool is_own = false;  // in Faultline's own folder: settled by that
};

// `fresh`: for a name that is to be made, where a slash at the end does not lead through a link.
Named named(const Asked& call, int folder, int path, bool follow, bool fresh = false);
bool has_no_words(const Asked& call, int path);
bool is_kept(const Place& place);

Decision rewritten(int argument, const std::string& path);
Decision look_when_it_returns(Pending::Kind what);
// For calls that only read. What does not exist is never asked of the kernel, which may know better.
Decision found(const Place& place, int path);

// What a descriptor leads to, as /proc names it; AT_FDCWD is the working folder.
std::string link_of(const Asked& call, int index);
// Something without a name, something aside, or none of the user's: the kernel may do as it is asked.
bool is_free(const Asked& call, const std::string& link);

}  // namespace faultline::confine
