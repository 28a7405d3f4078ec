#include "trace/text_definitions.h"

#include <algorithm>
#include <limits>

#include "trace/pushed_frame.h"
#include "trace/text_fields.h"

namespace faultline::text {
namespace {

Result<std::string> one_word(LineReader& line, const char* what) {
  if (line.at_end()) return bad("{} is missing", what);
  Result<Field> word = line.word();
  if (!word) return word.error();
  if (!word->suffix.empty()) return bad("'{}' stands right behind a quoted text", word->suffix);
  return std::move(word->value);
}

Status nothing_more(LineReader& line) {
  if (!line.at_end()) return bad("the line goes on where it should end; names with spaces need quotes");
  return Ok{};
}

bool next_is_arrow(LineReader line) { return line.take(">"); }

Status set_pool(const Field& field, Heap& heap) {
  const std::size_t dot = std::min(field.value.find('.'), field.value.size());
  if (Status status = set_number(field.value.substr(0, dot), heap.pool_major); !status) return status;
  return set_number(std::string_view(field.value).substr(std::min(dot + 1, field.value.size())), heap.pool_minor);
}

}  // namespace

Status TextDefinitions::read(std::string_view verb, LineReader& line) {
  if (verb == "stack") return read_stack_line(line);
  if (verb == "tensor") return read_tensor_line(line);
  if (verb == "call") return calls_.read(line);
  if (verb == "heap") return read_heap(line);
  if (verb == "stream") return read_stream(line);
  if (verb == "device") return read_device(line);
  if (verb == "property") return read_property(line);
  if (verb == "source") return read_source(line);
  if (verb == "can") return read_capabilities(line);
  if (verb == "lost") return read_lost(line);
  if (verb == "segment") return read_segment(line);
  if (verb == "block") return read_block(line);
  if (verb == "frame") return read_frame_line(line);
  if (verb == "string") return read_string_line(line);
  return bad("'{}' is no kind of line", verb);
}

// FILE[:LINE] [FUNCTION]
Result<FrameId> TextDefinitions::read_frame(LineReader& line) {
  const Result<Field> place = line.word();
  if (!place) return place.error();
  return read_frame(*place, line);
}

Result<FrameId> TextDefinitions::read_frame(const Field& place, LineReader& line) {
  std::string file = place.value;
  std::string number = place.suffix;
  if (const std::size_t colon = file.rfind(':');
      !place.quoted && colon != std::string::npos && number_of(std::string_view(file).substr(colon + 1))) {
    number = file.substr(colon);
    file.resize(colon);
  }
  Frame frame;
  if (!number.empty()) {
    if (number[0] != ':') return bad("'{}' stands right behind a quoted text", number);
    if (Status status = set_number(std::string_view(number).substr(1), frame.line); !status) return status.error();
  }
  frame.file = trace_.strings.intern(file);
  if (!line.at_end() && !next_is_arrow(line)) {
    Result<std::string> function = one_word(line, "the function");
    if (!function) return function.error();
    frame.function = trace_.strings.intern(*function);
  }
  return trace_.stacks.intern_frame(frame);
}

// [STACK >] FRAME > FRAME …, outermost first
Result<StackId> TextDefinitions::read_stack(LineReader& line) {
  StackId stack;
  Result<Field> first = line.word();
  if (!first) return first.error();
  const auto base = first->quoted ? stacks_.end() : stacks_.find(first->value);
  if (base != stacks_.end()) {
    stack = base->second;
  } else {
    const Result<FrameId> frame = read_frame(*first, line);
    if (!frame) return frame.error();
    stack = push_frame(trace_, stack, *frame);
  }
  while (line.take(">")) {
    if (line.at_end()) return bad("a frame is missing behind '>'");
    const Result<FrameId> frame = read_frame(line);
    if (!frame) return frame.error();
    stack = push_frame(trace_, stack, *frame);
  }
  if (Status status = nothing_more(line); !status) return status.error();
  return stack;
}

Status TextDefinitions::read_stack_line(LineReader& line) {
  const Result<std::string> name = one_word(line, "the stack's name");
  if (!name) return name.error();
  if (!line.take("=")) return bad("a stack line reads: stack NAME = FILE:LINE FUNCTION > FILE:LINE FUNCTION");
  const Result<StackId> stack = read_stack(line);
  if (!stack) return stack.error();
  if (!stacks_.emplace(*name, *stack).second) return bad("the stack '{}' is already there", *name);
  return Ok{};
}

Status TextDefinitions::read_frame_line(LineReader& line) {
  const Result<FrameId> frame = read_frame(line);
  if (!frame) return frame.error();
  return nothing_more(line);
}

Status TextDefinitions::read_string_line(LineReader& line) {
  const Result<std::string> text = one_word(line, "the text");
  if (!text) return text.error();
  trace_.strings.intern(*text);
  return nothing_more(line);
}

// DTYPE[EXTENT,EXTENT…]
Status TextDefinitions::read_shape(std::string_view dtype, std::string_view shape, Tensor& tensor) {
  if (shape.size() < 2 || shape.front() != '[' || shape.back() != ']')
    return bad("a tensor reads like float32[32,1024], without spaces");
  tensor.dtype = trace_.strings.intern(dtype);
  shape = shape.substr(1, shape.size() - 2);
  while (!shape.empty()) {
    const std::size_t end = std::min(shape.find(','), shape.size());
    const auto extent = time_of(shape.substr(0, end));
    if (!extent || end + 1 == shape.size()) return bad("a tensor reads like float32[32,1024], without spaces");
    if (tensor.shape.size() == kMostDimensions) return bad("a tensor has at most {} dimensions", kMostDimensions);
    tensor.shape.push_back(*extent);
    shape.remove_prefix(std::min(end + 1, shape.size()));
  }
  return Ok{};
}

Status TextDefinitions::read_shape(const Field& word, Tensor& tensor) {
  if (word.quoted) return read_shape(word.value, word.suffix, tensor);
  const std::size_t bracket = std::min(word.value.find('['), word.value.size());
  const std::string_view text = word.value;
  return read_shape(text.substr(0, bracket), text.substr(bracket), tensor);
}

Status TextDefinitions::read_tensor_line(LineReader& line) {
  const Result<std::string> name = one_word(line, "the tensor's name");
  if (!name) return name.error();
  if (!line.take("=") || line.at_end())
    return bad("a tensor line reads: tensor NAME = float32[32,1024] op=OP name=NAME operands=TEXT");
  const Result<Field> shape = line.word();
  if (!shape) return shape.error();
  Tensor tensor;
  if (Status status = read_shape(*shape, tensor); !status) return status;
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (field.key != "op" && field.key != "name" && field.key != "operands") return unknown_field(field);
    (field.key == "op"     ? tensor.op
     : field.key == "name" ? tensor.name
                           : tensor.operands) = trace_.strings.intern(field.value);
    return Ok{};
  });
  if (!status) return status;
  if (!tensors_.emplace(*name, trace_.tensors.intern(tensor)).second)
    return bad("the tensor '{}' is already there", *name);
  return Ok{};
}

