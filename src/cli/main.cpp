#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <numeric>
#include <string_view>
#include <utility>

#include "cli/help.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "rules/rule.h"

namespace faultline::cli {

namespace {

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

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* subcommand) { return !subcommand->get_group().empty(); })) verbs.push_back(verb->get_name());
  return verbs;
}

// How many letters must be put in, left out or changed to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j] ? 1 : 0)}));
  }
  return row.back();
}

// What somebody meant whose words are not understood; empty where nobody can tell.
std::string meant(const CLI::App& app, int argument_count, char** arguments, const std::vector<std::string>& command) {
  if (argument_count < 2) return "a verb is missing: explain, replay, run, plan or doctor; faultline --help tells what each does";
  const std::string word = arguments[1];
  if ((word == "run" || word == "plan") && command.empty() && argument_count > 2) {
    return fmt::format("the program stands behind --, as in: faultline {} -- python train.py", word);
  }
  const std::vector<std::string> verbs = verbs_of(app);
  if (word.starts_with('-') || std::find(verbs.begin(), verbs.end(), word) != verbs.end()) return {};
  std::error_code problem;
  if (word.ends_with(".py")) return fmt::format("{} is a program: faultline run -- python {} records it, faultline plan -- python {} tells its memory without a GPU", word, word, word);
  if (std::filesystem::exists(word, problem)) return fmt::format("to have {} explained: faultline explain {}", word, word);
  const auto nearest = std::min_element(verbs.begin(), verbs.end(), [&](std::string_view a, std::string_view b) { return distance(word, a) < distance(word, b); });
  if (word.size() < 64 && distance(word, *nearest) <= 2) return fmt::format("there is no verb {}; the nearest is {}", word, *nearest);
  return fmt::format("there is neither a verb nor a file {}; the verbs are {}", word, fmt::join(verbs, ", "));
}

}  // namespace

int add_verbs_and_run(int argument_count, char** arguments) {
  const std::vector<std::string> command = take_command(argument_count, arguments);
  CLI::App app("Faultline finds the line behind a GPU memory fault.", "faultline");
  app.set_version_flag("--version", "faultline " FAULTLINE_VERSION);
  app.add_flag_callback("--rules", [] { for (const Rule& rule : all_rules()) std::puts(std::string(rule.name).c_str()); throw CLI::Success(); })->group("");  // for tests
  app.require_subcommand(1);
  app.formatter(std::make_shared<Help>());
  app.footer("Exit status: 0 clean, 1 findings, 2 bad usage or input, 3 internal error; that of run is the program's own. faultline VERB --help tells more of each.");
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
    if (const std::string sentence = meant(app, argument_count, arguments, command); !sentence.empty()) return fail(sentence);
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
