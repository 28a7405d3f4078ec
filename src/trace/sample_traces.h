// Traces to test with: small random ones that use every field, a large one shaped like training, and an exact comparison.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "trace/trace.h"
#include "trace/validate.h"

namespace faultline {

inline void expect_same_tables(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.strings.size(), b.strings.size());
  for (std::uint32_t i = 0; i < a.strings.size(); ++i) ASSERT_EQ(a.strings.at(StringId(i)), b.strings.at(StringId(i)));
  ASSERT_EQ(a.stacks.frame_count(), b.stacks.frame_count());
  for (std::uint32_t i = 0; i < a.stacks.frame_count(); ++i)
    ASSERT_TRUE(a.stacks.frame(FrameId(i)) == b.stacks.frame(FrameId(i))) << i;
  ASSERT_EQ(a.stacks.size(), b.stacks.size());
  for (std::uint32_t i = 0; i < a.stacks.size(); ++i) {
    ASSERT_EQ(a.stacks.parent(StackId(i)), b.stacks.parent(StackId(i)));
    ASSERT_EQ(a.stacks.frame_id(StackId(i)), b.stacks.frame_id(StackId(i)));
    ASSERT_EQ(a.stacks.depth(StackId(i)), b.stacks.depth(StackId(i)));
  }
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::uint32_t i = 0; i < a.tensors.size(); ++i)
    ASSERT_TRUE(a.tensors.at(TensorId(i)) == b.tensors.at(TensorId(i))) << i;
  const auto expect_same_calls = [](const auto& one, const auto& other) {
    using Id = typename std::remove_cvref_t<decltype(one)>::Id;
    ASSERT_EQ(one.size(), other.size());
    for (std::uint32_t i = 0; i < one.size(); ++i) ASSERT_TRUE(one.at(Id(i)) == other.at(Id(i))) << i;
  };
  expect_same_calls(a.launches, b.launches);
  expect_same_calls(a.copies, b.copies);
  expect_same_calls(a.faults, b.faults);
  expect_same_calls(a.violations, b.violations);
}

// Everything equal, ids included.
inline void expect_same_trace(const Trace& a, const Trace& b) {
  expect_same_tables(a, b);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (std::size_t i = 0; i < a.events.size(); ++i)
    ASSERT_TRUE(a.events[i] == b.events[i]) << "event " << i << " " << name_of(a.events[i].kind);
  ASSERT_TRUE(a.heaps == b.heaps);
  ASSERT_TRUE(a.streams == b.streams);
  ASSERT_TRUE(a.devices == b.devices);
  ASSERT_EQ(a.allocation_count, b.allocation_count);
  ASSERT_EQ(a.preexisting_count, b.preexisting_count);
  ASSERT_EQ(a.capabilities, b.capabilities);
  ASSERT_TRUE(a.final_segments == b.final_segments);
  ASSERT_TRUE(a.final_blocks == b.final_blocks);
  ASSERT_EQ(a.source_kind, b.source_kind);
  ASSERT_EQ(a.source_path, b.source_path);
  ASSERT_EQ(a.source_events, b.source_events);
  ASSERT_EQ(a.properties, b.properties);
  ASSERT_EQ(a.lost, b.lost);
}

class RandomTrace {
 public:
  explicit RandomTrace(std::uint64_t seed) : random_(seed) {}

