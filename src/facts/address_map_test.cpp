#include "facts/address_map.h"

#include "facts/facts_test_support.h"

namespace faultline {
namespace {

struct Mapped {
  explicit Mapped(std::string_view lines)
      : trace(traced(lines)),
        facts(trace, {}),
        map(trace, facts.lifetimes, facts.uses, static_cast<std::uint32_t>(trace.events.size() - 1)) {}
  Trace trace;
  Facts facts;
  AddressMap map;
};

const std::string kTwo =
    "alloc #s 2MiB driver @0x200000\nalloc #x 4096 @0x200000 at run.py:1 main\nalloc #y 4096 @0x3ff000 at run.py:2 "
    "main\n";

TEST(AddressMap, TheTensorIsNamedBeforeItsSegment) {
  const Mapped at(kTwo);
  const AddressPlace inside = at.map.place(0x200010);
  EXPECT_EQ(inside.where, Where::kInside);
  EXPECT_EQ(inside.allocation, AllocationId(2));
  EXPECT_EQ(inside.distance_bytes, 16u);
  const AddressPlace past = at.map.place(0x400004);
  EXPECT_EQ(past.where, Where::kPastEnd);
  EXPECT_EQ(past.allocation, AllocationId(3));
  EXPECT_EQ(past.distance_bytes, 4u);
  const AddressPlace before = at.map.place(0x1ffff0);
  EXPECT_EQ(before.where, Where::kBeforeStart);
  EXPECT_EQ(before.allocation, AllocationId(2));
}

TEST(AddressMap, MemoryGivenBackIsToldAsSuch) {
  const Mapped at(kTwo + "free #y\nfree #x\nfree #s\n");
  const AddressPlace place = at.map.place(0x3ff008);
  EXPECT_EQ(place.where, Where::kFreed);
  EXPECT_EQ(place.allocation, AllocationId(3));
  EXPECT_FALSE(at.map.is_mapped(0x3ff008));
}

TEST(AddressMap, MappedPagesComeAndGo) {
  const Mapped at("map 4MiB driver @0x800000\nunmap 2MiB driver @0x800000\n");
  EXPECT_FALSE(at.map.is_mapped(0x800000));
  EXPECT_TRUE(at.map.is_mapped(0xa00000));
  EXPECT_FALSE(at.map.is_mapped(0xc00000));
  EXPECT_EQ(at.map.place(0x1).where, Where::kUnknown);
}

}  // namespace
}  // namespace faultline
