// Numbers that no snapshot of PyTorch's can have are refused in a sentence; their sound twins are read.
#include "sources/torch_snapshot/snapshot_test_support.h"

namespace faultline::snapshot_test {
namespace {

constexpr std::uint64_t kBase = 0x7f0000000000, kMega = 1 << 20;

Object sound(bool expandable = false) {
  Object held = with(segment(kBase, 4 * kMega, {block(kBase, kMega), block(kBase + kMega, 3 * kMega, "inactive")}),
                     "is_expandable", expandable);
  held["allocated_size"] = kMega;
  held["active_size"] = kMega;
  return snapshot(
      {entry(expandable ? "segment_map" : "segment_alloc", kBase, 4 * kMega, 1), entry("alloc", kBase, kMega, 2)},
      {held});
}

struct AbsurdNumber {
  const char* name;
  const char* place;  // a JSON pointer
  Object value;
  const char* says;
};

class AbsurdSize : public testing::TestWithParam<AbsurdNumber> {};

TEST_P(AbsurdSize, IsRefused) {
  for (const bool expandable : {false, true}) {
    Object object = sound(expandable);
    ASSERT_TRUE(read(pickle(object)).ok());
    ASSERT_TRUE(read(object.dump()).ok());
    object[Object::json_pointer(GetParam().place)] = GetParam().value;
    for (const std::string& bytes : {pickle(object), object.dump()}) {
      const Error refused = refusal_of(bytes);
      EXPECT_NE(refused.what.find(GetParam().says), std::string::npos) << refused.what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Torch, AbsurdSize,
    testing::Values(
        AbsurdNumber{"SegmentOfTwoTo63", "/segments/0/total_size", INT64_MAX, "no device has more than 16.00 TiB"},
        AbsurdNumber{"SegmentOfTwoTo48", "/segments/0/total_size", std::int64_t{1} << 48, "281,474,976,710,656 bytes"},
        AbsurdNumber{"SegmentNegative", "/segments/0/total_size", -1, "negative"},
        AbsurdNumber{"SegmentOfWords", "/segments/0/total_size", "many", "no whole number"},
        AbsurdNumber{"SegmentSmallerThanItsBlocks", "/segments/0/total_size", 2 * kMega,
                     "more than the segment at 0x7f"},
        AbsurdNumber{"SegmentSmallerThanItsUse", "/segments/0/active_size", 5 * kMega, "what is used of the segment"},
        AbsurdNumber{"UseOfTwoTo62", "/segments/0/allocated_size", std::int64_t{1} << 62, "no device has more"},
        AbsurdNumber{"BlockOfTwoTo63", "/segments/0/blocks/0/size", INT64_MAX, "the size of the block at 0x7f"},
        AbsurdNumber{"BlockNegative", "/segments/0/blocks/1/size", -4096, "negative"},
        AbsurdNumber{"BlockBeyondItsSegment", "/segments/0/blocks/1/address", kBase + 8 * kMega,
                     "more than the segment"},
        AbsurdNumber{"BlocksThatOverlap", "/segments/0/blocks/1/address", kBase, "more than the segment"},
        AbsurdNumber{"BlockSmallerThanAsked", "/segments/0/blocks/0/requested_size", 2 * kMega,
                     "was asked for of the block"},
        AbsurdNumber{"AskedNegative", "/segments/0/blocks/0/requested_size", -1, "negative"},
        AbsurdNumber{"EntryOfTwoTo63", "/device_traces/0/1/size", INT64_MAX, "the size of entry 1"},
        AbsurdNumber{"EntryNegative", "/device_traces/0/1/size", -1, "the size of entry 1 is negative"},
        AbsurdNumber{"EntryLargerThanEverySegment", "/device_traces/0/1/size", std::int64_t{1} << 40,
                     "the largest segment"},
        AbsurdNumber{"SegmentTakenOfTwoTo50", "/device_traces/0/0/size", std::int64_t{1} << 50, "the size of entry 0"}),
    [](const testing::TestParamInfo<AbsurdNumber>& absurd) { return std::string(absurd.param.name); });

TEST(SoundSizes, TheSumOfManySegmentsIsBoundedToo) {
  Object many = Object::array(), few = Object::array();
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t size = std::uint64_t{1} << 39;
    (i < 4 ? few : many).push_back(segment(kBase + i * size, size, {block(kBase + i * size, size)}));
  }
  EXPECT_TRUE(read(pickle(snapshot(Object::array(), few))).ok());
  EXPECT_NE(refusal_of(pickle(snapshot(Object::array(), many))).what.find("the sum of the segments of device 0"),
            std::string::npos);
}

TEST(SoundSizes, BlocksThatLeaveAGapAreCounted) {
  Object object = sound();
  object["segments"][0]["blocks"].erase(1);
  EXPECT_EQ(counter(trace_of(object), "segments whose blocks do not add up to their size"), 1u);
  EXPECT_EQ(counter(trace_of(sound()), "segments whose blocks do not add up to their size"), 0u);
}

TEST(SoundSizes, ARequestThatFailedMayBeOfAnySizeButNotWhatWasFree) {
  const auto failed = [](std::int64_t asked, std::int64_t free) {
    Object object = sound();
    object["device_traces"][0].push_back(
        with({{"action", "oom"}, {"size", asked}, {"stream", 0}, {"time_us", 3}}, "device_free", free));
    return trace_of(object);
  };
  const std::string counted = "failed requests that state more free memory than any device has";
  const Trace large = failed(std::int64_t{1} << 55, kMega);
  EXPECT_EQ(of_kind(large, EventKind::kAllocFailed).front().size_bytes, std::uint64_t{1} << 55);
  EXPECT_TRUE(of_kind(large, EventKind::kAllocFailed).front().has(kHasDeviceFree));
  EXPECT_EQ(counter(large, counted), 0u);
  for (const std::int64_t free : {std::int64_t{1} << 50, std::int64_t{-1}}) {
    const Trace absurd = failed(kMega, free);
    EXPECT_FALSE(of_kind(absurd, EventKind::kAllocFailed).front().has(kHasDeviceFree));
    EXPECT_EQ(counter(absurd, counted), 1u);
  }
}

}  // namespace
}  // namespace faultline::snapshot_test