  Trace make(std::size_t events) {
    Trace trace;
    make_tables(trace);
    make_calls(trace);
    make_places(trace);
    make_events(trace, events);
    make_final_state(trace);
    trace.capabilities = static_cast<std::uint32_t>(random_());
    trace.source_kind = text();
    trace.source_path = text();
    trace.source_events = number();
    for (std::uint64_t i = below(4); i > 0; --i) trace.properties[text()] = text();
    for (std::uint64_t i = below(4); i > 0; --i) trace.lost["odd " + text()] = number();
    return trace;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool often() { return below(4) != 0; }
  // Of any size, and often on an edge.
  std::uint64_t number() {
    const std::uint64_t value = random_() >> below(64);
    return std::array<std::uint64_t, 5>{value, value, value & ~std::uint64_t{511}, 0, ~std::uint64_t{0}}[below(5)];
  }
  std::string text() {
    static const std::array<std::string, 16> kTexts = {"",           "main",
                                                       "train.py",   "a b",
                                                       "\"quoted\"", "back\\slash",
                                                       "new\nline",  "tab\tand\x01",
                                                       "ünïcode",    " > ",
                                                       "#7",         "@0x10",
                                                       "t=5",        "operator>(a, b)",
                                                       "123",        std::string("nul\0inside", 10)};
    std::string value = kTexts[below(kTexts.size())];
    if (often()) value += std::to_string(below(20));
    return value;
  }
  StringId string(const Trace& trace) { return StringId(static_cast<std::uint32_t>(below(trace.strings.size()))); }
  StackId stack(const Trace& trace) { return StackId(static_cast<std::uint32_t>(below(trace.stacks.size()))); }
  std::uint16_t small_id(std::size_t size) { return static_cast<std::uint16_t>(below(size)); }

  void make_tables(Trace& trace) {
    for (std::uint64_t i = below(20); i > 0; --i) trace.strings.intern(text());
    for (std::uint64_t i = below(20); i > 0; --i) {
      trace.stacks.intern_frame({string(trace), string(trace), static_cast<std::uint32_t>(number())});
    }
    for (std::uint64_t i = below(40); i > 0; --i) {
      const StackId caller = often() ? StackId(static_cast<std::uint32_t>(trace.stacks.size() - 1)) : stack(trace);
      trace.stacks.push(caller, FrameId(static_cast<std::uint32_t>(below(trace.stacks.frame_count()))));
    }
    for (std::uint64_t i = below(10); i > 0; --i) {
      Tensor tensor{{}, string(trace), string(trace), string(trace), string(trace)};
      for (std::uint64_t rank = below(5); rank > 0; --rank) tensor.shape.push_back(static_cast<std::int64_t>(number()));
      trace.tensors.intern(tensor);
    }
  }

  std::uint32_t part() { return static_cast<std::uint32_t>(number()); }
  Extent3 extent() {
    if (!often()) return {};
    return often() ? Extent3{part(), 1, 1} : Extent3{part(), part(), part()};
  }
  std::vector<LaunchArgument> arguments() {
    std::vector<LaunchArgument> values;
    for (std::uint64_t i = below(6); i > 0; --i)
      values.push_back({often() ? static_cast<std::uint32_t>(8 * values.size()) : part(), number()});
    return values;
  }

  void make_calls(Trace& trace) {
    for (std::uint64_t i = below(8); i > 0; --i) {
      trace.launches.intern(
          {string(trace), extent(), extent(), often() ? 0 : part(), often() ? 0 : part(), arguments()});
    }
    for (std::uint64_t i = below(8); i > 0; --i) {
      Copy copy{number(), static_cast<MemorySide>(below(4)), static_cast<MemorySide>(below(4)), often()};
      if (!often()) copy.source_device = static_cast<std::uint16_t>(number());
      if (!often()) {
        copy.width_bytes = number();
        copy.height = part();
        copy.depth = part();
        copy.source_pitch_bytes = number();
        copy.destination_pitch_bytes = number();
      }
      trace.copies.intern(copy);
    }
    for (std::uint64_t i = below(4); i > 0; --i) {
      Fault fault;
      make_place(trace, fault);
      fault.code = part();
      fault.lanes = part();
      fault.is_store = often();
      for (std::uint64_t lane = below(5); lane > 0; --lane) fault.addresses.push_back(number());
      fault.parameters = arguments();
      trace.faults.intern(fault);
    }
    for (std::uint64_t i = below(4); i > 0; --i) {
      Violation violation;
      make_place(trace, violation);
      violation.kind = static_cast<ViolationKind>(below(5));
      violation.access = static_cast<AccessKind>(below(3));
      trace.violations.intern(violation);
    }
  }

  template <class Call>
  void make_place(const Trace& trace, Call& call) {
    for (StringId* const id : strings_of(call)) *id = string(trace);
    call.line = part();
    call.pc = number();
    call.pc_offset = number();
    for (Extent3* const place : {&call.grid, &call.block, &call.block_index, &call.thread_index}) *place = extent();
    call.has_thread = often();
  }

  std::uint32_t extra(const Trace& trace, EventKind kind) {
    if (extra_is_tensor(kind)) return static_cast<std::uint32_t>(below(trace.tensors.size()));
    if (extra_is_string(kind)) return string(trace).value;
    std::size_t calls = 0;
    each_call_table(trace, [&](const auto& table) {
      if (kind == CallKind<typename std::remove_cvref_t<decltype(table)>::Value>::kEvent) calls = table.size();
    });
    if (calls != 0) return static_cast<std::uint32_t>(below(calls));
    return kind == EventKind::kSync && often() ? static_cast<std::uint32_t>(below(3)) : part();
  }

  void make_places(Trace& trace) {
    const std::size_t heaps = 1 + below(4);
    for (std::size_t i = 0; i < heaps; ++i) {
      Heap heap{static_cast<HeapKind>(below(kHeapKindCount)),
                static_cast<std::uint16_t>(number()),
                HeapId(small_id(i + 1)),
                number(),
                number(),
                text()};
      trace.heaps.push_back(heap);
    }
    for (std::uint64_t i = below(4); i > 0; --i)
      trace.streams.push_back({static_cast<std::uint16_t>(number()), number(), often()});
    for (std::uint64_t i = below(3); i > 0; --i)
      trace.devices.push_back({static_cast<std::uint16_t>(i * 100), text(), number(), number()});
  }

  void make_events(Trace& trace, std::size_t count) {
    // Ids need not be made in their order.
    std::vector<std::uint32_t> ids(count);
    for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::uint32_t>(i + 1);
    const std::size_t preexisting = count == 0 ? 0 : below(std::min<std::size_t>(count, 4));
    std::vector<EventKind> kinds(count);
    for (EventKind& kind : kinds) kind = static_cast<EventKind>(often() ? below(2) : below(kEventKindCount));
    const auto allocations = static_cast<std::uint32_t>(std::count_if(kinds.begin(), kinds.end(), makes_allocation));
    std::shuffle(ids.begin(), ids.begin() + std::min<std::ptrdiff_t>(allocations, often() ? 0 : allocations), random_);
    std::uint32_t made = 0;
    std::int64_t time_ns = static_cast<std::int64_t>(number());
    for (std::size_t i = 0; i < count; ++i) {
      Event event;
      event.kind = kinds[i];
      if (often()) time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) + below(100000));
      event.time_ns = often() ? time_ns : static_cast<std::int64_t>(number());
      event.address = number();
      event.size_bytes = number();
      event.stack = stack(trace);
      event.stream = StreamId(static_cast<std::uint32_t>(below(std::max<std::size_t>(1, trace.streams.size()))));
      event.extra = extra(trace, event.kind);
      event.device = trace.devices.empty() ? small_id(3) : trace.devices[below(trace.devices.size())].index;
      event.heap = HeapId(small_id(trace.heaps.size()));
      event.thread = ThreadId(static_cast<std::uint16_t>(often() ? 1 : number()));
      event.bits = static_cast<std::uint8_t>(often() ? below(3) : below(64) * 4);
      event.bits = static_cast<std::uint8_t>(event.bits & ~(kPreexisting << 2));
      if (i < preexisting) event.set(kPreexisting);
      if (makes_allocation(event.kind)) {
        event.allocation = AllocationId(ids[made++]);
      } else if (made > 0 && often()) {
        event.allocation = AllocationId(ids[below(made)]);
      }
      trace.events.push_back(event);
    }
    trace.allocation_count = allocations;
    trace.preexisting_count = static_cast<std::uint32_t>(preexisting);
  }

  void make_final_state(Trace& trace) {
    for (std::uint64_t i = below(4); i > 0; --i) {
      FinalSegment segment;
      segment.address = number();
      segment.size_bytes = number();
      segment.device = static_cast<std::uint16_t>(number());
      segment.heap = HeapId(small_id(trace.heaps.size()));
      segment.stack = stack(trace);
      segment.is_small = often();
      segment.is_expandable = often();
      segment.first_block = static_cast<std::uint32_t>(trace.final_blocks.size());
      segment.block_count = static_cast<std::uint32_t>(below(4));
      for (std::uint32_t b = 0; b < segment.block_count; ++b) {
        trace.final_blocks.push_back(
            {number(), number(), number(), stack(trace), static_cast<FinalBlock::State>(below(3))});
      }
      trace.final_segments.push_back(segment);
    }
    if (!trace.final_segments.empty() && !often())
      std::reverse(trace.final_segments.begin(), trace.final_segments.end());
  }

  std::mt19937_64 random_;
};

