#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include "cli/options.h"
#include "cli/signals.h"
#include "rules/rule.h"

namespace faultline::cli {

namespace {

bool takes_program(std::string_view verb) { return verb == "plan" || verb == "run" || verb == "keep-aside"; }

// The program to run is not Faultline's to read: what stands behind the first -- is taken off before options are looked for.
std::vector<std::string> take_command(int& argument_count, char** arguments) {
  std::vector<std::string> command;
  for (int at = 1; at < argument_count; ++at) {
    if (std::string_view(arguments[at]) != "--" || !takes_program(arguments[1])) continue;
    command.assign(arguments + at + 1, arguments + argument_count);
    argument_count = at;
  }
  return command;
}

}  // namespace

int add_verbs_and_run(int argument_count, char** arguments) {
  const std::vector<std::string> command = take_command(argument_count, arguments);
  CLI::App app("Faultline finds the line behind a GPU memory fault.", "faultline");
  app.set_version_flag("--version", "faultline " FAULTLINE_VERSION);
  app.add_flag_callback("--rules", [] { for (const Rule& rule : all_rules()) std::puts(std::string(rule.name).c_str()); throw CLI::Success(); })->group("");  // for tests
  app.require_subcommand(1);
  app.footer("Exit status: 0 clean, 1 findings, 2 bad usage or input, 3 internal error.");
  int status = kClean;
  add_explain(app, status);
  add_replay(app, status);
  add_run(app, command, status);
  add_plan(app, command, status);
  add_doctor(app, status);
  add_keep_aside(app, command, status);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);  // --help, --version
    return fail(std::string(problem.what()) + ". Run faultline --help for more information");
  }
  return status;
}

}  // namespace faultline::cli

int main(int argument_count, char** arguments) {
  faultline::cli::ignore_closed_pipes();
  try {
    return faultline::cli::add_verbs_and_run(argument_count, arguments);
  } catch (const std::bad_alloc&) {
    return faultline::cli::fail("there is not enough memory for this input");
  } catch (const std::exception& problem) {
    return faultline::cli::fail(std::string("internal error: ") + problem.what() + ". Please report this with the input file.", faultline::cli::kInternalError);
  }
}
