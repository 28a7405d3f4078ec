#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "trace/text.h"
#include "trace/text_calls.h"
#include "trace/text_words.h"
#include "trace/validate.h"

namespace faultline {
namespace {

// Writes so that the reader, which gives ids in the order in which it meets names, arrives at the same ids: where a line alone would not
// do that, `string` and `frame` lines go before it.
class TextWriter {
 public:
  explicit TextWriter(const Trace& trace) : trace_(trace) {}

  std::string write() {
    line("{} 1 exact", kTextMark);
    write_origin();
    write_places();
    write_stacks();
    write_tensors();
    write_calls();
    find_makers();
    for (const Event& event : trace_.events) write_event(event);
    write_final_state();
    for (const auto& [what, times] : trace_.lost) line("lost {} {}", plain_or_quoted(what), times);
    introduce_frames_until(trace_.stacks.frame_count());
    introduce_strings_until(trace_.strings.size());
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  std::string string(StringId id) const { return plain_or_quoted(trace_.strings.at(id)); }

  void write_origin() {
    line("source {} path={} events={}", plain_or_quoted(trace_.source_kind), quoted(trace_.source_path),
         trace_.source_events);
    line("can{}", capability_words(trace_.capabilities));
  }

  void write_places() {
    for (const Device& device : trace_.devices) {
      line("device {} name={} capacity={} allowed={}", device.index, quoted(device.name), device.capacity_bytes,
           device.allowed_bytes);
    }
    std::set<std::string> labels;
    for (std::size_t i = 0; i < trace_.heaps.size(); ++i) {
      const std::string& name = trace_.heaps[i].name;
      const bool usable = is_plain(name) && !is_reserved(name) && labels.insert(name).second;
      heap_labels_.push_back(usable ? name : fmt::format("_{}", i));
      labels.insert(heap_labels_.back());
    }
    for (std::size_t i = 0; i < trace_.heaps.size(); ++i) write_heap(i);
    for (std::size_t i = 0; i < trace_.streams.size(); ++i) {
      const Stream& stream = trace_.streams[i];
      line("stream {} device={} handle={:#x}{}", i, stream.device, stream.handle,
           stream.waits_for_default ? "" : " non-blocking");
    }
    for (const auto& [key, value] : trace_.properties) line("property {} = {}", plain_or_quoted(key), quoted(value));
  }

  void write_heap(std::size_t i) {
    const Heap& heap = trace_.heaps[i];
    add("heap {} kind={} device={}", heap_labels_[i], name_of(heap.kind), heap.device);
    if (heap.below != default_below(trace_, i)) add(" below={}", heap_labels_[heap.below.index()]);
    if (heap.is_private()) add(" pool={}.{}", heap.pool_major, heap.pool_minor);
    if (heap.name != heap_labels_[i]) add(" name={}", quoted(heap.name));
    text_ += '\n';
  }

  void introduce_strings_until(std::size_t end) {
    for (; strings_done_ < end; ++strings_done_) line("string {}", quoted(trace_.strings.at(StringId(strings_done_))));
  }
  // The names of one line, in the order in which the reader meets them.
  void introduce_strings(std::span<const StringId> ids) {
    std::uint32_t next = strings_done_;
    std::uint32_t end = strings_done_;
    bool in_order = true;
    for (const StringId id : ids) {
      end = std::max(end, id.value + 1);
      if (id.value < next) continue;
      in_order &= id.value == next;
      ++next;
    }
    if (in_order) {
      strings_done_ = next;
    } else {
      introduce_strings_until(end);
    }
  }

  std::string frame_text(const Frame& frame) const {
    const std::string_view file = trace_.strings.at(frame.file);
    // A bare word could be taken for FILE:LINE or for a stack's name.
    std::string text = is_plain(file) && file.find(':') == std::string_view::npos && frame.line != 0 ? std::string(file)
                                                                                                     : quoted(file);
    if (frame.line != 0) text += fmt::format(":{}", frame.line);
    if (frame.function.value != 0) text += fmt::format(" {}", string(frame.function));
    return text;
  }
  void introduce_frames_until(std::size_t end) {
    for (; frames_done_ < end; ++frames_done_) {
      const Frame& frame = trace_.stacks.frame(FrameId(frames_done_));
      introduce_strings(std::vector{frame.file, frame.function});
      line("frame {}", frame_text(frame));
    }
  }
  void introduce_frames(std::span<const FrameId> ids) {
    std::uint32_t next = frames_done_;
    std::uint32_t end = frames_done_;
    bool in_order = true;
    std::vector<StringId> strings;
    for (const FrameId id : ids) {
      end = std::max(end, id.value + 1);
      strings.push_back(trace_.stacks.frame(id).file);
      strings.push_back(trace_.stacks.frame(id).function);
      if (id.value < next) continue;
      in_order &= id.value == next;
      ++next;
    }
    if (!in_order) return introduce_frames_until(end);
    introduce_strings(strings);
    frames_done_ = next;
  }

  // A line defines a run of stacks, each the caller of the next, and names the last. So whatever is named elsewhere must end a run.
  std::vector<bool> named_stacks() const {
    std::vector<bool> named(trace_.stacks.size());
    for (const Event& event : trace_.events) named[event.stack.index()] = true;
    for (const FinalSegment& segment : trace_.final_segments) named[segment.stack.index()] = true;
    for (const FinalBlock& block : trace_.final_blocks) named[block.stack.index()] = true;
    for (std::uint32_t i = 1; i < trace_.stacks.size(); ++i) {
      const StackId caller = trace_.stacks.parent(StackId(i));
      if (caller.value + 1 != i) named[caller.index()] = true;
    }
    return named;
  }
  void write_stacks() {
    const std::vector<bool> named = named_stacks();
    for (std::uint32_t i = 1; i < trace_.stacks.size();) {
      const StackId caller = trace_.stacks.parent(StackId(i));
      std::vector<FrameId> frames = {trace_.stacks.frame_id(StackId(i))};
      while (!named[i] && i + 1 < trace_.stacks.size() && trace_.stacks.parent(StackId(i + 1)).value == i) {
        frames.push_back(trace_.stacks.frame_id(StackId(++i)));
      }
      introduce_frames(frames);
      add("stack s{} =", i);
      if (caller.value != 0) add(" s{} >", caller.value);
      for (std::size_t f = 0; f < frames.size(); ++f)
        add("{} {}", f == 0 ? "" : " >", frame_text(trace_.stacks.frame(frames[f])));
      text_ += '\n';
      ++i;
    }
  }

  void write_tensors() {
    for (std::uint32_t i = 1; i < trace_.tensors.size(); ++i) {
      const Tensor& tensor = trace_.tensors.at(TensorId(i));
      introduce_strings(std::vector{tensor.dtype, tensor.op, tensor.name, tensor.operands});
      const std::string_view dtype = trace_.strings.at(tensor.dtype);
      add("tensor t{} = {}[", i,
          is_plain(dtype) && dtype.find('[') == std::string_view::npos ? std::string(dtype) : quoted(dtype));
      for (std::size_t d = 0; d < tensor.shape.size(); ++d) add("{}{}", d == 0 ? "" : ",", tensor.shape[d]);
      text_ += ']';
      if (tensor.op.value != 0) add(" op={}", string(tensor.op));
      if (tensor.name.value != 0) add(" name={}", string(tensor.name));
      if (tensor.operands.value != 0) add(" operands={}", string(tensor.operands));
      text_ += '\n';
    }
  }

  void write_calls() {
    each_call_table(trace_, [&](const auto& table) {
      using Table = std::remove_cvref_t<decltype(table)>;
      for (std::uint32_t i = 1; i < table.size(); ++i) {
        const auto& call = table.at(typename Table::Id(i));
        std::vector<StringId> names;
        for (const StringId* const id : strings_of(call)) names.push_back(*id);
        introduce_strings(names);
        line("call {}{} = {}", CallKind<typename Table::Value>::kWord, i, text::describe(trace_, call));
      }
    });
  }

  void find_makers() {
    makers_.resize(std::size_t{trace_.allocation_count} + 1);
    for (const Event& event : trace_.events) {
      if (makes_allocation(event.kind)) makers_[event.allocation.index()] = &event;
    }
  }

  void write_event(const Event& event) {
    if (extra_is_string(event.kind)) introduce_strings(std::vector{StringId(event.extra)});
    text_ += verb_of(event.kind);
    if (event.allocation.value != 0) add(" #{}", event.allocation.value);
    Event told =
        default_event(trace_, event.kind, event.allocation.value == 0 ? nullptr : makers_[event.allocation.index()]);
    if (extra_is_string(event.kind) && event.extra != 0) write_name(trace_.strings.at(StringId(event.extra)));
    if (happens_in_heap(event.kind) && (event.heap != told.heap || makes_allocation(event.kind))) {
      add(" {}", heap_labels_[event.heap.index()]);
      told.device = trace_.heaps[event.heap.index()].device;
    }
    if (!happens_in_heap(event.kind) && event.heap != told.heap) add(" heap={}", event.heap.value);
    if (event.size_bytes != told.size_bytes || makes_allocation(event.kind)) add(" {}", event.size_bytes);
    write_address(event, told);
    if (event.kind == EventKind::kFree && event.phase() != FreePhase::kBoth) {
      add(" {}", event.phase() == FreePhase::kRequested ? "requested" : "completed");
      told.set_phase(event.phase());
    }
    for (const auto& [word, flag] : kFlagWords) {
      if (!event.has(flag)) continue;
      add(" {}", word);
      told.set(flag);
    }
    if (event.bits != told.bits) add(" bits={:#x}", event.bits);
    if (event.device != told.device) add(" device={}", event.device);
    if (event.stream != told.stream) add(" stream={}", event.stream.value);
    if (event.thread != told.thread) add(" thread={}", event.thread.value);
    if (event.extra != told.extra && !extra_is_string(event.kind)) write_extra(event);
    if (event.stack != told.stack) add(" stack=s{}", event.stack.value);
    add(" t={}\n", event.time_ns);
  }

  void write_extra(const Event& event) {
    const bool known_target =
        event.kind == EventKind::kSync && event.extra <= static_cast<std::uint32_t>(SyncTarget::kDevice);
    if (known_target) return add(" {}={}", extra_key(event.kind), name_of(static_cast<SyncTarget>(event.extra)));
    if (event.kind == EventKind::kSync) return add(" extra={}", event.extra);
    const std::string_view prefix = extra_is_tensor(event.kind) ? "t"
                                    : extra_is_call(event.kind) ? verb_of(event.kind)
                                                                : "";
    add(" {}={}{}", extra_key(event.kind), prefix, event.extra);
  }

  void write_name(std::string_view name) { add(" {}", is_reserved(name) ? quoted(name) : plain_or_quoted(name)); }

  void write_address(const Event& event, Event& told) {
    if (event.kind == EventKind::kAllocFailed && event.has(kHasDeviceFree) && !event.has(kAddressKnown)) {
      add(" device-free={}", event.address);
      told.set(kHasDeviceFree);
    } else if (event.has(kAddressKnown)) {
      if (event.address != told.address || !told.has(kAddressKnown)) add(" @{:#x}", event.address);
      told.set(kAddressKnown);
    } else if (event.address != told.address || told.has(kAddressKnown)) {
      add(" address={:#x}", event.address);
      told.bits = static_cast<std::uint8_t>(told.bits & ~(kAddressKnown << 2));
    }
  }

  bool blocks_follow_segments() const {
    std::uint64_t next = 0;
    for (const FinalSegment& segment : trace_.final_segments) {
      if (segment.first_block != next) return false;
      next += segment.block_count;
    }
    return next == trace_.final_blocks.size();
  }

  void write_final_state() {
    const bool nested = blocks_follow_segments();
    for (const FinalSegment& segment : trace_.final_segments) {
      add("segment {:#x} {} {} device={} stream={}", segment.address, segment.size_bytes,
          heap_labels_[segment.heap.index()], segment.device, segment.stream.value);
      if (segment.is_small) add(" small");
      if (segment.is_expandable) add(" expandable");
      if (!nested) add(" blocks={}+{}", segment.first_block, segment.block_count);
      if (segment.stack.value != 0) add(" stack=s{}", segment.stack.value);
      text_ += '\n';
      for (std::uint32_t b = 0; nested && b < segment.block_count; ++b)
        write_block(trace_.final_blocks[segment.first_block + b]);
    }
    for (std::size_t b = 0; !nested && b < trace_.final_blocks.size(); ++b) write_block(trace_.final_blocks[b]);
  }

  void write_block(const FinalBlock& block) {
    add("block {:#x} {} {} requested={}", block.address, block.size_bytes, name_of(block.state), block.requested_bytes);
    if (block.stack.value != 0) add(" stack=s{}", block.stack.value);
    text_ += '\n';
  }

  const Trace& trace_;
  std::string text_;
  std::vector<std::string> heap_labels_;
  std::uint32_t strings_done_ = 1;
  std::uint32_t frames_done_ = 1;
  std::vector<const Event*> makers_;
};

}  // namespace

std::string trace_to_text(const Trace& trace) { return TextWriter(trace).write(); }

}  // namespace faultline
