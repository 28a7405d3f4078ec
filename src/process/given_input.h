// The standard input that Faultline was given, for every run of the program: a file is read again from where it stood; what comes through a pipe or a
// terminal is kept, where there is a place for it, while the first run reads it.
#pragma once

#include <cstdint>
#include <string>

namespace faultline::process {

class GivenInput {
 public:
  explicit GivenInput(const std::string& folder = {});  // to keep it in; empty: it is not kept
  // the file to keep it in; empty: it can be had again without, or not at all
  std::string keep() const { return keep_; }
  int again() const;  // a descriptor for one more run, to be closed by the caller, or -1: nothing
  bool is_gone() const { return !is_file_ && is_there_ && keep_.empty(); }  // after the first run

 private:
  std::string keep_;
  bool is_there_ = false;  // neither closed nor /dev/null
  bool is_file_ = false;
  std::int64_t offset_ = 0;
};

}  // namespace faultline::process
