// demo: what the tool does, shown on recordings and programs that come with it. Every part is a verb, run as a person would type it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/safe_text.h"
#include "base/shell_words.h"
#include "cli/options.h"
#include "process/installation.h"
#include "process/own_folder.h"
#include "process/private_files.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

struct DemoOptions {
  std::string folder;
  bool no_plan = false;
};

// The status that a program ends with; 127 where it cannot be run.
int status_of(const std::vector<std::string>& words, bool is_quiet) {
  const pid_t child = ::fork();
  if (child < 0) return 127;
  if (child == 0) {
    if (is_quiet) {
      const int nowhere = ::open("/dev/null", O_RDWR);
      for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, descriptor);
    }
    ::unsetenv("FAULTLINE_FORMAT");  // this is for people
    ::unsetenv("PYTHONPATH");        // and of programs of ours alone
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments.front(), arguments.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The interpreter whose package this is, else the one that the shell would take; empty: there is none.
std::string find_python() {
  const fs::path here = executable_folder();
  std::error_code problem;
  for (const fs::path& one : {here / "../../../../../bin/python3", here / "../../../../bin/python3"}) {
    if (here.string().find("site-packages") != std::string::npos && fs::exists(one, problem))
      return one.lexically_normal().string();
  }
  return status_of({"python3", "-I", "-c", ""}, true) == 0 ? "python3" : "";
}

// A new folder here, or among temporary files where nothing can be written here.
OwnFolder demo_folder(const std::string& wanted) {
  if (!wanted.empty()) return make_own_folder({wanted});
  const std::string runs = make_runs_folder();
  for (int number = 1; number < 1000; ++number) {
    const std::string name = (runs.empty() ? "faultline-" : runs + "/") + "demo" +
                             (number == 1 ? std::string() : fmt::format("-{}", number));
    Result<bool> made = make_new_private_folder(name);
    if (!made) break;
    if (*made) return mark_new_folder(name);
  }
  std::error_code problem;
  std::string path = (fs::temp_directory_path(problem) / "faultline-demo-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr)
    return {OwnFolder::Outcome::kTrouble,
            {},
            std::string("no folder could be made for what the demo writes: ") + std::strerror(errno) +
                ". Give one with -o"};
  return mark_new_folder(path);
}

class Show {
 public:
  // What is shown, in a sentence, and the verb with its words, as it is typed and as it is run.
  void part(const std::string& sentence, const std::vector<std::string>& words) {
    std::string typed;
    for (const std::string& word : words) typed += " " + shell_word(word);
    say(fmt::format("\n{}. {}\n\n$ faultline{}\n\n", ++number_, sentence, shown(typed)));
    std::vector<std::string> command = {executable_folder() + "/faultline"};
    command.insert(command.end(), words.begin(), words.end());
    if (std::error_code problem; !fs::exists(command.front(), problem)) command.front() = "/proc/self/exe";
    // 1: there are findings, which is what is shown; 4: a plan that holds in part
    if (const int status = status_of(command, false); status != 0 && status != 1 && status != 4) failed_ = true;
  }
  void not_shown(const std::string& why) { say(fmt::format("\n{}. Not shown: {}\n", ++number_, why)); }
  void say(const std::string& text) { write_out(text, kClean); }
  bool failed() const { return failed_; }

 private:
  int number_ = 0;
  bool failed_ = false;
};

int demo(const DemoOptions& options) {
  const fs::path parts = fs::path(python_part()) / "faultline" / "demo";
  const std::string oom = (parts / "gpt_oom.pack.zip").string(), leak = (parts / "leak.pack.zip").string();
  std::error_code problem;
  if (python_part().empty() || !fs::exists(oom, problem))
    return fail("the recordings of the demo are not beside the program; the wheel and the source tree have them");
  const OwnFolder made = demo_folder(options.folder);
  if (made.outcome != OwnFolder::Outcome::kMade) return fail(made.why_not);
  const fs::path near = fs::path(made.path).lexically_relative(fs::current_path(problem));
  const std::string folder = near.empty() || near.string().size() >= made.path.size() ? made.path : near.string();
  const std::string python = find_python();
  // beside the page: in the package they would be the package's, and not the reader's
  const auto program = [&](const char* name) {
    const fs::path copy = fs::path(folder) / name;
    return fs::copy_file(parts / name, copy, problem) ? copy.string() : (parts / name).string();
  };
  Show show;
  show.part("A training step of a small GPT that ran out of memory on an H200, explained from its recording:",
            {"explain", oom});
  show.part("Would the same requests fit on a GPU of 8 GiB?", {"replay", oom, "--gpu", "8GiB"});
  show.part("A loop that keeps every round's graph alive:", {"explain", leak});
  if (python.empty()) {
    show.not_shown("a program on the virtual GPU, and a plan: there is no python3 on the PATH.");
  } else {
    show.part("A program of the CUDA driver interface with two slips, on a GPU that this machine's processor plays:",
              {"run", "--gpu", "virtual:4GiB", "-o", folder + "/run", "--", python, program("driver_copy.py")});
    // found, not imported; nothing of the reader's own folders is executed
    const char* has_torch =
        "import site, sys; from importlib.machinery import PathFinder; own = [] if sys.prefix != sys.base_prefix else "
        "[site.getusersitepackages()]; sys.exit(PathFinder.find_spec('torch', sys.path + own) is None)";
    if (options.no_plan)
      show.not_shown("a plan, as was asked (--no-plan).");
    else if (status_of({python, "-I", "-c", has_torch}, true) != 0)
      show.not_shown(
          "a plan: " + python +
          " has no PyTorch. With it, faultline plan --gpu T4 -- python train.py says whether a program fits.");
    else
      show.part(
          "A program that has not run yet: would it train on a T4? (half a minute or more; no GPU is used)",
          {"plan", "--gpu", "T4", "--steps", "2", "-o", folder + "/plan", "--", python, program("train_small_gpt.py")});
  }
  const std::string page = folder + "/page.html";
  show.part("The first of these as a page to look at; open it in a browser:", {"view", oom, "-o", page, "--no-open"});
  if (show.failed())
    return fail("a part of the demo could not be shown; faultline doctor shows what this machine can do");
  return write_out(shown(page) + "\n", kClean);
}

}  // namespace

void add_demo(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "demo", "shows what faultline does, on recordings and programs that come with it; no GPU is needed");
  auto options = std::make_shared<DemoOptions>();
  verb->add_option("--output,-o", options->folder,
                   "the folder for the page and the runs; .faultline/demo by default, or one among temporary files")
      ->option_text("DIR");
  verb->add_flag("--no-plan", options->no_plan, "leaves out the plan, which takes longest");
  verb->footer("Exit status: 0 all was shown, 2 bad usage, or a part that could not be shown.");
  verb->callback([options, &status] { status = demo(*options); });
}

}  // namespace faultline::cli
