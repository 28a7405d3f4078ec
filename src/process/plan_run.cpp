#include "process/plan_run.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "confine/confined_program.h"
#include "facts/facts.h"
#include "fmt/format.h"
#include "process/effects.h"
#include "process/installation.h"
#include "process/progress.h"
#include "sources/run_folder/layout.h"
#include "trace/file_reader.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

Environment environment_for(const PlanParts& parts, const std::string& folder) {
  Environment environment;
  // what the program is to see of those that are changed here (environment.py)
  for (const std::string name : {"PYTHONPATH", "MALLOC_MMAP_THRESHOLD_", "CUDA_VISIBLE_DEVICES"})
    environment.set("FAULTLINE_USER_" + name, environment.has(name) ? "=" + environment.value(name) : "");
  environment.prepend("PYTHONPATH", parts.python + "/faultline/_inject");
  environment.set("FAULTLINE_PLAN", folder + "/" + std::string(layout::kRequest));
  // large host tensors that nobody fills cost addresses, not memory
  environment.set("MALLOC_MMAP_THRESHOLD_", "65536");
  environment.set("CUDA_VISIBLE_DEVICES", "-1,-1");  // none, and not as anybody else would write it
  return environment;
}

std::string effects_file(const std::string& folder) { return folder + "/" + std::string(layout::kEffects); }

// The command that runs the job's: through the keeper of its files, unless the user lets it write.
std::vector<std::string> command_for(const DryRunJob& job, const std::string& keep_input) {
  if (job.limits.allow_writes) return job.command;
  std::vector<std::string> command = {"/proc/self/exe", "keep-aside",   "--aside",   job.folder + "/aside",
                                      "--own-folder",   job.top_folder, "--effects", effects_file(job.folder)};
  if (!keep_input.empty()) command.insert(command.end(), {"--keep-input", keep_input});
  if (job.limits.offline) command.emplace_back("--offline");
  command.emplace_back("--");
  command.insert(command.end(), job.command.begin(), job.command.end());
  return command;
}

DryRunJob job_for(const Attempt& attempt, const DryRunJob& first) {
  DryRunJob job = first;
  job.command = attempt.command;
  job.folder = first.folder + "/" + attempt.folder;
  job.request.overcommit = true;
  job.request.refused = attempt.refused;
  if (attempt.ranks != 0) job.request.ranks = attempt.ranks;
  job.request.changes = attempt.changes;
  job.request.vary = attempt.vary;
  job.request.edits = attempt.edits;
  job.request.many = attempt.many;
  // where the user said how far to go no less
  if (attempt.steps != 0 && job.request.steps != 0 &&
      (job.request.go_on || attempt.many > 1 || attempt.steps > job.request.steps)) {
    job.request.steps = attempt.steps;
    job.request.at_least_seconds = 0;
  }
  return job;
}

// Has a process of the program left its first file? The folder is looked through only when something was made in it.
class Beginning {
 public:
  explicit Beginning(std::string folder) : folder_(std::move(folder)) {}
  bool is_seen() {
    std::error_code problem;
    const fs::file_time_type changed = fs::last_write_time(folder_, problem);
    const fs::file_time_type now = fs::file_time_type::clock::now();
    if (problem || (changed == looked_at_ && now - changed > kClockSteps)) return false;
    looked_at_ = changed;
    return has_process_file();
  }

 private:
  static constexpr std::chrono::seconds kClockSteps{
      1};  // two changes within one step of a file system's clock have one time
  bool has_process_file() const;

  std::string folder_;
  fs::file_time_type looked_at_{};
};

bool Beginning::has_process_file() const {
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, problem)) {
    if (entry.path().filename().string().starts_with(layout::kProcess)) return true;
  }
  return false;
}

// The program's own process counts its time from the moment it has PyTorch, and ends itself. What it cannot end that way is ended from here, a
// while later: a program that never imports PyTorch, one that computes without PyTorch and hears nothing, one that is stuck.
Patience patience_for(const DryRunJob& job) {
  using Clock = std::chrono::steady_clock;
  if (job.request.seconds == 0) return {{}, !job.limits.allow_writes};
  const auto is_over = [&job, begin = Clock::now(), beginning = Beginning(job.folder), seen = false]() mutable {
    if (!seen && beginning.is_seen()) {
      seen = true;
      begin = Clock::now();
    }
    // importing takes a while
    return Clock::now() - begin > std::chrono::seconds(job.request.seconds + job.limits.grace_seconds * (seen ? 1 : 3));
  };
  return {is_over, !job.limits.allow_writes};
}

