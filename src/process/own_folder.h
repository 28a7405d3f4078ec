// A folder that Faultline makes for what a verb leaves: new, its owner's alone, known again by a mark in it.
//
// A folder that is there already is not used, whatever is in it, so nothing in it can be lost. --force takes one of Faultline's own: the mark lists what
// the run left, each file as it was then, and these are removed; where there is anything else, or one was changed, nothing is.
#pragma once

#include <string>

#include "base/result.h"

namespace faultline::process {

struct WantedFolder {
  std::string path;
  bool force = false;  // one of Faultline's own may be taken again
};

struct OwnFolder {
  enum class Outcome : std::uint8_t { kMade, kRefused, kTrouble };  // refused: another is to be named
  Outcome outcome = Outcome::kTrouble;
  std::string path;  // absolute, through no link
  std::string why_not;
};

// The folder that all runs made in one place lie in, unless one is named: ".faultline", new or an earlier run's, with a mark and a .gitignore. Empty: something
// else has that name, or none can be made; then a run's folder lies beside the program. What is in it is nobody's to remove.
inline constexpr const char* kRunsFolder = ".faultline";
std::string make_runs_folder(const std::string& path = kRunsFolder);

// Made, with what lies above it, and marked.
OwnFolder make_own_folder(const WantedFolder& wanted);
// One that was just made by its name, which nobody else had.
OwnFolder mark_new_folder(const std::string& path);

// At the end of the run: what of the folder is the run's. Without it --force refuses the folder.
void list_own_files(const std::string& folder);

// Where there is nothing to tell of: what a run leaves goes, and the folder where nothing else is in it.
void remove_own_folder(const std::string& folder);

class ListedAtEnd {
 public:
  explicit ListedAtEnd(std::string folder) : folder_(std::move(folder)) {}
  ~ListedAtEnd() {
    if (!folder_.empty()) list_own_files(folder_);
  }
  ListedAtEnd(const ListedAtEnd&) = delete;
  ListedAtEnd& operator=(const ListedAtEnd&) = delete;

 private:
  std::string folder_;
};

}  // namespace faultline::process
