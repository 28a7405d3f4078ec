// gpus: the GPUs that --gpu knows by name, with what a program finds on each.
#include "models/gpus.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/options.h"
#include "report/text.h"

namespace faultline::cli {
namespace {

int gpus() {
  struct Row {
    std::string name, memory, room, compute, prints;
  };
  std::vector<Row> rows = {{"NAME", "MEMORY", "FOR PYTORCH", "COMPUTE", "AS CUDA CALLS IT"}};
  for (const GpuEntry& entry : gpu_catalogue()) {
    const Gpu& gpu = entry.gpu;
    rows.push_back({std::string(gpu.name), format_bytes(gpu.capacity_bytes),
                    format_bytes(gpu.capacity_bytes - gpu.context_bytes),
                    fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor), std::string(gpu.full_name)});
  }
  int columns = 0;
  for (const Row& row : rows) columns = std::max(columns, display_width(row.name));
  std::string text;
  for (const Row& row : rows)
    text += fmt::format("{}  {:>10}  {:>11}  {:>7}  {}\n", pad_right(row.name, columns), row.memory, row.room,
                        row.compute, row.prints);
  return write_out(text + "\nAny other GPU goes by its memory: --gpu 24GiB.\n", kClean);
}

}  // namespace

void add_gpus(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("gpus", "lists the GPUs that --gpu knows: name, memory, compute capability");
  verb->footer("Exit status: 0 printed.");
  verb->callback([&status] { status = gpus(); });
}

}  // namespace faultline::cli
