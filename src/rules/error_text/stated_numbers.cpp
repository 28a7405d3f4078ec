#include "rules/error_text/stated_numbers.h"

#include "base/units.h"
#include "rules/error_text/error_text.h"
#include "sources/error_text/error_text.h"

namespace faultline {
namespace {

struct Process {
  std::string pid;
  PrintedBytes bytes;
};

std::vector<Process> listed_processes(const Trace& trace, bool& incomplete) {
  std::vector<Process> processes;
  for (int i = 1; i <= 64; ++i) {
    const std::string name = "process." + std::to_string(i);
    const std::string_view pid = stated_word(trace, name + ".pid");
    if (pid.empty()) break;
    if (const auto bytes = stated_bytes(trace, name))
      processes.push_back({std::string(pid), *bytes});
    else
      incomplete = true;
  }
  return processes;
}

// In a container a process does not know the number it is listed under. Its own entry is still certain when only one entry is large
// enough for what it has reserved, and when there is no room for that outside the list.
std::optional<std::size_t> find_self(const StatedNumbers& numbers, const std::vector<Process>& processes, PrintedBytes sum) {
  if (!numbers.reserved || !numbers.capacity || !numbers.free) return std::nullopt;
  const PrintedBytes outside_list = *numbers.capacity - *numbers.free - sum;
  if (!surely_less(outside_list, *numbers.reserved)) return std::nullopt;
  std::optional<std::size_t> self;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (surely_less(processes[i].bytes, *numbers.reserved)) continue;
    if (self) return std::nullopt;
    self = i;
  }
  return self;
}

}  // namespace

PrintedBytes StatedNumbers::needed() const {
  const PrintedBytes asked = requested.value_or(PrintedBytes{});
  if (asked.max <= 2 * kMiB) return {1, asked.max};                                // small blocks share segments of 2 MiB
  if (asked.min <= 20 * kMiB && asked.max >= 20 * kMiB) return {kMiB, asked.max};  // blocks of 1 to 10 MiB share segments of 20 MiB
  return {asked.min > 2 * kMiB ? asked.min - 2 * kMiB : 1, asked.max};             // larger ones are rounded up to 2 MiB
}

std::optional<PrintedBytes> StatedNumbers::outside() const {
  if (!this_process || !reserved) return std::nullopt;
  return *this_process - *reserved;
}

std::optional<PrintedBytes> StatedNumbers::unexplained() const {
  if (!capacity || !free || !reserved) return std::nullopt;
  const PrintedBytes mine = this_process ? *this_process : *reserved;
  return *capacity - *free - mine - others.value_or(PrintedBytes{});
}

StatedNumbers stated_numbers(const Trace& trace) {
  StatedNumbers numbers;
  numbers.requested = stated_bytes(trace, "requested");
  numbers.capacity = stated_bytes(trace, "capacity");
  numbers.free = stated_bytes(trace, "free");
  numbers.allocated = stated_bytes(trace, "allocated");
  numbers.cached = stated_bytes(trace, "cached");
  numbers.graph_pool = stated_bytes(trace, "graph_pool");
  numbers.reserved = stated_bytes(trace, "reserved");
  numbers.allowed = stated_bytes(trace, "allowed");
  numbers.this_process = stated_bytes(trace, "this_process");

  bool incomplete = false;
  std::vector<Process> processes = listed_processes(trace, incomplete);
  if (processes.empty()) return numbers;
  PrintedBytes sum;
  for (const Process& process : processes) sum = sum + process.bytes;
  if (!numbers.this_process) {
    const auto self = incomplete ? std::nullopt : find_self(numbers, processes, sum);
    if (!self) {
      numbers.processes_ambiguous = true;
      return numbers;
    }
    numbers.found_self = true;
    numbers.this_process = processes[*self].bytes;
    processes.erase(processes.begin() + static_cast<std::ptrdiff_t>(*self));
  }
  if (processes.empty()) return numbers;
  PrintedBytes others;
  for (const Process& process : processes) {
    others = others + process.bytes;
    numbers.other_pids.push_back(process.pid);
  }
  numbers.others = others;
  return numbers;
}

std::optional<ErrorAccount> error_account(const Trace& trace) {
  const StatedNumbers numbers = stated_numbers(trace);
  if (!numbers.capacity) return std::nullopt;
  ErrorAccount account;
  account.capacity = numbers.capacity->middle();
  std::uint64_t left = account.capacity;
  // Rounded parts may overshoot the rounded whole by a little; each takes at most what is left.
  const auto take = [&](const std::optional<PrintedBytes>& part) {
    const std::uint64_t bytes = part ? std::min(part->middle(), left) : 0;
    left -= bytes;
    return bytes;
  };
  account.oversubscribed = numbers.allocated && surely_less(*numbers.capacity, *numbers.allocated);
  account.free = take(numbers.free);
  account.allocated = take(numbers.allocated);
  std::optional<PrintedBytes> cached = numbers.cached;
  if (cached && numbers.graph_pool) cached = *cached + *numbers.graph_pool;
  account.cached = take(cached);
  account.outside_framework = take(numbers.outside());
  account.other_processes = take(numbers.others);
  account.unknown = left;
  return account;
}

}  // namespace faultline
