#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <sstream>
#include <string_view>

#include "base/characters.h"
#include "base/nearest_word.h"
#include "cli/help.h"
#include "cli/options.h"
#include "process/signals.h"
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

// The verb's option that is nearest to the first word that it does not have; empty: there is none.
std::string nearest_option(const CLI::App& app, int argument_count, char** arguments) {
  std::vector<std::string> names;
  for (const CLI::Option* option : shown_options(app)) {
    for (std::string& name : names_of(*option)) names.push_back(std::move(name));
  }
  const auto is_known = [&](std::string_view word) {
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  for (int at = 1; at < argument_count; ++at) {
    const std::string_view word = std::string_view(arguments[at]).substr(0, std::string_view(arguments[at]).find('='));
    if (word.size() < 2 || word[0] != '-' || is_digit(word[1]) || is_known(word) ||
        (word[1] != '-' && is_known(word.substr(0, 2))))
      continue;
    const std::string nearest = nearest_word(word, names);
    return nearest.empty() ? fmt::format("there is no option {}", word)
                           : fmt::format("there is no option {}; the nearest is {}", word, nearest);
  }
  return {};
}

// What somebody meant whose words are not understood; empty where nobody can tell.
std::string meant(const CLI::App& app, int argument_count, char** arguments, const std::vector<std::string>& command,
                  const std::string& problem) {
  if (argument_count < 2)
    return "a verb is missing: explain, replay, run, plan, view, diff, pack, rule, gpus, demo or doctor; "
           "faultline --help says what each does";
  const std::string word = arguments[1];
  std::vector<std::string> verbs;
  for (const CLI::App* verb : shown_verbs(app)) verbs.push_back(verb->get_name());
  const bool is_verb = std::find(verbs.begin(), verbs.end(), word) != verbs.end();
  if (is_verb || word.starts_with('-')) {
    // the program's own options stand there too, where its -- was forgotten
    const bool has_own_options = command.empty() && takes_program(word);
    const std::string option =
        nearest_option(is_verb ? *app.get_subcommand(word) : app,
                       has_own_options ? std::min(argument_count, 3) : argument_count, arguments);
    if (!option.empty()) return fmt::format("{}. faultline {}--help lists them", option, is_verb ? word + " " : "");
  }
  if ((word == "run" || word == "plan") && command.empty() && argument_count > 2) {
    return fmt::format("the program stands behind --, as in: faultline {} -- python train.py", word);
  }
  if (is_verb) return fmt::format("{}. faultline {} --help shows what it takes", problem, word);
  if (word.starts_with('-')) return {};
  std::error_code none;
  if (word.ends_with(".py"))
    return fmt::format(
        "{} is a program: faultline run -- python {} records it, faultline plan -- python {} shows its memory without "
        "a GPU",
        word, word, word);
  if (std::filesystem::exists(word, none)) return fmt::format("to have {} explained: faultline explain {}", word, word);
  if (const std::string nearest = nearest_word(word, verbs); !nearest.empty())
    return fmt::format("there is no verb {}; the nearest is {}", word, nearest);
  return fmt::format("there is neither a verb nor a file {}; the verbs are {}", word, fmt::join(verbs, ", "));
}

}  // namespace

int add_verbs_and_run(int argument_count, char** arguments) {
  const std::vector<std::string> command = take_command(argument_count, arguments);
  // "faultline help" and "faultline help VERB", as other programs have it.
  const bool asks_help = argument_count >= 2 && std::string_view(arguments[1]) == "help";
  static char help[] = "--help";
  if (asks_help && argument_count == 2) arguments[1] = help;
  if (asks_help && argument_count == 3) {
    arguments[1] = arguments[2];
    arguments[2] = help;
  }
  CLI::App app("Faultline finds the line behind a GPU memory fault.", "faultline");
  app.set_version_flag("--version,-V", "faultline " FAULTLINE_VERSION);
  app.add_flag_callback("--rules",
                        [] {
                          for (const Rule& rule : all_rules()) std::puts(std::string(rule.name).c_str());
                          throw CLI::Success();
                          // for tests
                        })
      ->group("");
  app.require_subcommand(1);
  app.formatter(std::make_shared<Help>());
  app.footer(
      "Exit status: 0 clean, 1 findings, 2 bad usage or input, 3 internal error, 4 (plan) it fits, but that holds only "
      "in "
      "part; that of run is the program's own. "
      "faultline VERB --help says more.");
  int status = kClean;
  add_explain(app, status);
  add_replay(app, status);
  add_run(app, command, status);
  add_plan(app, command, status);
  add_view(app, status);
  add_diff(app, status);
  add_pack(app, status);
  add_demo(app, status);
  add_rule(app, status);
  add_gpus(app, status);
  add_doctor(app, status);
  add_completion(app, status);
  add_keep_aside(app, command, status);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(problem, text, text);
      return write_out(text.str(), kClean);
    }
    if (const std::string sentence = meant(app, argument_count, arguments, command, problem.what()); !sentence.empty())
      return fail(sentence);
    return fail(std::string(problem.what()) + ". Run faultline --help for more information");
  }
  return status;
}

// Standard descriptors that were given closed stay closed to the program that is started; here nothing else may get their numbers, or what is printed would
// go there. Using one fails as if it were closed.
void keep_standard_numbers() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF)
      (void)::open("/dev/null", (number == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

}  // namespace faultline::cli

int main(int argument_count, char** arguments) {
  faultline::cli::keep_standard_numbers();
  faultline::cli::ignore_closed_pipes();
  try {
    return faultline::cli::add_verbs_and_run(argument_count, arguments);
  } catch (const std::bad_alloc&) {
    return faultline::cli::fail("there is not enough memory for this input");
  } catch (const std::exception& problem) {
    return faultline::cli::fail(
        std::string("internal error: ") + problem.what() + ". Please report this with the input file.",
        faultline::cli::kInternalError);
  }
}
