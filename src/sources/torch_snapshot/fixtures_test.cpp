// Real recordings: what is read from them agrees with what they say about themselves.
#include "sources/torch_snapshot/snapshot_test_support.h"

namespace faultline::snapshot_test {
namespace {

class EveryRecording : public testing::TestWithParam<std::string> {};

TEST_P(EveryRecording, HoldsTheInvariantsAndLosesNothing) {
  const Trace trace = fixture(GetParam());
  const Status holds = check_trace(trace);
  EXPECT_TRUE(holds.ok()) << holds.error().what;
  EXPECT_EQ(trace.source_kind, "torch-snapshot");
  EXPECT_TRUE(trace.lost.empty()) << trace.lost.begin()->first;
  EXPECT_FALSE(trace.events.empty());
  EXPECT_FALSE(trace.final_segments.empty());
}

TEST_P(EveryRecording, EndsWithTheBlocksThatItsEndStateShows) {
  const Trace trace = fixture(GetParam());
  EXPECT_EQ(live_at_end(trace), live_in_end_state(trace));
}

TEST_P(EveryRecording, EndsWithTheSegmentsThatItsEndStateShows) {
  const Trace trace = fixture(GetParam());
  std::set<std::pair<std::uint64_t, std::uint64_t>> live;
  std::uint64_t mapped_bytes = 0, expandable_bytes = 0;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kMap) mapped_bytes += event.size_bytes;
    if (event.kind == EventKind::kUnmap) mapped_bytes -= event.size_bytes;
    if ((event.kind != EventKind::kAlloc && event.kind != EventKind::kFree) || is_torch(trace, event)) continue;
    const std::pair key(event.address, event.size_bytes);
    EXPECT_TRUE(event.kind == EventKind::kAlloc ? live.insert(key).second : live.erase(key) == 1) << event.address;
  }
  for (const FinalSegment& segment : trace.final_segments) {
    if (segment.is_expandable) {
      expandable_bytes += segment.size_bytes;
    } else {
      EXPECT_EQ(live.erase({segment.address, segment.size_bytes}), 1u) << segment.address;
    }
  }
  EXPECT_TRUE(live.empty());
  EXPECT_EQ(mapped_bytes, expandable_bytes);
}

TEST_P(EveryRecording, KeepsEveryAllocationInsideASegmentOfItsTime) {
  const Trace trace = fixture(GetParam());
  std::map<std::uint64_t, std::uint64_t> held;  // begin → end, of segments and mapped ranges; neighbours are not merged
  std::uint64_t checked = 0;
  for (const Event& event : trace.events) {
    const std::uint64_t end = event.address + event.size_bytes;
    if (event.kind == EventKind::kMap) held[event.address] = end;
    if (event.kind == EventKind::kUnmap) return;  // what is left then is ranges, proved by the test above
    if (event.kind == EventKind::kAlloc && !is_torch(trace, event)) held[event.address] = end;
    if (event.kind == EventKind::kFree && !is_torch(trace, event)) held.erase(event.address);
    if (event.kind != EventKind::kAlloc || !is_torch(trace, event)) continue;
    std::uint64_t at = event.address;
    while (at < end) {
      auto segment = held.upper_bound(at);
      ASSERT_TRUE(segment != held.begin()) << event.address;
      --segment;
      ASSERT_LT(at, segment->second) << event.address;
      at = segment->second;
    }
    ++checked;
  }
  EXPECT_GT(checked, 0u);
}

