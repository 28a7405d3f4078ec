// What a dry run found out: does the program fit, by how much, what fills the memory, what would make it fit, what had to be assumed.
//
// make_plan (plan/make_plan.h) makes a Plan and the report carries it, beside the findings of the same run. It is data: the text is in
// report/plan_text.h, the JSON in report/json.h, which also reads it back, so that a run folder can be explained again without running anything.
// Bytes of a GPU are counted as the driver does: needed_bytes and capacity_bytes both have the CUDA context in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/gpus.h"
#include "rules/finding.h"

namespace faultline {

enum class Verdict : std::uint8_t {
  kFits,
  kTight,      // it fits, but with less room than the figures are sure of
  kFitsUntil,  // it was stopped while its memory grew with every step: the GPU is full at a later one
  kDoesNotFit,
  kMeasured,      // no GPU was named: which ones it fits on is listed
  kUnplanned,     // something could not be planned, or nothing was seen of the GPU: no verdict on the memory
  kProgramError,  // the program ended by an exception or a status of its own
  kInterrupted,   // by a signal
};
std::string_view name_of(Verdict verdict);  // "does-not-fit"
// All that it asked for has room on the GPU that was named.
inline bool has_room(Verdict verdict) { return verdict == Verdict::kFits || verdict == Verdict::kTight; }
// It was run far enough to be held against a GPU that was named.
inline bool is_judged(Verdict verdict) {
  return has_room(verdict) || verdict == Verdict::kFitsUntil || verdict == Verdict::kDoesNotFit;
}

// What made a dry run stop the program.
enum class StoppedBy : std::uint8_t {
  kItself,   // nothing: the program ended by itself
  kSteps,    // it had made as many steps as a dry run makes
  kAlike,    // all further steps are known to be alike
  kLoop,     // its loop over data was ended early, and what is behind it was run
  kSeconds,  // its time was over
};
std::string_view name_of(StoppedBy by);  // "seconds"; empty: itself

struct PlanGpu {
  std::string name;  // "Tesla T4", "a device of 24.00 GiB"
  std::uint64_t capacity_bytes = 0;
  std::string capacity_source;  // measured, published, estimated, assumed
  std::uint64_t context_bytes = 0;
  std::string context_source;
};
PlanGpu plan_gpu(const Gpu& gpu);

// Does what is needed leave less room than the figures are sure of?
bool is_tight(const PlanGpu& gpu, std::uint64_t needed_bytes);

// Requests whose sizes are estimates.
struct PlanEstimate {
  std::string what;  // "cuDNN's workspaces"
  std::uint64_t count = 0;
  std::uint64_t largest_bytes = 0;  // that one of them may take
};

// What is taken at the peak with all estimates at their least, or at their most; zeros where nothing is estimated.
struct PlanPeakEnd {
  std::uint64_t allocated_bytes = 0, reserved_bytes = 0;
};

// A GPU of the catalogue, and whether the recorded requests would all be served on it.
struct PlanFit {
  PlanGpu gpu;
  bool fits = false;
  bool perhaps = false;  // with what is estimated at its least, and not at its most
};

// Memory of one module at the peak, or of modules that differ only in a number: "GPT.blocks.*.mlp", 12 of them.
struct PlanModule {
  std::string path;
  std::uint64_t count = 1;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::uint64_t>> live;  // by category, most first
};

// What the dry run had to assume or leave out, in the order in which it is told.
enum class NoteKind : std::uint8_t {
  kInstead,  // something else was run
  kMode,     // how the run was made
  kSkipped,  // it was not done
  kKernel,   // what a kernel takes is not known
  kValue,    // a value was not computed
};
std::string_view name_of(NoteKind kind);  // "instead"
struct PlanNote {
  NoteKind kind = NoteKind::kMode;
  std::string text;
  std::string line;  // "train.py:12"; may be empty
  std::uint64_t count = 1;
  std::string verdict =
      {};             // words that the verdict is not said without: "run eagerly instead of compiled"; may be empty
  bool most = false;  // sizes that depend on values were counted as large as they can be
};

// The loops of the program around its optimizer steps, where their source says how many rounds they have.
struct PlanLoop {
  std::string where;         // the innermost, "train.py:12"
  std::uint64_t rounds = 0;  // of all of them together
  std::uint64_t steps = 0;   // about so many in all; 0: not known, or it makes none
  std::uint64_t begun = 0;   // of a program that makes no steps: the round in which it was stopped
};

// A program that asks how much memory is free and takes of it: told of less it took less.
struct PlanFilling {
  std::string line;  // where it asked, "server.py:12"
  std::uint64_t told_less_bytes = 0;
  std::uint64_t took_less_bytes = 0;
};

enum class ChangeKind : std::uint8_t {
  kSetting,  // replayed
  kProgram,  // dry-run again
};
std::string_view name_of(ChangeKind kind);  // "setting"

// A change that was tried, and what the program needs with it.
struct PlanChange {
  ChangeKind kind = ChangeKind::kProgram;
  std::string what;    // as an instruction: "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
  std::string detail;  // what was done, for example which layers; may be empty
  bool tried = true;   // false: see why_not
  bool fits = false;
  std::uint64_t needed_bytes = 0;
  std::string why_not;
  std::vector<std::string> remedies = {};      // by name; empty: a setting
  std::uint64_t cost = 0;                      // how much it asks of the user: the order of the list
  std::string label = {};                      // short
  std::vector<std::string> instructions = {};  // one for each remedy
  // of the program's own source, all that was run with it; empty: there is none, or not of all of it
  std::string diff = {};
  std::vector<std::string> without_edit = {};  // by label, those that were tried without an edit of the source
  std::uint64_t compute = 0;                   // the compute capability it needs, its first number
  bool begun = false;                          // it was run; where it is not tried, without a result
  // memory grows with it, too, and nothing says that the program ends before: it fits until about this step, and `fits` is false
  std::uint64_t until = 0;
  std::string until_unit = {};          // step, round
  bool grows = false;                   // not in the report
  bool wants_more_gpus = false;         // than the program has; not in the report
  double pool_share = 1;                // of a setting of a pool, its share with it; not in the report
  std::uint64_t needed_most_bytes = 0;  // what decides whether it fits, where something is estimated; 0: nothing is
  std::uint64_t most_needed() const { return needed_bytes > needed_most_bytes ? needed_bytes : needed_most_bytes; }
};

// A GPU of the catalogue on which it fits: as it is, or with a change.
struct PlanWhere {
  PlanGpu gpu;
  std::string with;         // the change's label; empty: as it is
  std::uint64_t until = 0;  // memory grows, and how many rounds there are is not known: it fits until about this one
};

// The search for the largest value of a number of the program, its batch size as a rule.
struct PlanVary {
  std::string name;
  std::string where;  // "train.py:12", "the argument --batch-size"
  std::uint64_t current = 0;
  std::uint64_t largest_fitting = 0;   // 0: none was found
  bool tight = false;                  // it fits, but tightly
  std::uint64_t smallest_failing = 0;  // 0: none was found
  std::uint64_t runs = 0;
  std::string stopped;       // why it ended before the largest was found; may be empty
  std::string why_not;       // the search could not be made
  bool accumulated = false;  // gradients were kept from one batch to the next in these runs, as accumulation does
  std::vector<std::string> command = {};  // with the largest that fits, where the number is in the command
  std::string diff = {};                  // of the program's own source with it, as it was run; empty: there is none
  // what was tried without an edit of the source: "the loop that accumulates"; empty: nothing
  std::string without_edit = {};
  // With gradients accumulated, where a run of it fits: so many batches of so much make `current`, or as near as can be; 0: none.
  std::uint64_t batches = 0, batch = 0;
};

// Two numbers of a program that only infers: for each batch the largest length that fits.
struct PlanPair {
  std::uint64_t batch = 0, length = 0, needed_bytes = 0;
};
struct PlanJointly {
  std::string batch_name, length_name;
  std::uint64_t batch = 0, length = 0;  // as the program has them
  std::vector<PlanPair> fitting;        // each confirmed by a run
};

struct PlanException {
  std::string type;
  std::string message;
  Location location;
};

// What the program would have done to the machine. A confined program did it to a layer of its own, which is gone.
struct PlanEffects {
  bool confined = false;  // false: the user allowed its writes, and they are there
  bool known = false;     // false: the watch ended before it could tell
  // names of files made or changed, the first few hundred; below the working folder from there
  std::vector<std::string> written;
  std::uint64_t written_count = 0;
  std::vector<std::string> removed;
  std::uint64_t removed_count = 0;
  std::uint64_t connections = 0;      // to other machines; told, not kept aside
  std::vector<std::string> machines;  // "203.0.113.7:443"
  bool offline = false;               // and refused
  bool ran_out_of_space = false;      // what it wrote was too much for the disk
  bool input_was_cut = false;         // what it read from standard input could not be kept whole for another run
  // files that were changed all the same: open before the program began, or the kernel's own
  std::vector<std::string> done_for_real;
  // signals to processes that are not the program's, which were not sent: "SIGTERM to 1234 (tensorboard)"
  std::vector<std::string> unsent_signals;
  std::uint64_t unsent_count = 0;
};

// How much the program may need, as somebody asked (--budget), and what it was compared with.
struct PlanBudget {
  std::uint64_t bytes = 0;
  std::uint64_t needed_bytes = 0;
  bool at_least = false;  // what comes after that was not seen
  std::string why_not;    // it was not judged; empty: it was
  std::uint64_t over_bytes() const { return why_not.empty() && needed_bytes > bytes ? needed_bytes - bytes : 0; }
};

// A line of the program that holds another amount at the peak than it did in an earlier plan.
struct PlanLineChange {
  Location location;
  std::string category;
  std::uint64_t before_bytes = 0;
  std::uint64_t now_bytes = 0;
  std::uint64_t count = 0;  // of what it holds now
};

// An earlier plan of the program (--compare), and how much more it may need now (--may-grow).
struct PlanComparison {
  std::string base;  // the file
  std::uint64_t before_bytes = 0;
  std::uint64_t needed_bytes = 0;
  std::uint64_t allowed_bytes = 0;       // more than before
  std::string allowed;                   // as it was asked for: "1%"
  std::vector<PlanLineChange> lines;     // that hold more, the most first
  std::vector<std::string> differences;  // beside the program: another release, another command
  std::string why_not;                   // it was not judged; empty: it was
  std::uint64_t grown_bytes() const { return needed_bytes > before_bytes ? needed_bytes - before_bytes : 0; }
  bool is_too_much() const { return why_not.empty() && grown_bytes() > allowed_bytes; }
};

// Who made the plan.
struct PlanVersions {
  std::string faultline;
  std::string framework;  // "PyTorch 2.13.0"
};

// What the program did for a while: building, training, evaluation, generation, inference, saving.
struct PlanPhase {
  std::string name;
  std::uint64_t times = 1;            // how often it came to it
  std::uint64_t allocated_bytes = 0;  // by PyTorch's allocator, at its fullest
  Location location;                  // the line that made it so full
};

// One of several GPUs, at its fullest.
struct PlanDevice {
  std::uint64_t index = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t reserved_bytes = 0;
};

// How much it needs of the GPU's memory, the context counted.
struct PlanNeed {
  // the smallest GPU on which the same requests are all served, PyTorch giving its cache back where that helps
  std::uint64_t bytes = 0;
  // the same where sizes of requests are estimates: with all at their least, and at their most; 0: nothing is estimated
  std::uint64_t least_bytes = 0, most_bytes = 0;
  std::vector<PlanEstimate> estimates;  // the largest first
  bool is_least = false;                // it ran out of memory, and no run went on after that to its end
  // the most that processes which ran at one time take, each counted at its fullest; 0: one alone
  std::uint64_t together_bytes = 0;
  // what was taken of this one at the fullest: the context, PyTorch's segments, what others took
  std::uint64_t taken_bytes = 0;
  std::uint64_t limit_bytes = 0;  // the program's own limit on PyTorch's memory; 0: none
  std::optional<PlanFilling> filling;
};

struct PlanPeak {
  std::uint64_t allocated_bytes = 0, reserved_bytes = 0;
  std::uint64_t outside_bytes = 0;                          // taken beside PyTorch's allocator, the context apart
  std::vector<std::pair<std::string, std::uint64_t>> live;  // by category, the fixed order of accounts
  std::vector<PlanModule> modules;                          // most bytes first
  PlanPeakEnd least, most;
};

// Of a framework that takes its memory as one pool.
struct PlanPool {
  std::string framework;    // whose it is: jax, tensorflow; empty: PyTorch's caching allocator
  std::uint64_t bytes = 0;  // the smallest that serves all
  double share = 1;         // of the GPU, what the pool may take
};

struct PlanFailure {
  bool happened = false;  // a request could not be served and the program ended of it
  Location at;
  std::uint64_t in_step = 0;  // from 1; 0: no step was seen to end after it, not within one, or not failed
  std::uint64_t steps_before = 0;
  std::uint64_t caught = 0;  // the program went on after them
  std::string phase;         // the one that ran out of memory
};

// How far the program was run, and what it did.
struct PlanRun {
  int exit_status = 0;            // the program's own; 128 + N: signal N
  std::uint64_t steps = 0;        // optimizer steps seen
  std::uint64_t optimizers = 0;   // where several take turns: a step is one round of all of them
  std::uint64_t most_turns = 0;   // of several optimizers: steps of the one that made most
  std::uint64_t least_turns = 0;  // and of the one that made least
  std::uint64_t alike_from = 0;   // all later steps took the same; 0: not known
  std::string stopped;            // "after 8 optimizer steps"; empty: the program ended by itself
  StoppedBy stopped_by = StoppedBy::kItself;
  bool stop_asked = false;  // there, because the user said how far to go (--steps, --seconds)
  std::string how;          // fake, real
  double seconds = 0;
  std::uint64_t operations = 0;
  std::uint64_t processes = 1;    // that used the GPU; the plan is about the one that needs most
  bool interrupted = false;       // a signal from outside ended the plan before all its runs were made
  std::vector<PlanPhase> phases;  // in the order in which the program came to them
  // what the program's own files have and the run did not come to: "saving (train.py:80)"
  std::vector<std::string> not_reached;
};

// What went wrong that is no want of memory.
struct PlanTrouble {
  std::optional<PlanException> exception;
  std::string unplanned;       // kUnplanned: why; may be known of a program that did not fit, too
  std::string unplanned_line;  // "train.py:12"; may be empty
  bool nothing_seen = false;   // and that is why: of the GPU there was nothing to plan
  // the program failed, and may have for a value that was not computed, which it last read here
  std::string stand_in_line;
};

// Memory that is kept, round after round.
struct PlanGrowth {
  std::uint64_t until = 0;         // kFitsUntil: about the last step that fits
  std::uint64_t until_latest = 0;  // by the slower growth, where it is not even
  std::string unit;                // what is counted: step, round
  PlanLoop loop;
  // where memory grows and the loop ends before the GPU is full: about what is needed when it ends; 0: another case
  std::uint64_t needed_at_end_bytes = 0;
  bool is_there = false;  // a line keeps what it makes, round after round; not in the report, whose findings say it
  // and goes on past what was run: bytes a round, and the rounds that were run; 0: it does not; not in the report
  std::uint64_t bytes_a_round = 0, rounds = 0;
};

// What would make it fit, or need less.
struct PlanTried {
  std::vector<PlanChange> changes;
  std::string skipped;  // why no change was tried where one would be; may be empty
  std::optional<PlanVary> vary;
  std::optional<PlanJointly> jointly;
  std::vector<PlanWhere> where;  // of a program that does not fit: the smallest GPUs on which it does
};

// What somebody allowed the program (plan/limits.h).
struct PlanLimits {
  std::optional<PlanBudget> budget;
  std::optional<PlanComparison> comparison;
};

struct Plan {
  Verdict verdict = Verdict::kFits;
  std::vector<std::string> command;
  std::optional<PlanGpu> gpu;       // none: it was not named; of several the one that the plan is about
  std::uint64_t device = 0;         // its number
  std::vector<PlanDevice> devices;  // all, where there are several
  std::uint64_t context_bytes = 0;
  PlanNeed need;
  PlanPeak peak;
  PlanPool pool;
  PlanFailure failure;
  PlanRun run;
  PlanTrouble trouble;
  PlanGrowth growth;
  std::vector<PlanFit> fits;  // without a GPU: the catalogue
  PlanTried tried;
  PlanLimits limits;
  PlanVersions versions;
  std::vector<PlanNote> notes;
  PlanEffects effects;
  std::string folder;
  std::string trace;  // file name in the folder of the trace that the report is about

