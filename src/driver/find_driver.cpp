#include "driver/find_driver.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace faultline::driver {
namespace {

constexpr const char* kFolders[] = {
    "/usr/lib/x86_64-linux-gnu", "/usr/lib64",        "/usr/lib",         "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",     "/usr/lib64-nvidia", "/usr/lib/wsl/lib", "/run/opengl-driver/lib",
    "/usr/local/cuda/compat",
};

bool is_ours(const std::string& path) {
  // A stand-in lies in a folder called capture beside Faultline's other files; a real driver never does.
  return std::filesystem::path(path).parent_path().filename() == "capture";
}

std::string usable(const std::string& folder) {
  if (folder.empty()) return {};
  const std::string path = folder + "/libcuda.so.1";
  return ::access(path.c_str(), R_OK) == 0 && !is_ours(path) ? path : std::string();
}

// The loader's cache of library names holds full paths as plain strings: the first that ends in /libcuda.so.1.
std::string from_loader_cache() {
  std::ifstream file("/etc/ld.so.cache", std::ios::binary);
  const std::string cache{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  constexpr std::string_view kEnd{"/libcuda.so.1\0", 14};
  for (std::size_t at = cache.find(kEnd); at != std::string::npos; at = cache.find(kEnd, at + 1)) {
    std::size_t start = at;
    while (start > 0 && cache[start - 1] != '\0') --start;
    const std::string folder = cache.substr(start, at - start);
    if (folder.find("i386") != std::string::npos || folder.find("32") != std::string::npos) continue;
    if (std::string path = usable(folder); !path.empty()) return path;
  }
  return {};
}

}  // namespace

std::string find_real_driver() {
  if (const char* searched = std::getenv("LD_LIBRARY_PATH")) {
    std::string_view rest = searched;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (std::string path = usable(std::string(rest.substr(0, end))); !path.empty()) return path;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (std::string path = from_loader_cache(); !path.empty()) return path;
  for (const char* folder : kFolders) {
    if (std::string path = usable(folder); !path.empty()) return path;
  }
  return {};
}

}  // namespace faultline::driver
