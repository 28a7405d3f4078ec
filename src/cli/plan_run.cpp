#include "cli/plan_run.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace faultline::cli {
namespace {

Environment environment_for(const PlanParts& parts, const std::string& folder) {
  Environment environment;
  environment.prepend("PYTHONPATH", parts.python + "/faultline/_inject:" + parts.python);
  environment.set("FAULTLINE_PLAN", folder + "/plan.json");
  environment.set("MALLOC_MMAP_THRESHOLD_", "65536");  // large host tensors that nobody fills cost addresses, not memory
  environment.set("CUDA_VISIBLE_DEVICES", "");
  return environment;
}

DryRunResult finished(pid_t process, const DryRunJob& job) {
  const ProgramEnd end = wait_for_program(process);
  DryRunResult result;
  result.status = end.status;
  result.seconds = end.seconds;
  result.folder = job.folder;
  result.processes = read_summaries(job.folder);
  return result;
}

}  // namespace

Result<DryRunResult> run_in_foreground(const PlanParts& parts, const DryRunJob& job, Output output) {
  if (Status written = write_request(job.folder, parts, job.request); !written) return written.error();
  const InterruptsNoted noted;
  Result<pid_t> process = start_program(job.command, environment_for(parts, job.folder), output);
  if (!process) return process.error();
  return finished(*process, job);
}

std::vector<DryRunResult> run_quietly(const PlanParts& parts, const std::vector<DryRunJob>& jobs) {
  const InterruptsNoted noted;
  std::vector<DryRunResult> results(jobs.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < jobs.size() && !interrupted(); at = next++) {
      if (!write_request(jobs[at].folder, parts, jobs[at].request)) continue;
      const Result<pid_t> process = start_program(jobs[at].command, environment_for(parts, jobs[at].folder), Output::kAsIs, jobs[at].folder + "/log.txt");
      if (process) results[at] = finished(*process, jobs[at]);
    }
  };
  std::vector<std::thread> threads;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t more = 1; more < std::min(cores, jobs.size()); ++more) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace faultline::cli
