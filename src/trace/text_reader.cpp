#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/hash.h"
#include "trace/text.h"
#include "trace/text_definitions.h"
#include "trace/text_fields.h"
#include "trace/text_words.h"
#include "trace/validate.h"

namespace faultline {
namespace {

using text::bad;
using text::Field;
using text::set_number;
using text::set_size;
using text::spelled;
using text::starts_like_number;
using text::unknown_field;

class TextReader {
 public:
  Result<Trace> read(std::string_view text) {
    for (std::size_t line = 1; !text.empty(); ++line) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (Status status = read_line(text.substr(0, end), line); !status) return at_line(line, status.error());
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (!has_mark_) return at_line(1, bad("a trace in text begins with '{} 1'", kTextMark));
    if (Status status = finish(); !status) return status.error();
    return std::move(trace_);
  }

 private:
  static Error at_line(std::size_t line, const Error& error) {
    return Error{fmt::format("line {}: {}", line, error.what), error.offset, error.next};
  }

  Status read_line(std::string_view text, std::size_t number) {
    LineReader line(text);
    if (line.at_end() || text[text.find_first_not_of(" \t\r")] == '#') return Ok{};
    const Result<Field> verb = line.word();
    if (!verb) return verb.error();
    if (!has_mark_) return read_mark(*verb, line);
    if (verb->quoted) return bad("a line begins with a plain word");
    if (const auto kind = kind_of(verb->value)) {
      event_lines_.push_back(number);
      return read_event(*kind, line);
    }
    return definitions_.read(verb->value, line);
  }

  Status read_mark(const Field& verb, LineReader& line) {
    if (verb.value != kTextMark) return bad("a trace in text begins with '{} 1'", kTextMark);
    const Result<Field> version = line.word();
    if (!version || version->value != "1") return bad("this reader knows version 1 of the text form");
    if (!line.at_end()) {
      exact_ = line.take("exact");
      if (!exact_ || !line.at_end()) return bad("only 'exact' can stand behind the version");
      definitions_.set_exact();
    }
    has_mark_ = true;
    return Ok{};
  }

  // What an event line says, before it is known what the rest defaults to.
  struct EventLine {
    std::string allocation;  // behind the #
    std::vector<Field> fields;
    StackId stack;
  };

  Status read_event(EventKind kind, LineReader& line) {
    EventLine said;
    while (!line.at_end()) {
      if (line.take("at")) {
        const Result<StackId> stack = definitions_.read_stack(line);
        if (!stack) return stack.error();
        said.stack = *stack;
        break;
      }
      Result<Field> field = line.field();
      if (!field) return field.error();
      const bool is_shape = field->key == "tensor" && field->quoted;
      if (!field->suffix.empty() && !is_shape) return bad("'{}' stands right behind a quoted text", field->suffix);
      if (field->key.empty() && !field->quoted && field->value.starts_with('#')) {
        if (!said.allocation.empty() || field->value.size() == 1)
          return bad("an event names one allocation, like #7 or #weights");
        said.allocation = field->value.substr(1);
      } else {
        said.fields.push_back(std::move(*field));
      }
    }
    if (happens_in_heap(kind)) definitions_.add_default_heaps();
    AllocationId allocation;
    if (Status status = resolve_allocation(kind, said.allocation, allocation); !status) return status;
    const auto maker = makers_.find(allocation.value);
    Event event = default_event(trace_, kind, maker == makers_.end() ? nullptr : &trace_.events[maker->second]);
    event.time_ns = next_time_ns_;
    event.allocation = allocation;
    event.stack = said.stack;
    for (const Field& field : said.fields) {
      if (Status status = set_place(field, event); !status) return status;
    }
    for (const Field& field : said.fields) {
      if (Status status = set_event_field(field, event); !status) return status;
    }
    if (makes_allocation(kind)) {
      makers_[allocation.value] = trace_.events.size();
      highest_allocation_ = std::max(highest_allocation_, allocation.value);
    }
    next_time_ns_ = event.time_ns > std::numeric_limits<std::int64_t>::max() - kTextTimeStepNs
                        ? event.time_ns
                        : event.time_ns + kTextTimeStepNs;
    trace_.events.push_back(event);
    return Ok{};
  }

