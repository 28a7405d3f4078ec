// What --help prints: as CLI11 lays it out, but with lines as wide as the terminal, and with the program that stands behind -- in the usage of verbs that run one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace faultline::cli {

bool takes_program(std::string_view verb);
// Those that are shown, in their order; of an option every name, with its dashes.
std::vector<const CLI::App*> shown_verbs(const CLI::App& app);
std::vector<const CLI::Option*> shown_options(const CLI::App& verb);
std::vector<std::string> names_of(const CLI::Option& option);

class Help : public CLI::Formatter {
 public:
  Help();
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;

 private:
  std::string wrapped(const std::string& text, int indent) const;

  int width_;
};

}  // namespace faultline::cli
