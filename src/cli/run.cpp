// run -- CMD…: runs CMD unchanged on the GPU, records it, and explains what was recorded.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>

#include "base/given_size.h"
#include "cli/options.h"
#include "confine/confined_program.h"
#include "fmt/format.h"
#include "process/apart.h"
#include "process/pool_maps.h"
#include "process/progress.h"
#include "process/run_again.h"
#include "process/run_folder.h"
#include "process/run_setup.h"
#include "process/unrecorded.h"
#include "report/assemble.h"
#include "report/exit_status.h"
#include "report/json.h"
#include "report/unseen.h"
#include "sources/run_folder/run_folder.h"

namespace faultline::cli {
namespace {

struct RunOptions : RunArguments {
  bool again = false;
  bool status_of_findings = false;
  OutputOptions output;
};

// Of a program of which there is no report to say it.
void tell_signal(const CommandRecord& record) {
  if (record.signal == 0) return;
  hint(fmt::format("the program was killed by {}, and nothing was recorded that explains it{}",
                   signal_words(record.signal),
                   record.signal == SIGKILL ? "; the kernel ends programs so when the machine's own memory is full, "
                                              "and says so in its log (dmesg)"
                                            : ""));
}

// The findings' own status.
int tell_report(const std::string& folder, const RunOptions& options, const CommandRecord& record) {
  if (!holds_processes(folder)) {
    tell_signal(record);
    for (const std::string& sentence : notes_in(folder)) hint(sentence);
    for (const auto& [process, name] : record.unrecorded)
      hint(fmt::format("process {} ({}) of the program used the CUDA driver without the recorder", process, name));
    if (const std::string words = record.unrecorded.empty() ? cpu_build_words(folder) : std::string(); !words.empty()) {
      hint(words);
      return kClean;
    }
    hint(
        "no call to the CUDA driver was seen: the program made none, or it reaches the driver in a way that goes past "
        "the recorder (a static or setuid program, a container, the environment cleared); nothing can be said of its "
        "GPU memory");
    return kClean;
  }
  std::optional<Progress> progress(std::in_place, "reading what was recorded");
  Result<Input> input = open_input(folder);
  if (!input) return fail(input.error().message(shown_folder(folder)));
  progress->step("judging what was recorded");
  const auto keep = [&](const Report& report) {
    progress.reset();
    if (Status written = write_report(folder, to_json(report)); !written) hint(written.error().message());
    return exit_status(report);
  };
  if (RecordingsForm* const write_recordings = options.output.writes_recordings())
    return write_recordings({{&*input, 1}, kClean, keep});
  const Report report = make_report(*input);
  keep(report);
  return tell_run(report, options.output, shown_folder(folder));
}

// The findings' own status. Whatever happens to the report, the program's status is kept.
int report_apart(const std::string& folder, const RunOptions& options, const CommandRecord& record, bool records) {
  const ApartEnd end = do_apart([&] {
    if (records || holds_processes(folder)) return tell_report(folder, options, record);
    tell_signal(record);
    for (const std::string& sentence : notes_in(folder)) hint(sentence);
    return static_cast<int>(kClean);
  });
  if (!end.trouble.empty())
    hint(fmt::format(
        "the report could not be made, because {}; the recording is kept in {}, and faultline explain reads it",
        end.trouble, shown_folder(folder)));
  return end.status;
}

// How the program ended; or, where it was not started, Faultline's own status.
ProgramEnd run(const RunOptions& options) {
  const auto not_run = [](int status) { return ProgramEnd{status, 0, 0}; };
  if (options.command.empty())
    return not_run(fail("run takes the program behind --, for example: faultline run -- python train.py"));
  if (const Result<std::uint64_t> keep = parse_size(options.keep); !keep)
    return not_run(fail("--keep: " + keep.error().message()));
  if (options.command.front().ends_with(".ipynb"))
    return not_run(fail(confine::not_program(options.command.front()).what));
  const InterruptsNoted noted;
  // what cannot begin does not cost an earlier run its folder: starting it tells why
  const bool may_take = !options.folder.force || confine::find_program(options.command.front());
  const OwnFolder made =
      may_take ? make_run_folder(options.folder, options.command) : OwnFolder{OwnFolder::Outcome::kTrouble, {}, {}};
  if (made.outcome == OwnFolder::Outcome::kRefused) return not_run(fail(made.why_not));
  const std::string& folder = made.path;  // empty: none could be made, and the program is run all the same
  Result<RunSetup> setup = set_up_run(options, folder);
  const auto give_up = [&](const std::string& why, int status = 0) {
    if (!folder.empty()) remove_own_folder(folder);
    const int own = fail(why);
    return not_run(status != 0 ? status : own);
  };
  if (!setup) return give_up("--gpu: " + setup.error().message());
  if (folder.empty() && may_take) hint("nothing will be recorded: " + made.why_not);
  for (const std::string& sentence : setup->left_out) hint(sentence);
  for (const std::string& sentence : setup->beforehand) hint(sentence);

  const std::unique_ptr<TraceKeeper> keeper = setup->records ? start_keeper(options, folder, *setup) : nullptr;
  const std::string started = utc_now();
  const GivenInput input;
  int unstarted = 0;
  Result<pid_t> process =
      start_program(options.command, setup->environment,
                    options.output.is_for_people() ? Output::kAsIs : Output::kToStandardError, {}, &unstarted);
  if (!process) return give_up(process.error().message(), unstarted);
  PoolMapsBound pool_maps(folder);
  UnrecordedWatch unrecorded(*process, setup->records ? setup->environment.value("FAULTLINE_CAPTURE_LIBRARY") : "");
  ProgramEnd end = wait_for_program(*process);
  const std::map<std::string, std::string> past_recorder = unrecorded.finish();
  pool_maps.finish();
  if (folder.empty()) return end;
  const ListedAtEnd listed(folder);
  CommandRecord record{"run",
                       options.command,
                       started,
                       end.status,
                       end.seconds,
                       {{"gpu", options.gpu.empty() ? "own" : options.gpu},
                        {"history", options.history},
                        {"launch_blocking", setup->environment.value("CUDA_LAUNCH_BLOCKING")}},
                       setup->left_out,
                       end.signal,
                       {},
                       past_recorder};
  if (Status written = write_command(folder, record); !written) hint(written.error().message());
  end_keeper(keeper.get());
  if (keeper != nullptr && !keeper->cut_short().empty()) {
    record.cut_short = keeper->cut_short();
    if (Status written = write_command(folder, record); !written) hint(written.error().message());
  }
  if (options.again && setup->records && !interrupted()) run_again(options, folder, input);
  const int status = report_apart(folder, options, record, setup->records);
  if (options.status_of_findings && end.status == 0) end.status = status;
  return end;
}

}  // namespace

void add_run(CLI::App& app, const std::vector<std::string>& command, int& status) {
  CLI::App* verb = app.add_subcommand(
      "run",
      "runs a program, given behind --, unchanged on the GPU, records it, and names the line when it dies of memory");
  auto options = std::make_shared<RunOptions>();
  options->command = command;
  verb->add_option(
          "--gpu", options->gpu,
          "virtual, virtual:T4 or virtual:4GiB: a GPU that this machine's CPU plays, for programs of the CUDA driver's "
          "interface (not PyTorch, TensorFlow or JAX); without it the machine's own")
      ->type_name("{" + virtual_gpu_words() + "}")
      ->option_text("GPU");
  verb->add_option("--history", options->history,
                   "PyTorch's own history of tensors, and TensorFlow's tensors: on or off; on by default")
      ->check(CLI::IsMember({"on", "off"}))
      ->option_text("on|off");
  verb->add_option("--history-entries", options->history_entries,
                   "how many of its events PyTorch keeps, the latest; 200000 by default")
      ->option_text("N");
  verb->add_flag("--native-stacks", options->native_stacks, "also record native frames in Python programs: slower");
  verb->add_flag("--buffers", options->buffers,
                 "let JAX and TensorFlow take every buffer from the driver, so that each is seen: slower");
  CLI::Option* core_dump = verb->add_flag("--core-dump", options->core_dump,
                                          "let the driver write a GPU core dump when a kernel faults: names the "
                                          "instruction and the line, and ends the program there; not with --again");
  verb->add_flag(
          "--again", options->again,
          "after a GPU fault run the program a second time, for real, with the core dump; its output goes to a log")
      ->excludes(core_dump);
  verb->add_flag("--status-of-findings", options->status_of_findings,
                 "end with status 1 when the program ended well but there are findings");
  verb->add_option("--keep", options->keep,
                   "how much the traces of the run may take on disk; 2GiB by default; from half of it on launches and "
                   "copies are left out")
      ->option_text("SIZE");
  add_folder_options(*verb, options->folder);
  verb->footer(
      "Exit status: the program's own; 127 or 126 where it was not found or cannot be executed; where a signal ended "
      "it, faultline ends by the same. 2: bad usage, and nothing was run.");
  add_output_options(*verb, options->output);
  verb->callback([options, &status] { status = end_like(run(*options)); });
}

}  // namespace faultline::cli
