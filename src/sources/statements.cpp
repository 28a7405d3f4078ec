#include "sources/statements.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "sources/stated_fields.h"

namespace faultline {
namespace {

constexpr std::size_t kMostPools = 64;

class PropertyReader {
 public:
  explicit PropertyReader(const Trace& trace) : properties_(trace.properties) {}

  const std::string* find(const std::string& name) const {
    const auto found = properties_.find(name);
    return found == properties_.end() ? nullptr : &found->second;
  }
  std::string word(const std::string& name) const {
    const std::string* found = find(name);
    return found == nullptr ? std::string() : *found;
  }
  std::optional<std::uint64_t> number(const std::string& name) const {
    const std::string* found = find(name);
    std::uint64_t value = 0;
    if (found == nullptr || std::from_chars(found->data(), found->data() + found->size(), value).ec != std::errc())
      return std::nullopt;
    return value;
  }

 private:
  const std::map<std::string, std::string>& properties_;
};

struct ListedProcess {
  std::string pid;
  ByteInterval bytes;
};

// In a container a process does not know the number it is listed under. Its own entry is still certain when only one entry is large
// enough for what it has reserved, and when there is no room for that outside the list.
std::optional<std::size_t> find_self(const StatedError& stated, const std::vector<ListedProcess>& processes,
                                     ByteInterval sum) {
  if (!stated.reserved || !stated.capacity || !stated.free) return std::nullopt;
  if (!surely_less(*stated.capacity - *stated.free - sum, *stated.reserved)) return std::nullopt;
  std::optional<std::size_t> self;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (surely_less(processes[i].bytes, *stated.reserved)) continue;
    if (self) return std::nullopt;
    self = i;
  }
  return self;
}

constexpr std::uint64_t kMostContextBytes = std::uint64_t{3} << 29;  // of a context and its libraries

// Where that leaves several: the one that is as large as what the program has reserved and a context, if each of the others that could hold it is larger by far.
std::optional<std::size_t> guess_self(const StatedError& stated, const std::vector<ListedProcess>& processes) {
  if (!stated.reserved) return std::nullopt;
  std::optional<std::size_t> self;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (surely_less(processes[i].bytes, *stated.reserved) ||
        surely_less(*stated.reserved + ByteInterval::exactly(kMostContextBytes), processes[i].bytes))
      continue;
    if (self) return std::nullopt;
    self = i;
  }
  return self;
}

// What the list of processes tells of this one and of the others.
void settle_processes(StatedError& stated) {
  std::vector<ListedProcess> processes;
  for (const StatedError::ListedProcess& listed : stated.processes) {
    if (listed.bytes) processes.push_back({listed.pid, *listed.bytes});
  }
  const bool incomplete = processes.size() != stated.processes.size();
  if (!stated.this_process && !processes.empty()) {
    ByteInterval sum, largest;
    for (const ListedProcess& process : processes) {
      sum = sum + process.bytes;
      largest = {std::max(largest.min, process.bytes.min), std::max(largest.max, process.bytes.max)};
    }
    auto self = incomplete ? std::nullopt : find_self(stated, processes, sum);
    stated.found_self = self.has_value();
    if (!self && !incomplete && processes.size() > 1 && (self = guess_self(stated, processes)))
      stated.guessed_self = processes[*self].pid;
    stated.processes_ambiguous = !self;
    if (!self) {
      stated.others = ByteInterval{(sum - largest).min, sum.max};
      return;
    }
    stated.this_process = processes[*self].bytes;
    processes.erase(processes.begin() + static_cast<std::ptrdiff_t>(*self));
  }
  for (const ListedProcess& process : processes) {
    stated.others = stated.others.value_or(ByteInterval{}) + process.bytes;
    stated.other_pids.push_back(process.pid);
  }
}

// "268435456", or "268430213..268440699" where it was printed rounded.
std::optional<ByteInterval> stated_bytes(const PropertyReader& properties, const std::string& name) {
  const std::string* const text = properties.find(name);
  if (text == nullptr) return std::nullopt;
  ByteInterval bytes;
  const char *at = text->data(), *const end = at + text->size();
  auto [stop, error] = std::from_chars(at, end, bytes.min);
  if (error != std::errc{}) return std::nullopt;
  bytes.max = bytes.min;
  if (stop != end) {
    if (end - stop < 3 || stop[0] != '.' || stop[1] != '.') return std::nullopt;
    const auto last = std::from_chars(stop + 2, end, bytes.max);
    if (last.ec != std::errc{} || last.ptr != end) return std::nullopt;
  }
  if (bytes.min > bytes.max || bytes.max >= std::uint64_t{1} << 62) return std::nullopt;
  return bytes;
}

// "4x314572800 2x1048576"
void read_sizes(std::string_view words, std::vector<DumpedPool::Size>& sizes) {
  constexpr std::size_t kMostSizes = 64;
  constexpr std::uint64_t kMostCount = std::uint64_t{1} << 24, kMostSize = std::uint64_t{1} << 48;
  const char* at = words.data();
  const char* const end = at + words.size();
  while (at != end && sizes.size() < kMostSizes) {
    DumpedPool::Size size;
    const auto count = std::from_chars(at, end, size.count);
    if (count.ec != std::errc{} || count.ptr == end || *count.ptr != 'x') return;
    const auto bytes = std::from_chars(count.ptr + 1, end, size.size_bytes);
    if (bytes.ec != std::errc{} || size.count > kMostCount || size.size_bytes > kMostSize) return;
    sizes.push_back(size);
    at = bytes.ptr == end || *bytes.ptr != ' ' ? end : bytes.ptr + 1;
  }
}

