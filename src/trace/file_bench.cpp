// How fast a trace file is written and read. Items are events.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "trace/file_reader.h"
#include "trace/file_writer.h"
#include "trace/sample_traces.h"

namespace faultline {
namespace {

std::string scratch_path() {
  return (std::filesystem::temp_directory_path() / ("faultline-bench-" + std::to_string(::getpid()))).string();
}

void write_file(benchmark::State& state) {
  const Trace trace = TrainingTrace().make(static_cast<std::size_t>(state.range(0)));
  const std::string path = scratch_path();
  for (auto _ : state) {
    if (!write_trace_file(trace, path)) state.SkipWithError("cannot write");
  }
  state.counters["bytes_per_event"] =
      static_cast<double>(std::filesystem::file_size(path)) / static_cast<double>(trace.events.size());
  state.SetItemsProcessed(static_cast<std::int64_t>(trace.events.size()) *
                          static_cast<std::int64_t>(state.iterations()));
  std::filesystem::remove(path);
}
BENCHMARK(write_file)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void append(benchmark::State& state) {
  const Trace trace = TrainingTrace().make(100'000);
  const std::string path = scratch_path();
  auto file = TraceFile::create(path);
  if (!file) {
    state.SkipWithError("cannot create");
    return;
  }
  {
    TraceFileWriter writer(**file);
    std::size_t i = 0;
    for (auto _ : state) {
      const Status status = writer.append(trace.events[i]);
      benchmark::DoNotOptimize(status.ok());
      i = i + 1 == trace.events.size() ? 0 : i + 1;
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  std::filesystem::remove(path);
}
BENCHMARK(append);

void read_file(benchmark::State& state) {
  const std::string path = scratch_path();
  std::size_t events = 0;
  {
    const Trace trace = TrainingTrace().make(static_cast<std::size_t>(state.range(0)));
    events = trace.events.size();
    if (!write_trace_file(trace, path)) state.SkipWithError("cannot write");
  }
  for (auto _ : state) {
    const Result<Trace> trace = read_trace_file(path);
    benchmark::DoNotOptimize(trace.ok());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(events) * static_cast<std::int64_t>(state.iterations()));
  std::filesystem::remove(path);
}
BENCHMARK(read_file)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace faultline

BENCHMARK_MAIN();
