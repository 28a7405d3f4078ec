#include "process/run_again.h"

#include <unistd.h>

#include <algorithm>

#include "fmt/format.h"
#include "process/apart.h"
#include "process/hint.h"
#include "process/pool_maps.h"
#include "process/private_files.h"
#include "process/run_folder.h"
#include "sources/run_folder/run_folder.h"

namespace faultline::process {
namespace {

bool has_fault(const std::string& folder) {
  if (!holds_processes(folder)) return false;
  const Result<Input> input = open_input(folder);
  return input && std::any_of(input->parts.begin(), input->parts.end(),
                              [](const InputPart& part) { return part.holds(EventKind::kFault); });
}

}  // namespace

void run_again(const RunArguments& arguments, const std::string& folder, const GivenInput& input) {
  const ApartEnd looked = do_apart([&] { return has_fault(folder) ? 1 : 0; });
  if (looked.status != 1 || interrupted()) return;
  const std::string second = folder + "/again";
  const Result<bool> made = make_new_private_folder(second);
  if (!made) return hint("the program is not run again: " + made.error().message());
  if (!*made) return hint("the program is not run again: there is something of the name " + shown_folder(second));
  RunArguments armed = arguments;
  armed.core_dump = true;
  Result<RunSetup> setup = set_up_run(armed, second);
  if (!setup || !setup->core_dump_is_armed) {
    remove_own_folder(second);
    return hint("the program is not run again: " + (setup && !setup->left_out.empty()
                                                        ? setup->left_out.back()
                                                        : std::string("a GPU core dump cannot be taken here")));
  }
  hint(
      fmt::format("the program met a GPU fault; it is run once more, for real, with the GPU core dump armed, which "
                  "ends it at the fault; what it prints goes to {}/log.txt",
                  shown_folder(second)));
  if (input.is_gone())
    hint("the second run has nothing to read: standard input is no plain file, so what came through it is gone");
  const std::unique_ptr<TraceKeeper> keeper = setup->records ? start_keeper(arguments, second, *setup) : nullptr;
  const std::string started = utc_now();
  const int standard_input = input.again();
  Result<pid_t> process = start_program(arguments.command, setup->environment,
                                        Placement{Output::kAsIs, second + "/log.txt", standard_input, true});
  if (standard_input >= 0) ::close(standard_input);
  if (!process) return hint("the program is not run again: " + process.error().message());
  PoolMapsBound pool_maps(second);
  const ProgramEnd end = wait_for_program(*process);
  pool_maps.finish();
  end_keeper(keeper.get());
  const CommandRecord record{"run",          arguments.command, started,
                             end.status,     end.seconds,       {{"gpu", "own"}, {"history", arguments.history}},
                             setup->left_out};
  if (Status written = write_command(second, record); !written) hint(written.error().message());
}

}  // namespace faultline::process
