// What the verbs share: output forms, the device a person names, the terminal they sit at.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/formats.h"
#include "process/hint.h"
#include "process/own_folder.h"
#include "sources/input.h"
#include "trace/trace.h"

namespace CLI {
class App;
}

namespace faultline::cli {

using namespace process;  // what most verbs are made of

enum ExitStatus { kClean = 0, kFindings = 1, kBadInput = 2, kInternalError = 3 };

struct OutputOptions {
  std::string format{format_name::kTerminal};
  int verbose = 0;  // 0: a dozen lines; 1: a screen; 2: everything
  bool no_colour = false;

  bool is_for_people() const { return format == format_name::kTerminal; }
  auto writes_recordings() const { return format_named(format).of_recordings; }  // null: it is a form of reports
};
// --format, with the forms that the verb has by the table (cli/formats.h).
void add_format_option(CLI::App& verb, OutputOptions& options);
// That one and the others.
void add_output_options(CLI::App& verb, OutputOptions& options);

// Prints "faultline: SENTENCE" to standard error and returns the status for it.
int fail(const std::string& sentence, ExitStatus status = kBadInput);

// --gpu GPU. An empty name, as of a script's variable that is not set, is refused: it is no way to name none.
void add_gpu_option(CLI::App& verb, std::string& gpu, const std::string& words);

// -o DIR and --force, of verbs that keep a run.
void add_folder_options(CLI::App& verb, WantedFolder& folder);

// Writes to standard output, or where told; a closed pipe is the reader's choice, a full disk is an error (status 2).
int write_out(const std::string& text, int status, int descriptor = 1);

// Of the terminal, if it is one, behind the descriptor: its width, and whether it has colours and more than ASCII.
TerminalOptions terminal_options(const OutputOptions& options, int descriptor = 1);

// For that terminal, or for the tool that was named; several reports are one document.
std::string rendered(std::span<const Report> reports, const OutputOptions& options, int descriptor = 1,
                     bool as_list = false);

// The report of a run, with where it is kept: for other tools to standard output, else to standard error, behind what the program printed. The report's own status.
int tell_run(const Report& report, const OutputOptions& options, const std::string& kept_in);

int add_verbs_and_run(int argument_count, char** arguments);
void add_explain(CLI::App& app, int& status);
void add_replay(CLI::App& app, int& status);
void add_view(CLI::App& app, int& status);
void add_diff(CLI::App& app, int& status);
void add_pack(CLI::App& app, int& status);
void add_demo(CLI::App& app, int& status);
void add_gpus(CLI::App& app, int& status);
void add_rule(CLI::App& app, int& status);
void add_doctor(CLI::App& app, int& status);
void add_completion(CLI::App& app, int& status);
// command: what stood behind `--`, which the verbs that run a program take.
void add_run(CLI::App& app, const std::vector<std::string>& command, int& status);
void add_plan(CLI::App& app, const std::vector<std::string>& command, int& status);
void add_keep_aside(CLI::App& app, const std::vector<std::string>& command, int& status);

}  // namespace faultline::cli
