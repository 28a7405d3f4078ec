#include "cli/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/environment.h"
#include "process/installation.h"
#include "process/terminal.h"
#include "report/exchange/exchange.h"
#include "report/exit_status.h"
#include "report/rule_pages.h"
#include "view/snippets.h"

namespace faultline::cli {
namespace {

// Its text. A report that was written may name anything for a rule.
std::string rule_page(std::string_view rule) {
  const RulePage* page = find_rule_page(rule);
  return page == nullptr ? std::string() : std::string(page->text);
}

}  // namespace

void add_format_option(CLI::App& verb, OutputOptions& options) {
  std::string words;
  std::vector<std::string> names;
  for (const Format& format : all_formats()) {
    if (!format.is_of(verb.get_name())) continue;
    words += (words.empty() ? "" : ", ") + std::string(format.name) +
             (format.name == format_name::kTerminal ? " (default)" : "");
    names.emplace_back(format.name);
  }
  if (const std::string wanted = environment("FAULTLINE_FORMAT"); !wanted.empty()) options.format = wanted;
  CLI::Option* given = verb.add_option("--format", options.format, words + "; FAULTLINE_FORMAT does the same")
                           ->check(CLI::IsMember(names))
                           ->option_text("FORM");
  // Not by the option's own means: they ask every verb, and not all have all forms.
  verb.parse_complete_callback([&options, given, known = CLI::IsMember(names)]() mutable {
    const std::string problem = known(options.format);
    if (!problem.empty() && given->count() == 0) throw CLI::ValidationError("FAULTLINE_FORMAT", problem);
    if (problem.empty() && format_named(options.format).is_binary && ::isatty(STDOUT_FILENO) != 0)
      throw CLI::ValidationError("--format " + options.format,
                                 "this is no text for a terminal: write it to a file, as in > trace." + options.format);
  });
}

void add_output_options(CLI::App& verb, OutputOptions& options) {
  add_format_option(verb, options);
  verb.add_flag("--verbose,-v", options.verbose,
                "a page instead of a dozen lines: who holds the memory, what else was tried; -vv everything, also the "
                "numbers behind it and memory over time; FAULTLINE_VERBOSE=1 or 2 does the same");
  verb.add_flag("--no-color,--no-colour", options.no_colour, "plain text (NO_COLOR does the same)");
}

void add_gpu_option(CLI::App& verb, std::string& gpu, const std::string& words) {
  verb.add_option("--gpu", gpu, "the GPU, by name or by its memory, " + words)
      ->check([](const std::string& given) {
        return given.empty() ? std::string("no GPU is named; faultline gpus lists them") : std::string();
      })
      ->option_text("GPU");
}

void add_folder_options(CLI::App& verb, WantedFolder& folder) {
  CLI::Option* named =
      verb.add_option("--output,-o", folder.path, "a new folder to keep the run in; .faultline/PROGRAM-TIME by default")
          ->option_text("DIR");
  verb.add_flag("--force", folder.force, "with -o: replaces an earlier run of Faultline's in DIR, and nothing else")
      ->needs(named);
}

int fail(const std::string& sentence, ExitStatus status) {
  hint(sentence);
  return status;
}

int write_out(const std::string& text, int status, int descriptor) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(descriptor, text.data() + done, text.size() - done);
    if (wrote > 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno == EPIPE) {
      return status;
    } else if (errno != EINTR) {
      return fail(std::string("the report could not be written: ") + std::strerror(errno));
    }
  }
  return status;
}

TerminalOptions terminal_options(const OutputOptions& options, int descriptor) {
  TerminalOptions terminal;
  terminal.colour = ::isatty(descriptor) != 0 && !options.no_colour && environment("NO_COLOR").empty() &&
                    environment("TERM") != "dumb";
  terminal.width = terminal_width(descriptor);
  terminal.unicode = speaks_utf8(descriptor);
  terminal.home = environment("HOME");
  std::error_code problem;  // the program may have removed the folder we stand in
  terminal.cwd = std::filesystem::current_path(problem).string();
  terminal.docs = docs_home();
  const int length = std::max(options.verbose, std::atoi(environment("FAULTLINE_VERBOSE").c_str()));
  terminal.brief = length < 1;
  terminal.verbose = length > 1;
  const auto snippets = std::make_shared<view::Snippets>();
  terminal.source = [snippets](const std::string& file, std::uint32_t line) {
    if (!snippets->add(file, line)) return std::string();
    const view::Snippet& snippet = *snippets->find(file, line);
    return snippet.lines[line - snippet.first_line];
  };
  return terminal;
}

std::string rendered(std::span<const Report> reports, const OutputOptions& options, int descriptor, bool as_list) {
  const TerminalOptions terminal = terminal_options(options, descriptor);
  return format_named(options.format)
      .of_reports(reports, {terminal, {terminal.cwd, FAULTLINE_VERSION, rule_page}, as_list});
}

int tell_run(const Report& report, const OutputOptions& options, const std::string& kept_in) {
  const std::span<const Report> one(&report, 1);
  if (!options.is_for_people()) return write_out(rendered(one, options), exit_status(report));
  const std::string kept =
      kept_in.empty() ? "" : "Kept in " + kept_in + "; faultline explain, view and pack take it.\n";
  return write_out("\n" + rendered(one, options, STDERR_FILENO) + kept, exit_status(report), STDERR_FILENO);
}

}  // namespace faultline::cli
