#include "process/driver_release.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/characters.h"

namespace faultline::process {
namespace {

bool is_release(std::string_view text) {
  return text.find('.') != std::string_view::npos && text.find_first_not_of("0123456789.") == std::string_view::npos &&
         text.front() != '.' && text.back() != '.';
}

}  // namespace

std::string release_in_name(const std::string& file_name) {
  constexpr std::string_view kBefore = "libcuda.so.";
  if (!file_name.starts_with(kBefore)) return {};
  std::string release = file_name.substr(kBefore.size());
  return !release.empty() && is_release(release) ? release : std::string();
}

std::string module_release_in(const std::string& line) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (is_release(word)) return word;
  }
  return {};
}

std::string module_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return module_release_in(line);
}

std::string library_release(const std::string& libcuda) {
  std::error_code problem;
  return release_in_name(std::filesystem::weakly_canonical(libcuda, problem).filename().string());
}

int release_number(const std::string& release) {
  int number = 0;
  std::from_chars(release.data(), release.data() + release.size(), number);
  return number;
}

}  // namespace faultline::process