Status TextDefinitions::read_heap(LineReader& line) {
  const Result<std::string> label = one_word(line, "the heap's label");
  if (!label) return label.error();
  if (!is_plain(*label) || is_reserved(*label))
    return bad("'{}' cannot be a heap's label; give it another and write name=\"{}\"", *label, *label);
  if (trace_.heaps.size() == std::numeric_limits<std::uint16_t>::max()) return bad("too many heaps");
  Heap heap;
  heap.kind = heap_kind_of(*label).value_or(HeapKind::kOther);
  heap.name = *label;
  std::string below;
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (field.key == "kind") {
      const auto kind = heap_kind_of(field.value);
      if (!kind) return bad("'{}' is no kind of heap", field.value);
      heap.kind = *kind;
      return Ok{};
    }
    if (field.key == "device") return set_number(field, heap.device);
    if (field.key == "name") heap.name = field.value;
    if (field.key == "below") below = field.value;
    if (field.key == "pool") return set_pool(field, heap);
    return field.key == "name" || field.key == "below" ? Status(Ok{}) : unknown_field(field);
  });
  if (!status) return status;
  const HeapId id(static_cast<std::uint16_t>(trace_.heaps.size()));
  if (!heaps_.emplace(*label, id).second) return bad("the heap '{}' is already there", *label);
  trace_.heaps.push_back(std::move(heap));
  trace_.heaps.back().below = default_below(trace_, id.index());
  if (!below.empty()) belows_.push_back({id, below});
  return Ok{};
}

