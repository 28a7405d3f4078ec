#include "process/run_folder.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_input.h"
#include "base/plain_file.h"
#include "base/safe_text.h"
#include "fmt/format.h"
#include "process/overwriting.h"
#include "sources/run_folder/layout.h"

namespace faultline::process {
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

OwnFolder make_run_folder(const WantedFolder& wanted, const std::vector<std::string>& command) {
  if (!wanted.path.empty()) return make_own_folder(wanted);
  const std::string runs = make_runs_folder();
  const std::string base = fmt::format("{}{}-{}", runs.empty() ? "faultline-" : runs + "/", program_name(command),
                                       time_text(::localtime_r, "%Y%m%d-%H%M%S"));
  std::string path = base;
  for (int more = 2;; ++more) {
    const Result<bool> made = make_new_private_folder(path);
    if (!made) return {OwnFolder::Outcome::kTrouble, {}, made.error().message()};
    if (*made) return mark_new_folder(path);
    path = base + fmt::format("-{}", more);
  }
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

constexpr std::string_view kReportBegins = "{\n  \"schema\": \"faultline.report/";  // as to_json() does

bool is_report(const std::string& path) { return may_be_overwritten(path, kReportBegins); }

Status write_report(const std::string& folder, const std::string& report) {
  std::error_code problem;
  const std::string path = in_folder(folder, layout::kReport);
  if (fs::is_regular_file(fs::symlink_status(path, problem)) && !is_report(path))
    return Error{path + " is the program's own and stays: the report is not written", {}, {}};
  return write_text(in_folder(folder, layout::kReport), report);
}

std::string shown_folder(const std::string& folder) {
  std::error_code problem;  // the program may have removed the folder we stand in
  const std::string near = fs::path(folder).lexically_relative(fs::current_path(problem)).string();
  return shown(near.empty() || near.size() >= folder.size() ? folder : near);
}

std::string utc_now() { return time_text(::gmtime_r, "%Y-%m-%dT%H:%M:%SZ"); }

Result<std::string> read_text_file(const std::string& path) { return read_plain_file(path, kMostJsonBytes); }

}  // namespace faultline::process
