#include "cli/run_folder.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/characters.h"
#include "base/json_input.h"
#include "base/plain_file.h"
#include "base/safe_text.h"
#include "fmt/format.h"
#include "report/json.h"
#include "sources/run_folder/layout.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string in_folder(const std::string& folder, std::string_view name) { return (fs::path(folder) / name).string(); }

// A name for the folder: the script's where an interpreter runs one, else the program's.
std::string program_name(const std::vector<std::string>& command) {
  fs::path chosen = command.front();
  for (const std::string& word : command) {
    if (fs::path(word).extension() == ".py") {
      chosen = word;
      break;
    }
  }
  std::string name = chosen.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; },
      '_');
  return name.empty() ? "program" : name.substr(0, 64);
}

// The time now, by the clock that `convert` (localtime_r, gmtime_r) tells.
std::string time_text(std::tm* (*convert)(const std::time_t*, std::tm*), const char* form) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  convert(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, form, &parts);
  return text;
}

}  // namespace

Result<std::string> make_run_folder(const std::string& wanted, const std::vector<std::string>& command) {
  std::error_code problem;
  std::string path = wanted;
  if (wanted.empty()) {
    const std::string base =
        fmt::format("faultline-{}-{}", program_name(command), time_text(::localtime_r, "%Y%m%d-%H%M%S"));
    path = base;
    for (int more = 2;; ++more) {
      Result<bool> made = make_new_private_folder(path);
      if (!made) return made.error();
      if (*made) break;
      path = base + fmt::format("-{}", more);
    }
  } else {
    if (fs::exists(in_folder(path, layout::kCommand), problem))
      return Error{"the folder " + wanted + " already holds a run", {}, "Give another with -o, or remove it."};
    if (Status made = make_private_folder(path); !made) return made.error();
  }
  const fs::path absolute = fs::canonical(path, problem);  // as the kernel names it: through no link
  if (problem) return Error{"the folder " + path + " could not be found again: " + problem.message(), {}, {}};
  if (Status written = write_text(in_folder(absolute.string(), layout::kCommand), "{}\n"); !written)
    return written.error();
  return absolute.string();
}

void unmake_run_folder(const std::string& path, const std::string& wanted) {
  std::error_code problem;
  if (wanted.empty()) {
    fs::remove_all(path, problem);
    return;
  }
  // The folder is the user's, who may keep other things in it: only what a later run here would take for its own goes.
  std::vector<fs::path> own = {in_folder(path, layout::kCommand)};
  for (const fs::directory_entry& entry : fs::directory_iterator(path, problem)) {
    const std::string name = entry.path().filename().string();
    const bool is_numbered = name.starts_with(layout::kProcess) && name.size() > layout::kProcess.size() &&
                             is_digit(name[layout::kProcess.size()]);
    if (is_numbered && (name.ends_with(layout::kTraceEnd) || name.ends_with(layout::kFactsEnd)))
      own.push_back(entry.path());
  }
  for (const fs::path& file : own) fs::remove(file, problem);
}

Status write_command(const std::string& folder, const CommandRecord& record) {
  Json json = {{"verb", record.verb},
               {"command", record.command},
               {"exit_status", record.exit_status},
               {"started", record.started},
               {"seconds", record.seconds}};
  for (const auto& [name, choice] : record.choices) json[name] = choice;
  if (record.signal != 0) json["signal"] = record.signal;
  if (record.left_out) json["left_out"] = *record.left_out;
  if (!record.cut_short.empty()) json["cut_short"] = record.cut_short;
  if (!record.unrecorded.empty()) json["unrecorded"] = record.unrecorded;
  return write_text(in_folder(folder, layout::kCommand),
                    json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Status write_report(const std::string& folder, const Report& report) {
  return write_text(in_folder(folder, layout::kReport), to_json(report));
}

std::string shown_folder(const std::string& folder) {
  std::error_code problem;  // the program may have removed the folder we stand in
  const std::string near = fs::path(folder).lexically_relative(fs::current_path(problem)).string();
  return shown(near.empty() || near.starts_with("..") ? folder : near);
}

std::string utc_now() { return time_text(::gmtime_r, "%Y-%m-%dT%H:%M:%SZ"); }

Result<std::string> read_text_file(const std::string& path) { return read_plain_file(path, kMostJsonBytes); }

}  // namespace faultline::cli
