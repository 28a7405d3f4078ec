// view INPUT: one HTML page of what explain says and of the recording behind it.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "base/environment.h"
#include "base/safe_text.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "cli/options.h"
#include "process/overwriting.h"
#include "process/private_files.h"
#include "process/progress.h"
#include "sources/run_folder/layout.h"
#include "sources/source.h"
#include "view/html_page.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

struct ViewOptions {
  std::string path;
  std::string output;
  bool force = false;
  bool no_source = false;
  bool no_open = false;
};

// Beside the input: a run's folder belongs to its owner alone, and the page tells as much, so there it lies inside.
std::string default_page(const std::string& input) {
  std::string path = input;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code problem;
  return fs::is_directory(path, problem) ? path + "/page.html" : path + ".html";
}

Status check_output(const ViewOptions& options, const std::string& page) {
  if (is_same_file(page, options.path)) return Error{page + " is the input itself; give another name with -o", {}, {}};
  std::error_code problem;
  if (fs::is_directory(page, problem)) return Error{page + " is a folder; name a file with -o", {}, {}};
  if (may_be_overwritten(page, layout::kPageBegins)) return Ok{};
  if (!fs::is_regular_file(page, problem)) return Error{page + " is no plain file; give another name with -o", {}, {}};
  if (!options.force)
    return Error{
        page + " is there already and is no page of Faultline's; give another name with -o, or --force to replace it",
        {},
        {}};
  return Ok{};
}

bool can_open_pages() {
  const bool has_screen = !environment("DISPLAY").empty() || !environment("WAYLAND_DISPLAY").empty();
  return has_screen && environment("CI").empty() && ::isatty(STDOUT_FILENO) != 0;
}

// In a session of its own, so that it outlives this terminal; whether it finds a browser is its own affair.
void open_page(const std::string& page) {
  const pid_t between = ::fork();
  if (between < 0) return;
  if (between > 0) {
    ::waitpid(between, nullptr, 0);
    return;
  }
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, descriptor);
  ::execlp("xdg-open", "xdg-open", page.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

int view_input(const ViewOptions& options) {
  const bool to_stdout = options.output == "-";
  if (options.path == "-" && options.output.empty())
    return fail("a page of standard input has no name of its own: give one with -o");
  const std::string page = options.output.empty() ? default_page(options.path) : options.output;
  const bool replaces = is_there(page);
  if (!to_stdout) {
    if (Status allowed = check_output(options, page); !allowed) return fail(allowed.error().message());
  }
  std::optional<Progress> progress(std::in_place, reading(options.path), options.path);
  Result<Input> input = open_input(options.path);
  if (!input) return fail(input.error().message(options.path == "-" ? "standard input" : options.path));
  view::PageOptions how;
  how.with_source = !options.no_source;
  how.text = terminal_options({});
  progress->step("judging what was recorded, and drawing the page");
  const std::string html = view::make_page(view::look_at(*input), how);
  progress.reset();
  if (to_stdout) return write_out(html, kClean);
  if (Status written = write_named_file(page, html, replaces); !written) return fail(written.error().message());
  const int status = write_out("Wrote " + shown(page) + " (" + format_bytes(html.size()) + ")\n", kClean);
  std::error_code problem;
  if (options.output.empty() && !options.no_open && can_open_pages()) open_page(fs::absolute(page, problem).string());
  return status;
}

}  // namespace

void add_view(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "view", "writes one HTML page of INPUT: memory over time down to single allocations, findings, what was tried");
  auto options = std::make_shared<ViewOptions>();
  verb->add_option("INPUT", options->path, "what explain takes: " + known_inputs() + "; - is standard input")
      ->required()
      ->option_text("...");
  verb->add_option("-o,--output", options->output,
                   "the page to write, - for standard output; INPUT.html beside the input by default, page.html in a "
                   "folder, and opened where there is a browser")
      ->option_text("PAGE");
  verb->add_flag("--force", options->force, "also replaces a file that is no page of Faultline's");
  verb->add_flag("--no-source", options->no_source, "leaves out the source lines, where the page is for others");
  verb->add_flag("--no-open", options->no_open, "does not open the page");
  verb->footer(
      "Exit status: 0 the page was written, 2 bad usage, an input that cannot be read, or a page that cannot be "
      "written, 3 internal error.");
  verb->callback([options, &status] { status = view_input(*options); });
}

}  // namespace faultline::cli
