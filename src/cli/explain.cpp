// explain FILE…: finds out what each FILE is, and explains it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "cli/options.h"
#include "cli/run_folder.h"
#include "models/gpus.h"
#include "report/assemble.h"
#include "report/exit_status.h"
#include "rules/judge.h"
#include "sources/error_text/error_text.h"
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

// A message pasted beside a recording tells what the recording cannot: the size of the device and the program's limit.
void share_device_sizes(std::vector<Trace>& traces) {
  for (const Trace& message : traces) {
    if (message.source_kind != kErrorTextSource) continue;
    for (const Device& stated : message.devices) {
      for (Trace& other : traces) {
        for (Device& device : other.devices) {
          if (device.index != stated.index) continue;
          if (device.capacity_bytes == 0) device.capacity_bytes = stated.capacity_bytes;
          if (device.allowed_bytes == 0) device.allowed_bytes = stated.allowed_bytes;
        }
      }
    }
  }
}

int explain(const ExplainOptions& options) {
  std::optional<Gpu> gpu;
  if (!options.gpu.empty()) {
    Result<Gpu> found = find_gpu(options.gpu);
    if (!found) return fail("--gpu: " + found.error().message());
    gpu = *found;
  }
  int status = kClean;
  std::vector<Trace> traces;
  std::map<std::size_t, Plan> plans;  // by place in traces
  for (const std::string& path : options.paths) {
    if (is_run_folder(path)) {
      Result<RunFolder> folder = load_run_folder(path);
      if (!folder) {
        status = fail(folder.error().message(path));
        continue;
      }
      if (folder->plan) plans.emplace(traces.size(), std::move(*folder->plan));
      for (Trace& trace : folder->traces) traces.push_back(std::move(trace));
      continue;
    }
    Result<Trace> trace = load(path);
    if (trace) {
      traces.push_back(std::move(*trace));
    } else {
      status = fail(trace.error().message(path == "-" ? "standard input" : path));  // the others are explained all the same
    }
  }
  if (gpu) {
    for (Trace& trace : traces) {
      for (Device& device : trace.devices) {
        device.capacity_bytes = gpu->capacity_bytes;
        if (device.name.empty()) device.name = gpu->full_name;
      }
    }
    if (!gpu->note.empty()) hint("--gpu: " + std::string(gpu->note));
  }
  share_device_sizes(traces);
  if (!options.save_trace.empty()) {
    if (options.paths.size() != 1) return fail("--save-trace takes one input");
    if (traces.empty()) return status;
    if (Status saved = write_trace_file(traces.front(), options.save_trace); !saved) return fail(saved.error().message(options.save_trace));
  }
  const bool json = options.output.format == "json";
  std::string text;
  for (std::size_t at = 0; at < traces.size(); ++at) {
    const Judgement judgement = judge(traces[at]);
    Report report = make_report(traces[at], judgement);
    if (const auto plan = plans.find(at); plan != plans.end()) attach_plan(report, std::move(plan->second));
    if (!text.empty()) text += json ? ",\n" : "\n";
    text += rendered(report, options.output);
    status = std::max(status, exit_status(report));
  }
  if (json && (options.paths.size() > 1 || traces.size() > 1)) text = "[" + text + "]\n";
  return text.empty() ? status : write_out(text, status);
}

}  // namespace

void add_explain(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("explain", "finds out what FILE is (snapshot, trace, error message, log or run folder) and explains it");
  auto options = std::make_shared<ExplainOptions>();
  verb->add_option("FILE", options->paths, "a PyTorch memory snapshot, a Faultline trace, text with an error message in it, or the folder that a run left; - is standard input")->required();
  verb->add_option("--gpu", options->gpu, "the GPU, by name or by its memory, for example T4 or 80GiB, where the input does not say it");
  verb->add_option("--save-trace", options->save_trace, "also write what was read as a Faultline trace");
  add_output_options(*verb, options->output);
  verb->callback([options, &status] { status = explain(*options); });
}

}  // namespace faultline::cli