  Status resolve_allocation(EventKind kind, const std::string& label, AllocationId& to) {
    const bool makes = makes_allocation(kind);
    if (label.empty() && !makes) return Ok{};
    if (const auto number = number_of(label); number || label.empty()) {
      if (number && (*number == 0 || *number > std::numeric_limits<std::uint32_t>::max()))
        return bad("#{} cannot be an allocation", label);
      to = AllocationId(number ? static_cast<std::uint32_t>(*number) : highest_allocation_ + 1);
      if (makes && makers_.contains(to.value))
        return bad("#{} is already made, on line {}", to.value, event_lines_[makers_[to.value]]);
      if (ends_allocation(kind) && !makers_.contains(to.value)) return bad("#{} is made by no line above", to.value);
      return Ok{};
    }
    const auto known = allocation_names_.find(label);
    if (makes && known != allocation_names_.end())
      return bad("#{} is already made, on line {}", label, event_lines_[makers_[known->second.value]]);
    if (!makes && known == allocation_names_.end()) return bad("#{} is made by no line above", label);
    to = makes ? AllocationId(highest_allocation_ + 1) : known->second;
    if (makes) allocation_names_.emplace(label, to);
    return Ok{};
  }

  // Where an event happens comes first: its device is its heap's unless the line says otherwise.
  Status set_place(const Field& field, Event& event) {
    const bool is_word = field.key.empty() && !starts_like_number(field) && !field.value.starts_with('@');
    if (field.key == "heap" && starts_like_number(field)) return set_number(field, event.heap.value);
    if (field.key != "heap" && !(is_word && !extra_is_string(event.kind) && !is_reserved(field.value))) return Ok{};
    const Result<HeapId> heap = definitions_.find_heap(field.value);
    if (!heap) return heap.error();
    event.heap = *heap;
    event.device = trace_.heaps[heap->index()].device;
    return Ok{};
  }

  Status set_event_field(const Field& field, Event& event) {
    if (!field.key.empty()) return set_keyed(field, event);
    if (starts_like_number(field)) return set_size(field, event.size_bytes);
    if (!field.quoted && field.value.starts_with('@')) {
      event.set(kAddressKnown);
      return set_number(std::string_view(field.value).substr(1), event.address);
    }
    const auto flag = std::find_if(kFlagWords.begin(), kFlagWords.end(),
                                   [&](const auto& known) { return known.first == field.value; });
    if (!field.quoted && flag != kFlagWords.end()) {
      event.set(flag->second);
    } else if (!field.quoted && (field.value == "requested" || field.value == "completed")) {
      event.set_phase(field.value == "requested" ? FreePhase::kRequested : FreePhase::kCompleted);
    } else if (extra_is_string(event.kind)) {
      event.extra = trace_.strings.intern(field.value).value;
    } else if (is_reserved(field.value)) {
      return unknown_field(field);
    }
    return Ok{};
  }

  Status set_keyed(const Field& field, Event& event) {
    const std::string& key = field.key;
    if (key == "heap") return Ok{};
    if (key == "t") return set_time(field, event);
    if (key == "stack") return definitions_.set_stack(field, event.stack);
    if (key == "stream") return definitions_.set_stream(field, event.stream);
    if (key == "device") return set_number(field, event.device);
    if (key == "thread") return set_number(field, event.thread.value);
    if (key == "bits") return set_number(field, event.bits);
    if (key == "extra" && !extra_is_tensor(event.kind) && !extra_is_string(event.kind) && !extra_is_call(event.kind))
      return set_number(field, event.extra);
    if (key == "address") {
      event.bits = static_cast<std::uint8_t>(event.bits & ~(kAddressKnown << 2));
      return set_number(field, event.address);
    }
    if (key == "device-free" && event.kind == EventKind::kAllocFailed) {
      event.set(kHasDeviceFree);
      return set_size(field, event.address);
    }
    if (key != extra_key(event.kind) || key == "name") return unknown_field(field);
    if (key == "call") return definitions_.calls().find(event.kind, field.value, event.extra);
    if (key == "for") return set_sync_target(field, event);
    if (key != "tensor") return set_number(field, event.extra);
    TensorId tensor;
    Status status = definitions_.set_tensor(field, tensor);
    event.extra = tensor.value;
    return status;
  }

