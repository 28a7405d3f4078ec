#include "sources/jax_profile/jax_profile.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/characters.h"
#include "base/hash.h"
#include "base/protobuf.h"
#include "trace/host_memory.h"

namespace faultline {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{256} << 20;
constexpr std::uint64_t kMostAllocations = std::uint64_t{1}
                                           << 20;  // of samples that stand for more each stands for several
constexpr std::size_t kDeepestStack = 1024;
constexpr std::size_t kMostEntries = std::size_t{1} << 21;  // of each table
constexpr std::size_t kMostFrames = std::size_t{16} << 20;  // of all stacks
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;

// Message numbers of pprof's Profile.
enum ProfileField : std::uint32_t {
  kSampleType = 1,
  kSample = 2,
  kLocation = 4,
  kFunction = 5,
  kString = 6,
  kTime = 9
};

struct Line {
  std::uint64_t function = 0, line = 0;
};
struct Function {
  std::uint64_t name = 0, file = 0;
};

class ProfileReader {
 public:
  explicit ProfileReader(Bytes bytes) : bytes_(bytes) {}

  Result<Trace> read() {
    Trace trace;
    trace.streams.emplace_back();
    read_tables(trace);
    if (const auto problem = find_values()) return *problem;
    ProtoReader message(bytes_);
    std::uint64_t samples = 0;
    for (ProtoField field; message.next(field);) {
      if (field.number != kSample || !field.is_bytes) continue;
      add_sample(trace, field.bytes);
      ++samples;
    }
    if (samples == 0) return Error{"this profile holds no samples that can be read", {}, {}};
    trace.source_events = samples;
    trace.preexisting_count = static_cast<std::uint32_t>(trace.events.size());
    trace.capabilities = kStacks;
    trace.count("stacks cut at " + std::to_string(kDeepestStack) + " frames", cut_);
    trace.count("samples without a number that can be read", odd_);
    if (trace.devices.empty()) device_of(trace, "");
    return trace;
  }

 private:
  std::string_view text(std::uint64_t index) const {
    return index < strings_.size() ? strings_[index] : std::string_view();
  }

  void read_tables(Trace& trace) {
    ProtoReader message(bytes_);
    for (ProtoField field; message.next(field);) {
      if (field.number == kTime && !field.is_bytes)
        time_ns_ = static_cast<std::int64_t>(field.value & (~std::uint64_t{0} >> 1));
      if (!field.is_bytes) continue;
      if (std::max({strings_.size(), types_.size(), lines_.size(), functions_.size()}) >= kMostEntries) {
        ++left_out_;
        continue;
      }
      if (field.number == kString) strings_.push_back(field.text());
      if (field.number == kSampleType) read_type(field.bytes);
      if (field.number == kLocation) read_location(field.bytes);
      if (field.number == kFunction) read_function(field.bytes);
    }
    trace.count("entries of the profile's tables beyond two million", left_out_);
    trace.count("bytes of the file that could not be read", bytes_.size() - message.offset());
  }

  void read_type(Bytes bytes) {
    std::uint64_t& name = types_.emplace_back(0);
    ProtoReader message(bytes);
    for (ProtoField field; message.next(field);) {
      if (field.number == 1) name = field.value;
    }
  }

  void read_location(Bytes bytes) {
    std::uint64_t id = 0;
    Line line;
    ProtoReader message(bytes);
    for (ProtoField field; message.next(field);) {
      if (field.number == 1) id = field.value;
      if (field.number != 4 || !field.is_bytes) continue;
      ProtoReader inside(field.bytes);
      for (ProtoField part; inside.next(part);) {
        if (part.number == 1) line.function = part.value;
        if (part.number == 2) line.line = part.value;
      }
    }
    lines_[id] = line;
  }

  void read_function(Bytes bytes) {
    std::uint64_t id = 0;
    Function function;
    ProtoReader message(bytes);
    for (ProtoField field; message.next(field);) {
      if (field.number == 1) id = field.value;
      if (field.number == 2) function.name = field.value;
      if (field.number == 4) function.file = field.value;
    }
    functions_[id] = function;
  }

  // Which of a sample's numbers is the count and which the bytes.
  std::optional<Error> find_values() {
    std::string seen;
    for (std::size_t at = 0; at < types_.size(); ++at) {
      const std::string_view name = text(types_[at]);
      if (name == "allocations") count_at_ = at;
      if (name == "space") space_at_ = at;
      if (at < 6) seen += (seen.empty() ? "" : ", ") + std::string(name.substr(0, 40));
    }
    if (count_at_ && space_at_) return std::nullopt;
    const bool is_cut = strings_.size() < 5;
    return Error{is_cut ? "this profile ends before its names, so nothing of it can be read"
                        : "this is a profile in pprof's form, but not of JAX's device memory: its numbers are " +
                              (seen.empty() ? std::string("not named") : seen),
                 {},
                 "jax.profiler.save_device_memory_profile(\"memory.prof\") writes one that is."};
  }

  FrameId frame_of(Trace& trace, std::uint64_t location) {
    const auto [known, is_new] = frames_.try_emplace(location);
    if (!is_new) return known->second;
    const auto line = lines_.find(location);
    if (line == lines_.end()) return known->second;
    const auto function = functions_.find(line->second.function);
    const Function named = function == functions_.end() ? Function() : function->second;
    Frame frame{trace.strings.intern(text(named.name)), trace.strings.intern(text(named.file)),
                static_cast<std::uint32_t>(std::min<std::uint64_t>(line->second.line, 0xffffffffu))};
    return known->second = trace.stacks.intern_frame(frame);
  }

