// Listing a large folder in which something changed: to make a stand-in for each of 100,000 names takes many seconds, so only what lies aside is listed by the kernel, and the
// names below it are given by the watch when the kernel has come to its end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace faultline::confine {

struct Listed {
  std::string name;
  std::uint64_t number = 0;  // of the inode
  unsigned char type = 0;    // DT_REG, …
};

class Listings {
 public:
  using Descriptor = std::pair<pid_t, int>;  // of a process
  void begin(const Descriptor& descriptor, std::vector<Listed> names);
  // The next of them as getdents64() has them, as many as there is room for; empty: that was all. Nothing fits: `too_small`.
  std::string more(const Descriptor& descriptor, std::size_t room, bool& too_small);

 private:
  struct List {
    std::vector<Listed> names;
    std::size_t next = 0;
  };
  std::map<Descriptor, List> lists_;
};

}  // namespace faultline::confine
