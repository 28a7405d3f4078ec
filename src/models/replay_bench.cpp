// How fast replays run. items_per_second counts trace events: an allocation and its free are three (alloc, free requested, free completed).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "base/units.h"
#include "models/replay.h"
#include "models/request_trace.h"

namespace faultline {
namespace {

// Steps of forward (activations pile up, temporaries come and go), backward (freed in reverse, gradients made), optimizer (small temporaries).
Trace training_trace(std::size_t events) {
  RequestTrace make;
  const Trace& trace = make.trace();
  std::mt19937_64 random(7);
  std::vector<AllocationId> parameters;
  for (int layer = 0; layer < 96; ++layer) parameters.push_back(make.alloc(512 * (1 + random() % 16384)));
  std::vector<std::uint64_t> sizes;
  for (int layer = 0; layer < 96; ++layer) sizes.push_back(512 * (1 + random() % 65536));
  while (trace.events.size() < events) {
    std::vector<AllocationId> activations;
    for (const std::uint64_t size : sizes) {
      const AllocationId temporary = make.alloc(size / 2 + 100);
      activations.push_back(make.alloc(size));
      const AllocationId mask = make.alloc(size / 8 + 1);
      make.free(temporary);
      activations.push_back(mask);
    }
    std::vector<AllocationId> gradients;
    while (!activations.empty()) {
      const AllocationId temporary = make.alloc(sizes[activations.size() / 2 % sizes.size()]);
      make.free(activations.back());
      activations.pop_back();
      if (activations.size() % 2 == 0) gradients.push_back(make.alloc(sizes[activations.size() / 2] / 3 + 1));
      make.free(temporary);
    }
    for (const AllocationId gradient : gradients) {
      make.free(make.alloc(4));
      make.free(gradient);
    }
  }
  return std::move(make.trace());
}

enum class Sizes { kSome, kAny, kOne };

// A hundred thousand live blocks; blocks die at random. kSome: two hundred different sizes, as a program has; kAny: every block its own, the worst.
Trace crowded_trace(std::size_t events, std::size_t live, Sizes sizes) {
  RequestTrace make;
  const Trace& trace = make.trace();
  std::mt19937_64 random(11);
  const auto any = [&] { return std::uint64_t{1} << (9 + random() % 12) | (random() % 4096); };
  std::vector<std::uint64_t> some;
  for (int at = 0; at < 200; ++at) some.push_back(any());
  const auto size = [&] {
    return sizes == Sizes::kOne ? 4096 : sizes == Sizes::kSome ? some[random() % some.size()] : any();
  };
  std::vector<AllocationId> alive;
  for (std::size_t at = 0; at < live; ++at) alive.push_back(make.alloc(size()));
  while (trace.events.size() < events) {
    for (int died = 0; died < 2; ++died) {
      std::swap(alive[random() % alive.size()], alive.back());
      make.free(alive.back());
      alive.pop_back();
    }
    for (int born = 0; born < 2; ++born) alive.push_back(make.alloc(size()));
  }
  return std::move(make.trace());
}

void run(benchmark::State& state, const Trace& trace, const ReplayOptions& options) {
  for (auto _ : state) {
    auto result = replay(trace, options);
    if (!result || (options.proof && result->exact != result->placements)) state.SkipWithError("the replay failed");
    benchmark::DoNotOptimize(result);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(trace.events.size()));
}

ReplayOptions with(SettingChanges changes) {
  ReplayOptions options;
  options.changes = std::move(changes);
  return options;
}

void WhatIfTraining(benchmark::State& state) { run(state, training_trace(1'000'000), {}); }
void WhatIfTrainingExpandable(benchmark::State& state) {
  run(state, training_trace(1'000'000), with({{"expandable_segments", "True"}}));
}
void WhatIfTrainingTrace(benchmark::State& state) {
  ReplayOptions options;
  options.want_trace = true;
  run(state, training_trace(1'000'000), options);
}
void WhatIfCrowded(benchmark::State& state) { run(state, crowded_trace(3'000'000, 100'000, Sizes::kSome), {}); }
void WhatIfCrowdedExpandable(benchmark::State& state) {
  run(state, crowded_trace(3'000'000, 100'000, Sizes::kSome), with({{"expandable_segments", "True"}}));
}
void WhatIfCrowdedAnySize(benchmark::State& state) { run(state, crowded_trace(3'000'000, 100'000, Sizes::kAny), {}); }
void WhatIfOneSize(benchmark::State& state) { run(state, crowded_trace(3'000'000, 100'000, Sizes::kOne), {}); }

void prove(benchmark::State& state, const Trace& requests) {
  ReplayOptions place;
  place.want_trace = true;
  auto placed = replay(requests, place);
  if (!placed) {
    state.SkipWithError("the replay failed");
    return;
  }
  ReplayOptions proof;
  proof.proof = true;
  run(state, *placed->trace, proof);
}
void ProofTraining(benchmark::State& state) { prove(state, training_trace(1'000'000)); }
void ProofCrowded(benchmark::State& state) { prove(state, crowded_trace(3'000'000, 100'000, Sizes::kSome)); }

BENCHMARK(WhatIfTraining)->Unit(benchmark::kMillisecond);
BENCHMARK(WhatIfTrainingExpandable)->Unit(benchmark::kMillisecond);
BENCHMARK(WhatIfTrainingTrace)->Unit(benchmark::kMillisecond);
BENCHMARK(WhatIfCrowded)->Unit(benchmark::kMillisecond);
BENCHMARK(WhatIfCrowdedExpandable)->Unit(benchmark::kMillisecond);
BENCHMARK(WhatIfCrowdedAnySize)->Unit(benchmark::kMillisecond);
BENCHMARK(WhatIfOneSize)->Unit(benchmark::kMillisecond);
BENCHMARK(ProofTraining)->Unit(benchmark::kMillisecond);
BENCHMARK(ProofCrowded)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace faultline

BENCHMARK_MAIN();