Status TextDefinitions::read_stream(LineReader& line) {
  Stream stream;
  if (!exact_ && trace_.streams.empty() && !LineReader(line).take("0")) trace_.streams.emplace_back();
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (field.key == "device") return set_number(field, stream.device);
    if (field.key == "handle") return set_number(field, stream.handle);
    if (field.key.empty() && field.value == "non-blocking") {
      stream.waits_for_default = false;
      return Ok{};
    }
    if (!field.key.empty()) return unknown_field(field);
    if (number_of(field.value) != trace_.streams.size())
      return bad("the next stream is number {}", trace_.streams.size());
    return Ok{};
  });
  if (status) trace_.streams.push_back(stream);
  return status;
}

Status TextDefinitions::read_device(LineReader& line) {
  Device device;
  bool has_index = false;
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (field.key == "capacity") return set_size(field, device.capacity_bytes);
    if (field.key == "allowed") return set_size(field, device.allowed_bytes);
    if (field.key == "name") {
      device.name = field.value;
      return Ok{};
    }
    if (!field.key.empty() || has_index) return unknown_field(field);
    has_index = true;
    return set_number(field, device.index);
  });
  if (status && !has_index) return bad("the device's number is missing");
  if (status) trace_.devices.push_back(std::move(device));
  return status;
}

Status TextDefinitions::read_property(LineReader& line) {
  const Result<std::string> key = one_word(line, "the property's name");
  if (!key) return key.error();
  if (!line.take("=")) return bad("a property line reads: property NAME = VALUE");
  Result<std::string> value = one_word(line, "the property's value");
  if (!value) return value.error();
  trace_.properties[*key] = std::move(*value);
  return nothing_more(line);
}

Status TextDefinitions::read_source(LineReader& line) {
  Result<std::string> kind = one_word(line, "the source's kind");
  if (!kind) return kind.error();
  trace_.source_kind = std::move(*kind);
  has_source_ = true;
  return each_field(line, [&](const Field& field) -> Status {
    if (field.key == "path") {
      trace_.source_path = field.value;
      return Ok{};
    }
    if (field.key == "events") return set_number(field, trace_.source_events);
    return unknown_field(field);
  });
}

Status TextDefinitions::read_capabilities(LineReader& line) {
  has_capabilities_ = true;
  return each_field(line, [&](const Field& field) -> Status {
    std::uint32_t more = 0;
    if (const auto known = capability_of(field.value)) {
      more = *known;
    } else if (Status status = set_number(field, more); !status) {
      return bad("'{}' is no capability", spelled(field));
    }
    trace_.capabilities |= more;
    return Ok{};
  });
}

Status TextDefinitions::read_lost(LineReader& line) {
  const Result<std::string> what = one_word(line, "the counter's name");
  if (!what) return what.error();
  const Result<std::string> times = one_word(line, "the count");
  if (!times) return times.error();
  if (Status status = set_number(*times, trace_.lost[*what]); !status) return status;
  return nothing_more(line);
}

Result<HeapId> TextDefinitions::find_heap(const std::string& label) {
  add_default_heaps();
  const auto found = heaps_.find(label);
  if (found == heaps_.end()) return bad("there is no heap '{}'", label);
  return found->second;
}

void TextDefinitions::add_default_heaps() {
  if (exact_ || !heaps_.empty()) return;
  trace_.heaps = {{HeapKind::kDriver, 0, HeapId(0), 0, 0, "driver"},
                  {HeapKind::kTorchCaching, 0, HeapId(0), 0, 0, "torch"}};
  heaps_ = {{"driver", HeapId(0)}, {"torch", HeapId(1)}};
}