// A transformer in training, as a caching allocator would record it: parameters, then steps of forward (activations), backward (activations
// freed last to first, gradients and temporaries made) and an optimizer that lets the gradients go. Microseconds between events.
class TrainingTrace {
 public:
  Trace make(std::size_t at_least_events) {
    trace_.source_kind = "sample";
    trace_.heaps = {{HeapKind::kDriver, 0, HeapId(0), 0, 0, "driver"},
                    {HeapKind::kTorchCaching, 0, HeapId(0), 0, 0, "torch"}};
    trace_.streams = {{0, 0}};
    trace_.devices = {{0, "sample", 80ull << 30, 0}};
    trace_.capabilities = kAddresses | kStacks | kStreams | kEvents | kTimes;
    trace_.events.reserve(at_least_events + 4096);
    make_stacks();
    for (int i = 0; i < kLayers * 12; ++i)
      allocate(stacks_[static_cast<std::size_t>(i % 40)], 4096 * (1 + pick(6) * 1024));
    while (trace_.events.size() < at_least_events) step();
    trace_.allocation_count = static_cast<std::uint32_t>(allocations_.size());
    trace_.source_events = trace_.events.size();
    return std::move(trace_);
  }

 private:
  static constexpr int kLayers = 24;
  struct Place {
    std::uint64_t address, size_bytes;
  };

