// The folder that run and plan leave, as it is made and written: for its owner alone, in one layout (sources/run_folder/layout.h, docs/run-folder.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/own_folder.h"
#include "process/private_files.h"

namespace faultline::process {

// Makes the folder, for its owner alone: the wanted one, or where none is, a new one named after the program and the time.
OwnFolder make_run_folder(const WantedFolder& wanted, const std::vector<std::string>& command);

// command.json: what was run, how it ended, and what else the verb knows of it.
struct CommandRecord {
  std::string verb;
  std::vector<std::string> command;
  std::string started;
  int exit_status = 0;
  double seconds = 0;
  std::map<std::string, std::string> choices;
  std::optional<std::vector<std::string>> left_out;  // what could not be recorded; none for verbs that record nothing
  int signal = 0;                                    // that ended it
  std::map<std::string, std::string> cut_short{};    // traces that could not be written to their end, and why
  std::map<std::string, std::string> unrecorded{};  // processes that used the driver past the recorder: number and name
};
Status write_command(const std::string& folder, const CommandRecord& record);
// Of a file that is there, whether it is one of ours; where none is, one may be written.
bool is_report(const std::string& path);
Status write_report(const std::string& folder, const std::string& report);  // as to_json() says it
std::string shown_folder(const std::string& folder);                        // from here, where it lies below

std::string utc_now();  // 2026-01-31T12:00:00Z
Result<std::string> read_text_file(const std::string& path);

}  // namespace faultline::process