std::vector<DumpedPool> read_pools(const Trace& trace, const PropertyReader& properties) {
  std::vector<DumpedPool> pools;
  for (const Heap& heap : trace.heaps) {
    if (heap.kind != HeapKind::kBfc || pools.size() == kMostPools) continue;
    DumpedPool& pool = pools.emplace_back();
    pool.name = heap.name;
    const std::string prefix = "bfc." + heap.name + ".";
    using Number = std::optional<ByteInterval> DumpedPool::*;
    static constexpr std::array<std::pair<const char*, Number>, 12> kNumbers = {
        {{"limit", &DumpedPool::limit},
         {"available", &DumpedPool::available},
         {"request", &DumpedPool::request},
         {"taken", &DumpedPool::taken},
         {"in_use", &DumpedPool::in_use},
         {"largest_free", &DumpedPool::largest_free},
         {"slack", &DumpedPool::slack},
         {"free_by_bins", &DumpedPool::free_by_bins},
         {"largest_by_bins", &DumpedPool::largest_by_bins},
         {"refused_region", &DumpedPool::refused_region},
         {"base_limit", &DumpedPool::base_limit},
         {"peak_in_use", &DumpedPool::peak_in_use}}};
    for (const auto& [name, member] : kNumbers) pool.*member = stated_bytes(properties, prefix + name);
    const auto free = stated_bytes(properties, prefix + "bar.free"),
               longest = stated_bytes(properties, prefix + "bar.longest");
    if (free && longest && free->max <= 100 && longest->max <= free->min)
      pool.bar = DumpedPool::Bar{free->min, longest->min};
    pool.unread_bytes = stated_bytes(properties, prefix + "unread").value_or(ByteInterval{}).min;
    pool.unplaced = stated_bytes(properties, prefix + "unplaced").value_or(ByteInterval{});
    pool.is_open = properties.word(prefix + "open") == "true";
    read_sizes(properties.word(prefix + "sizes"), pool.sizes);
    pool.knows_requests = trace.can(kEvents) || properties.word(prefix + "knows_requests") == "true";
    if (const std::string growth = properties.word(prefix + "growth"); !growth.empty()) pool.growth = growth == "true";
    pool.is_mixed = properties.word(prefix + "mixed") == "true";
    pool.asked_by = properties.word(prefix + "asked_by");
    pool.form = properties.number(prefix + "form").value_or(0);
  }
  return pools;
}

Ending read_ending(const PropertyReader& properties) {
  Ending ending;
  ending.exited = properties.word("process.ended") == "exit";
  const auto own = properties.number("process.exit_status"), command = properties.number("run.exit_status");
  if (command) ending.command_status = static_cast<std::int64_t>(*command);
  ending.command_signal = static_cast<int>(std::min<std::uint64_t>(properties.number("run.signal").value_or(0), 64));
  ending.status = own ? static_cast<std::int64_t>(*own) : ending.command_status;
  ending.exception_type = properties.word("process.exception.type");
  ending.exception_message = properties.word("process.exception.message");
  return ending;
}

}  // namespace

Statements read_statements(const Trace& trace) {
  const PropertyReader properties(trace);
  Statements statements;
  statements.error = read_stated_error(trace.properties);
  statements.notes = read_text_notes(trace.properties);
  settle_processes(statements.error);
  statements.message_only = statements.error && !trace.can(kEvents);
  statements.ending = read_ending(properties);
  statements.pools = read_pools(trace, properties);
  const std::string blocking = properties.word("run.launch_blocking");
  statements.waits_for_launches = !blocking.empty() && blocking != "0";
  if (const std::string* status = properties.find("again.exit_status")) statements.second_run_status = *status;
  statements.placed_by_model = trace.source_kind == "dry-run" || trace.properties.contains(std::string(kPlacedBy));
  statements.is_recorded = properties.find("driver.library") != nullptr;
  statements.shows_calls =
      statements.is_recorded || !(trace.source_kind == "torch-snapshot" || statements.placed_by_model);
  statements.planned_to_end = statements.placed_by_model && properties.find("dry-run.exception") == nullptr;
  if (!statements.placed_by_model) return statements;
  statements.planned_context_bytes = properties.number("dry-run.context_bytes");
  for (const Device& device : trace.devices) {
    if (const auto own = properties.number("dry-run.context_bytes." + std::to_string(device.index)))
      statements.planned_contexts[device.index] = *own;
  }
  return statements;
}

const DumpedPool* Statements::pool_of(std::string_view heap_name) const {
  const auto found =
      std::find_if(pools.begin(), pools.end(), [&](const DumpedPool& pool) { return pool.name == heap_name; });
  return found == pools.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> Statements::planned_context_of(std::uint16_t device) const {
  const auto own = planned_contexts.find(device);
  return own == planned_contexts.end() ? planned_context_bytes : own->second;
}

}  // namespace faultline