// For the terminal: which runs are under way, and for how long.
class RunningNow {
 public:
  explicit RunningNow(std::size_t all) : all_(all) {}
  void begin(std::size_t at, const std::string& folder) {
    const std::lock_guard held(mutex_);
    const std::string name = fs::path(folder).filename().string();
    runs_[at] = {name == layout::kLarger ? "a GPU that grows" : name, Clock::now()};
  }
  void end(std::size_t at) {
    const std::lock_guard held(mutex_);
    runs_.erase(at);
    ++ended_;
  }
  std::string line() {
    const std::lock_guard held(mutex_);
    std::string names;
    for (const auto& [at, run] : runs_)
      names += fmt::format("{}{} ({:.0f} s)", names.empty() ? "" : " and ", run.first,
                           std::chrono::duration<double>(Clock::now() - run.second).count());
    if (names.empty()) return {};
    return fmt::format("running it with {}; {} of {} done", names, ended_, all_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  std::map<std::size_t, std::pair<std::string, Clock::time_point>> runs_;
  std::size_t ended_ = 0, all_;
};

// A process that was killed, or ended by another, left no summary: what it took and how far it came stand in its trace.
void read_what_it_did(ProcessSummary& process) {
  const Result<Trace> trace = read_trace_file(process.trace);
  if (!trace || trace->events.empty()) return;
  process.began_s = static_cast<double>(trace->events.front().time_ns) / 1e9;
  process.ended_s = std::numeric_limits<double>::infinity();  // nobody saw it end
  for (const Event& event : trace->events) {
    process.allocations +=
        event.kind == EventKind::kAlloc && trace->heaps[event.heap.index()].kind != HeapKind::kDriver;
    process.failures += event.kind == EventKind::kAllocFailed;
  }
  const Facts facts(*trace, {});
  for (const DeviceUsage& usage : facts.usage)
    process.peak_reserved = std::max(process.peak_reserved, usage.peak_reserved.reserved);
  process.steps = facts.steps.ends.size();
  for (std::uint32_t stack = 1; stack < trace->stacks.size(); ++stack) {
    if (!facts.stacks.has(StackId(stack), kInBackward)) continue;
    process.uses.emplace_back("backward");
    break;
  }
}

double cpu_seconds_of_children() {
  rusage used{};
  if (::getrusage(RUSAGE_CHILDREN, &used) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

DryRunResult finished(pid_t process, const DryRunJob& job) {
  const ProgramEnd end = wait_for_program(process, patience_for(job));
  DryRunResult result;
  result.status = end.status;
  result.seconds = end.seconds;
  result.out_of_time = end.out_of_time;
  result.interrupted = interrupted();
  result.processes = read_summaries(job.folder);
  result.import_trouble = read_import_trouble(job.folder);
  if (end.out_of_time) {
    for (ProcessSummary& each : result.processes) {
      if (!each.stopped.empty()) continue;
      each.stopped_by = StoppedBy::kSeconds;
      each.stopped =
          fmt::format("after {:.0f} seconds, because it did not end by itself when its time was over (--seconds {})",
                      end.seconds, job.request.seconds);
    }
  }
  settle_ends(result);
  for (ProcessSummary& each : result.processes) {
    if (!each.ended_in_order && !each.trace.empty()) read_what_it_did(each);
  }
  if (job.limits.allow_writes) return result;
  result.effects = read_effects(effects_file(job.folder));
  std::error_code problem;
  fs::remove_all(job.folder + "/aside", problem);  // where the keeper could not
  return result;
}

}  // namespace

Result<DryRunResult> run_in_foreground(const PlanParts& parts, const DryRunJob& job, const GivenInput& input,
                                       Output output) {
  if (Status written = write_request(job.folder, parts, job.request, !job.limits.allow_writes); !written)
    return written.error();
  if (Status found = confine::find_program(job.command.front()); !found) return found.error();
  const InterruptsNoted noted;
  const double before = cpu_seconds_of_children();
  Result<pid_t> process = start_program(command_for(job, input.keep()), environment_for(parts, job.folder),
                                        Placement{output, {}, -1, true});
  if (!process) return process.error();
  DryRunResult result = finished(*process, job);
  result.cpu_seconds = cpu_seconds_of_children() - before;  // nothing else runs beside it
  return result;
}

std::vector<DryRunResult> run_quietly(const PlanParts& parts, const DryRunJob& first,
                                      const std::vector<Attempt>& attempts, const GivenInput& input) {
  const InterruptsNoted noted;
  std::vector<DryRunResult> results(attempts.size());
  std::atomic<std::size_t> next{0};
  RunningNow now(attempts.size());
  Progress progress;
  progress.step([&now] { return now.line(); });
  const auto work = [&] {
    for (std::size_t at = next++; at < attempts.size() && !interrupted(); at = next++) {
      const DryRunJob job = job_for(attempts[at], first);
      if (!write_request(job.folder, parts, job.request, !job.limits.allow_writes)) continue;
      const int again = input.again();
      const Result<pid_t> process = start_program(command_for(job, {}), environment_for(parts, job.folder),
                                                  Placement{Output::kAsIs, job.folder + "/log.txt", again, false});
      if (again >= 0) ::close(again);
      if (!process) continue;
      now.begin(at, attempts[at].folder);
      results[at] = finished(*process, job);
      now.end(at);
      if (job.folder_stays) results[at].log = shown_folder(job.folder) + "/log.txt";
    }
  };
  std::vector<std::thread> threads;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t more = 1; more < std::min(cores, attempts.size()); ++more) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace faultline::process
