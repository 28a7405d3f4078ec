#include "rules/illegal_address/suspects.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trace/text.h"

namespace faultline {
namespace {

// What speaks for and against the one kernel that was under way on device 0.
std::string reasons_of(const std::string& lines, bool from_start = true) {
  Result<Trace> trace = parse_trace_text(R"(faultline-trace-text 1
device 0 name="A" capacity=80GiB
device 1 name="A" capacity=80GiB
alloc #s 2MiB driver @0x7f0000000000
call k = launch _ZN2at6native3addEPf grid=4 block=32 arguments=0:0x7f0000000000
call seen = fault CUDA_ERROR_ILLEGAL_ADDRESS by=cuCtxSynchronize code=700
)" + lines + "launch call=k\nfault call=seen\n");
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  if (!trace.ok()) return {};
  if (!from_start) trace->capabilities &= ~std::uint32_t{kCompleteFromStart};
  const Facts facts(*trace, {});
  const auto report = static_cast<std::uint32_t>(trace->events.size() - 1);
  const std::vector<Suspect> suspects =
      weigh(facts, Statements{}, launched_since_sync(*trace, report), FaultKind::kIllegalAddress, report);
  EXPECT_EQ(suspects.size(), 1u);
  return suspects.empty() ? std::string() : reasons(suspects.front());
}

TEST(Suspects, RanWellIsSaidOfTheSameDevice) {
  EXPECT_NE(reasons_of("launch call=k\nsync\n").find("ran well before with the same grid and pointers"),
            std::string::npos);
  const std::string elsewhere = reasons_of("launch call=k device=1\nsync device=1\n");
  EXPECT_EQ(elsewhere.find("ran well"), std::string::npos) << elsewhere;
  EXPECT_NE(elsewhere.find("had not run before"), std::string::npos) << elsewhere;
}

TEST(Suspects, OfThePastNothingIsSaidWhereTheRecordingDidNotSeeItFromTheStart) {
  for (const std::string before : {"launch call=k\nsync\n", ""}) {
    const std::string said = reasons_of(before, false);
    EXPECT_NE(reasons_of(before).find("before"), std::string::npos) << "with a beginning it is said";
    EXPECT_EQ(said.find("before"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace faultline