  void add_sample(Trace& trace, Bytes bytes) {
    std::vector<std::uint64_t> locations, values;
    std::string_view kind, device;
    ProtoReader message(bytes);
    for (ProtoField field; message.next(field);) {
      if (field.number == 1)
        each_number(field, [&](std::uint64_t id) {
          if (locations.size() < kDeepestStack)
            locations.push_back(id);
          else
            ++cut_;
        });
      if (field.number == 2)
        each_number(field, [&](std::uint64_t value) {
          if (values.size() < 16) values.push_back(value);
        });
      if (field.number != 3 || !field.is_bytes) continue;
      std::string_view key, value;
      ProtoReader inside(field.bytes);
      for (ProtoField part; inside.next(part);) {
        if (part.number == 1) key = text(part.value);
        if (part.number == 2) value = text(part.value);
      }
      if (key == "kind") kind = value;
      if (key == "device") device = value;
    }
    if (values.size() <= std::max(*count_at_, *space_at_) || values[*count_at_] == 0 ||
        values[*space_at_] > kMostBytes) {
      ++odd_;
      return;
    }
    if (values[*space_at_] == 0) return;  // a compiled program that takes nothing of the device
    StackId stack;
    frames_pushed_ += locations.size();
    if (frames_pushed_ <= kMostFrames) {
      for (auto at = locations.rbegin(); at != locations.rend(); ++at)
        stack = trace.stacks.push(stack, frame_of(trace, *at));
    } else {
      ++cut_;
    }
    add_allocations(trace, values[*count_at_], values[*space_at_], kind, device, stack);
  }

  void add_allocations(Trace& trace, std::uint64_t count, std::uint64_t bytes, std::string_view kind,
                       std::string_view device, StackId stack) {
    const std::uint64_t left = kMostAllocations - std::min<std::uint64_t>(kMostAllocations, trace.allocation_count);
    const std::uint64_t events = std::max<std::uint64_t>(1, std::min({count, bytes, left}));
    trace.count("arrays that are shown several as one", count - events);
    Event event;
    event.kind = EventKind::kAlloc;
    event.set(kPreexisting);
    event.time_ns = time_ns_;
    event.device = device_of(trace, device);
    event.heap = heaps_[event.device];
    event.stack = stack;
    if (kind == "executable") {
      Tensor tensor;
      tensor.op = trace.strings.intern("a compiled program");
      event.extra = trace.tensors.intern(tensor).value;
    }
    for (std::uint64_t at = 0; at < events; ++at) {
      event.size_bytes = bytes / events + (at < bytes % events ? 1 : 0);
      event.allocation = AllocationId(++trace.allocation_count);
      trace.events.push_back(event);
    }
  }

  // "cuda:0", "TFRT_CPU_0", "CudaDevice(id=1)": by its number; where that is taken by another, the next that is free.
  std::uint16_t device_of(Trace& trace, std::string_view label) {
    label = label.substr(0, 64);
    const auto [known, is_new] = devices_.try_emplace(std::string(label));
    if (!is_new) return known->second;
    std::size_t end = label.size();
    while (end > 0 && !is_digit(label[end - 1])) --end;
    std::size_t begin = end;
    while (begin > 0 && is_digit(label[begin - 1])) --begin;
    std::uint16_t index = 0;
    std::from_chars(label.data() + begin, label.data() + end, index);
    index = std::min<std::uint16_t>(index, 4095);
    while (heaps_.contains(index)) ++index;
    known->second = index;
    Device device;
    device.index = index;
    // "cpu:0", "TFRT_CPU_0": JAX's word for the host
    const bool is_host = label.find("cpu") != label.npos || label.find("CPU") != label.npos;
    device.name = is_host ? host_memory_named(label) : std::string(label);
    trace.devices.push_back(device);
    heaps_[index] = HeapId(static_cast<std::uint16_t>(trace.heaps.size()));
    trace.heaps.push_back({HeapKind::kOther, index, heaps_[index], 0, 0, "jax"});
    return index;
  }

  Bytes bytes_;
  std::vector<std::string_view> strings_;
  std::vector<std::uint64_t> types_;
  HashMap<std::uint64_t, Line> lines_;
  HashMap<std::uint64_t, Function> functions_;
  HashMap<std::uint64_t, FrameId> frames_;
  std::map<std::string, std::uint16_t> devices_;
  std::map<std::uint16_t, HeapId> heaps_;
  std::optional<std::size_t> count_at_, space_at_;
  std::int64_t time_ns_ = 0;
  std::uint64_t cut_ = 0, odd_ = 0, left_out_ = 0, frames_pushed_ = 0;
};

}  // namespace

// A sample type, "0a 04 08 TYPE 10 UNIT", and then another or a sample: no text begins so.
bool looks_like_jax_profile(std::span<const std::uint8_t> head) {
  ProtoReader message(head);
  ProtoField field;
  for (int types = 0; message.next(field); ++types) {
    if (types >= 1 && types < 8 && field.number == kSample && field.is_bytes) return true;
    if (field.number != kSampleType || !field.is_bytes || field.bytes.empty() || field.bytes[0] != 0x08) return false;
    ProtoReader type(field.bytes);
    for (ProtoField part; type.next(part);) {
      if (part.number > 2 || part.is_bytes) return false;
    }
    if (!type.ok()) return false;
    if (types == 1 && message.offset() == head.size()) return true;
  }
  return false;
}

Result<Trace> read_jax_profile(ByteStream& stream, const std::string& path) {
  const Result<std::string> bytes = stream.read_all(kMostFileBytes);
  if (!bytes) return bytes.error();
  Result<Trace> trace = ProfileReader({reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size()}).read();
  if (trace) trace->source_path = path;
  return trace;
}

}  // namespace faultline
