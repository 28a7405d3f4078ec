#include "rules/illegal_address/candidates.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trace/text.h"

namespace faultline {
namespace {

// The lines of the launches that may be the one, the last first.
std::vector<std::uint32_t> candidate_lines(const std::string& lines, bool waits_for_launches = false) {
  Result<Trace> trace = parse_trace_text(R"(faultline-trace-text 1
heap driver
stream 1 handle=0x1
stream 2 handle=0x2
call k = launch _Z3addPf grid=4 block=32
call seen = fault CUDA_ERROR_ILLEGAL_ADDRESS by=cuCtxSynchronize code=700
call by_launch = fault CUDA_ERROR_ILLEGAL_ADDRESS by=cuLaunchKernel code=700
call back = copy from=0x1000 device-to-host
call back_later = copy from=0x1000 device-to-host asynchronous
call there = copy from=0x1000 host-to-device
)" + lines);
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  std::vector<std::uint32_t> found;
  if (!trace.ok()) return found;
  const Candidates candidates =
      launched_since_sync(*trace, static_cast<std::uint32_t>(trace->events.size() - 1), waits_for_launches);
  for (const std::uint32_t event : candidates.events)
    found.push_back(trace->stacks.frame(trace->events[event].stack).line);
  return found;
}
using Lines = std::vector<std::uint32_t>;

TEST(Candidates, AWaitForOneStreamClearsThatStreamAlone) {
  EXPECT_EQ(candidate_lines("launch call=k stream=1 at a.py:1 m\nlaunch call=k stream=2 at a.py:2 m\nsync for=stream "
                            "stream=1\nlaunch call=k stream=1 at a.py:3 m\nfault call=seen\n"),
            (Lines{3, 2}));
}

TEST(Candidates, AnEventThatWasWaitedForClearsWhatStandsBeforeIt) {
  EXPECT_EQ(candidate_lines("launch call=k stream=1 at a.py:1 m\nrecord event=7 stream=1\nlaunch call=k stream=1 at "
                            "a.py:2 m\nsync 7 for=event\nfault call=seen\n"),
            (Lines{2}));
}

TEST(Candidates, AStreamThatWasWaitedForClearsWhatItWaitedFor) {
  EXPECT_EQ(candidate_lines("launch call=k stream=1 at a.py:1 m\nrecord event=7 stream=1\nlaunch call=k stream=1 at "
                            "a.py:2 m\nwait event=7 stream=2\nlaunch call=k stream=2 at a.py:3 m\n"
                            "sync for=stream stream=2\nfault call=seen\n"),
            (Lines{2}));
}

TEST(Candidates, OnlyACopyThatIsWithTheHostWhenItReturnsIsAWait) {
  const std::string launch = "launch call=k at a.py:1 m\n", fault = "fault call=seen\n";
  EXPECT_EQ(candidate_lines(launch + "copy 4KiB call=back\n" + fault), (Lines{}));
  EXPECT_EQ(candidate_lines(launch + "copy 4KiB call=back_later\n" + fault), (Lines{1}));
  EXPECT_EQ(candidate_lines(launch + "copy 4KiB call=there\n" + fault), (Lines{1}));
  EXPECT_EQ(candidate_lines(launch + "copy 4KiB call=back failed\n" + fault), (Lines{1}));
}

TEST(Candidates, ALaunchThatReturnedTheErrorIsTheOneOnlyWhereEachWasWaitedForOrNoOtherWas) {
  const std::string both = "launch call=k at a.py:1 m\nlaunch call=k failed at a.py:2 m\nfault call=by_launch\n";
  EXPECT_EQ(candidate_lines(both), (Lines{1}));
  EXPECT_EQ(candidate_lines(both, true), (Lines{2}));
  EXPECT_EQ(candidate_lines("launch call=k failed at a.py:2 m\nfault call=by_launch\n"), (Lines{2}));
}

}  // namespace
}  // namespace faultline
