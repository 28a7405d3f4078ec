// A program that never ran: its dry runs are made up, from what it takes with each value of its batch and under each change.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "plan/make_plan.h"

namespace faultline {

constexpr std::uint64_t kContextBytes = 500 * kMiB;

// The GPU all of them run on: 8 GiB, of which the context leaves 7.51 GiB.
inline Gpu gpu_of_8_gib() {
  Gpu gpu = *find_gpu("8GiB");
  gpu.context_bytes = kContextBytes;
  return gpu;
}

// What a PyTorch program may do with its numbers.
inline std::vector<Offer> number_offers() {
  Offer batch, length;
  batch.name = "batch";
  batch.number = OfferedNumber::kBatch;
  batch.beside = "accumulate";
  batch.cost = 30;
  batch.cost_step = 1;
  batch.is_searched = true;
  length.name = "sequence";
  length.number = OfferedNumber::kLength;
  length.cost = 110;
  length.cost_step = 10;
  length.computes_another = true;
  return {batch, length};
}

struct MadeUpProgram {
  std::function<std::uint64_t(const Attempt&)> batch = [](const Attempt&) { return std::uint64_t{16}; };
  std::function<std::uint64_t(const Attempt&, std::uint64_t)> takes = [](const Attempt&, std::uint64_t of) {
    return kGiB + of * 512 * kMiB;
  };
  std::vector<Attempt> attempts;  // that were asked for
  std::vector<std::string> told;

  // The trace of one block of so many bytes, in a file. On a device that is too small the request fails, and with `grows` is served after it.
  static std::string trace(std::uint64_t bytes, bool grows, std::uint64_t capacity_bytes = 8 * kGiB) {
    static int number = 0;
    const std::string path =
        testing::TempDir() + "plan-" + std::to_string(::getpid()) + "-" + std::to_string(++number) + ".txt";
    std::ofstream file(path);
    file << "faultline-trace-text 1\nsource dry-run\nproperty dry-run.context_bytes = " << kContextBytes
         << "\ndevice 0 capacity=" << capacity_bytes << "\n";
    const bool fails = kContextBytes + bytes > capacity_bytes;
    if (fails) file << "alloc-failed " << bytes << " at train.py:7 main\n";
    if (!fails || grows) file << "alloc #s " << bytes << " driver\nalloc #a " << bytes << " at train.py:7 main\n";
    return path;
  }

  static DryRunResult left(std::uint64_t bytes, bool grows) {
    ProcessSummary summary;
    summary.trace = trace(bytes, grows);
    summary.ended_in_order = true;
    summary.allocations = summary.operations = 1;
    const bool fails = kContextBytes + bytes > 8 * kGiB;
    summary.failures = fails ? 1 : 0;
    if (fails && !grows) summary.exception = PlanException{"OutOfMemoryError", "CUDA out of memory", {}};
    DryRunResult result;
    result.status = fails && !grows ? 1 : 0;
    result.processes = {summary};
    return result;
  }

  DryRunResult first() { return left(takes({}, batch({})), false); }

  Reruns reruns() {
    const auto run = [this](const std::vector<Attempt>& asked) {
      std::vector<DryRunResult> results;
      for (const Attempt& attempt : asked) {
        attempts.push_back(attempt);
        results.push_back(left(takes(attempt, batch(attempt)), true));
        ProcessSummary& process = results.back().processes.front();
        for (const auto& [name, value] : attempt.changes) {
          if (!attempt.edits.contains(name)) process.changes[name] = "done";
        }
        for (const auto& [name, edits] : attempt.edits) {
          process.edited_remedies.push_back(name);
          process.edited.insert(process.edited.end(), edits.begin(), edits.end());
        }
        if (!attempt.vary) continue;
        results.back().processes.front().vary_value = attempt.vary->first == "batch_size" ? batch({}) : 0;
        results.back().processes.front().vary_where = "train.py:3";
      }
      return results;
    };
    return {run, [this](const std::string& sentence) { told.push_back(sentence); }, [] { return false; }};
  }

  PlanQuestion question() const {
    PlanQuestion question;
    question.command = {"python", "train.py"};
    question.gpus = {gpu_of_8_gib()};
    question.folder = testing::TempDir();
    return question;
  }

  Plan plan(const PlanQuestion& asked) {
    Result<std::unique_ptr<PlannedRun>> planned = make_plan(asked, first(), reruns());
    EXPECT_TRUE(planned.ok()) << planned.error().message();
    return planned ? std::move((*planned)->plan) : Plan{};
  }
};

}  // namespace faultline
