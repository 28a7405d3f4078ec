#include "sources/run_folder/second_run.h"

#include <gtest/gtest.h>

#include "sources/run_folder/parsed_test_support.h"
#include "trace/validate.h"

namespace faultline {
namespace {

const std::string kFirstRun = R"(heap driver
call go = launch _Z3addPfS_ grid=4 block=32 arguments=0:0x7f0000000000,8:0x7f0000200000
call seen = fault CUDA_ERROR_ILLEGAL_ADDRESS by=cuCtxSynchronize code=700
launch call=go at a.py:3 main
fault call=seen at a.py:5 main
)";

struct Carried {
  Trace trace;
  const Event* event = nullptr;
  const Fault* fault = nullptr;
};

Carried carried(const std::string& fault, const std::string& address = {}) {
  Carried result;
  result.trace = parsed(kFirstRun);
  place_second_run(result.trace, parsed("heap driver\ncall dump = fault \"Warp Illegal Address\" " + fault +
                                        "\nfault call=dump " + address + "\n"));
  EXPECT_TRUE(check_trace(result.trace).ok());
  for (const Event& event : result.trace.events) {
    if (event.kind != EventKind::kFault || result.trace.faults.at(FaultId(event.extra)).reported_by.value != 0)
      continue;
    result.event = &event;
    result.fault = &result.trace.faults.at(FaultId(event.extra));
  }
  EXPECT_NE(result.fault, nullptr);
  return result;
}

TEST(SecondRun, TheDistanceFromTheNearestPointerIsKept) {
  const Carried run = carried(
      "kernel=_Z3addPfS_ grid=4 block=32 parameters=0:0x7e1100000000,8:0x7e1100600000 "
      "addresses=0x7e1100600010,0x7e1100000020");
  EXPECT_EQ(run.trace.stacks.frame(run.event->stack).line, 3u);
  ASSERT_EQ(run.fault->addresses.size(), 2u);
  EXPECT_EQ(run.fault->addresses[0], 0x7f0000200010u);
  EXPECT_EQ(run.fault->addresses[1], 0x7f0000000020u);
  EXPECT_EQ(run.fault->parameters.at(1).address, 0x7f0000200000u);
}

TEST(SecondRun, ANullPointerIsOneInEveryRun) {
  const Carried run = carried("kernel=_Z3addPfS_ grid=4 block=32 parameters=0:0x7e1100000000 addresses=0x10");
  ASSERT_EQ(run.fault->addresses.size(), 1u);
  EXPECT_EQ(run.fault->addresses[0], 0x10u);
}

TEST(SecondRun, AnAddressWithoutAPointerToMeasureFromIsDropped) {
  EXPECT_TRUE(carried("kernel=_Z3addPfS_ grid=4 block=32 addresses=0x7e1100600010").fault->addresses.empty());
  EXPECT_TRUE(carried("kernel=_Z3subPf grid=4 block=32 parameters=0:0x7e1100000000 addresses=0x7e1100000010")
                  .fault->addresses.empty());
}

}  // namespace
}  // namespace faultline
