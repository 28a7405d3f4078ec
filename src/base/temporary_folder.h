// A folder for files that nobody keeps, for its owner alone; it goes with what is in it.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace faultline {

class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::error_code problem;
    const std::filesystem::path above = std::filesystem::temp_directory_path(problem);
    std::string path = (problem ? std::filesystem::path("/tmp") : above) / "faultline-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return Error{"no folder for temporary files could be made: " + std::string(std::strerror(errno)),
                   {},
                   "Set TMPDIR to a folder that can be written to."};
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code problem;
    if (!path_.empty()) std::filesystem::remove_all(path_, problem);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace faultline
