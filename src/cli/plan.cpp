// plan -- CMD…: runs CMD without a GPU, and says whether it would fit on one, why not, and what would make it fit.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>

#include "base/units.h"
#include "cli/options.h"
#include "cli/plan_changes.h"
#include "cli/plan_folder.h"
#include "cli/plan_run.h"
#include "cli/plan_vary.h"
#include "cli/plan_verdict.h"
#include "confine/confined_program.h"
#include "fmt/format.h"
#include "models/gpus.h"
#include "report/assemble.h"
#include "report/exit_status.h"
#include "report/json.h"

namespace faultline::cli {
namespace {

constexpr double kLongestToRepeat = 60;  // seconds; a program that takes longer is not run again unasked
constexpr std::uint64_t kEndlessBytes = kTiB;
constexpr int kStandardOutput = 1, kStandardError = 2;

struct PlanArguments {
  std::vector<std::string> command;
  std::string gpu;
  std::string context;
  std::string folder;
  std::string vary;
  std::vector<std::string> function;  // of a running program: what to call it; its folder goes when the plan is made
  std::uint64_t steps = 8;
  std::uint64_t seconds = 120;
  bool real = false;
  bool try_changes = false;
  bool no_try = false;
  Limits limits;
  OutputOptions output;
};

Result<std::optional<Gpu>> gpu_of(const PlanArguments& arguments) {
  std::optional<Gpu> gpu;
  if (!arguments.gpu.empty()) {
    Result<Gpu> found = find_gpu(arguments.gpu);
    if (!found) return Error{"--gpu: " + found.error().message(), {}, {}};
    gpu = *found;
    if (!gpu->note.empty()) hint("--gpu: " + std::string(gpu->note));
  }
  if (!arguments.context.empty()) {
    if (!gpu) return Error{"--context needs --gpu", {}, {}};
    Result<std::uint64_t> context = parse_bytes(arguments.context);
    if (!context) return Error{"--context: " + context.error().message(), {}, {}};
    gpu->context_bytes = *context;
  }
  if (gpu && gpu->context_bytes >= gpu->capacity_bytes) {
    return Error{fmt::format("--gpu: {} leave nothing beside the CUDA context ({})", format_bytes(gpu->capacity_bytes), format_bytes(gpu->context_bytes)), {}, {}};
  }
  return gpu;
}

// The GPU as the program sees it. Without one in mind it is a large one that grows where it is not enough.
DryRunRequest request_for(const PlanArguments& arguments, const std::optional<Gpu>& gpu) {
  DryRunRequest request;
  request.gpu = gpu ? *gpu : *find_gpu(fmt::format("{}", kEndlessBytes));
  request.gpu_name = !gpu ? "GPU of any size" : gpu->name.empty() ? "GPU of " + format_bytes(gpu->capacity_bytes) : std::string(gpu->full_name);
  request.overcommit = !gpu;
  request.real = arguments.real;
  request.steps = arguments.steps;
  request.seconds = arguments.seconds;
  return request;
}

// Why there is nothing to plan, or nothing.
std::string nothing_planned(const DryRunResult& run, const PlanArguments& arguments) {
  for (const ProcessSummary& process : run.processes) {
    if (process.unsupported.empty()) continue;
    return "this program cannot be dry-run: " + process.unsupported + (arguments.real ? "" : ". --real runs it with real numbers instead, which is slower");
  }
  const ProcessSummary* main = run.main();
  if (main == nullptr || main->trace.empty()) {
    return fmt::format("nothing was planned: {} did not import PyTorch{}", arguments.command.front(), run.status != 0 ? fmt::format(" and ended with status {}", run.status) : " (or is no Python program)");
  }
  return {};
}

// A program that writes for real is not run again unasked: it would find what it left, and leave it once more.
bool may_run_again(const PlanArguments& arguments) { return !arguments.limits.allow_writes || arguments.try_changes || !arguments.vary.empty(); }

// The rerun reached the request that had failed, so it can be told in the first run's place.
bool went_as_far(const DryRunResult& again, const DryRunResult& first) {
  return again.main() != nullptr && !again.main()->trace.empty() && again.main()->operations >= first.main()->operations;
}

int plan(const PlanArguments& arguments) {
  if (arguments.command.empty()) return fail("plan takes the program behind --, for example: faultline plan --gpu T4 -- python train.py");
  Result<std::optional<Gpu>> gpu = gpu_of(arguments);
  if (!gpu) return fail(gpu.error().message());
  Result<PlanParts> parts = find_plan_parts();
  if (!parts) return fail(parts.error().message());
  if (Status confined = confine::may_confine(); !confined && !arguments.limits.allow_writes) {
    return fail(confined.error().message() + ", so what the program writes could not be kept apart from your files. Nothing was run; --allow-writes runs it all the same, once");
  }
  if (arguments.limits.allow_writes && arguments.limits.offline) return fail("--offline needs the program to be watched, and --allow-writes leaves it alone");
  Result<std::string> folder = make_run_folder(arguments.folder, arguments.command);
  if (!folder) return fail(folder.error().message());

  const bool json = arguments.output.format == "json";
  const DryRunJob job{arguments.command, request_for(arguments, *gpu), *folder, arguments.limits, *folder, arguments.function.empty()};
  const GivenInput input(*folder);
  const std::string started = utc_now();
  Result<DryRunResult> first = run_in_foreground(*parts, job, input, json ? Output::kToStandardError : Output::kAsIs);
  if (!first) {
    std::error_code problem;
    if (arguments.folder.empty()) std::filesystem::remove_all(*folder, problem);  // nothing happened that it could tell of
    return fail(first.error().message());
  }
  if (Status written = write_command(*folder, {"plan", arguments.command, started, first->status, first->seconds, {}, {}}); !written) hint(written.error().message());
  if (const std::string why = nothing_planned(*first, arguments); !why.empty()) {
    std::error_code problem;
    if (arguments.folder.empty()) std::filesystem::remove_all(*folder, problem);
    return fail(why);
  }

  // A run that died of memory is run again on a device that grows, to learn how much it needs in all.
  std::optional<DryRunResult> overcommitted;
  const bool may_again = may_run_again(arguments) && !first->effects.input_was_cut;
  if (first->effects.input_was_cut) hint("the program is not run again: not all that it read from standard input could be kept");
  if (first->main()->died_of_memory() && !interrupted() && may_again) {
    hint("out of memory; running it once more on a larger GPU, to learn how much it needs");
    DryRunJob again = job;
    again.folder = *folder + "/overcommitted";
    again.request.overcommit = true;
    std::vector<DryRunResult> results = run_quietly(*parts, {again}, input);
    if (went_as_far(results.front(), *first)) overcommitted = std::move(results.front());
    else hint("the second run ended before the request that had failed, so how much it needs in all is not known");
  }

  const DryRunResult& told = overcommitted ? *overcommitted : *first;
  Result<std::unique_ptr<JudgedRun>> judged = judge_run(told.main()->trace, !*gpu);
  if (!judged) return fail(judged.error().message());
  const VerdictInput seen{arguments.function.empty() ? arguments.command : arguments.function, *gpu, job.request.gpu.context_bytes, *folder, &*first, overcommitted ? &*overcommitted : nullptr, arguments.real};
  Plan plan = make_plan(seen, **judged);

  const bool may_try = plan.gpu && !arguments.no_try && !interrupted() && may_again;
  const bool wants_changes = may_try && (plan.verdict == Verdict::kDoesNotFit || arguments.try_changes);
  const bool wants_search = may_try && (plan.verdict == Verdict::kDoesNotFit || !arguments.vary.empty());
  const bool takes_long = first->seconds > kLongestToRepeat && !arguments.try_changes;
  const Attempts attempts{*parts, job, *told.main(), **judged, input};
  if (wants_changes) add_settings(attempts, plan);
  if ((wants_changes || wants_search) && takes_long) {
    plan.changes_skipped = fmt::format("The program took {:.0f} s and was not run again with changes; --try does.", first->seconds);
  } else {
    if (wants_changes) add_changes(attempts, plan);
    if (wants_search) add_search(attempts, arguments.vary, plan);
  }

  if (!job.folder_stays) plan.folder.clear();
  Report report = make_report((*judged)->trace, (*judged)->judgement);
  attach_plan(report, std::move(plan));
  if (Status written = write_text(*folder + "/report.json", to_json(report)); !written) hint(written.error().message());
  const int descriptor = json ? kStandardOutput : kStandardError;
  const std::string text = rendered(report, arguments.output, descriptor);
  const std::string kept = job.folder_stays ? fmt::format("Kept in {}; faultline explain tells it again.\n", shown_folder(*folder)) : "";
  return write_out(json ? text : "\n" + text + kept, exit_status(report), descriptor);
}

}  // namespace

void add_plan(CLI::App& app, const std::vector<std::string>& command, int& status) {
  CLI::App* verb = app.add_subcommand("plan", "runs a PyTorch program without a GPU, given behind --: will it fit, why not, what would");
  auto arguments = std::make_shared<PlanArguments>();
  arguments->command = command;
  verb->add_option("--gpu", arguments->gpu, "the GPU, by name or by its memory, for example T4 or 24GiB; without it the report lists the GPUs it fits on");
  verb->add_option("--context", arguments->context, "what the CUDA context and libraries take of --gpu; without it what such a GPU is known to need");
  verb->add_option("--steps", arguments->steps, "stop the program after so many optimizer steps; 0: never")->capture_default_str();
  verb->add_option("--seconds", arguments->seconds, "stop the program after so long; 0: never")->capture_default_str();
  verb->add_option("--vary", arguments->vary, "the number to search the largest fitting value of, for example batch_size");
  verb->add_flag("--real", arguments->real, "compute real numbers on the CPU: slow, for programs whose memory depends on them");
  verb->add_flag("--try", arguments->try_changes, "try changes also when it fits, or when the program takes long");
  verb->add_flag("--no-try", arguments->no_try, "do not run the program again to try changes");
  verb->add_flag("--allow-writes", arguments->limits.allow_writes, "let the program write, rename and remove files for real; it is then run once, unless --try or --vary is given");
  verb->add_flag("--offline", arguments->limits.offline, "refuse the program's connections to other machines");
  verb->add_option("--output,-o", arguments->folder, "the folder to keep the run in; faultline-PROGRAM-TIME unless told");
  verb->add_option("--function", arguments->function, "a part of faultline.plan(): what the report calls the program")->group("");
  add_output_options(*verb, arguments->output);
  verb->callback([arguments, &status] { status = plan(*arguments); });
}

}  // namespace faultline::cli
