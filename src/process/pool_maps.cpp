#include "process/pool_maps.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "process/quiet_thread.h"
#include "sources/run_folder/layout.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

struct MapFile {
  fs::path path;
  std::uint64_t bytes = 0;
  std::size_t later = 0;  // of the same pool: how many came after it

  // Names end in microseconds.
  std::pair<std::size_t, std::string> time() const {
    const std::string digits = path.extension().string();
    return {digits.size(), digits};
  }
};

// By process and pool, the oldest first.
std::map<std::string, std::vector<MapFile>> maps_in(const std::string& folder) {
  std::map<std::string, std::vector<MapFile>> found;
  std::error_code problem;
  for (auto at = fs::directory_iterator(folder, problem); !problem && at != fs::directory_iterator();
       at.increment(problem)) {
    std::error_code gone;
    const std::string name = at->path().filename().string();
    if (!name.starts_with(layout::kPoolMap) || !at->is_regular_file(gone)) continue;
    const std::uintmax_t bytes = at->file_size(gone);
    found[at->path().stem().string()].push_back({at->path(), gone ? 0 : bytes});
  }
  for (auto& [pool, files] : found)
    std::sort(files.begin(), files.end(), [](const MapFile& a, const MapFile& b) { return a.time() < b.time(); });
  return found;
}

}  // namespace

std::size_t thin_out_pool_maps(const std::string& folder, const PoolMapLimits& limits) {
  std::vector<MapFile> may_stay, go;
  for (auto& [pool, files] : maps_in(folder)) {
    for (std::size_t at = 0; at < files.size(); ++at) {
      files[at].later = files.size() - 1 - at;
      (at == 0 || files[at].later + 1 < limits.most_files ? may_stay : go).push_back(std::move(files[at]));
    }
  }
  // The last of each pool comes before all others: what ended the program is among these.
  std::sort(may_stay.begin(), may_stay.end(), [](const MapFile& a, const MapFile& b) {
    return a.later != b.later ? a.later < b.later : a.time() > b.time();
  });
  std::uint64_t total = 0;
  for (MapFile& file : may_stay) {
    if (total == 0 || (total <= limits.most_bytes && file.bytes <= limits.most_bytes - total))
      total += file.bytes;
    else
      go.push_back(std::move(file));
  }
  std::error_code problem;
  return static_cast<std::size_t>(
      std::count_if(go.begin(), go.end(), [&](const MapFile& file) { return fs::remove(file.path, problem); }));
}

PoolMapsBound::PoolMapsBound(std::string folder) noexcept : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  thread_ = thread_without_signals([this] {
    constexpr auto kBetweenLooks = std::chrono::milliseconds(25);
    constexpr int kLooks = 40;
    for (int part = 0; !is_over_.load(); ++part) {
      if (part % kLooks == 0) thin_out_pool_maps(folder_);
      std::this_thread::sleep_for(kBetweenLooks);
    }
  });
}

PoolMapsBound::~PoolMapsBound() { finish(); }

void PoolMapsBound::finish() noexcept {
  if (is_over_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  try {
    if (!folder_.empty()) thin_out_pool_maps(folder_);
  } catch (const std::exception&) {
    // no memory for a list of names: they stay
  }
}

}  // namespace faultline::process
