// keep-aside -- CMD…: the hidden verb through which plan starts a program (process/keep_aside.h).
#include "process/keep_aside.h"

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace faultline::cli {
namespace {

// As the program ended.
int keep_and_end(const AsideArguments& arguments) {
  if (arguments.command.empty()) return fail("keep-aside takes a program behind --");
  const Result<ProgramEnd> end = keep_aside(arguments);
  return end ? end_like(*end) : fail(end.error().message());
}

}  // namespace

void add_keep_aside(CLI::App& app, const std::vector<std::string>& command, int& status) {
  CLI::App* verb = app.add_subcommand("keep-aside", "a part of plan")->group("");
  auto arguments = std::make_shared<AsideArguments>();
  arguments->command = command;
  verb->add_option("--aside", arguments->aside)->required();
  verb->add_option("--own-folder", arguments->own_folder)->required();
  verb->add_option("--effects", arguments->effects)->required();
  verb->add_option("--keep-input", arguments->keep_input);
  verb->add_flag("--offline", arguments->offline);
  verb->callback([arguments, &status] { status = keep_and_end(*arguments); });
}

}  // namespace faultline::cli
