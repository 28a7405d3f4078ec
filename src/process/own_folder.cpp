#include "process/own_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "base/json_input.h"
#include "base/plain_file.h"
#include "base/whole_file.h"
#include "fmt/format.h"
#include "process/hint.h"
#include "process/overwriting.h"
#include "process/private_files.h"
#include "process/run_folder.h"
#include "sources/run_folder/layout.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kList = "files";
constexpr const char* kHoldsRuns = "holds_runs";
constexpr const char* kIgnored = ".gitignore";
constexpr const char* kIgnoresAll = "*\n";

// What the names in a folder may be.
enum class Kind : std::uint8_t { kRun, kTries, kFiles };

// Of the ranks that are started in turn: ranks-1234-1.
bool is_turn(std::string_view text) { return text.find_first_not_of("0123456789-") == std::string_view::npos; }

// process-12.json, torch-12-oom.pickle: to the end of the name, since a program may have files that begin so.
bool is_left_by_process(std::string_view name) {
  struct Form {
    std::string_view begin, end;
    std::string_view between;  // what may stand behind the number; with more behind that
  };
  constexpr std::array kForms = {Form{layout::kProcess, layout::kTraceEnd, "-"},
                                 Form{layout::kProcess, layout::kFactsEnd, ""},
                                 Form{layout::kHistory, ".pickle", "-"},
                                 Form{layout::kTensors, ".txt", ""},
                                 Form{layout::kFailure, ".txt", ""},
                                 Form{layout::kNotes, ".txt", ""},
                                 Form{layout::kImport, layout::kFactsEnd, ""},
                                 Form{layout::kPoolMap, "", "_"},
                                 Form{layout::kProfile, ".prof", "-"},
                                 Form{layout::kCore, "", ""}};
  return std::any_of(kForms.begin(), kForms.end(), [&](const Form& form) {
    if (!name.starts_with(form.begin) || !name.ends_with(form.end) ||
        name.size() <= form.begin.size() + form.end.size())
      return false;
    const std::string_view rest = name.substr(form.begin.size(), name.size() - form.begin.size() - form.end.size());
    const std::size_t number = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const bool needs_more = form.begin == layout::kPoolMap;
    return number != 0 && ((number == rest.size() && !needs_more) ||
                           (!form.between.empty() && rest.substr(number).starts_with(form.between)));
  });
}

// In the folder of a run, or in that of one of its runs beside the first, which alone have a log.
bool is_file_of_run(const std::string& path, std::string_view name, bool is_first) {
  constexpr std::array kNames = {layout::kCommand, layout::kRequest, layout::kEffects, layout::kInput, layout::kMark};
  if (name == layout::kReport) return is_report(path);
  if (name == layout::kLog) return !is_first;
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() || is_left_by_process(name);
}

std::optional<Kind> kind_of_folder(Kind in, std::string_view name) {
  if (in == Kind::kTries) return Kind::kRun;
  if (in == Kind::kFiles) return std::nullopt;
  if (name == layout::kAgain || name == layout::kLarger) return Kind::kRun;
  if (name == layout::kTries) return Kind::kTries;
  if (name == layout::kLinks || (name.starts_with(layout::kRanks) && is_turn(name.substr(layout::kRanks.size()))))
    return Kind::kFiles;
  return std::nullopt;
}

struct Found {
  std::map<std::string, std::string> files;  // by the name from the folder on: which file it is, and in which state
  std::vector<std::string> folders;          // the inner ones last
  std::string foreign;                       // something that no run leaves
};

std::string state_of(const struct stat& status) {
  return fmt::format("{}:{}:{}.{:09}", status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

void look_through(const std::string& folder, Kind kind, const std::string& inside, Found& found) {
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder + inside, problem)) {
    const std::string name = entry.path().filename().string(), here = inside + "/" + name;
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      if (const std::optional<Kind> below = kind_of_folder(kind, name)) {
        found.folders.push_back(here);
        look_through(folder, *below, here, found);
        continue;
      }
    } else if (kind == Kind::kFiles || (kind == Kind::kRun && S_ISREG(status.st_mode) &&
                                        is_file_of_run(entry.path().string(), name, inside.empty()))) {
      found.files[here] = state_of(status);
      continue;
    } else if (name == layout::kPage && S_ISREG(status.st_mode) &&
               may_be_overwritten(entry.path().string(), layout::kPageBegins)) {
      found.files[here] = {};
      continue;
    }
    if (found.foreign.empty()) found.foreign = here.substr(1);
  }
  if (problem && found.foreign.empty()) found.foreign = inside.empty() ? "." : inside.substr(1);
}

