// plan -- CMD…: runs CMD without a GPU, and says whether it would fit on one, why not, and what would make it fit.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>

#include "base/byte_stream.h"
#include "base/given_size.h"
#include "base/units.h"
#include "cli/options.h"
#include "confine/confined_program.h"
#include "fmt/format.h"
#include "models/gpus.h"
#include "plan/limits.h"
#include "plan/make_plan.h"
#include "process/dry_run_files.h"
#include "process/op_memory.h"
#include "process/plan_run.h"
#include "process/run_folder.h"
#include "process/signals.h"
#include "report/assemble.h"
#include "report/comparison.h"
#include "report/exit_status.h"
#include "report/json.h"
#include "report/plan_summary.h"
#include "rules/describe.h"
#include "sources/input.h"
#include "sources/run_folder/run_folder.h"
#include "sources/written_report/written_report.h"

namespace faultline::cli {
namespace {

// Unless told, a program is stopped after so many steps, but not while it is quick: most of what is planned runs to its end.
constexpr std::uint64_t kSteps = 8;
constexpr std::uint64_t kQuickSeconds = 6;
constexpr std::uint64_t kSeconds = 120;
constexpr double kTryingRounds = 4;  // or as long as so many runs take, where that is more
// after that no further remedy is begun: with the last ones a plan takes a minute
constexpr double kTryingSeconds = 48;
constexpr std::string_view kMayGrow = "1%";

struct PlanArguments {
  PlanQuestion question;
  std::string gpu;
  std::string context;
  WantedFolder folder;
  std::vector<std::string> function;  // of a running program: what to call it; its folder goes when the plan is made
  std::vector<std::string> op_memory;
  std::optional<std::uint64_t> steps;
  std::optional<std::uint64_t> seconds;
  std::string budget;
  std::string compare, may_grow;  // an earlier report, and how much more than there
  Limits limits;
  OutputOptions output;
};

// None where none is named.
Result<std::vector<Gpu>> gpus_of(const PlanArguments& arguments) {
  std::vector<Gpu> gpus;
  if (!arguments.gpu.empty()) {
    Result<std::vector<Gpu>> found = find_gpus(arguments.gpu);
    if (!found) return Error{"--gpu: " + found.error().message(), {}, {}};
    gpus = std::move(*found);
    if (!gpus.front().note.empty()) hint("--gpu: " + std::string(gpus.front().note));
  }
  if (!arguments.context.empty()) {
    if (gpus.empty()) return Error{"--context needs --gpu", {}, {}};
    Result<std::uint64_t> context = parse_size(arguments.context);
    if (!context) return Error{"--context: " + context.error().message(), {}, {}};
    for (Gpu& gpu : gpus) gpu.context_bytes = *context;
  }
  for (const Gpu& gpu : gpus) {
    if (gpu.context_bytes < gpu.capacity_bytes) continue;
    return Error{fmt::format("--gpu: {} leave nothing beside the CUDA context ({})", format_bytes(gpu.capacity_bytes),
                             format_bytes(gpu.context_bytes)),
                 {},
                 {}};
  }
  return gpus;
}

// The other runs are compared with the first: they go as far as it did.
DryRunJob as_far_again(DryRunJob job, const ProcessSummary& first) {
  if (job.request.steps == 0 || job.request.at_least_seconds == 0) return job;
  job.request.steps = std::max(job.request.steps, first.steps + (first.stopped.empty() ? 1 : 0));
  if (!first.stopped.empty()) job.request.at_least_seconds = 0;
  return job;
}

// What the program's needs are held against, if anything.
struct Held {
  std::optional<std::uint64_t> budget;
  std::optional<Report> base;
  AllowedGrowth allowed;
};

// `is_other`: it can be read, and has something else in it than a report or a run. What is wrong with that is of no use to who compares.
Result<Input> open_base(const std::string& path, bool& is_other) {
  std::error_code problem;
  if (path != "-" && std::filesystem::is_directory(path, problem)) {
    is_other = ::access(path.c_str(), R_OK | X_OK) == 0 && !holds_run(path);
    return open_input(path);
  }
  Result<ByteStream> stream = ByteStream::open(path);
  if (!stream) return stream.error();
  constexpr std::size_t kEnoughToKnowAReport = 256;
  const Result<const std::uint8_t*> head = stream->more(stream->begin(), kEnoughToKnowAReport);
  if (!head) return head.error();
  is_other = stream->begin() != stream->end() && !looks_like_report({stream->begin(), stream->end()});
  return open_input(*stream, path);
}

// Before anything is run: a base that says nothing is not worth a plan.
Result<Held> held_against(const PlanArguments& arguments, const std::vector<Gpu>& gpus) {
  Held held;
  if (!arguments.budget.empty()) {
    Result<std::uint64_t> bytes = parse_size(arguments.budget);
    if (!bytes) return Error{"--budget: " + bytes.error().message(), {}, {}};
    held.budget = *bytes;
  }
  if (arguments.compare.empty()) {
    if (!arguments.may_grow.empty()) return Error{"--may-grow needs --compare: more than what?", {}, {}};
    return held;
  }
  Result<AllowedGrowth> allowed =
      parse_allowed_growth(arguments.may_grow.empty() ? kMayGrow : std::string_view(arguments.may_grow));
  if (!allowed) return Error{"--may-grow: " + allowed.error().message(), {}, {}};
  held.allowed = std::move(*allowed);
  bool is_other = false;
  Result<Input> input = open_base(arguments.compare, is_other);
  if (!input && is_other)
    return Error{"--compare: " + arguments.compare +
                     ": this is no report of a plan; write one with faultline plan --format json -- …",
                 {},
                 {}};
  if (!input) return Error{"--compare: " + input.error().message(arguments.compare), {}, {}};
  held.base = make_report(*input);
  held.base->input_path = arguments.compare;
  const std::string why_not =
      held.base->plan
          ? why_no_base(*held.base->plan, gpus)
          : "it is a report of something else than a plan; write one with faultline plan --format json -- …";
  if (!why_not.empty()) return Error{"--compare: " + arguments.compare + ": " + why_not, {}, {}};
  return held;
}

// What cannot begin is refused before it costs an earlier run its folder; empty: it can.
std::string why_not_begin(const PlanArguments& arguments, const PlanQuestion& question) {
  if (Status confined = confine::may_confine(); !confined && !arguments.limits.allow_writes)
    return confined.error().message() +
           ", so what the program writes could not be kept apart from your files. Nothing was run; --allow-writes "
           "runs it all the same, once";
  if (!question.names_gpu() && !question.vary.empty())
    return "--vary needs --gpu: what is the largest that fits depends on it";
  if (!question.names_gpu() && question.try_changes)
    return "--try needs --gpu: whether a change is enough depends on it";
  if (arguments.limits.allow_writes && arguments.limits.offline)
    return "--offline needs the program to be watched, and --allow-writes leaves it alone";
  if (Status found = confine::find_program(question.command.front()); !found) return found.error().message();
  return {};
}

DryRunJob job_of(const PlanArguments& arguments, const PlanQuestion& question, std::vector<OperationMemory> op_memory) {
  return {question.command,
          {shown_gpus(question.gpus),
           !question.names_gpu(),
           question.real,
           arguments.steps.value_or(kSteps),
           arguments.seconds.value_or(kSeconds),
           arguments.steps ? 0 : kQuickSeconds,
           !arguments.steps,
           {},
           {},
           question.ranks,
           0,
           std::move(op_memory)},
          question.folder,
          arguments.limits,
          question.folder,
          arguments.function.empty()};
}

// How long the first run took, and the longest of those that came after it: what is tried further takes its time by them.
class Reruns {
 public:
  explicit Reruns(double first_seconds) : first_seconds_(first_seconds), longest_(first_seconds) {}
  double seconds_left() const {
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begun_;
    return std::max(kTryingSeconds - first_seconds_, kTryingRounds * longest_) - gone.count();
  }
  std::vector<DryRunResult> run(const PlanParts& parts, const DryRunJob& job, const std::vector<Attempt>& attempts,
                                const GivenInput& input) {
    std::vector<DryRunResult> results = run_quietly(parts, job, attempts, input);
    for (const DryRunResult& result : results) longest_ = std::max(longest_, result.seconds);
    return results;
  }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  double first_seconds_, longest_;
};

// While changes are tried: "does not fit, 3.75 GiB too little, at train.py:18; trying what would make it fit".
void say_verdict(const Plan& plan) {
  const std::string place = plan.failure.at.known() ? ", at " + short_place(plan.failure.at) : std::string();
  hint(summary_of(plan) + place + "; trying what would make it fit");
}

int tell_plan(const PlanArguments& arguments, const Held& held, PlannedRun& planned, const std::string& folder) {
  Plan& plan = planned.plan;
  const bool folder_stays = arguments.function.empty();
  if (!folder_stays) {
    plan.command = arguments.function;
    plan.folder.clear();
  }
  plan.versions.faultline = FAULTLINE_VERSION;
  Report report = make_report(planned.trace, planned.judgement);
  report.input_path = plan.folder;
  if (held.budget) plan.limits.budget = judge_budget(plan, *held.budget);
  if (held.base)
    plan.limits.comparison = compare_with_base({*held.base->plan, held.base->input_path}, plan,
                                               grown_lines(*held.base, report, plan.device), held.allowed);
  attach_plan(report, std::move(plan));
  if (Status written = write_report(folder, to_json(report)); !written) hint(written.error().message());
  if (RecordingsForm* const write_recordings = arguments.output.writes_recordings()) {
    const Result<Input> left = open_input(folder);
    if (!left) return fail(left.error().message(shown_folder(folder)));
    return write_recordings({{&*left, 1}, exit_status(report)});
  }
  return tell_run(report, arguments.output, folder_stays ? shown_folder(folder) : "");
}

// The program is run, and run again with what may help.
int run_plan(const PlanArguments& arguments, const PlanQuestion& question, const PlanParts& parts, const Held& held,
             std::vector<OperationMemory> op_memory) {
  const std::string& folder = question.folder;
  const auto give_up = [&](const std::string& why) {
    remove_own_folder(folder);
    return fail(why);
  };
  const DryRunJob job = job_of(arguments, question, std::move(op_memory));
  // only what keeps files aside sees what the program reads, and can keep that too
  const GivenInput input(arguments.limits.allow_writes ? std::string() : folder);
  if (question.may_run_again && input.is_gone())
    hint(
        "further runs of the program have nothing to read: standard input is no plain file, and with --allow-writes "
        "what comes through it is not kept");
  const std::string started = utc_now();
  Result<DryRunResult> first =
      run_in_foreground(parts, job, input, arguments.output.is_for_people() ? Output::kAsIs : Output::kToStandardError);
  if (!first) return give_up(first.error().message());
  if (Status written =
          write_command(folder, {"plan", question.command, started, first->status, first->seconds, {}, {}});
      !written)
    hint(written.error().message());
  if (const std::string why = nothing_planned(question, *first); !why.empty())
    return give_up(why + (interrupted()        ? "; it was interrupted"
                          : first->out_of_time ? "; it was stopped because its time was over (--seconds)"
                                               : ""));
  const ListedAtEnd listed(folder);
  // from here on they end the runs that are still to come, and the report is made all the same
  const InterruptsNoted noted;
  const DryRunJob again = as_far_again(job, *first->main());
  Reruns reruns(first->seconds);
  const auto run_attempts = [&](const std::vector<Attempt>& attempts) {
    return reruns.run(parts, again, attempts, input);
  };
  const auto seconds_left = [&] { return reruns.seconds_left(); };
  Result<std::unique_ptr<PlannedRun>> planned = make_plan(
      question, *first,
      {run_attempts, hint, interrupted, question.try_changes ? std::function<double()>() : seconds_left, say_verdict});
  if (!planned) return fail(planned.error().message());
  return tell_plan(arguments, held, **planned, folder);
}

int plan(const PlanArguments& arguments) {
  PlanQuestion question = arguments.question;
  if (question.command.empty())
    return fail("plan takes the program behind --, for example: faultline plan --gpu T4 -- python train.py");
  Result<std::vector<Gpu>> gpus = gpus_of(arguments);
  if (!gpus) return fail(gpus.error().message());
  question.gpus = std::move(*gpus);
  const Result<Held> held = held_against(arguments, question.gpus);
  if (!held) return fail(held.error().message());
  question.steps_asked = arguments.steps.has_value();
  question.seconds_asked = arguments.seconds.has_value();
  Result<PlanParts> parts = find_plan_parts();
  if (!parts) return fail(parts.error().message());
  Result<std::vector<OperationMemory>> op_memory = operations_memory(arguments.op_memory);
  if (!op_memory) return fail("--op-memory: " + op_memory.error().message());
  if (const std::string why_not = why_not_begin(arguments, question); !why_not.empty()) return fail(why_not);
  const OwnFolder made = make_run_folder(arguments.folder, question.command);
  if (made.outcome != OwnFolder::Outcome::kMade) return fail(made.why_not);
  question.folder = made.path;
  // A program that writes for real is not run again unasked: it would find what it left, and leave it once more.
  question.may_run_again = !arguments.limits.allow_writes || question.try_changes || !question.vary.empty();
  return run_plan(arguments, question, *parts, *held, std::move(*op_memory));
}

// CLI11 takes -1 for a very large number.
const auto kWholeNumber = [](const std::string& text) {
  const bool plain = !text.empty() && text.size() < 19 && text.find_first_not_of("0123456789") == std::string::npos;
  return plain ? std::string() : "'" + text + "' is no whole number from 0 on";
};

}  // namespace

void add_plan(CLI::App& app, const std::vector<std::string>& command, int& status) {
  CLI::App* verb = app.add_subcommand(
      "plan",
      "runs a program of PyTorch, JAX or TensorFlow, given behind --, without a GPU: says whether it fits on one, why "
      "not, and what would make it fit");
  auto arguments = std::make_shared<PlanArguments>();
  arguments->question.command = command;
  add_gpu_option(*verb, arguments->gpu,
                 "for example T4 or 24GiB; several as 2xT4 or T4,L4; without it the report lists the GPUs it fits on");
  verb->add_option("--context", arguments->context,
                   "what the CUDA context and libraries take of --gpu; without it what such a GPU is known to need")
      ->option_text("SIZE");
  verb->add_option("--steps", arguments->steps,
                   "stop the program after so many optimizer steps; 0: never; by default after 8, when they have taken "
                   "6 seconds")
      ->check(kWholeNumber)
      ->option_text("N");
  verb->add_option("--seconds", arguments->seconds,
                   "stop the program so long after its framework was imported; 0: never; 120 by default")
      ->check(kWholeNumber)
      ->option_text("S");
  verb->add_option("--ranks", arguments->question.ranks,
                   "the number of ranks of a program of many, on as many machines as they need; without it what its "
                   "launcher says (torchrun --nnodes, --nproc-per-node)")
      ->check(kWholeNumber)
      ->option_text("N");
  verb->add_option("--vary", arguments->question.vary,
                   "the number to search the largest fitting value of, for example batch_size")
      ->option_text("NAME");
  verb->add_option("--budget", arguments->budget,
                   "fail (status 1) where the program needs more than so much of a GPU's memory, the CUDA context "
                   "included, and say which lines hold it")
      ->option_text("SIZE");
  verb->add_option("--compare", arguments->compare,
                   "an earlier plan of the program, as --format json wrote it or the folder it was kept in: fail "
                   "(status 1) where the program needs more than then, and say by which lines")
      ->option_text("BASE");
  verb->add_option("--may-grow", arguments->may_grow,
                   "how much more than --compare is allowed: a share (5%) or a size (200MiB); 1% by default")
      ->option_text("HOW-MUCH");
  verb->add_option("--op-memory", arguments->op_memory,
                   "what an operation of an extension takes, where it cannot be asked: NAME=SIZE beside its results "
                   "while it runs, and what it gives, for example my::op=64MiB,like=0 or "
                   "my::op=0,shape=0.0x2*0.1x64,dtype=float16; may be given several times")
      ->option_text("NAME=SIZE[,…]")
      ->type_size(1)
      ->allow_extra_args(false);
  verb->add_flag("--real", arguments->question.real,
                 "compute real numbers on the CPU: slow, for programs whose memory depends on them");
  verb->add_flag("--try", arguments->question.try_changes,
                 "try changes also when it fits, or when the program takes long");
  verb->add_flag("--no-try", arguments->question.no_try, "do not run the program again to try changes");
  verb->add_flag(
      "--allow-writes", arguments->limits.allow_writes,
      "let the program write, rename and remove files for real; it is then run once, unless --try or --vary is given");
  verb->add_flag("--offline", arguments->limits.offline, "refuse the program's connections to other machines");
  add_folder_options(*verb, arguments->folder);
  verb->footer(
      "Exit status: 0 it fits (or no GPU was named) and nothing is wrong, for the whole program or as far as --steps "
      "or --seconds told it to go; 1 it does not fit, is over its --budget, has grown by more than --may-grow, or "
      "something is wrong; 2 bad usage, or the program did not import "
      "PyTorch, JAX or TensorFlow, was interrupted, or failed by itself for a reason that no finding explains; 3 "
      "internal error; 4 it "
      "fits, but that holds only in part: the dry run stopped it before its end, a value that is not computed decided "
      "a "
      "size or a branch, or it sizes itself by a GPU that was not named.");
  verb->add_option("--grace", arguments->limits.grace_seconds,
                   "seconds after --seconds until the program is killed; for tests")
      ->check(kWholeNumber)
      ->group("");
  verb->add_option("--function", arguments->function, "a part of faultline.plan(): what the report calls the program")
      ->group("");
  add_output_options(*verb, arguments->output);
  verb->callback([arguments, &status] { status = plan(*arguments); });
}

}  // namespace faultline::cli
