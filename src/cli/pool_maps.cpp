#include "cli/pool_maps.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <vector>

#include "sources/run_folder/layout.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

struct MapFile {
  fs::path path;
  std::uint64_t bytes = 0;
};

// By process and pool, the oldest first: the names end in microseconds, all of one length.
std::map<std::string, std::vector<MapFile>> maps_in(const std::string& folder) {
  std::map<std::string, std::vector<MapFile>> found;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(layout::kPoolMap) || !entry.is_regular_file(problem)) continue;
    const std::uintmax_t bytes = entry.file_size(problem);
    found[entry.path().stem().string()].push_back({entry.path(), problem ? 0 : bytes});
  }
  for (auto& [pool, files] : found)
    std::sort(files.begin(), files.end(), [](const MapFile& a, const MapFile& b) { return a.path < b.path; });
  return found;
}

}  // namespace

std::size_t thin_out_pool_maps(const std::string& folder, const PoolMapLimits& limits) {
  std::size_t removed = 0;
  std::uint64_t total = 0;
  std::error_code problem;
  for (auto& [pool, files] : maps_in(folder)) {
    // The first stays, and then the last ones: what ended the program is among these.
    std::size_t kept = 0;
    for (std::size_t at = files.size(); at-- > 0;) {
      const bool stays =
          (at == 0 || kept + 1 < limits.most_files) && (kept == 0 || total + files[at].bytes <= limits.most_bytes);
      if (stays) {
        ++kept;
        total += files[at].bytes;
      } else if (fs::remove(files[at].path, problem)) {
        ++removed;
      }
    }
  }
  return removed;
}

PoolMapsBound::PoolMapsBound(std::string folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  // What is sent to Faultline is for the thread that waits for the program.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] {
    constexpr auto kBetweenLooks = std::chrono::milliseconds(25);
    constexpr int kLooks = 40;
    for (int part = 0; !is_over_.load(); ++part) {
      if (part % kLooks == 0) thin_out_pool_maps(folder_);
      std::this_thread::sleep_for(kBetweenLooks);
    }
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PoolMapsBound::~PoolMapsBound() { finish(); }

void PoolMapsBound::finish() {
  is_over_.store(true);
  if (!thread_.joinable()) return;
  thread_.join();
  thin_out_pool_maps(folder_);
}

}  // namespace faultline::cli
