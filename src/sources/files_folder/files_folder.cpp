#include "sources/files_folder/files_folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/units.h"
#include "sources/source.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 1024;

bool has_known_name(std::string_view name) {
  for (const std::string_view packed : {".gz", ".xz", ".zst"}) {
    if (!name.ends_with(packed)) continue;
    name.remove_suffix(packed.size());
    break;
  }
  return std::any_of(all_sources().begin(), all_sources().end(), [&](const Source& source) {
    return std::any_of(source.endings.begin(), source.endings.end(),
                       [&](std::string_view ending) { return !ending.empty() && name.ends_with(ending); });
  });
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    if (entry.is_regular_file(problem) && has_known_name(entry.path().filename().string()))
      names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

bool holds_files(const std::string& folder) { return !files_in(folder).empty(); }

Result<Input> read_files(const std::string& folder) {
  const std::vector<std::string> paths = files_in(folder);
  if (paths.size() > kMostFiles)
    return Error{"this folder holds " + format_count(paths.size()) + " files to read; at most " +
                     format_count(kMostFiles) + " are read together",
                 {},
                 "Name the one to explain."};
  Input all;
  std::optional<Error> first;
  for (const std::string& path : paths) {
    const std::string name = fs::path(path).filename().string();
    Result<Input> input = open_input(path, NamedBy::kInput);
    if (!input) {
      if (!first) first = Error{name + ": " + input.error().message(), {}, {}};
      ++all.lost["files that could not be read (" + input.error().what + ")"];
      continue;
    }
    if (!input->report.empty()) {  // it tells of a recording, and is none
      if (!first) first = Error{name + " is a report, and no recording; name it to see it", {}, {}};
      ++all.lost["reports beside recordings"];
      continue;
    }
    for (InputPart& part : input->parts)
      all.parts.push_back({std::move(part.trace), part.name.empty() ? name : name + ", " + part.name, {}});
  }
  if (all.parts.empty()) return *first;
  return all;
}

}  // namespace faultline