Status TextDefinitions::set_stack(const Field& field, StackId& to) {
  const auto found = stacks_.find(field.value);
  if (found == stacks_.end()) return bad("there is no stack '{}'", field.value);
  to = found->second;
  return Ok{};
}

Status TextDefinitions::set_stream(const Field& field, StreamId& to) {
  if (Status status = set_number(field, to.value); !status) return status;
  if (to.value != 0 && to.index() >= trace_.streams.size()) return bad("there is no stream {}", to.value);
  return Ok{};
}

Status TextDefinitions::read_segment(LineReader& line) {
  FinalSegment segment;
  segment.first_block = static_cast<std::uint32_t>(trace_.final_blocks.size());
  nested_blocks_ = true;
  int numbers = 0;
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (starts_like_number(field) && field.key.empty())
      return numbers++ == 0 ? set_number(field, segment.address) : set_size(field, segment.size_bytes);
    if (field.key == "device") return set_number(field, segment.device);
    if (field.key == "stream") return set_stream(field, segment.stream);
    if (field.key == "stack") return set_stack(field, segment.stack);
    if (field.key == "blocks") return set_blocks(field, segment);
    if (!field.key.empty()) return unknown_field(field);
    if (field.value == "small" || field.value == "expandable") {
      (field.value == "small" ? segment.is_small : segment.is_expandable) = true;
      return Ok{};
    }
    const Result<HeapId> heap = find_heap(field.value);
    if (!heap) return heap.error();
    segment.heap = *heap;
    return Ok{};
  });
  if (status && numbers != 2) return bad("a segment line reads: segment ADDRESS SIZE HEAP");
  if (status) trace_.final_segments.push_back(segment);
  return status;
}

Status TextDefinitions::set_blocks(const Field& field, FinalSegment& segment) {
  nested_blocks_ = false;
  const std::size_t plus = std::min(field.value.find('+'), field.value.size());
  if (Status status = set_number(field.value.substr(0, plus), segment.first_block); !status) return status;
  return set_number(std::string_view(field.value).substr(std::min(plus + 1, field.value.size())), segment.block_count);
}

Status TextDefinitions::read_block(LineReader& line) {
  FinalBlock block;
  int numbers = 0;
  bool has_requested = false;
  Status status = each_field(line, [&](const Field& field) -> Status {
    if (starts_like_number(field) && field.key.empty())
      return numbers++ == 0 ? set_number(field, block.address) : set_size(field, block.size_bytes);
    if (field.key == "requested") {
      has_requested = true;
      return set_size(field, block.requested_bytes);
    }
    if (field.key == "stack") return set_stack(field, block.stack);
    const auto state = block_state_of(field.value);
    if (!field.key.empty() || !state) return unknown_field(field);
    block.state = *state;
    return Ok{};
  });
  if (!status) return status;
  if (numbers != 2) return bad("a block line reads: block ADDRESS SIZE free|active|pending");
  if (!has_requested && block.state != FinalBlock::State::kFree) block.requested_bytes = block.size_bytes;
  trace_.final_blocks.push_back(block);
  if (nested_blocks_ && !trace_.final_segments.empty()) ++trace_.final_segments.back().block_count;
  return Ok{};
}

Status TextDefinitions::set_tensor(const Field& field, TensorId& to) {
  const auto known = field.quoted ? tensors_.end() : tensors_.find(field.value);
  if (known != tensors_.end()) {
    to = known->second;
    return Ok{};
  }
  if (!field.quoted && field.value.find('[') == std::string::npos) return bad("there is no tensor '{}'", field.value);
  Tensor tensor;
  if (Status status = read_shape(field, tensor); !status) return status;
  to = trace_.tensors.intern(tensor);
  return Ok{};
}

Status TextDefinitions::finish() {
  for (const auto& [heap, label] : belows_) {
    const Result<HeapId> below = find_heap(label);
    if (!below) return below.error();
    trace_.heaps[heap.index()].below = *below;
  }
  if (exact_) return Ok{};
  add_default_heaps();
  if (trace_.streams.empty()) trace_.streams.emplace_back();
  if (trace_.devices.empty()) trace_.devices.emplace_back();
  return Ok{};
}

}  // namespace faultline::text
