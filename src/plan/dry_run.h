// Dry runs as a plan sees them: what one left, and how another is asked for.
//
// The caller starts programs (their processes, folders and files are its own affair) and hands in what they left. Where a plan wants the program run
// again it describes the run as an Attempt and asks Reruns for it, so that a plan can be made of any results, also of made-up ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/gpus.h"
#include "plan/offer.h"
#include "plan/plan.h"

namespace faultline {

// The framework's own out-of-memory, rather than something that was raised while it was handled.
bool is_out_of_memory(const PlanException& exception);

// A number of the program's own files that is called as batches and lengths are.
struct ProgramNumber {
  std::string name;
  std::uint64_t value = 0;
  std::vector<Edit> edits;  // with kValuePlace in its place

  // Of several numbers of a name the largest, `current`, is the one that is looked for; a smaller one, of a loader for the tests, say, is made smaller where it is above that, and never larger.
  bool changes_with(std::uint64_t to, std::uint64_t current) const { return value == current || value > to; }
};

// A loop over data that the dry run ended, or was in when it stopped the program, while memory rose in it.
struct RisingLoop {
  std::string where;         // "train.py:12"
  std::uint64_t number = 0;  // of its marks in the trace
  std::uint64_t begun = 0;   // rounds that were seen to their end
  std::uint64_t rounds = 0;  // in all; 0: not known
};

// Why a dry run could not begin.
struct Unsupported {
  enum Of : std::uint8_t {
    kProgram,
    kFramework,  // as it is installed: real numbers would not help
    kFolder,     // of the run: it takes no trace
  };
  std::string why;  // empty: it began
  Of of = kProgram;
};

// Why PyTorch could not be imported.
struct ImportTrouble {
  std::string why;            // empty: it could, or nobody tried
  bool is_under_way = false;  // whoever ended the process knows why it did not come to its end
};

// What one process of the program left.
struct ProcessSummary {
  std::string trace;            // path
  bool ended_in_order = false;  // it left a summary: what follows is known
  std::uint64_t peak_reserved = 0;
  std::uint64_t allocations = 0;
  std::uint64_t failures = 0;
  std::uint64_t operations = 0;
  double began_s = 0, ended_s = 0;  // on the machine's clock; 0: not known
  std::uint64_t steps = 0;
  std::uint64_t optimizers = 0;                   // that take part in each step
  std::uint64_t most_turns = 0, least_turns = 0;  // of several: steps of the one that made most, and least
  std::uint64_t alike_from = 0;                   // the last step that was unlike the one before it
  PlanLoop loop;                                  // around its steps
  std::vector<RisingLoop> rising;
  std::uint64_t training_batch = 0;  // of the loader that its steps take batches of; 0: not known
  std::uint64_t ranks = 0;           // of the program that this process is one of; 0: it has no process group
  std::string stopped;               // by the dry run, in words; empty: it ended by itself
  StoppedBy stopped_by = StoppedBy::kItself;
  std::string framework;  // "PyTorch 2.13.0"
  std::optional<PlanException> exception;
  std::vector<std::string> uses;                 // what the program does by itself: autocast, checkpoint, foreach, …
  std::map<std::string, std::string> changes;    // what was changed, in words
  std::vector<std::string> edited_remedies;      // what was changed by edits of the source
  std::vector<Edit> edited;                      // all of them together, kManyPlace as it was asked for
  std::vector<std::string> phases;               // it came to, in their order
  std::vector<std::string> not_reached;          // what its own files have and it did not come to
  std::vector<Offer> offers;                     // remedies that apply to what it did
  std::vector<Offer> number_offers;              // of numbers wherever they stand: without values
  std::map<std::string, std::uint64_t> lasting;  // bytes that stay from step to step: parameters, gradients, optimizer
  std::vector<ProgramNumber> numbers;            // batches and lengths that its own files have
  std::vector<Edit> accumulation;                // of its loop, with kManyPlace in the place of the number of batches
  std::vector<std::uint64_t> token_lengths;      // of what it looked up in embeddings
  std::uint64_t vary_value = 0;                  // the number as the program has it, and where
  std::string vary_where;
  Unsupported unsupported;
  std::string unplanned, unplanned_line;  // what could not be planned first, also where the program went on after it
  std::uint64_t uses_gpus = 0;  // so many of them, where that is what could not be planned: more than the plan has
  std::string asked_free_line;  // where the program asked how much memory is free; empty: it did not
  std::string stand_in_line;    // where it last read a value that was not computed, if its end may come of that
  bool last_was_out_of_memory = false;  // nothing was served after the last failure
  // an exception that came of an out-of-memory ended it; or it caught one, took nothing more and ended with a failing status
  bool ended_out_of_memory = false;
  bool died_of_memory() const { return ended_out_of_memory || (exception && is_out_of_memory(*exception)); }
  bool does(const std::string& what) const;
  bool was_edited(const std::string& remedy) const;
  const Offer* of_number(OfferedNumber number) const;  // null: it has no remedy of it
};

struct DryRunResult {
  int status = 0;                         // 128 + N: ended by signal N
  double seconds = 0;                     // on the clock
  double cpu_seconds = 0;                 // of the processors, for it and its children; 0: not known
  bool interrupted = false;               // a signal from outside came while it ran
  bool out_of_time = false;               // it was ended because it had not ended by itself
  std::vector<ProcessSummary> processes;  // see most_needing_first
  PlanEffects effects;
  ImportTrouble import_trouble;  // in a process of it
  std::string log;               // what it printed, of a run that was kept quiet; empty: it is not kept
  const ProcessSummary* main() const { return processes.empty() ? nullptr : &processes.front(); }
  // On a machine that has nothing else to do: a busy one offers the same.
  double working_seconds() const { return cpu_seconds > 0 ? std::min(seconds, cpu_seconds) : seconds; }
};

// A program that catches an out-of-memory and then gives up, with a failing status, ended for want of memory too.
void settle_ends(DryRunResult& run);

// Puts the process that a plan is about first: the one that ran out of memory, else the one that took most.
void most_needing_first(std::vector<ProcessSummary>& processes);

// A GPU as the program sees it.
struct ShownGpu {
  Gpu gpu;
  std::string name;
};
// Those that were named; else a large one, which is to grow where it is not enough.
std::vector<ShownGpu> shown_gpus(const std::vector<Gpu>& named);

// One more run of the program, on the same GPU, which grows where it is not enough; but not for the first failures, which the program is known to catch.
struct Attempt {
  std::string folder;  // to keep it in, below the run's own
  std::vector<std::string> command;
  std::map<std::string, std::string>
      changes;  // remedies by name, each with its value: autocast → float16; less_free → bytes that the program is told less
  // a number in the program's source, and another value for it
  std::optional<std::pair<std::string, std::uint64_t>> vary;
  std::uint64_t steps = 0;  // to go as far as another run did: stop after so many, and not before; 0: as the first run
  std::uint64_t refused = 0;  // so many requests fail as they did
  std::uint64_t ranks = 0;    // another number of ranks; 0: as the first run
  // Of changes, and of `vary` under its own name, those that are edits of the source: they are made in place of them where they go together.
  std::map<std::string, std::vector<Edit>> edits = {};
  std::uint64_t many = 1;  // what kManyPlace in them stands for: batches that make a step
};

// The changes of a run that are edits of the source.
inline constexpr std::string_view kVary = "vary";

inline constexpr double kLongestToRepeat = 60;  // seconds; a program that takes longer is not run again unasked

struct Reruns {
  // quietly, beside each other; a result without processes was not run
  std::function<std::vector<DryRunResult>(const std::vector<Attempt>&)> run;
  std::function<void(const std::string&)> tell;       // the user, what is being done
  std::function<bool()> interrupted;                  // nothing more is to be started
  std::function<double()> seconds_left = {};          // for trying remedies; none: as long as it takes
  std::function<void(const Plan&)> say_verdict = {};  // before changes are tried, which takes a while
};

}  // namespace faultline
