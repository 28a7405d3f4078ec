#include "sources/run_folder/framework_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "sources/pool_names.h"
#include "sources/run_folder/array_looks.h"
#include "sources/run_folder/layout.h"
#include "sources/statements.h"
#include "sources/trace_import.h"

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
  return read_statements(message).error.kind == MessageKind::kOutOfMemory && last_refusal(message) != nullptr;
}

std::uint64_t number_in(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9' || number > (std::uint64_t{1} << 58)) return 0;
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

std::uint64_t microseconds(const std::string& path) { return number_in(fs::path(path).extension().string().substr(1)); }

constexpr std::string_view kOfFailure = "-oom-";

// "-1794832646072369.prof" or "-oom-1794832646072369.prof", behind the process's number.
bool is_moment(std::string_view ending) {
  if (!ending.ends_with(".prof")) return false;
  ending.remove_suffix(5);
  ending.remove_prefix(ending.starts_with(kOfFailure) ? kOfFailure.size() : std::min<std::size_t>(1, ending.size()));
  return number_in(ending) != 0;
}

// One profile is a moment, and of two it is the later one; of three or more, with whatever was alive when memory ran out among them, what is alive over time.
std::optional<Trace> arrays_of(const std::vector<std::string>& paths, std::map<std::string, std::uint64_t>& lost) {
  constexpr std::size_t kMostLooks = 256, kLeastLooks = 3;
  std::vector<std::pair<std::uint64_t, const std::string*>> in_order;
  const std::string* failed = nullptr;
  for (const std::string& path : paths) {
    const std::string stem = fs::path(path).stem().string();
    in_order.emplace_back(number_in(std::string_view(stem).substr(stem.rfind('-') + 1)), &path);
    if (stem.find(kOfFailure) != std::string::npos) failed = &path;
  }
  std::sort(in_order.begin(), in_order.end());
  if (in_order.empty()) return std::nullopt;
  if (in_order.size() < kLeastLooks)
    return read(failed != nullptr ? *failed : *in_order.back().second, "profiles of JAX", lost);
  std::vector<ArrayLook> looks;
  for (const auto& [moment, path] : in_order) {
    if (looks.size() == kMostLooks)
      ++lost["looks at JAX's arrays beyond the first " + std::to_string(kMostLooks)];
    else if (std::optional<Trace> trace = read(*path, "profiles of JAX", lost))
      looks.push_back({static_cast<std::int64_t>(moment) * 1000, std::move(*trace)});
  }
  if (looks.empty()) return std::nullopt;
  Trace joined = join_looks(std::move(looks));
  joined.source_kind = "jax-profile";
  joined.source_path = *in_order.front().second;
  return joined;
}

// "GPU_0_bfc" of "pool-7_GPU_0_bfc.1794832646072369".
std::string pool_in_name(const std::string& path) {
  const std::string stem = fs::path(path).stem().string();
  return stem.substr(std::min(stem.size(), stem.find('_') + 1));
}

struct PoolMap {
  Trace trace;
  std::string pool() const {
    const auto heap = std::find_if(trace.heaps.begin(), trace.heaps.end(),
                                   [](const Heap& one) { return one.kind == HeapKind::kBfc; });
    return heap == trace.heaps.end() ? std::string() : heap->name;
  }
};

constexpr const char* kNotTold = "maps of pools whose refusals are not told: another pool's ended the program";

// The last map of each pool, what comes later first. Pools of the host are looked at where there is none of a GPU, or where the message names them.
std::vector<PoolMap> last_maps(const std::vector<std::string>& paths, const std::string& named,
                               std::map<std::string, std::uint64_t>& lost) {
  constexpr std::size_t kMostMaps = 16;  // of one process
  std::map<std::string, std::string> last;
  bool any_gpu = false;
  for (const std::string& path : paths) {
    const std::string pool = pool_in_name(path);
    any_gpu |= gpu_of(pool).has_value();
    const auto [known, is_new] = last.try_emplace(pool, path);
    if (is_new) continue;
    ++lost["maps of earlier refusals of a pool, of which the last was read"];
    if (microseconds(known->second) < microseconds(path)) known->second = path;
  }
  std::vector<std::pair<std::string, std::string>> chosen(last.begin(), last.end());
  // what the message names comes before all others
  std::stable_sort(chosen.begin(), chosen.end(), [&](const auto& a, const auto& b) {
    return std::pair(a.first == named, microseconds(a.second)) > std::pair(b.first == named, microseconds(b.second));
  });
  std::vector<PoolMap> maps;
  for (const auto& [pool, path] : chosen) {
    if (maps.size() == kMostMaps || (any_gpu && !gpu_of(pool) && pool != named))
      ++lost[kNotTold];
    else if (std::optional<Trace> map = read(path, "maps of a pool", lost))
      maps.push_back({std::move(*map)});
  }
  return maps;
}

std::string stated(const Trace& message, const char* name) {
  const auto found = message.properties.find(name);
  return found == message.properties.end() ? std::string() : found->second;
}

// The pool that a message is about: "... by allocator GPU_0_bfc"; empty: it does not say.
std::string pool_named(const Trace& message) {
  constexpr std::string_view kBy = "by allocator ";
  if (const std::string word = stated(message, "error.allocator"); !word.empty()) return word;
  const std::string text = stated(message, "error.text");
  const std::size_t at = text.find(kBy);
  if (at == std::string::npos) return {};
  const std::string_view rest = std::string_view(text).substr(at + kBy.size());
  return std::string(rest.substr(0, rest.find_first_of(" ,;[\t\n")));
}

// The map of the request that the message is about: of the pool that it names, else of the GPU that it names, else of the only pool that there is.
std::vector<PoolMap>::iterator map_of(const Trace& message, std::vector<PoolMap>& maps) {
  const std::string pool = pool_named(message), device = stated(message, "error.device");
  if (pool.empty() && device.empty()) return maps.size() == 1 ? maps.begin() : maps.end();
  return std::find_if(maps.begin(), maps.end(), [&](const PoolMap& map) {
    if (!pool.empty()) return map.pool() == pool;
    const std::optional<std::uint16_t> gpu = gpu_of(map.pool());
    return gpu && std::to_string(*gpu) == device;
  });
}

// Pools ask the driver for less when it refuses, and go on: only a refusal of this very request is this failure.
bool has_failure(const Trace& driver, const Trace& message) {
  constexpr std::uint64_t kDriverRounding = std::uint64_t{2} << 20;
  const Event* const asked = last_refusal(message);
  // "16.00GiB" is a number with two digits behind the point
  const std::uint64_t told_within = asked == nullptr ? 0 : asked->size_bytes / 100;
  return std::any_of(driver.events.begin(), driver.events.end(), [&](const Event& event) {
    if (event.kind == EventKind::kFault) return true;
    return event.kind == EventKind::kAllocFailed && asked != nullptr &&
           event.size_bytes + told_within >= asked->size_bytes &&
           event.size_bytes <= asked->size_bytes + told_within + kDriverRounding;
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
    if (begin == layout::kTensors && ending.ends_with(".txt")) {
      // "-2.txt": a process that replaced itself (exec) goes on under the same number
      const std::string image(ending.substr(0, ending.size() - 4));
      const bool is_later =
          image.size() > 1 && image[0] == '-' && image.find_first_not_of("0123456789", 1) == std::string::npos;
      if (image.empty() || is_later) return files[process + image].tensors = path, process + image;
    }
    if (begin == layout::kFailure && ending == ".txt") return files[process].failure = path, process;
    if (begin == layout::kProfile && is_moment(ending)) return files[process].profiles.push_back(path), process;
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
  std::vector<PoolMap> maps = last_maps(files.maps, message ? pool_named(*message) : std::string(), lost);
  const auto own = message ? map_of(*message, maps) : maps.end();
  // The failure is told already: of the maps what nobody else knows of is counted.
  const auto drop = [&](auto is_known) {
    for (const PoolMap& map : maps) {
      if (!is_known(map)) ++lost[kNotTold];
    }
    message.reset(), maps.clear();
  };
  if (tensors) {
    for (const PoolMap& map : maps) put_totals(map.trace, *tensors);
  }
  if (tensors && last_refusal(*tensors) != nullptr) {
    drop([&](const PoolMap& map) {
      return std::any_of(tensors->heaps.begin(), tensors->heaps.end(),
                         [pool = map.pool()](const Heap& heap) { return heap.name == pool; });
    });
  } else if (message && driver != nullptr && has_failure(*driver, *message)) {
    drop([&](const PoolMap& map) { return own != maps.end() && &map == &*own; });
  } else if (message && own != maps.end() && tells_of_memory(*message)) {
    put_request(*message, own->trace);
    message.reset();
  }
  if (tensors) parts.push_back({std::move(*tensors), name, {}});
  if (message) parts.push_back({std::move(*message), name, {}});
  for (PoolMap& map : maps) parts.push_back({std::move(map.trace), name, {}});
  if (std::optional<Trace> arrays = arrays_of(files.profiles, lost))
    parts.push_back({std::move(*arrays), name + ", JAX's arrays", {}});
  return parts;
}

}  // namespace faultline
