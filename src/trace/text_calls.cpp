#include "trace/text_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trace/text_fields.h"

namespace faultline::text {
namespace {

constexpr std::array<std::string_view, 4> kSides = {"unified", "host", "device", "array"};

std::string_view name_of(MemorySide side) { return kSides[static_cast<std::size_t>(side)]; }

std::optional<MemorySide> side_of(std::string_view word) {
  const auto found = std::find(kSides.begin(), kSides.end(), word);
  if (found == kSides.end()) return std::nullopt;
  return static_cast<MemorySide>(found - kSides.begin());
}

// "host-to-device"
bool set_sides(std::string_view word, Copy& copy) {
  constexpr std::string_view kBetween = "-to-";
  const std::size_t between = word.find(kBetween);
  if (between == std::string_view::npos) return false;
  const auto source = side_of(word.substr(0, between));
  const auto destination = side_of(word.substr(between + kBetween.size()));
  if (!source || !destination) return false;
  copy.source_side = *source;
  copy.destination_side = *destination;
  return true;
}

// Calls take(part) for each part between commas.
template <class Take>
Status each_part(std::string_view list, Take take) {
  for (;;) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (Status status = take(list.substr(0, end)); !status) return status;
    if (end == list.size()) return Ok{};
    list.remove_prefix(end + 1);
  }
}

// 4,2,1; what is left out at the end is 1.
Status set_extent(const Field& field, Extent3& to) {
  to = {1, 1, 1};
  std::size_t next = 0;
  return each_part(field.value, [&](std::string_view part) -> Status {
    if (next == to.size()) return bad("'{}' has more than three extents", spelled(field));
    return set_number(part, to[next++]);
  });
}

// 0:0x7f00,8:0x7f80
Status set_arguments(const Field& field, std::vector<LaunchArgument>& to) {
  return each_part(field.value, [&](std::string_view part) -> Status {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) return bad("'{}' is not OFFSET:ADDRESS", part);
    LaunchArgument& argument = to.emplace_back();
    if (Status status = set_number(part.substr(0, colon), argument.offset_bytes); !status) return status;
    return set_number(part.substr(colon + 1), argument.address);
  });
}

Status set_addresses(const Field& field, std::vector<std::uint64_t>& to) {
  return each_part(field.value, [&](std::string_view part) { return set_number(part, to.emplace_back()); });
}

class Words {
 public:
  explicit Words(std::string start) : text_(std::move(start)) {}
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += ' ';
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void number(std::string_view key, std::uint64_t value, std::uint64_t unsaid = 0) {
    if (value != unsaid) add("{}={}", key, value);
  }
  void address(std::string_view key, std::uint64_t value) {
    if (value != 0) add("{}={:#x}", key, value);
  }
  void string(std::string_view key, std::string_view value) {
    if (!value.empty()) add("{}={}", key, plain_or_quoted(value));
  }
  void extent(std::string_view key, const Extent3& value) { add("{}={},{},{}", key, value[0], value[1], value[2]); }
  void known_extent(std::string_view key, const Extent3& value) {
    if (value != Extent3{}) extent(key, value);
  }
  void arguments(std::string_view key, const std::vector<LaunchArgument>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      text_ += i == 0 ? fmt::format(" {}=", key) : ",";
      text_ += fmt::format("{}:{:#x}", values[i].offset_bytes, values[i].address);
    }
  }
  void addresses(std::string_view key, const std::vector<std::uint64_t>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) text_ += (i == 0 ? fmt::format(" {}=", key) : ",") + fmt::format("{:#x}", values[i]);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

Status TextCalls::read(LineReader& line) {
  constexpr const char* kShape = "a call line reads: call NAME = launch|copy|fault …";
  if (line.at_end()) return bad("{}", kShape);
  const Result<Field> name = line.word();
  if (!name) return name.error();
  if (!line.take("=") || line.at_end()) return bad("{}", kShape);
  if (calls_.contains(name->value)) return bad("the call '{}' is already there", name->value);
  Call call{};
  if (line.take("launch")) {
    const Result<Launch> launch = read_launch(line);
    if (!launch) return launch.error();
    call = {EventKind::kLaunch, trace_.launches.intern(*launch).value};
  } else if (line.take("copy")) {
    const Result<Copy> copy = read_copy(line);
    if (!copy) return copy.error();
    call = {EventKind::kCopy, trace_.copies.intern(*copy).value};
  } else if (line.take("fault")) {
    const Result<Fault> fault = read_fault(line);
    if (!fault) return fault.error();
    call = {EventKind::kFault, trace_.faults.intern(*fault).value};
  } else {
    return bad("{}", kShape);
  }
  calls_.emplace(name->value, call);
  return Ok{};
}

Status TextCalls::find(EventKind kind, const std::string& name, std::uint32_t& to) const {
  const auto found = calls_.find(name);
  if (found == calls_.end()) return bad("there is no call '{}'", name);
  if (found->second.kind != kind) return bad("the call '{}' is a {}", name, verb_of(found->second.kind));
  to = found->second.id;
  return Ok{};
}

Result<Launch> TextCalls::read_launch(LineReader& line) {
  Launch launch;
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (field.key == "grid") return set_extent(field, launch.grid);
    if (field.key == "block") return set_extent(field, launch.block);
    if (field.key == "shared") return set_number(field, launch.shared_bytes);
    if (field.key == "graph") return set_number(field, launch.graph);
    if (field.key == "arguments") return set_arguments(field, launch.arguments);
    if (!field.key.empty()) return unknown_field(field);
    launch.kernel = trace_.strings.intern(field.value);
    return Ok{};
  });
  if (!status) return status.error();
  return launch;
}