INSTANTIATE_TEST_SUITE_P(Torch, EveryRecording, testing::ValuesIn(fixture_names()),
                         [](const testing::TestParamInfo<std::string>& recording) {
                           std::string name = recording.param;
                           std::replace_if(
                               name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

// PyTorch's own counts, taken when the recordings were made.
TEST(Recordings, HaveAsManyEntriesAndAllocationsAsWereRecorded) {
  const struct {
    const char* name;
    std::uint64_t entries, allocations, failures;
  } cases[] = {{"train_clean", 1487, 495, 0},   {"churn_default", 1846, 700, 0},   {"churn_gc_60", 1758, 573, 1},
               {"oom_retry_batch", 241, 78, 3}, {"oom_fragmented", 3426, 1070, 2}, {"gpt", 6805, 2410, 0},
               {"gpt_oom", 2164, 972, 1},       {"graphs", 348, 136, 0},           {"ring_default", 500, 165, 0},
               {"ring_train", 900, 273, 0},     {"state_only", 1, 0, 0},           {"segments_list", 0, 0, 0},
               {"cpp_pickler", 71, 40, 0}};
  for (const auto& known : cases) {
    const Trace trace = fixture(known.name);
    EXPECT_EQ(trace.source_events, known.entries) << known.name;
    std::uint64_t allocations = 0;
    for (const Event& event : of_kind(trace, EventKind::kAlloc))
      allocations += is_torch(trace, event) && !event.has(kPreexisting);
    EXPECT_EQ(allocations, known.allocations) << known.name;
    EXPECT_EQ(of_kind(trace, EventKind::kAllocFailed).size(), known.failures) << known.name;
  }
}

std::string stack_text(const Trace& trace, StackId stack) {
  std::string text;
  for (; stack.value != 0; stack = trace.stacks.parent(stack)) {
    const Frame& frame = trace.stacks.frame(stack);
    text += std::string(trace.strings.at(frame.function)) + "@" + std::string(trace.strings.at(frame.file)) + ":" +
            std::to_string(frame.line) + "\n";
  }
  return text;
}

void expect_equal(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.events.size(), b.events.size());
  for (std::size_t at = 0; at < a.events.size(); ++at) {
    Event left = a.events[at], right = b.events[at];
    ASSERT_EQ(stack_text(a, left.stack), stack_text(b, right.stack)) << "event " << at;
    left.stack = right.stack = StackId{};
    if (extra_is_string(left.kind)) {
      ASSERT_EQ(a.strings.at(StringId(left.extra)), b.strings.at(StringId(right.extra)));
      left.extra = right.extra = 0;
    }
    ASSERT_EQ(left, right) << "event " << at;
  }
  EXPECT_EQ(a.heaps, b.heaps);
  EXPECT_EQ(a.streams, b.streams);
  EXPECT_EQ(a.properties, b.properties);
  EXPECT_EQ(a.capabilities, b.capabilities);
  ASSERT_EQ(a.final_blocks.size(), b.final_blocks.size());
  for (std::size_t at = 0; at < a.final_blocks.size(); ++at) {
    EXPECT_EQ(a.final_blocks[at].address, b.final_blocks[at].address);
    EXPECT_EQ(a.final_blocks[at].state, b.final_blocks[at].state);
    EXPECT_EQ(stack_text(a, a.final_blocks[at].stack), stack_text(b, b.final_blocks[at].stack));
  }
}

TEST(Recordings, AreTheSameInEveryPickleProtocol) {
  const Trace protocol4 = fixture("train_clean");
  expect_equal(protocol4, fixture("protocol2"));
  expect_equal(protocol4, fixture("protocol5"));
}

TEST(Recordings, AreTheSamePlainAndPacked) {
  const std::string plain = unpacked_fixture("train_clean");
  expect_equal(fixture("train_clean"), trace_of(plain));
}

TEST(Recordings, SayWhetherTheyAreCompleteFromTheStart) {
  for (const std::string& name : fixture_names()) {
    const bool cut = name.starts_with("ring_") || name == "state_only" || name == "segments_list";
    const Trace trace = fixture(name);
    EXPECT_EQ(trace.can(kCompleteFromStart), !cut) << name;
    EXPECT_EQ(trace.preexisting_count == 0, !cut) << name;
  }
}

// A ring has lost its beginning: the memory of that time is there all the same, as if allocated before the first entry.
TEST(Rings, RebuildTheMemoryThatWasThereBefore) {
  for (const char* name : {"ring_default", "ring_expandable", "ring_streams", "ring_train"}) {
    const Trace trace = fixture(name);
    EXPECT_GT(trace.preexisting_count, 0u) << name;
    for (const Event& event : of_kind(trace, EventKind::kFree)) EXPECT_NE(event.allocation.value, 0u) << name;
    std::uint64_t allocated = 0, held = 0;
    for (const auto& [place, live] : live_at_end(trace)) allocated += live.size_bytes;
    for (const FinalBlock& final : trace.final_blocks)
      held += final.state == FinalBlock::State::kFree ? 0 : final.requested_bytes;
    EXPECT_EQ(allocated, held) << name;
  }
}

// The last 900 entries of the same training, once cut by the ring and once not, end in the same requests.
TEST(Rings, EndLikeTheirCompleteTwin) {
  const Trace ring = fixture("ring_train"), whole = fixture("train_clean");
  const auto sizes_of_last = [](const Trace& trace, std::size_t count) {
    std::vector<std::pair<EventKind, std::uint64_t>> sizes;
    for (auto event = trace.events.rbegin(); event != trace.events.rend() && sizes.size() < count; ++event) {
      if (event->kind <= EventKind::kFree && is_torch(trace, *event))
        sizes.emplace_back(event->kind, event->size_bytes);
    }
    return sizes;
  };
  EXPECT_EQ(sizes_of_last(ring, 800), sizes_of_last(whole, 800));
}

TEST(Recordings, NameTheReleaseThatCanHaveWrittenThem) {
  const Trace trace = fixture("train_clean");
  EXPECT_EQ(trace.properties.at("torch.min_version"), "2.10");
  EXPECT_EQ(fixture("gpt_expandable").properties.at("torch.alloc_conf"), "expandable_segments:True");
}

TEST(Recordings, KeepUserMetadataAsTheTensorsName) {
  const Trace trace = fixture("with_user_metadata");
  std::uint64_t named = 0;
  for (const Event& event : of_kind(trace, EventKind::kAlloc)) {
    if (event.extra != 0) named += trace.strings.at(trace.tensors.at(TensorId(event.extra)).name) == "phase one";
  }
  EXPECT_EQ(named, 86u);  // of 144: backward runs on another thread
}

TEST(Recordings, MarkTheOptimizersSteps) {
  const Trace trace = fixture("train_clean");
  EXPECT_TRUE(trace.can(kSteps));
  EXPECT_EQ(of_kind(trace, EventKind::kStepMark).size(), 12u);
}

}  // namespace
}  // namespace faultline::snapshot_test