  std::uint64_t pick(std::uint64_t end) { return random_() % end; }

  void make_stacks() {
    for (std::uint32_t i = 0; i < 2000; ++i) {
      StackId stack;
      for (std::uint32_t depth = 0; depth < 12; ++depth) {
        const std::uint32_t branch = depth < 6 ? 0 : i >> (12 - depth);
        const Frame frame{trace_.strings.intern("function_" + std::to_string(branch % 97)),
                          trace_.strings.intern("file_" + std::to_string(depth) + ".py"), branch + 1};
        stack = trace_.stacks.push(stack, trace_.stacks.intern_frame(frame));
      }
      stacks_.push_back(stack);
    }
  }

  Event event(EventKind kind, StackId stack) {
    Event made;
    made.kind = kind;
    made.time_ns = time_ns_ += static_cast<std::int64_t>(2000 + pick(60000));
    made.stack = stack;
    made.heap = HeapId(1);
    made.thread = ThreadId(1);
    made.set(kAddressKnown);
    return made;
  }

  AllocationId allocate(StackId stack, std::uint64_t size_bytes) {
    Event made = event(EventKind::kAlloc, stack);
    made.size_bytes = size_bytes;
    made.address = 0x7f0000000000 + pick(1 << 17) * (512 << pick(9));
    allocations_.push_back({made.address, size_bytes});
    made.allocation = AllocationId(static_cast<std::uint32_t>(allocations_.size()));
    trace_.events.push_back(made);
    return made.allocation;
  }

  void free(AllocationId id, StackId stack) {
    for (const FreePhase phase : {FreePhase::kRequested, FreePhase::kCompleted}) {
      Event made = event(EventKind::kFree, stack);
      made.allocation = id;
      made.address = allocations_[id.index() - 1].address;
      made.size_bytes = allocations_[id.index() - 1].size_bytes;
      made.set_phase(phase);
      if (phase == FreePhase::kCompleted) made.time_ns = trace_.events.back().time_ns;
      trace_.events.push_back(made);
    }
  }

  StackId next_stack() { return stacks_[(stack_at_ += 7) % stacks_.size()]; }

  void step() {
    std::vector<AllocationId> activations;
    std::vector<AllocationId> gradients;
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int i = 0; i < 14; ++i) {
        const AllocationId made = allocate(next_stack(), (8ull * 1024 * 768 + pick(3) * 4) << pick(3));
        if (i % 3 == 0) {
          free(made, next_stack());
        } else {
          activations.push_back(made);
        }
      }
    }
    while (!activations.empty()) {
      const AllocationId temporary = allocate(StackId(0), 8ull * 1024 * 768 << pick(3));
      if (pick(3) == 0) gradients.push_back(allocate(StackId(0), 4096 * (1 + pick(6) * 1024)));
      free(activations.back(), StackId(0));
      free(temporary, StackId(0));
      activations.pop_back();
    }
    for (const AllocationId gradient : gradients) free(gradient, next_stack());
  }

  Trace trace_;
  std::mt19937_64 random_{1};
  std::int64_t time_ns_ = 1'700'000'000'000'000'000;
  std::vector<StackId> stacks_;
  std::vector<Place> allocations_;
  std::size_t stack_at_ = 0;
};

}  // namespace faultline