Result<Copy> TextCalls::read_copy(LineReader& line) {
  Copy copy;
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (field.key == "from") return set_number(field, copy.source);
    if (field.key == "source-device") return set_number(field, copy.source_device);
    if (field.key == "width") return set_size(field, copy.width_bytes);
    if (field.key == "height") return set_number(field, copy.height);
    if (field.key == "depth") return set_number(field, copy.depth);
    if (field.key == "source-pitch") return set_size(field, copy.source_pitch_bytes);
    if (field.key == "destination-pitch") return set_size(field, copy.destination_pitch_bytes);
    if (field.key.empty() && field.value == "asynchronous") {
      copy.asynchronous = true;
      return Ok{};
    }
    return field.key.empty() && set_sides(field.value, copy) ? Status(Ok{}) : unknown_field(field);
  });
  if (!status) return status.error();
  return copy;
}

Result<Fault> TextCalls::read_fault(LineReader& line) {
  Fault fault;
  bool has_thread = true;
  const std::array<std::pair<std::string_view, StringId*>, 5> strings = {{{"by", &fault.reported_by}, {"kernel", &fault.kernel}, {"file", &fault.file},
      {"function", &fault.function}, {"instruction", &fault.instruction}}};
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (field.key.empty() && !field.quoted && (field.value == "store" || field.value == "no-thread")) {
      (field.value == "store" ? fault.is_store : has_thread) = field.value == "store";
      return Ok{};
    }
    if (field.key == "block-index" || field.key == "thread-index") {
      fault.has_thread = true;
      return set_extent(field, field.key == "block-index" ? fault.block_index : fault.thread_index);
    }
    if (field.key == "code") return set_number(field, fault.code);
    if (field.key == "line") return set_number(field, fault.line);
    if (field.key == "pc") return set_number(field, fault.pc);
    if (field.key == "pc-offset") return set_number(field, fault.pc_offset);
    if (field.key == "grid") return set_extent(field, fault.grid);
    if (field.key == "block") return set_extent(field, fault.block);
    if (field.key == "lanes") return set_number(field, fault.lanes);
    if (field.key == "addresses") return set_addresses(field, fault.addresses);
    if (field.key == "parameters") return set_arguments(field, fault.parameters);
    for (const auto& [key, string] : strings) {
      if (field.key != key) continue;
      *string = trace_.strings.intern(field.value);
      return Ok{};
    }
    if (!field.key.empty()) return unknown_field(field);
    fault.what = trace_.strings.intern(field.value);
    return Ok{};
  });
  if (!status) return status.error();
  fault.has_thread = fault.has_thread && has_thread;
  return fault;
}

std::string describe(const Trace& trace, const Launch& launch) {
  Words words("launch");
  if (launch.kernel.value != 0) words.add("{}", plain_or_quoted(trace.strings.at(launch.kernel)));
  words.known_extent("grid", launch.grid);
  words.known_extent("block", launch.block);
  words.number("shared", launch.shared_bytes);
  words.number("graph", launch.graph);
  words.arguments("arguments", launch.arguments);
  return words.take();
}

std::string describe(const Trace&, const Copy& copy) {
  Words words("copy");
  words.add("from={:#x}", copy.source);
  if (copy.source_side != MemorySide::kUnified || copy.destination_side != MemorySide::kUnified) {
    words.add("{}-to-{}", name_of(copy.source_side), name_of(copy.destination_side));
  }
  if (copy.asynchronous) words.add("asynchronous");
  words.number("source-device", copy.source_device);
  words.number("width", copy.width_bytes);
  words.number("height", copy.height, 1);
  words.number("depth", copy.depth, 1);
  words.number("source-pitch", copy.source_pitch_bytes);
  words.number("destination-pitch", copy.destination_pitch_bytes);
  return words.take();
}

std::string describe(const Trace& trace, const Fault& fault) {
  Words words("fault");
  if (fault.what.value != 0) words.add("{}", quoted(trace.strings.at(fault.what)));
  words.string("by", trace.strings.at(fault.reported_by));
  words.number("code", fault.code);
  words.string("kernel", trace.strings.at(fault.kernel));
  words.string("file", trace.strings.at(fault.file));
  words.number("line", fault.line);
  words.string("function", trace.strings.at(fault.function));
  words.string("instruction", trace.strings.at(fault.instruction));
  words.address("pc", fault.pc);
  words.address("pc-offset", fault.pc_offset);
  words.known_extent("grid", fault.grid);
  words.known_extent("block", fault.block);
  if (fault.has_thread || fault.block_index != Extent3{} || fault.thread_index != Extent3{}) {
    words.extent("block-index", fault.block_index);
    words.extent("thread-index", fault.thread_index);
    if (!fault.has_thread) words.add("no-thread");
  }
  words.number("lanes", fault.lanes);
  if (fault.is_store) words.add("store");
  words.addresses("addresses", fault.addresses);
  words.arguments("parameters", fault.parameters);
  return words.take();
}

std::vector<StringId> strings_of(const Launch& launch) { return {launch.kernel}; }
std::vector<StringId> strings_of(const Fault& fault) {
  return {fault.what, fault.reported_by, fault.kernel, fault.file, fault.function, fault.instruction};
}

}  // namespace faultline::text
