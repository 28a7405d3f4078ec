#include "sources/run_folder/framework_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "sources/run_folder/layout.h"
#include "sources/run_folder/trace_import.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;

std::optional<Trace> read(const std::string& path, std::string_view what, std::map<std::string, std::uint64_t>& lost) {
  if (path.empty()) return std::nullopt;
  Result<Trace> trace = load(path, NamedBy::kInput);
  if (trace) return std::move(*trace);
  // a pool that had taken nothing yet has a map of nothing
  if (trace.error().what.find("holds no chunk") == std::string::npos)
    ++lost[std::string(what) + " that could not be read (" + trace.error().what + ")"];
  return std::nullopt;
}

const Event* last_refusal(const Trace& trace) {
  const auto found = std::find_if(trace.events.rbegin(), trace.events.rend(),
                                  [](const Event& event) { return event.kind == EventKind::kAllocFailed; });
  return found == trace.events.rend() ? nullptr : &*found;
}

bool tells_of_memory(const Trace& message) {
  const auto kind = message.properties.find("error.kind");
  return kind != message.properties.end() && kind->second == "out-of-memory" && last_refusal(message) != nullptr;
}

std::uint64_t microseconds(const std::string& path) {
  std::uint64_t number = 0;
  for (const char digit : fs::path(path).extension().string().substr(1)) {
    if (digit < '0' || digit > '9' || number > (std::uint64_t{1} << 58)) return 0;
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

// Of a pool of a GPU rather than one of the host's, then the last.
std::string best_map(const std::vector<std::string>& paths) {
  const auto rank = [](const std::string& path) {
    const bool of_gpu = fs::path(path).filename().string().find("_GPU_") != std::string::npos;
    return std::pair(of_gpu, microseconds(path));
  };
  const auto best =
      std::max_element(paths.begin(), paths.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return best == paths.end() ? std::string() : *best;
}

// Pools ask the driver for less when it refuses, and go on: only a refusal of this very request is this failure.
bool has_failure(const Trace& driver, const Trace& message) {
  constexpr std::uint64_t kDriverRounding = std::uint64_t{2} << 20;
  const Event* const asked = last_refusal(message);
  return std::any_of(driver.events.begin(), driver.events.end(), [&](const Event& event) {
    if (event.kind == EventKind::kFault) return true;
    return event.kind == EventKind::kAllocFailed && asked != nullptr && event.size_bytes >= asked->size_bytes &&
           event.size_bytes - asked->size_bytes <= kDriverRounding;
  });
}

// The request that a map was made for, as the message tells it: how much, and from which line.
void put_request(const Trace& message, Trace& map) {
  const Event& asked = *last_refusal(message);
  const auto refused = std::find_if(map.events.rbegin(), map.events.rend(),
                                    [](const Event& event) { return event.kind == EventKind::kAllocFailed; });
  if (refused == map.events.rend()) return;
  TraceImport taken(message, map);
  refused->stack = taken.stack(asked.stack);
  refused->size_bytes = asked.size_bytes;
  if (refused->stack.value != 0) map.capabilities |= kStacks;
}

// What a map tells of the pool as a whole, beside tensors that are known one by one.
void put_totals(const Trace& map, Trace& tensors) {
  for (const Heap& heap : map.heaps) {
    if (heap.kind != HeapKind::kBfc) continue;
    std::uint64_t taken = 0, in_use = 0, largest = 0;
    for (const FinalSegment& segment : map.final_segments) {
      if (segment.heap == HeapId(static_cast<std::uint16_t>(&heap - map.heaps.data()))) taken += segment.size_bytes;
    }
    for (const FinalBlock& block : map.final_blocks) {
      if (block.state == FinalBlock::State::kFree)
        largest = std::max(largest, block.size_bytes);
      else
        in_use += block.size_bytes;
    }
    if (taken == 0 || in_use > taken) continue;
    const std::string pool = "bfc." + heap.name + ".";
    tensors.properties.try_emplace(pool + "taken", std::to_string(taken));
    tensors.properties.try_emplace(pool + "in_use", std::to_string(in_use));
    tensors.properties.try_emplace(pool + "largest_free", std::to_string(largest));
  }
}

}  // namespace

std::string take_framework_file(const std::string& path, std::map<std::string, FrameworkFiles>& files) {
  const std::string name = fs::path(path).filename().string();
  for (const std::string_view begin : {layout::kTensors, layout::kFailure, layout::kPoolMap, layout::kProfile}) {
    if (!name.starts_with(begin)) continue;
    const std::string rest = name.substr(begin.size());
    const std::string process = rest.substr(0, rest.find_first_not_of("0123456789"));
    if (process.empty()) continue;
    const std::string_view ending = std::string_view(rest).substr(process.size());
    if (begin == layout::kTensors && ending == ".txt") return files[process].tensors = path, process;
    if (begin == layout::kFailure && ending == ".txt") return files[process].failure = path, process;
    if (begin == layout::kProfile && ending == "-oom.prof") return files[process].profile = path, process;
    if (begin == layout::kPoolMap && ending.starts_with('_') && ending.find('.') != std::string_view::npos)
      return files[process].maps.push_back(path), process;
  }
  return {};
}

std::vector<InputPart> framework_parts(const FrameworkFiles& files, const std::string& name, const Trace* driver,
                                       std::map<std::string, std::uint64_t>& lost) {
  std::vector<InputPart> parts;
  std::optional<Trace> tensors = read(files.tensors, "logs of tensors", lost);
  std::map<std::string, std::uint64_t> other_words;  // a traceback that has nothing to do with memory
  std::optional<Trace> message = read(files.failure, "tracebacks", other_words);
  std::optional<Trace> map = read(best_map(files.maps), "maps of a pool", lost);
  const bool of_memory = message && tells_of_memory(*message);
  if (tensors) {
    const bool is_told = last_refusal(*tensors) != nullptr;
    if (map) put_totals(*map, *tensors);
    if (is_told) message.reset(), map.reset();
  }
  if (message && driver != nullptr && has_failure(*driver, *message)) message.reset(), map.reset();
  if (of_memory && message && map) {
    put_request(*message, *map);
    message.reset();
  }
  if (tensors) parts.push_back({std::move(*tensors), name, {}});
  if (message) parts.push_back({std::move(*message), name, {}});
  if (map) parts.push_back({std::move(*map), name, {}});
  if (std::optional<Trace> arrays = read(files.profile, "profiles of JAX", lost))
    parts.push_back({std::move(*arrays), name + ", JAX's arrays", {}});
  return parts;
}

}  // namespace faultline
