#include "trace/text_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trace/text_fields.h"

namespace faultline::text {
namespace {

constexpr std::array<std::string_view, 4> kSides = {"unified", "host", "device", "array"};

constexpr std::array<std::string_view, 5> kViolations = {"other", "out-of-bounds", "use-after-free", "uninitialized",
                                                         "misaligned"};
constexpr std::array<std::string_view, 3> kAccesses = {"read", "write", "atomic"};

template <class Kind, std::size_t count>
std::string_view word_of(const std::array<std::string_view, count>& words, Kind kind) {
  return words[static_cast<std::size_t>(kind)];
}

template <class Kind, std::size_t count>
bool set_by_word(const std::array<std::string_view, count>& words, std::string_view word, Kind& kind) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) kind = static_cast<Kind>(found - words.begin());
  return found != words.end();
}

// "host-to-device"
bool set_sides(std::string_view word, Copy& copy) {
  constexpr std::string_view kBetween = "-to-";
  const std::size_t between = word.find(kBetween);
  if (between == std::string_view::npos) return false;
  return set_by_word(kSides, word.substr(0, between), copy.source_side) &&
         set_by_word(kSides, word.substr(between + kBetween.size()), copy.destination_side);
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
    for (std::size_t i = 0; i < values.size(); ++i)
      text_ += (i == 0 ? fmt::format(" {}=", key) : ",") + fmt::format("{:#x}", values[i]);
  }
  void place(const Trace& trace, const KernelPlace& place) {
    string("kernel", trace.strings.at(place.kernel));
    string("file", trace.strings.at(place.file));
    number("line", place.line);
    string("function", trace.strings.at(place.function));
    address("pc", place.pc);
    address("pc-offset", place.pc_offset);
    known_extent("grid", place.grid);
    known_extent("block", place.block);
    if (!place.has_thread && place.block_index == Extent3{} && place.thread_index == Extent3{}) return;
    extent("block-index", place.block_index);
    extent("thread-index", place.thread_index);
    if (!place.has_thread) add("no-thread");
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

template <class Table>
Status TextCalls::read_into(Table& table, LineReader& line, Call& call) {
  typename Table::Value value;
  if (Status status = read_fields(line, value); !status) return status;
  call = {CallKind<typename Table::Value>::kEvent, table.intern(value).value};
  return Ok{};
}

Status TextCalls::read(LineReader& line) {
  constexpr const char* kShape = "a call line reads: call NAME = launch|copy|fault|violation …";
  if (line.at_end()) return bad("{}", kShape);
  const Result<Field> name = line.word();
  if (!name) return name.error();
  if (!line.take("=") || line.at_end()) return bad("{}", kShape);
  if (calls_.contains(name->value)) return bad("the call '{}' is already there", name->value);
  Call call{};
  std::optional<Status> status;
  each_call_table(trace_, [&](auto& table) {
    if (!status && line.take(CallKind<typename std::remove_cvref_t<decltype(table)>::Value>::kWord))
      status = read_into(table, line, call);
  });
  if (!status) return bad("{}", kShape);
  if (status->ok()) calls_.emplace(name->value, call);
  return *status;
}

Status TextCalls::find(EventKind kind, const std::string& name, std::uint32_t& to) const {
  const auto found = calls_.find(name);
  if (found == calls_.end()) return bad("there is no call '{}'", name);
  if (found->second.kind != kind) return bad("the call '{}' is a {}", name, verb_of(found->second.kind));
  to = found->second.id;
  return Ok{};
}

Status TextCalls::read_fields(LineReader& line, Launch& launch) {
  return each_field(line, [&](const Field& field) -> Status {
    if (field.key == "grid") return set_extent(field, launch.grid);
    if (field.key == "block") return set_extent(field, launch.block);
    if (field.key == "shared") return set_number(field, launch.shared_bytes);
    if (field.key == "graph") return set_number(field, launch.graph);
    if (field.key == "arguments") return set_arguments(field, launch.arguments);
    if (!field.key.empty()) return unknown_field(field);
    launch.kernel = trace_.strings.intern(field.value);
    return Ok{};
  });
}

Status TextCalls::read_fields(LineReader& line, Copy& copy) {
  return each_field(line, [&](const Field& field) -> Status {
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
}

Result<bool> TextCalls::read_place(const Field& field, KernelPlace& place) {
  const auto is = [](const Status& status) { return status ? Result<bool>(true) : Result<bool>(status.error()); };
  if (field.key == "block-index" || field.key == "thread-index") {
    place.has_thread = true;
    return is(set_extent(field, field.key == "block-index" ? place.block_index : place.thread_index));
  }
  if (field.key == "line") return is(set_number(field, place.line));
  if (field.key == "pc") return is(set_number(field, place.pc));
  if (field.key == "pc-offset") return is(set_number(field, place.pc_offset));
  if (field.key == "grid") return is(set_extent(field, place.grid));
  if (field.key == "block") return is(set_extent(field, place.block));
  return set_string(field, "kernel", place.kernel) || set_string(field, "file", place.file) ||
         set_string(field, "function", place.function);
}

bool TextCalls::set_string(const Field& field, std::string_view key, StringId& to) {
  if (field.key != key) return false;
  to = trace_.strings.intern(field.value);
  return true;
}

Status TextCalls::read_fields(LineReader& line, Fault& fault) {
  bool no_thread = false;
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (field.key.empty() && !field.quoted && (field.value == "store" || field.value == "no-thread")) {
      (field.value == "store" ? fault.is_store : no_thread) = true;
      return Ok{};
    }
    if (field.key == "code") return set_number(field, fault.code);
    if (field.key == "lanes") return set_number(field, fault.lanes);
    if (field.key == "addresses") return set_addresses(field, fault.addresses);
    if (field.key == "parameters") return set_arguments(field, fault.parameters);
    if (set_string(field, "by", fault.reported_by) || set_string(field, "instruction", fault.instruction) ||
        set_string(field, "", fault.what))
      return Ok{};
    const Result<bool> of_place = read_place(field, fault);
    return !of_place ? Status(of_place.error()) : *of_place ? Status(Ok{}) : unknown_field(field);
  });
  fault.has_thread = fault.has_thread && !no_thread;
  return status;
}

Status TextCalls::read_fields(LineReader& line, Violation& violation) {
  bool no_thread = false;
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (field.key.empty() && (set_by_word(kViolations, field.value, violation.kind) ||
                              set_by_word(kAccesses, field.value, violation.access)))
      return Ok{};
    if (field.key.empty() && field.value == "no-thread") {
      no_thread = true;
      return Ok{};
    }
    const Result<bool> of_place = read_place(field, violation);
    return !of_place ? Status(of_place.error()) : *of_place ? Status(Ok{}) : unknown_field(field);
  });
  violation.has_thread = violation.has_thread && !no_thread;
  return status;
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
    words.add("{}-to-{}", word_of(kSides, copy.source_side), word_of(kSides, copy.destination_side));
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
  words.place(trace, fault);
  words.string("instruction", trace.strings.at(fault.instruction));
  words.number("lanes", fault.lanes);
  if (fault.is_store) words.add("store");
  words.addresses("addresses", fault.addresses);
  words.arguments("parameters", fault.parameters);
  return words.take();
}

std::string describe(const Trace& trace, const Violation& violation) {
  Words words("violation");
  words.add("{} {}", word_of(kViolations, violation.kind), word_of(kAccesses, violation.access));
  words.place(trace, violation);
  return words.take();
}

}  // namespace faultline::text
