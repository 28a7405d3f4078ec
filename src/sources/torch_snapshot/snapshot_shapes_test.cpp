// The shapes that PyTorch's releases give a snapshot, and those that none of them does.
#include "sources/torch_snapshot/snapshot_test_support.h"

namespace faultline::snapshot_test {
namespace {

TEST(SnapshotShape, OfOneAllocationBecomesOneEvent) {
  Object alloc = with(entry("alloc", 0x7f0000000000, 1000, 55), "frames",
                      {frame("train.py", 12, "step"), frame("train.py", 40, "main")});
  const Trace trace = trace_of(snapshot({with(alloc, "stream", 77)}));
  ASSERT_EQ(trace.events.size(), 1u);
  const Event& event = trace.events[0];
  EXPECT_EQ(event.kind, EventKind::kAlloc);
  EXPECT_EQ(event.address, 0x7f0000000000u);
  EXPECT_EQ(event.size_bytes, 1000u);
  EXPECT_EQ(event.time_ns, 55'000);
  EXPECT_EQ(event.allocation.value, 1u);
  EXPECT_EQ(trace.streams.at(event.stream.index()).handle, 77u);
  EXPECT_TRUE(is_torch(trace, event));
  EXPECT_EQ(trace.stacks.depth(event.stack), 2u);
  EXPECT_EQ(trace.stacks.frame(event.stack).line, 12u) << "the innermost frame comes first";
  EXPECT_EQ(trace.stacks.frame(trace.stacks.parent(event.stack)).line, 40u);
  EXPECT_TRUE(trace.can(kAddresses | kStacks | kStreams | kEvents | kTimes | kCompleteFromStart));
}

TEST(SnapshotShape, OfEveryActionBecomesItsKind) {
  Object entries = {entry("segment_alloc", 0x100000, 4096),
                    entry("alloc", 0x100000, 512),
                    entry("free_requested", 0x100000, 512),
                    entry("free_completed", 0x100000, 512),
                    entry("segment_free", 0x100000, 4096),
                    entry("segment_map", 0x200000, 4096),
                    entry("segment_unmap", 0x200000, 4096),
                    entry("snapshot", 0, 0),
                    {{"action", "oom"}, {"device_free", 12345}, {"size", 1024}, {"stream", 0}},
                    entry("user_defined", 0, 0),
                    entry("annotate", 0, 0)};
  const Trace trace = trace_of(snapshot(entries));
  std::vector<EventKind> kinds;
  for (const Event& event : trace.events) kinds.push_back(event.kind);
  EXPECT_EQ(kinds,
            (std::vector<EventKind>{EventKind::kAlloc, EventKind::kAlloc, EventKind::kFree, EventKind::kFree,
                                    EventKind::kFree, EventKind::kMap, EventKind::kUnmap, EventKind::kAllocFailed}));
  EXPECT_EQ(trace.events[2].phase(), FreePhase::kRequested);
  EXPECT_EQ(trace.events[3].phase(), FreePhase::kCompleted);
  EXPECT_EQ(trace.events[4].phase(), FreePhase::kBoth);
  EXPECT_TRUE(trace.events[7].has(kHasDeviceFree));
  EXPECT_EQ(trace.events[7].address, 12345u);
  EXPECT_EQ(trace.source_events, 11u);
  EXPECT_TRUE(trace.lost.empty());
}

TEST(SnapshotShape, WithUnknownKeysAndActionsIsReadAndCounted) {
  Object alloc = with(entry("alloc", 0x1000, 512), "colour", "blue");
  const Trace trace = trace_of(with(snapshot({alloc, alloc, entry("teleport", 1, 2)}), "weather", "fine"));
  EXPECT_EQ(counter(trace, "unknown key 'colour'"), 2u);
  EXPECT_EQ(counter(trace, "unknown key 'weather'"), 1u);
  EXPECT_EQ(counter(trace, "entries with an unknown action"), 1u);
}

TEST(SnapshotShape, WithAThousandUnknownKeysHasFewCounters) {
  Object alloc = entry("alloc", 0x1000, 512);
  for (int number = 0; number < 1000; ++number) alloc["key" + std::to_string(number)] = number;
  const Trace trace = trace_of(snapshot({alloc}));
  EXPECT_LE(trace.lost.size(), 40u);
  std::uint64_t total = 0;
  for (const auto& [name, count] : trace.lost) total += count;
  EXPECT_EQ(total, 1000u);
}

TEST(SnapshotShape, OfTorchTwoZeroHasHistoriesAndBlocksWithoutAddress) {
  Object first = {{"size", 512},
                  {"state", "active_allocated"},
                  {"history", {{{"addr", 0x100000}, {"real_size", 500}, {"frames", {frame("a.py", 3, "f")}}}}}};
  Object second = {{"size", 1024}, {"state", "inactive"}};
  Object third = {{"size", 2048}, {"state", "active_allocated"}};
  Object old = {{"device", 0}, {"address", 0x100000},     {"total_size", 3584},
                {"stream", 0}, {"segment_type", "small"}, {"blocks", {first, second, third}}};
  const Trace trace = trace_of(Object{{"segments", {old}}, {"device_traces", Object::array({Object::array()})}});
  ASSERT_EQ(trace.final_blocks.size(), 3u);
  EXPECT_EQ(trace.final_blocks[1].address, 0x100000u + 512);
  EXPECT_EQ(trace.final_blocks[2].address, 0x100000u + 1536);
  EXPECT_EQ(trace.stacks.frame(trace.final_blocks[0].stack).line, 3u);
  EXPECT_TRUE(trace.final_segments[0].is_small);
  EXPECT_EQ(trace.properties.at("torch.min_version"), "2.0");
  const auto allocs = of_kind(trace, EventKind::kAlloc);
  ASSERT_EQ(allocs.size(), 3u) << "the segment and two live blocks, all from before the recording";
  for (const Event& event : allocs) EXPECT_TRUE(event.has(kPreexisting));
}

TEST(SnapshotShape, ThatIsAListOfSegmentsIsTheStateAlone) {
  const Trace trace =
      trace_of(Object::array({segment(0x100000, 4096, {block(0x100000, 512), block(0x100200, 3584, "inactive")})}));
  EXPECT_FALSE(trace.can(kEvents));
  EXPECT_EQ(trace.preexisting_count, 2u);
  EXPECT_EQ(trace.source_events, 0u);
}

TEST(SnapshotShape, ThatIsAnEmptyListSaysSo) {
  EXPECT_EQ(refusal_of(pickle(Object::array())).what,
            "the snapshot is an empty list: no memory was allocated when it was taken");
}

TEST(SnapshotShape, WithEntriesOutsideItsTracesLeavesThemOut) {
  const Object stray = entry("alloc", 0x1000, 512);
  EXPECT_TRUE(trace_of(Object{{"segments", Object::array()}, {"elsewhere", {stray}}}).events.empty());
  const Trace beside =
      trace_of(Object{{"elsewhere", {stray}}, {"segments", {segment(0x100000, 4096, {block(0x100000, 512)}, 3)}}});
  EXPECT_EQ(of_kind(beside, EventKind::kAlloc).size(), 2u);
  const Trace list =
      trace_of(Object::array({with(segment(0x100000, 4096, {block(0x100000, 512)}, 3), "elsewhere", stray)}));
  EXPECT_EQ(of_kind(list, EventKind::kAlloc).size(), 2u);
}

TEST(SnapshotShape, OfSeveralDevicesIsOneTraceInOrderOfTime) {
  const Object first = {entry("alloc", 0x1000, 1, 10), entry("alloc", 0x2000, 2, 30),
                        entry("free_requested", 0x1000, 1, 50)};
  const Object third = {entry("alloc", 0x1000, 3, 20), entry("alloc", 0x3000, 4, 40)};
  const Trace trace =
      trace_of(Object{{"segments", Object::array()}, {"device_traces", {first, Object::array(), third}}});
  std::vector<std::pair<int, std::uint64_t>> order;
  for (const Event& event : trace.events) order.emplace_back(event.device, event.size_bytes);
  EXPECT_EQ(order, (std::vector<std::pair<int, std::uint64_t>>{{0, 1}, {2, 3}, {0, 2}, {2, 4}, {0, 1}}));
  ASSERT_EQ(trace.devices.size(), 2u);
  EXPECT_EQ(trace.devices[0].index, 0);
  EXPECT_EQ(trace.devices[1].index, 2);
  EXPECT_EQ(trace.events[4].allocation, trace.events[0].allocation) << "equal addresses on two devices are two blocks";
  EXPECT_EQ(trace.heaps[trace.events[1].heap.index()].device, 2);
}

TEST(SnapshotShape, WithPoolIdsGivesEachPoolAHeap) {
  const Trace trace = trace_of(
      snapshot({with(entry("alloc", 0x1000, 1), "pool_id", {0, 0}), with(entry("alloc", 0x2000, 2), "pool_id", {0, 7}),
                with(entry("free_requested", 0x2000, 2), "pool_id", {0, 7})}));
  EXPECT_FALSE(trace.heaps[trace.events[0].heap.index()].is_private());
  const Heap& pool = trace.heaps[trace.events[1].heap.index()];
  EXPECT_EQ(pool.pool_minor, 7u);
  EXPECT_EQ(pool.name, "torch private pool (0, 7)");
  EXPECT_EQ(trace.events[2].heap, trace.events[1].heap);
  EXPECT_EQ(trace.properties.at("torch.min_version"), "2.12");
}

TEST(SnapshotShape, WithoutPoolIdsTakesThePoolFromTheSegment) {
  Object pool_segment = segment(0x100000, 4096, {block(0x100000, 512)});
  pool_segment["segment_pool_id"] = {0, 3};
  const Trace trace = trace_of(snapshot(
      {entry("segment_alloc", 0x100000, 4096), entry("alloc", 0x100000, 512), entry("alloc", 0x900000, 512),
       entry("free_requested", 0x100000, 512), entry("free_completed", 0x100000, 512), entry("alloc", 0x100000, 512)},
      {pool_segment}));
  EXPECT_EQ(trace.heaps[trace.events[1].heap.index()].pool_minor, 3u);
  EXPECT_EQ(trace.heaps[trace.events[2].heap.index()].pool_minor, 0u);
  EXPECT_EQ(trace.heaps[trace.events[3].heap.index()].pool_minor, 3u) << "a free is in its allocation's heap";
}

TEST(SnapshotShape, WithForwardFramesHasThemWhereBackwardHasNone) {
  const Object lines = {"  File \"/home/user/project/model.py\", line 12, in forward\n    x = self.fc(x)\n", "nonsense",
                        "  File \"layer.py\", line 3, in call\n"};
  const Trace trace =
      trace_of(snapshot({with(with(entry("alloc", 0x1000, 1), "frames", Object::array()), "forward_frames", lines)}));
  const StackId stack = trace.events.at(0).stack;
  ASSERT_EQ(trace.stacks.depth(stack), 2u);
  EXPECT_EQ(trace.strings.at(trace.stacks.frame(stack).file), "layer.py");
  EXPECT_EQ(trace.strings.at(trace.stacks.frame(stack).function), "call");
  EXPECT_EQ(trace.stacks.frame(trace.stacks.parent(stack)).line, 12u);
  EXPECT_EQ(counter(trace, "stacks taken from forward_frames"), 1u);
}

TEST(SnapshotShape, WithBrokenForwardFramesHasNoStack) {
  const Object lines = {"File \"",
                        "File \"a.py",
                        "File \"a.py\", line ",
                        "File \"a.py\", line x, in f",
                        "File \"a.py\", line 99999999999, in f",
                        "",
                        "\n"};
  const Trace trace = trace_of(snapshot({with(entry("alloc", 0x1000, 1), "forward_frames", lines)}));
  EXPECT_EQ(trace.events.at(0).stack.value, 0u);
}

TEST(SnapshotShape, WithAnnotationsHasScopesAndSteps) {
  const auto note = [](const char* stage, const char* name, int time) {
    return Object{{"stage", stage}, {"name", name}, {"device", 0}, {"time_us", time}};
  };
  Object object = snapshot({entry("alloc", 0x1000, 1, 10), entry("alloc", 0x2000, 2, 30)});
  object["external_annotations"] = {note("START", "Optimizer.step#SGD.step", 15),
                                    note("END", "Optimizer.step#SGD.step", 20), note("START", "late", 99),
                                    note("END", "late", 100)};
  const Trace trace = trace_of(object);
  std::vector<std::pair<EventKind, std::string>> story;
  for (const Event& event : trace.events)
    story.emplace_back(event.kind,
                       extra_is_string(event.kind) ? std::string(trace.strings.at(StringId(event.extra))) : "");
  const std::string step = "Optimizer.step#SGD.step";
  EXPECT_EQ(story, (std::vector<std::pair<EventKind, std::string>>{{EventKind::kAlloc, ""},
                                                                   {EventKind::kOpBegin, step},
                                                                   {EventKind::kOpEnd, step},
                                                                   {EventKind::kStepMark, step},
                                                                   {EventKind::kAlloc, ""},
                                                                   {EventKind::kOpBegin, "late"},
                                                                   {EventKind::kOpEnd, "late"}}));
  EXPECT_TRUE(trace.can(kSteps));
}

TEST(SnapshotShape, KeepsSettingsAsText) {
  Object object = snapshot({entry("alloc", 0x1000, 1)});
  object["allocator_settings"] = {{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"},
                                  {"max_split_size", 67108864},
                                  {"garbage_collection_threshold", 0.5},
                                  {"expandable_segments", true},
                                  {"nothing", nullptr},
                                  {"roundup_power2_divisions", {{"1", 0}, {"256", 4}}}};
  const Trace trace = trace_of(object);
  EXPECT_EQ(trace.properties.at("torch.alloc_conf"), "max_split_size_mb:64");
  EXPECT_EQ(trace.properties.at("torch.max_split_size"), "67108864");
  EXPECT_EQ(trace.properties.at("torch.garbage_collection_threshold"), "0.5");
  EXPECT_EQ(trace.properties.at("torch.expandable_segments"), "True");
  EXPECT_EQ(trace.properties.at("torch.roundup_power2_divisions"), "1:0,256:4");
}

TEST(SnapshotShape, WithTooManyDevicesIsRefused) {
  Object traces = Object::array();
  for (int device = 0; device < 1025; ++device) traces.push_back(Object::array());
  EXPECT_EQ(refusal_of(pickle(Object{{"device_traces", traces}})).what,
            "the snapshot has 1025 devices; at most 1024 are read");
}

// A size is refused; whatever else is odd is passed over.
void expect_trace_or_size(const Object& object) {
  const Result<Trace> read_back = read(pickle(object));
  if (read_back)
    EXPECT_TRUE(check_trace(*read_back).ok());
  else
    EXPECT_TRUE(read_back.error().what.find("size") != std::string::npos ||
                read_back.error().what.find("more than the") != std::string::npos ||
                read_back.error().what.find("was asked for") != std::string::npos)
        << read_back.error().what;
}

TEST(SnapshotShape, WhoseFieldsAreOfOtherTypesIsATraceOrRefused) {
  for (const Object& odd : {Object(nullptr), Object("text"), Object(1.5), Object(-5), Object::array(), Object::object(),
                            Object{1, 2}, Object{{"a", 1}}, Object(true)}) {
    Object alloc = entry("alloc", 0x1000, 512);
    alloc["frames"] = alloc["forward_frames"] = alloc["pool_id"] = alloc["user_metadata"] = Object::array();
    for (const auto& [key, value] : alloc.items())
      expect_trace_or_size(snapshot({with(alloc, key, odd), entry("free_completed", 0x1000, 512)}));
    Object held = segment(0x1000, 4096, {block(0x1000, 512)});
    for (const auto& [key, value] : held.items()) expect_trace_or_size(snapshot({alloc}, {with(held, key, odd)}));
    Object part = block(0x1000, 512);
    for (const auto& [key, value] : part.items())
      expect_trace_or_size(snapshot({alloc}, {segment(0x1000, 4096, {with(part, key, odd)})}));
    Object code = frame("a.py", 1, "f");
    for (const auto& [key, value] : code.items())
      expect_trace_or_size(snapshot({with(alloc, "frames", {with(code, key, odd)})}));
  }
}

}  // namespace
}  // namespace faultline::snapshot_test
