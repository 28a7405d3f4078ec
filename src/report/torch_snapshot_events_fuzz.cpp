// Well-formed snapshots of impossible stories: the bytes choose actions, addresses and sizes, so that the fuzzer spends its time on what the
// importer, the models, the rules and the reports do with events that no allocator would have written.
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "models/replay.h"
#include "report/assemble.h"
#include "report/json.h"
#include "report/terminal.h"
#include "rules/judge.h"
#include "sources/torch_snapshot/torch_snapshot.h"
#include "trace/validate.h"

namespace {

class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t next() {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

constexpr std::array<const char*, 11> kActions = {"alloc",
                                                  "free_requested",
                                                  "free_completed",
                                                  "segment_alloc",
                                                  "segment_free",
                                                  "segment_map",
                                                  "segment_unmap",
                                                  "oom",
                                                  "snapshot",
                                                  "free",
                                                  "?"};
constexpr std::array<const char*, 4> kStates = {"active_allocated", "inactive", "active_pending_free", "?"};
constexpr std::array<const char*, 8> kConfigs = {"",
                                                 "expandable_segments:True",
                                                 "max_split_size_mb:64",
                                                 "roundup_power2_divisions:4",
                                                 "garbage_collection_threshold:0.5",
                                                 "max_split_size_mb:21,expandable_segments:True",
                                                 "nonsense:::",
                                                 "roundup_power2_divisions:[256:1,>:8]"};
constexpr std::array<const char*, 16> kSizes = {
    "0",        "1",        "512",        "513",          "1048576", "1048577", "2097152",   "10485760",
    "20971520", "25165824", "1073741824", "137438953472", "1536",    "4194304", "536870912", "9223372036854775807"};
constexpr std::uint64_t kBase = 0x7f0000000000;

std::string address(std::uint8_t choice) {
  if (choice == 255) return "9223372036854775807";
  if (choice == 254) return "0";
  return std::to_string(kBase + choice * std::uint64_t{choice < 128 ? 512u : 2097152u});
}

std::string entry(Choices& from) {
  const std::uint8_t action = from.next(), place = from.next(), size = from.next(), rest = from.next();
  std::string text = std::string("{\"action\":\"") + kActions[action % kActions.size()] + "\",\"" +
                     (action % kActions.size() == 7 ? "device_free" : "addr") + "\":" + address(place) +
                     ",\"size\":" + kSizes[size % kSizes.size()] + ",\"stream\":" + std::to_string(rest & 3) +
                     ",\"time_us\":" + std::to_string(rest >> 4);
  if (rest & 4)
    text += ",\"frames\":[{\"filename\":\"train.py\",\"line\":" + std::to_string(size >> 4) + ",\"name\":\"f\"}]";
  if (rest & 8) text += ",\"pool_id\":[0," + std::to_string(size >> 6) + "]";
  return text + "}";
}

std::string segment(Choices& from) {
  const std::uint8_t place = from.next(), size = from.next(), rest = from.next();
  std::string text = "{\"device\":" + std::to_string(rest & 1) + ",\"address\":" + address(place) +
                     ",\"total_size\":" + kSizes[size % kSizes.size()] + ",\"stream\":" + std::to_string(rest >> 6) +
                     ",\"is_expandable\":" + (rest & 2 ? "true" : "false") + ",\"segment_pool_id\":[0," +
                     std::to_string(rest >> 2 & 1) + "],\"blocks\":[";
  for (int left = rest >> 3 & 7; left > 0; --left) {
    const std::uint8_t block = from.next();
    text += std::string("{\"address\":") + address(from.next()) + ",\"size\":" + kSizes[block % kSizes.size()] +
            ",\"state\":\"" + kStates[block >> 6] + "\"}" + (left > 1 ? "," : "");
  }
  return text + "]}";
}

std::string snapshot(Choices& from) {
  const std::uint8_t shape = from.next();
  std::string segments, traces, notes;
  for (int left = shape & 7; left > 0; --left) segments += (segments.empty() ? "" : ",") + segment(from);
  for (int left = shape >> 6; left > 0; --left) {
    notes += std::string(notes.empty() ? "" : ",") + "{\"stage\":\"" + (left & 1 ? "END" : "START") +
             "\",\"name\":\"Optimizer.step#A\",\"device\":0,\"time_us\":" + std::to_string(from.next() & 15) + "}";
  }
  const char* conf = kConfigs[shape >> 3 & 7];
  std::array<std::string, 2> entries;
  while (!from.empty()) {
    std::string& device = entries[from.next() % 8 == 7];
    device += (device.empty() ? "" : ",") + entry(from);
  }
  return "{\"segments\":[" + segments + "],\"device_traces\":[[" + entries[0] + "],[" + entries[1] +
         "]],\"external_annotations\":[" + notes + "],\"allocator_settings\":{\"PYTORCH_CUDA_ALLOC_CONF\":\"" + conf +
         "\"}}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  if (size > 4096) return 0;
  Choices choices({bytes, size});
  const std::string text = snapshot(choices);
  ByteStream stream = ByteStream::from_memory({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  const Result<Trace> trace = read_torch_snapshot(stream, "fuzz");
  if (!trace) return 0;  // sizes beyond all memory
  FAULTLINE_CHECK(check_trace(*trace).ok());
  const Judgement judgement = judge(*trace);
  const Report report = make_report(*trace, judgement);
  for (const DeviceReport& device : report.devices) {
    std::uint64_t sum =
        device.account.cached + device.account.outside_framework + device.account.free + device.account.unknown;
    for (const auto& [category, live] : device.account.live) sum += live;
    FAULTLINE_CHECK(sum == device.account.capacity);
  }
  FAULTLINE_CHECK(!to_json(report).empty() && !to_terminal(report, {}).empty());
  for (const char* expandable : {"True", "False"}) {
    ReplayOptions options;
    options.changes = {{"expandable_segments", expandable}};
    options.want_trace = true;
    options.segment_budget_bytes = std::uint64_t{1} << 30;
    options.device = trace->devices.back().index;
    const Result<ReplayResult> replayed = replay(*trace, options);
    FAULTLINE_CHECK(!replayed || !replayed->trace || check_trace(*replayed->trace).ok());
  }
  return 0;
}
