// The snapshot's outer shape: which lists and settings it has, and which PyTorch can have written it.
#include <algorithm>
#include <charconv>

#include "sources/torch_snapshot/trace_builder.h"

namespace faultline::torch_snapshot {
namespace {

const Error kNotASnapshot{
    "this is a valid file, but not a PyTorch memory snapshot (it has neither segments nor device_traces)",
    {},
    "Make one with torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")."};

std::string text_of_number(double number) {
  char digits[32];
  const auto [end, code] = std::to_chars(digits, digits + sizeof digits, number);
  return code == std::errc{} ? std::string(digits, end) : std::string("0");
}

}  // namespace

Status TraceBuilder::take_top(Value top) {
  if (machine_.is_node(top, NodeKind::kSegmentList)) {  // torch.cuda.memory_snapshot(): the segments alone
    trace_.events.clear();
    return Ok{};
  }
  if (machine_.is_node(top, NodeKind::kEmptyList))
    return Error{"the snapshot is an empty list: no memory was allocated when it was taken", {}, {}};
  if (!machine_.is_node(top, NodeKind::kDict)) return kNotASnapshot;
  const std::span<const Value> pairs = machine_.cells(top);
  bool known = false;
  std::optional<Value> traces;
  for (std::size_t at = 0; at + 1 < pairs.size(); at += 2) {
    switch (machine_.key(pairs[at])) {
      case Key::k_segments:
        known = machine_.is_node(pairs[at + 1], NodeKind::kSegmentList) ||
                machine_.is_node(pairs[at + 1], NodeKind::kEmptyList);
        if (!known) return Error{"the snapshot's 'segments' is not a list of segments", {}, {}};
        break;
      case Key::k_device_traces: traces = pairs[at + 1]; break;
      case Key::k_allocator_settings:
        has_settings_ = true;
        take_settings(pairs[at + 1]);
        break;
      case Key::k_external_annotations: has_external_annotations_ = true; break;
      default: count_unknown_key(machine_.text(pairs[at]), 1);
    }
  }
  if (!known && !traces) return kNotASnapshot;
  if (traces) return take_traces(*traces);
  trace_.events.clear();  // entries that stood elsewhere belong to no device
  return Ok{};
}

Status TraceBuilder::take_traces(Value list) {
  if (machine_.is_node(list, NodeKind::kEmptyList)) {
    trace_.events.clear();
    return Ok{};
  }
  if (!machine_.is_node(list, NodeKind::kList))
    return Error{"the snapshot's 'device_traces' is not a list of lists", {}, {}};
  const std::span<const Value> per_device = machine_.cells(list);
  if (per_device.size() > 1024)
    return Error{"the snapshot has " + std::to_string(per_device.size()) + " devices; at most 1024 are read", {}, {}};
  entry_count_of_device_.resize(per_device.size());
  std::vector<Run> runs;
  std::vector<std::uint16_t> device_of_run;
  for (std::size_t device = 0; device < per_device.size(); ++device) {
    if (machine_.is_node(per_device[device], NodeKind::kEmptyList)) continue;
    if (!machine_.is_node(per_device[device], NodeKind::kEntryList))
      return Error{"the snapshot's trace of a device is not a list of entries", {}, {}};
    for (const Run& run : machine_.runs(per_device[device])) {
      runs.push_back(run);
      device_of_run.push_back(static_cast<std::uint16_t>(device));
      entry_count_of_device_[device] += run.count;
    }
  }
  std::uint64_t total = 0;
  // entries were appended as they were read; normally the lists name them all, once, in that order
  bool in_place = true;
  for (const Run& run : runs) {
    in_place = in_place && run.first == total;
    total += run.count;
  }
  if (total > trace_.events.size()) return Error{"the snapshot's traces share entries", {}, {}};
  if (total >= std::uint64_t{0xfffffff0})
    return Error{"the snapshot has more than four thousand million entries", {}, {}};
  in_place = in_place && total == trace_.events.size();
  if (!in_place) {
    std::vector<Event> picked;
    picked.reserve(total);
    for (const Run& run : runs) {
      const auto first = trace_.events.begin() + static_cast<std::ptrdiff_t>(run.first);
      picked.insert(picked.end(), first, first + static_cast<std::ptrdiff_t>(run.count));
    }
    trace_.events = std::move(picked);
  }
  trace_.source_events = total;
  std::uint64_t index = 0;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (std::uint64_t left = runs[run].count; left > 0; --left) trace_.events[index++].device = device_of_run[run];
  }
  if (!device_of_run.empty() && device_of_run.front() != device_of_run.back()) {
    std::stable_sort(trace_.events.begin(), trace_.events.end(),
                     [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  }
  return Ok{};
}

void TraceBuilder::take_settings(Value dict) {
  const std::span<const Value> pairs = machine_.cells(dict);
  for (std::size_t at = 0; at + 1 < pairs.size(); at += 2) {
    const std::string name(machine_.text(pairs[at]));
    const Value value = pairs[at + 1];
    std::string text;
    if (value.tag() == Tag::kBool) {
      text = value.index() != 0 ? "True" : "False";
    } else if (value.tag() == Tag::kString) {
      text = machine_.text(value);
    } else if (const auto whole = machine_.integer(value)) {
      text = std::to_string(*whole);
    } else if (const auto real = machine_.number(value)) {
      text = text_of_number(*real);
    } else if (machine_.is_node(value, NodeKind::kDict)) {  // roundup_power2_divisions: {"1": 0, "2": 0, …}
      const std::span<const Value> inner = machine_.cells(value);
      for (std::size_t pair = 0; pair + 1 < inner.size(); pair += 2) {
        if (!text.empty()) text += ',';
        text += std::string(machine_.text(inner[pair])) + ":" +
                std::to_string(machine_.integer(inner[pair + 1]).value_or(0));
      }
    }
    trace_.properties[name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF" ? "torch.alloc_conf"
                                                                                        : "torch." + name] = text;
  }
}

// Snapshots carry no version; their keys came one by one.
void TraceBuilder::deduce_version() {
  struct Step {
    bool present;
    const char* since;   // the release that introduced it
    const char* before;  // the last release without it
  };
  const bool entries = trace_.source_events != 0;
  const std::array<Step, 7> steps = {{{machine_.has_seen(Key::k_pool_id), "2.12", "2.11"},
                                      {machine_.has_seen(Key::k_user_metadata), "2.10", "2.9"},
                                      {machine_.has_seen(Key::k_compile_context), "2.8", "2.7"},
                                      {has_external_annotations_, "2.5", "2.4"},
                                      {has_settings_, "2.3", "2.2"},
                                      {machine_.has_seen(Key::k_time_us), "2.2", "2.1"},
                                      {machine_.has_seen(Key::k_is_expandable), "2.1", "2.0"}}};
  const char* oldest = "2.0";
  const char* newest = nullptr;
  for (const Step& step : steps) {
    if (step.present) {
      oldest = step.since;
      break;
    }
    newest = step.before;
  }
  trace_.properties["torch.min_version"] = oldest;
  if (newest != nullptr && entries) trace_.properties["torch.max_version"] = newest;
}

}  // namespace faultline::torch_snapshot
