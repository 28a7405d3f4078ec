#include "sources/run_folder/place_faults.h"

#include <gtest/gtest.h>

#include "sources/run_folder/parsed_test_support.h"
#include "trace/validate.h"

namespace faultline {
namespace {

const std::string kLaunches = R"(heap driver
call one = launch _Z3addPf grid=4 block=32 arguments=0:0x1000
call two = launch _Z3addPf grid=4 block=32 arguments=0:0x2000
call wide = launch _Z3addPf grid=8 block=32 arguments=0:0x1000
call other = launch _Z3mulPf grid=4 block=32 arguments=0:0x1000
call seen = fault CUDA_ERROR_ILLEGAL_ADDRESS by=cuCtxSynchronize code=700
launch call=one at a.py:1 main
launch call=two at a.py:2 main
launch call=wide at a.py:3 main
launch call=other at a.py:4 main
fault call=seen at a.py:5 main
launch call=one at a.py:6 main
)";

std::uint32_t placed_behind(const std::string& fault) {
  Trace trace = parsed(kLaunches);
  place_faults(trace,
               parsed("heap driver\ncall dump = fault \"Warp Illegal Address\" " + fault + "\nfault call=dump\n"));
  EXPECT_TRUE(check_trace(trace).ok());
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kFault && trace.faults.at(FaultId(event.extra)).reported_by.value == 0)
      return event.stack.value == 0 ? 0 : trace.stacks.frame(event.stack).line;
  }
  ADD_FAILURE() << "the fault is gone";
  return 0;
}

TEST(PlaceFaults, TheLaunchWithTheSameParametersIsTheOne) {
  EXPECT_EQ(placed_behind("kernel=_Z3addPf grid=4 block=32 parameters=0:0x1000,8:0x7"), 1u);
  EXPECT_EQ(placed_behind("kernel=_Z3addPf grid=4 block=32 parameters=0:0x2000"), 2u);
}

TEST(PlaceFaults, WithoutParametersTheLastOfItsShape) {
  EXPECT_EQ(placed_behind("kernel=_Z3addPf grid=4 block=32"), 2u);
  EXPECT_EQ(placed_behind("kernel=_Z3addPf grid=8 block=32"), 3u);
  EXPECT_EQ(placed_behind("kernel=_Z3mulPf"), 4u);
}

TEST(PlaceFaults, AnUnknownKernelComesLastWithoutALine) {
  EXPECT_EQ(placed_behind("kernel=_Z3subPf grid=4 block=32"), 0u);
  Trace trace = parsed(kLaunches);
  place_faults(trace,
               parsed("heap driver\ncall dump = fault \"Warp Illegal Address\" kernel=_Z3subPf\nfault call=dump\n"));
  EXPECT_EQ(trace.events.back().kind, EventKind::kFault);
}

}  // namespace
}  // namespace faultline