Found look_through(const std::string& folder) {
  Found found;
  look_through(folder, Kind::kRun, "", found);
  return found;
}

void remove_found(const std::string& folder, const Found& found) {
  for (const auto& [name, state] : found.files) ::unlink((folder + name).c_str());
  for (auto at = found.folders.rbegin(); at != found.folders.rend(); ++at) ::rmdir((folder + *at).c_str());
}

// A page of view's says itself whose it is, and the mark cannot list itself.
bool is_listed(const std::string& name, const std::string& state) {
  return !state.empty() && name != "/" + std::string(layout::kMark);
}

std::string listed(const std::string& name, const std::string& state) { return state + " " + name; }

std::string mark_in(const std::string& folder) { return folder + "/" + std::string(layout::kMark); }

Status write_mark(const std::string& folder, const Found* found) {
  Json mark = {{"faultline", FAULTLINE_VERSION}};
  if (found != nullptr) {
    mark[kList] = Json::array();
    for (const auto& [name, state] : found->files) {
      if (is_listed(name, state)) mark[kList].push_back(listed(name, state));
    }
  }
  return write_text(mark_in(folder), mark.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

OwnFolder refused(const std::string& path, const std::string& why) {
  return {OwnFolder::Outcome::kRefused, {}, "the folder " + path + " is not used: " + why + "; nothing was run"};
}

OwnFolder trouble(const std::string& path, int problem) {
  return {OwnFolder::Outcome::kTrouble, {}, "the folder " + path + " could not be made: " + std::strerror(problem)};
}

// Of a folder that is there: empties it, where all in it is an earlier run's. The sentence says why not.
std::string take_again(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat seen {};
  if (!folder || ::fstat(folder.number(), &seen) != 0) return "it is no folder of Faultline's";
  if (seen.st_uid != ::geteuid()) return "it belongs to another user";
  const std::string real = "/proc/self/fd/" + std::to_string(folder.number());
  const Result<std::string> text = read_plain_file(mark_in(real), kMostJsonBytes);
  const Result<Json> mark = text ? parse_json<Json>(*text) : Result<Json>(text.error());
  if (!mark || !mark->is_object() || !mark->contains("faultline")) return "Faultline did not make it";
  const auto files = mark->find(kList);
  if (files == mark->end() || !files->is_array())
    return "the run in it is not over, or did not come to its end: remove the folder yourself";
  const Found found = look_through(real);
  if (!found.foreign.empty()) return "it has " + found.foreign + " in it, which is not Faultline's";
  for (const auto& [name, state] : found.files) {
    if (is_listed(name, state) && std::find(files->begin(), files->end(), Json(listed(name, state))) == files->end())
      return "it has " + name.substr(1) + " in it, which is not as Faultline left it";
  }
  remove_found(real, found);
  std::error_code problem;
  if (!fs::is_empty(real, problem) || problem) return "it could not be emptied";
  return {};
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// What the folder of all runs has beside the runs.
bool write_runs_mark(const std::string& folder) {
  const std::string ignored = folder + "/" + kIgnored;
  if (!is_there(ignored) && !write_text(ignored, kIgnoresAll)) return false;
  const Json mark = {{"faultline", FAULTLINE_VERSION}, {kHoldsRuns, true}};
  return write_text(mark_in(folder), mark.dump(2) + "\n").ok();
}

enum class RunsMark : std::uint8_t { kNone, kOurs, kForeign };

RunsMark runs_mark_of(const std::string& folder) {
  const Result<std::string> text = read_plain_file(mark_in(folder), kMostJsonBytes);
  if (!text) return RunsMark::kNone;
  const Result<Json> mark = parse_json<Json>(*text);
  return mark && mark->is_object() && mark->contains("faultline") && mark->contains(kHoldsRuns) ? RunsMark::kOurs
                                                                                                : RunsMark::kForeign;
}

// The folder of all runs, where nothing is in it but its mark and what git reads.
void remove_runs_folder(const std::string& folder) {
  const Result<std::string> ignored = read_plain_file(folder + "/" + kIgnored, kMostJsonBytes);
  if (runs_mark_of(folder) != RunsMark::kOurs || !ignored || *ignored != kIgnoresAll) return;
  std::error_code problem;
  const auto entries = std::distance(fs::directory_iterator(folder, problem), fs::directory_iterator());
  if (problem || entries != 2) return;
  ::unlink((folder + "/" + kIgnored).c_str());
  ::unlink(mark_in(folder).c_str());
  if (::rmdir(folder.c_str()) != 0) (void)write_runs_mark(folder);  // another run began in it at this moment
}

}  // namespace

std::string make_runs_folder(const std::string& path) {
  if (const Result<bool> made = make_new_private_folder(path); !made) return {};
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat seen {};
  if (!folder || ::fstat(folder.number(), &seen) != 0 || seen.st_uid != ::geteuid()) return {};
  const std::string real = "/proc/self/fd/" + std::to_string(folder.number());
  if (const RunsMark mark = runs_mark_of(real); mark != RunsMark::kNone) return mark == RunsMark::kOurs ? path : "";
  // just made, perhaps by another run at the same moment; anything else in it is somebody's
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(real, problem)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kIgnored) && !name.starts_with(layout::kMark)) return {};
  }
  return !problem && write_runs_mark(real) ? path : "";
}

