// explain FILE…: finds out what each FILE is, and explains it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "cli/options.h"
#include "models/gpus.h"
#include "process/overwriting.h"
#include "process/progress.h"
#include "report/assemble.h"
#include "report/exit_status.h"
#include "sources/input.h"
#include "sources/source.h"
#include "trace/file_writer.h"

namespace faultline::cli {
namespace {

struct ExplainOptions {
  std::vector<std::string> paths;
  std::string gpu;
  std::string save_trace;
  OutputOptions output;
};

// Where the input does not say how large its GPU is.
void say_gpu(const Gpu& gpu, std::vector<Input>& inputs) {
  bool stated = false;
  for (Input& input : inputs) {
    for (InputPart& part : input.parts) {
      StatedError& error = part.statements.error;
      if (error && !error.capacity) error.capacity = ByteInterval::exactly(gpu.capacity_bytes);
      for (Device& device : part.trace.devices) {
        if (device.capacity_bytes == 0)
          device.capacity_bytes = gpu.capacity_bytes;
        else if (device.capacity_bytes != gpu.capacity_bytes)
          stated = true;
        if (device.name.empty()) device.name = gpu.full_name;
      }
    }
  }
  if (stated)
    hint(
        "--gpu: the input says itself how large its GPU is, and is judged by that; faultline replay --gpu asks what "
        "another one would do");
  if (!gpu.note.empty()) hint("--gpu: " + std::string(gpu.note));
}

Status save_trace(const ExplainOptions& options, const std::vector<Input>& inputs) {
  const std::string& path = options.save_trace;
  if (options.paths.size() != 1) return Error{"--save-trace takes one input", {}, {}};
  if (is_same_file(path, options.paths.front()))
    return Error{"--save-trace: " + path + " is the input itself; give another name", {}, {}};
  if (!may_be_overwritten(path))
    return Error{"--save-trace: " + path + " is there already and is no Faultline trace; give another name", {}, {}};
  if (inputs.empty()) return Ok{};
  if (const std::vector<InputPart>& parts = inputs.front().parts; parts.size() > 1)
    return Error{"--save-trace writes one trace, and this has " + std::to_string(parts.size()) + " (" + parts[0].name +
                     ", " + parts[1].name + (parts.size() > 2 ? ", …" : "") +
                     "): name the file of one of them, for example FOLDER/process-12.faultline",
                 {},
                 {}};
  Status saved = write_trace_file(inputs.front().parts.front().trace, path);
  if (!saved) return Error{saved.error().message(path), {}, {}};
  return Ok{};
}

int explain(const ExplainOptions& options) {
  std::optional<Gpu> gpu;
  if (!options.gpu.empty()) {
    Result<Gpu> found = find_gpu(options.gpu);
    if (!found) return fail("--gpu: " + found.error().message());
    gpu = *found;
  }
  int status = kClean;
  std::vector<Input> inputs;
  std::optional<Progress> progress(std::in_place);
  for (const std::string& path : options.paths) {
    progress->step(reading(path), path);
    Result<Input> input = open_input(path);
    if (input) inputs.push_back(std::move(*input));
    // the others are explained all the same
    else
      status = fail(input.error().message(path == "-" ? "standard input" : path));
  }
  if (gpu) say_gpu(*gpu, inputs);
  share_device_sizes(inputs);
  const bool has_report = std::any_of(inputs.begin(), inputs.end(), [](const Input& i) { return !i.report.empty(); });
  RecordingsForm* const write_recordings = options.output.writes_recordings();
  if (has_report && (!options.save_trace.empty() || write_recordings != nullptr))
    return fail("a report holds no events, so there is no trace to write; give the recording itself");
  if (has_report && gpu) hint("--gpu: a report is shown as it was written");
  if (!options.save_trace.empty()) {
    if (Status saved = save_trace(options, inputs); !saved) return fail(saved.error().message());
  }
  if (inputs.empty()) return status;
  progress->step("judging what was recorded");
  if (write_recordings != nullptr) return write_recordings({inputs, status, exit_status, [&] { progress.reset(); }});
  std::vector<Report> reports;
  for (const Input& input : inputs) {
    reports.push_back(make_report(input));
    status = std::max(status, exit_status(reports.back()));
  }
  progress.reset();
  return write_out(rendered(reports, options.output, STDOUT_FILENO, options.paths.size() > 1), status);
}

}  // namespace

void add_explain(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "explain", "finds out what FILE is (snapshot, trace, core dump, error message, log, folder) and explains it");
  auto options = std::make_shared<ExplainOptions>();
  verb->add_option("FILE", options->paths, known_inputs() + "; - is standard input")->required()->option_text("...");
  add_gpu_option(*verb, options->gpu, "for example T4 or 80GiB, where the input does not say it");
  verb->add_option("--save-trace", options->save_trace, "also write what was read as a Faultline trace")
      ->option_text("PATH");
  verb->footer(
      "Exit status: 0 no error and no warning, 1 at least one, 2 bad usage, or an input that cannot be read or holds "
      "no GPU error, 3 internal error.");
  add_output_options(*verb, options->output);
  verb->callback([options, &status] { status = explain(*options); });
}

}  // namespace faultline::cli
