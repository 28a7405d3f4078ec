// diff BEFORE AFTER: two runs of a program, what grew, by line.
#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/options.h"
#include "process/progress.h"
#include "report/assemble.h"
#include "report/comparison_text.h"
#include "sources/input.h"
#include "sources/source.h"

namespace faultline::cli {
namespace {

struct DiffOptions {
  std::string before;
  std::string after;
  OutputOptions output;
};

std::string name_of(const std::string& path) { return path == "-" ? "standard input" : path; }

// The report of one side; its recording is not kept.
Result<Report> side_of(const std::string& path) {
  const Progress progress(reading(path), path);
  Result<Input> input = open_input(path);
  if (!input) return Error{input.error().message(name_of(path)), {}, {}};
  Report report = make_report(*input);
  if (!has_peak(report))
    return Error{name_of(path) +
                     " holds no GPU memory that was measured, so there is no peak to compare: give a memory snapshot, "
                     "a trace, the folder of a run or a plan, or a report of one",
                 {},
                 {}};
  return report;
}

int diff(const DiffOptions& options) {
  if (options.before == "-" && options.after == "-")
    return fail("standard input can be one of the two, and not both: give a file for the other");
  const Result<Report> before = side_of(options.before);
  if (!before) return fail(before.error().message());
  const Result<Report> after = side_of(options.after);
  if (!after) return fail(after.error().message());
  const Comparison change = compare(*before, *after);
  const ComparedReports compared{*before, *after};
  const int status = change.grew() ? kFindings : kClean;
  if (options.output.format == format_name::kJson) return write_out(to_json(change, compared), status);
  TerminalOptions terminal = terminal_options(options.output);
  terminal.verbose = options.output.verbose != 0;
  if (options.output.format == format_name::kMarkdown)
    return write_out(to_markdown(change, compared, {terminal.cwd, FAULTLINE_VERSION}), status);
  return write_out(to_terminal(change, compared, terminal), status);
}

}  // namespace

void add_diff(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "diff", "compares two runs of a program, each whatever explain takes: what grew at the peak, by line");
  auto options = std::make_shared<DiffOptions>();
  verb->add_option("BEFORE", options->before, "the earlier one: " + known_inputs() + "; - is standard input")
      ->required()
      ->option_text(" ");
  verb->add_option("AFTER", options->after, "the later one, which may be of another kind")
      ->required()
      ->option_text(" ");
  verb->footer(
      "Exit status: 0 no peak is higher and there is no new error or warning, 1 there is, 2 bad usage, or an input "
      "that cannot be read or holds no memory that was measured, 3 internal error.");
  add_output_options(*verb, options->output);
  verb->callback([options, &status] { status = diff(*options); });
}

}  // namespace faultline::cli
