// Files that were open for writing before a confined program began: what it writes to them is written for real, as whoever opened them wanted.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

namespace faultline::confine {

class GivenFiles {
 public:
  GivenFiles();  // those of this process that its children are given, but for standard input, output and error
  std::vector<std::string> changed() const;  // since then

 private:
  struct File {
    int descriptor;
    std::string name;
    struct stat before;
  };
  std::vector<File> files_;
};

}  // namespace faultline::confine