  Status set_sync_target(const Field& field, Event& event) {
    const auto target = sync_target_of(field.value);
    if (!target) return bad("'{}': the host waits for a stream, an event or the device", spelled(field));
    event.extra = static_cast<std::uint32_t>(*target);
    return Ok{};
  }

  Status set_time(const Field& field, Event& event) {
    has_times_ = true;
    const bool relative = field.value.starts_with('+');
    const auto time = time_of(relative ? std::string_view(field.value).substr(1) : field.value);
    if (!time) return bad("'{}' is not a time in nanoseconds", spelled(field));
    const std::int64_t before = relative && !trace_.events.empty() ? trace_.events.back().time_ns : 0;
    if (*time > 0 && before > std::numeric_limits<std::int64_t>::max() - *time)
      return bad("'{}' goes beyond the end of time", spelled(field));
    event.time_ns = before + *time;
    return Ok{};
  }

  Status finish() {
    if (Status status = definitions_.finish(); !status) return status;
    trace_.allocation_count = highest_allocation_;
    while (trace_.preexisting_count < trace_.events.size() && trace_.events[trace_.preexisting_count].has(kPreexisting))
      ++trace_.preexisting_count;
    if (!exact_) add_defaults();
    if (makers_.size() != highest_allocation_)
      return bad("allocations are numbered from 1 without gaps; there are {}, and one is #{}", makers_.size(),
                 highest_allocation_);
    const auto problem = find_problem(trace_);
    if (problem && problem->event) return at_line(event_lines_[*problem->event], bad("the event {}", problem->what));
    if (problem) return bad("{}", problem->what);
    return Ok{};
  }

  void add_defaults() {
    if (!definitions_.has_source()) {
      trace_.source_kind = "text";
      trace_.source_events = trace_.events.size();
    }
    if (!definitions_.has_capabilities()) trace_.capabilities = capabilities_shown();
  }

  // What a trace written by hand evidently tells.
  std::uint32_t capabilities_shown() const {
    std::uint32_t shown = kStreams;
    if (has_times_) shown |= kTimes;
    if (trace_.preexisting_count == 0) shown |= kCompleteFromStart;
    if (!trace_.events.empty()) shown |= kEvents;
    if (trace_.tensors.size() > 1) shown |= kTensors;
    bool all_placed = highest_allocation_ > 0;
    for (const Event& event : trace_.events) {
      if (event.stack.value != 0) shown |= kStacks;
      if (event.kind == EventKind::kStepMark) shown |= kSteps;
      if (event.kind == EventKind::kOpEnd && event.has(kFailed))
        shown |= kTensors;  // with its operands, where it has any
      if (event.kind == EventKind::kViolation) shown |= kAccesses;
      if (makes_allocation(event.kind)) all_placed &= event.has(kAddressKnown);
    }
    return all_placed ? shown | kAddresses : shown;
  }

  Trace trace_;
  text::TextDefinitions definitions_{trace_};
  bool has_mark_ = false;
  bool exact_ = false;
  bool has_times_ = false;
  std::int64_t next_time_ns_ = 0;
  std::uint32_t highest_allocation_ = 0;
  std::vector<std::size_t> event_lines_;
  HashMap<std::string, AllocationId> allocation_names_;
  HashMap<std::uint32_t, std::size_t> makers_;  // the event that makes each allocation
};

}  // namespace

Result<Trace> parse_trace_text(std::string_view text) { return TextReader().read(text); }

bool looks_like_trace_text(std::string_view first_bytes) {
  // Comments may stand before the mark.
  while (first_bytes.starts_with('#') || first_bytes.starts_with('\n')) {
    const std::size_t end = first_bytes.find('\n');
    if (end == std::string_view::npos) return false;
    first_bytes.remove_prefix(end + 1);
  }
  return first_bytes.starts_with(kTextMark);
}

}  // namespace faultline
