// Files that were open for writing before a confined program began: what it writes to them is written for real, as whoever opened them wanted, by the
// descriptor or through a name of the descriptor's (/dev/stdout).
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

namespace faultline::confine {

class GivenFiles {
 public:
  GivenFiles();                              // those of this process that its children are given
  std::vector<std::string> changed() const;  // since then; what is printed is not told

  struct File {
    int descriptor;
    std::string name;
    struct stat before;
    bool only_appends = false;
    bool is_output = false;
  };
  const File* find(const struct stat& file) const;  // null: it is not one of them

 private:
  std::vector<File> files_;
};

}  // namespace faultline::confine