  // Its numbers are of a part of the program, and nobody asked for a part.
  bool ends_early() const { return !run.stopped.empty() && !run.stop_asked; }
  // What it says holds only in part: it was stopped unasked, a value that was not computed decided something, or it sizes itself by a GPU that was not named.
  bool holds_in_part() const {
    for (const PlanNote& note : notes) {
      if (note.kind == NoteKind::kValue && !note.verdict.empty()) return true;
    }
    return ends_early() || (!gpu && need.filling);
  }
  std::uint64_t missing_bytes() const {
    return gpu && need.bytes > gpu->capacity_bytes ? need.bytes - gpu->capacity_bytes : 0;
  }
  std::uint64_t spare_bytes() const {
    return gpu && gpu->capacity_bytes > whole_need() ? gpu->capacity_bytes - whole_need() : 0;
  }
  std::uint64_t most_needed() const { return need.bytes > need.most_bytes ? need.bytes : need.most_bytes; }
  std::uint64_t whole_need() const { return most_needed() > need.together_bytes ? most_needed() : need.together_bytes; }
  // With what is estimated at its least it fits, and not at its most.
  bool is_undecided() const {
    return gpu && verdict == Verdict::kTight && need.least_bytes <= gpu->capacity_bytes &&
           need.most_bytes > gpu->capacity_bytes;
  }
  // For a run that shows as much as this one: past the last step where the program ended by itself; of a program that was stopped the steps that were alike need not all be seen.
  std::uint64_t steps_to_repeat() const {
    if (run.stopped.empty()) return run.steps + 1;
    return ends_with_alike_steps() ? run.alike_from + 1 : run.steps;
  }
  // Several optimizers that do not step equally often: there is no round of all of them.
  bool has_unequal_optimizers() const {
    return run.optimizers > 1 && run.most_turns != 0 &&
           (run.most_turns > run.least_turns + 1 || run.steps > run.least_turns + 1);
  }
  // What it needs in all, or only as far as it was run?
  bool is_known_in_all() const { return !need.is_least && (run.stopped.empty() || ends_with_alike_steps()); }
  bool ends_with_alike_steps() const {
    return run.alike_from != 0 && !growth.is_there && run.alike_from + 1 < run.steps;
  }
  // About the round in which a device of that size is full, as the program is; 0: nothing grows past what was run.
  std::uint64_t full_at(std::uint64_t capacity, std::uint64_t needed, double share) const {
    return growth.bytes_a_round == 0 ? 0 : growth.rounds + room_to_grow(capacity, needed, share) / growth.bytes_a_round;
  }
  // Of a device of that size, how much more may be allocated: of a pool, until its share is full.
  std::uint64_t room_to_grow(std::uint64_t capacity, std::uint64_t needed, double share) const {
    if (pool.framework.empty()) return capacity > needed ? capacity - needed : 0;
    const auto limit = static_cast<std::uint64_t>(static_cast<double>(capacity) * share);
    const std::uint64_t beside = context_bytes + peak.outside_bytes,
                        room = std::min(limit, capacity > beside ? capacity - beside : 0);
    return room > pool.bytes ? room - pool.bytes : 0;
  }
  // Is there a change, or a batch, with which a run fits?
  bool fits_with_something() const {
    for (const PlanChange& change : tried.changes) {
      if (change.fits) return true;
    }
    return tried.vary && tried.vary->largest_fitting != 0;
  }
  std::uint64_t saved_bytes(const PlanChange& change) const {
    return change.tried && change.needed_bytes < need.bytes ? need.bytes - change.needed_bytes : 0;
  }
};

// What the verdict is not said without, each word once: ", run eagerly instead of compiled"; empty where there is nothing.
std::string beside_verdict(const Plan& plan);

// The changes that were found to help, as advice for the finding of the failure.
std::vector<Try> tries_of(const Plan& plan);

}  // namespace faultline
