#include "process/overwriting.h"

#include <filesystem>
#include <fstream>

#include "trace/file_format.h"

namespace faultline::process {

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code problem;
  return std::filesystem::equivalent(a, b, problem) && !problem;
}

bool may_be_overwritten(const std::string& path, std::string_view ours) {
  std::error_code problem;
  if (path.empty() || !std::filesystem::exists(std::filesystem::symlink_status(path, problem))) return true;
  if (!std::filesystem::is_regular_file(path, problem)) return false;  // a device, a pipe, a folder, a link to nothing
  if (std::filesystem::file_size(path, problem) == 0) return true;
  std::ifstream file(path, std::ios::binary);
  std::string begin(ours.size(), '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == ours;
}

bool may_be_overwritten(const std::string& path) {
  return may_be_overwritten(path, std::string(kTraceFileMagic.begin(), kTraceFileMagic.end()));
}

}  // namespace faultline::process