OwnFolder make_own_folder(const WantedFolder& wanted) {
  const std::string path = without_slashes(wanted.path);
  std::error_code problem;
  struct stat seen {};
  if (::lstat(path.c_str(), &seen) != 0 && errno == ENOENT) {
    const fs::path above = fs::path(path).lexically_normal().parent_path();
    fs::create_directories(above.parent_path(), problem);
    if (above.filename() != kRunsFolder || make_runs_folder(above.string()).empty())
      fs::create_directories(above, problem);
  }
  const Result<bool> made = make_new_private_folder(path);
  if (!made) return {OwnFolder::Outcome::kTrouble, {}, made.error().message()};
  if (!*made) {
    if (::lstat(path.c_str(), &seen) == 0 && !S_ISDIR(seen.st_mode))
      return refused(path, S_ISLNK(seen.st_mode) ? "it is a symbolic link. Give the name of a new one with -o"
                                                 : "it is no folder. Give the name of a new one with -o");
    const bool is_own = is_there(mark_in(path));
    if (!wanted.force)
      return refused(path, is_own ? "it has a run in it already. Give another with -o, or --force to replace the run"
                                  : "it is there already, and Faultline did not make it. Give a new one with -o");
    if (const std::string why_not = take_again(path); !why_not.empty()) return refused(path, why_not);
  }
  return mark_new_folder(path);
}

OwnFolder mark_new_folder(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat seen {};
  if (!folder || ::fstat(folder.number(), &seen) != 0) return trouble(path, errno);
  if (seen.st_uid != ::geteuid()) return refused(path, "it belongs to another user");
  std::error_code problem;
  const fs::path real = fs::read_symlink("/proc/self/fd/" + std::to_string(folder.number()), problem);
  if (problem) return trouble(path, problem.value());
  if (Status written = write_mark(real.string(), nullptr); !written) {
    ::rmdir(real.c_str());
    return {OwnFolder::Outcome::kTrouble, {}, written.error().message()};
  }
  return {OwnFolder::Outcome::kMade, real.string(), {}};
}

void list_own_files(const std::string& folder) {
  const Found found = look_through(folder);
  if (Status written = write_mark(folder, &found); !written) hint(written.error().message());
}

void remove_own_folder(const std::string& folder) {
  remove_found(folder, look_through(folder));
  if (::rmdir(folder.c_str()) != 0) return;
  const fs::path above = fs::path(folder).parent_path();
  if (above.filename() == kRunsFolder) remove_runs_folder(above.string());
}

}  // namespace faultline::process
