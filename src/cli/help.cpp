#include "cli/help.h"

#include <unistd.h>

#include <sstream>

#include "cli/options.h"
#include "report/page.h"

namespace faultline::cli {
namespace {

constexpr int kOptionColumns = 26;

}  // namespace

bool takes_program(std::string_view verb) { return verb == "plan" || verb == "run" || verb == "keep-aside"; }

std::vector<const CLI::App*> shown_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::vector<const CLI::Option*> shown_options(const CLI::App& verb) {
  return verb.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

Help::Help() : width_(Page(terminal_options({}, STDOUT_FILENO)).width()) {
  column_width(kOptionColumns);
  label("SUBCOMMAND", "VERB");
}

std::string Help::wrapped(const std::string& text, int indent) const {
  std::string lines;
  for (const std::string& line : wrap(text, width_ - indent)) lines += (lines.empty() ? "" : "\n") + line;
  return lines;
}

std::string Help::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = CLI::Formatter::make_usage(app, std::move(name));
  if (takes_program(app->get_name())) usage.insert(usage.size() - 1, " -- CMD...");
  return usage;
}

std::string Help::make_description(const CLI::App* app) const { return wrapped(app->get_description(), 0) + "\n"; }
std::string Help::make_footer(const CLI::App* app) const { return wrapped(app->get_footer(), 0) + "\n"; }

std::string Help::make_subcommand(const CLI::App* verb) const {
  std::stringstream out;
  CLI::detail::format_help(out, verb->get_name(), wrapped(verb->get_description(), kOptionColumns), kOptionColumns);
  return out.str();
}

// The words an option takes and what it is unless told; where else it can be set, and what it does not go with, its description says.
std::string Help::make_option_opts(const CLI::Option* option) const {
  if (!option->get_option_text().empty()) return " " + option->get_option_text();
  if (option->get_type_size() == 0) return {};
  return " " + option->get_type_name() + (option->get_default_str().empty() ? "" : "=" + option->get_default_str());
}

std::string Help::make_option_desc(const CLI::Option* option) const {
  return wrapped(option->get_description(), kOptionColumns);
}

}  // namespace faultline::cli
