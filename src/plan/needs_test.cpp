#include "plan/needs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "facts/facts_test_support.h"
#include "plan/plan_test_support.h"

namespace faultline {
namespace {

// Two blocks that are never there together: with little room PyTorch gives the first one's segment back.
const std::string kTwoAfterEachOther = R"(source dry-run
property dry-run.context_bytes = 524288000
device 0 capacity=8GiB
heap driver kind=driver
heap torch kind=torch below=driver
heap outside kind=driver below=driver
alloc #o 100MiB outside
alloc #s 200MiB driver
alloc #a 200MiB at train.py:1 main
free #a
free #o
alloc #t 300MiB driver
alloc #b 300MiB at train.py:2 main
)";

TEST(Needs, AreTheSumOfContextWhatIsOutsideAndTheFewestSegments) {
  const Needs needs = needs_of(traced(kTwoAfterEachOther), true);
  EXPECT_EQ(needs.context_bytes, 500 * kMiB);
  EXPECT_EQ(needs.outside_bytes, 100 * kMiB);
  EXPECT_EQ(needs.segment_bytes, 300 * kMiB);
  EXPECT_EQ(needs.reserved_bytes, 500 * kMiB);
  EXPECT_EQ(needs.needed_bytes(), 900 * kMiB);
  EXPECT_EQ(needs.taken_bytes(), 1100 * kMiB);
}

TEST(Needs, OfAProgramThatGotThroughAreNeverMoreThanItsDeviceHad) {
  std::string lines = kTwoAfterEachOther;
  lines.replace(lines.find("8GiB"), 4, "850MiB");
  EXPECT_EQ(needs_of(traced(lines), true).needed_bytes(), 850 * kMiB);
  EXPECT_EQ(needs_of(traced(lines), false).needed_bytes(), 900 * kMiB);
  const std::string caught =
      "source dry-run\nproperty dry-run.context_bytes = 524288000\ndevice 0 capacity=8GiB\nalloc #s 7GiB driver\nalloc "
      "#a 7GiB at train.py:1 main\nalloc-failed 1GiB at train.py:2 main\n";
  EXPECT_EQ(needs_of(traced(caught), true).needed_bytes(), 7 * kGiB + 500 * kMiB);  // what it caught is no part of it
  EXPECT_EQ(needs_of(traced(caught), false).needed_bytes(), 8 * kGiB + 500 * kMiB);
}

// A workspace that is likely 200 MiB, beside a tensor of 1 GiB: it may take 600, or nothing.
const std::string kEstimated = R"(source dry-run
property dry-run.context_bytes = 524288000
device 0 capacity=8GiB
heap driver kind=driver
heap torch kind=torch below=driver
alloc #s 1GiB driver
alloc #a 1GiB at train.py:1 main
alloc #r 200MiB driver
alloc #w 200MiB at train.py:2 main
estimate #w 600MiB "cuDNN's workspaces"
free #w
)";

TEST(Needs, OfAnEstimateHaveTwoEndsByReplaysOfTheSameRequests) {
  const Needs needs = needs_of(traced(kEstimated), true);
  ASSERT_TRUE(needs.is_estimated);
  EXPECT_EQ(needs.needed_bytes(), 1024 * kMiB + 200 * kMiB + 500 * kMiB);
  EXPECT_EQ(needs.least_needed_bytes(), 1024 * kMiB + 500 * kMiB);
  EXPECT_EQ(needs.most_needed_bytes(), 1024 * kMiB + 600 * kMiB + 500 * kMiB);
  EXPECT_EQ(needs.most.allocated_bytes, 1024 * kMiB + 600 * kMiB);
  EXPECT_TRUE(needs.fits);
  EXPECT_FALSE(needs_of(traced(kTwoAfterEachOther), true).is_estimated);
}

TEST(Needs, FitOnlyWhereTheUpperEndDoes) {
  std::string lines = kEstimated;
  lines.replace(lines.find("8GiB"), 4, "2GiB");
  const Needs needs = needs_of(traced(lines), true);
  EXPECT_FALSE(needs.fits);
  EXPECT_LE(needs.least_needed_bytes(), 2 * kGiB);
  EXPECT_EQ(needs.most_needed_bytes(), 1024 * kMiB + 600 * kMiB + 500 * kMiB);
}

TEST(Needs, OfAnEstimateThatFailedAndWasServedOnALargerDeviceAreThoseOfItsEnds) {
  std::string lines = kEstimated;
  lines.insert(lines.find("alloc #r"), "alloc-failed 200MiB\n");
  lines.replace(lines.find("8GiB"), 4, "1600MiB");
  const Needs needs = needs_of(traced(lines), false);
  EXPECT_EQ(needs.least_needed_bytes(), 1024 * kMiB + 500 * kMiB);
  EXPECT_EQ(needs.most_needed_bytes(), 1024 * kMiB + 600 * kMiB + 500 * kMiB);
}

TEST(Needs, CountARequestThatWasNotMadeAndMayBe) {
  std::string lines = kEstimated;
  const std::size_t at = lines.find("alloc #r");
  lines.replace(at, std::string::npos,
                "estimate 600MiB \"cuDNN's workspaces\"\nalloc #r 100MiB driver\nalloc #b 100MiB at train.py:3 main\n");
  const Needs needs = needs_of(traced(lines), true);
  EXPECT_EQ(needs.least_needed_bytes(), needs.needed_bytes());
  EXPECT_EQ(needs.most_needed_bytes(),
            1024 * kMiB + 600 * kMiB + 500 * kMiB);  // returned at once: the other block takes its place
}

TEST(Needs, OfAPoolHaveTwoEndsToo) {
  const std::string lines = R"(source dry-run
property dry-run.context_bytes = 524288000
property bfc.framework = jax
device 0 capacity=8GiB
heap driver kind=driver
heap GPU_0_bfc kind=bfc below=driver
alloc #s 2GiB driver
alloc #a 1GiB GPU_0_bfc at train.py:1 main
alloc #w 200MiB GPU_0_bfc at train.py:2 main
estimate #w 600MiB address=104857600 "temporary buffers"
)";
  const Needs needs = needs_of(traced(lines), true);
  ASSERT_TRUE(needs.is_estimated && needs.pool);
  EXPECT_EQ(needs.segment_bytes, 1224 * kMiB);
  EXPECT_EQ(needs.least.segment_bytes, 1124 * kMiB);
  EXPECT_EQ(needs.most.segment_bytes, 1624 * kMiB);
}

TEST(Needs, OfARerunComeFromItsTraceWhichIsThenRemoved) {
  const DryRunResult rerun = MadeUpProgram::left(10 * kGiB, true);
  const Result<Needs> needs = needs_of(rerun, {});
  ASSERT_TRUE(needs.ok());
  EXPECT_EQ(needs->needed_bytes(), 10 * kGiB + kContextBytes);
  EXPECT_FALSE(needs->fits);
  EXPECT_FALSE(std::filesystem::exists(rerun.main()->trace));
}

TEST(Needs, OfARerunThatBrokeAreNotKnown) {
  EXPECT_FALSE(needs_of(DryRunResult{}, {}).ok());
  DryRunResult broken = MadeUpProgram::left(kGiB, true);
  broken.processes.front().exception = PlanException{"ValueError", "Expected more than 1 value\nsecond line", {}};
  const Result<Needs> needs = needs_of(broken, {});
  ASSERT_FALSE(needs.ok());
  EXPECT_EQ(needs.error().what, "the program then fails with ValueError: Expected more than 1 value");
}

// What fits only because less of the program was run confirms nothing.
TEST(Needs, OfARerunThatDidNotComeAsFarAreNotKnown) {
  struct Row {
    const char* unplanned;
    int status;
    const char* stopped;
    std::uint64_t steps;
    const char* as_is_stopped;
    const char* why;
    std::uint64_t alike_from = 0;
  };
  for (const Row& row :
       {Row{"", 0, "", 5, "", ""},
        Row{"sparse tensors", 0, "", 5, "", "something could then not be planned: sparse tensors"},
        Row{"", 3, "", 5, "", "the program then ends with status 3"},
        Row{"", 0, "after 120 seconds", 5, "",
            "the dry run of it was stopped after 120 seconds, before it had come as far as the program as it is"},
        Row{"", 0, "after 120 seconds", 4, "after 5 optimizer steps",
            "the dry run of it was stopped after 120 seconds, before it had come as far as the program as it is"},
        Row{"", 0, "after 6 optimizer steps", 6, "", ""},  // more rounds, of a smaller batch
        Row{"", 0, "in its loop over a DataLoader after 6 optimizer steps", 9, "", ""},
        Row{"", 0, "after 5 optimizer steps", 5, "after 5 optimizer steps", ""},
        Row{"", 0, "after 3 optimizer steps", 3, "after 5 optimizer steps", "", 2},  // the others were alike
        Row{"", 0, "after 3 optimizer steps", 3, "after 5 optimizer steps",
            "the dry run of it was stopped after 3 optimizer steps, before it had come as far as the program as it is",
            3},
        Row{"", 0, "after 3 optimizer steps", 3, "",
            "the dry run of it was stopped after 3 optimizer steps, before it had come as far as the program as it is",
            2}}) {
    DryRunResult rerun = MadeUpProgram::left(kGiB, true);
    rerun.status = row.status;
    rerun.processes.front().unplanned = row.unplanned;
    rerun.processes.front().stopped = row.stopped;
    rerun.processes.front().steps = row.steps;
    Plan as_is;
    as_is.run.steps = 5;
    as_is.run.alike_from = row.alike_from;
    as_is.run.stopped = row.as_is_stopped;
    const Result<Needs> needs = needs_of(rerun, as_is);
    EXPECT_EQ(needs ? "" : needs.error().what, row.why);
  }
}

TEST(Needs, TheCatalogueIsJudgedByTheSameNumberWithEachGpusOwnContext) {
  Needs needs;
  needs.context_bytes = kGiB;
  needs.segment_bytes = 20 * kGiB;
  const std::vector<PlanFit> fits = fits_on_catalogue(needs);
  ASSERT_GT(fits.size(), 5u);
  EXPECT_FALSE(fits.front().fits);
  EXPECT_TRUE(fits.back().fits);
  for (std::size_t at = 0; at < fits.size(); ++at) {
    EXPECT_EQ(fits[at].fits, 20 * kGiB + fits[at].gpu.context_bytes <= fits[at].gpu.capacity_bytes)
        << fits[at].gpu.name;
    if (at != 0) {
      EXPECT_LE(fits[at - 1].gpu.capacity_bytes, fits[at].gpu.capacity_bytes);
    }
  }
}

// Three arrays of 1 GiB at one time, in a pool of JAX that took three quarters of the device.
std::string in_a_pool(const std::string& framework, const std::string& more) {
  return "source dry-run\nproperty dry-run.context_bytes = 524288000\nproperty bfc.framework = " + framework +
         "\nproperty bfc.GPU_0_bfc.limit = 6442450944\nproperty bfc.GPU_0_bfc.growth = false\n" + more +
         "device 0 capacity=8GiB\nheap driver kind=driver\nheap GPU_0_bfc kind=bfc below=driver\n"
         "alloc #r 6GiB driver\nalloc #a 1GiB GPU_0_bfc at train.py:1 main\nalloc #b 1GiB GPU_0_bfc at train.py:2 "
         "main\n"
         "alloc #c 1GiB GPU_0_bfc at train.py:3 main\nfree #a\n";
}

TEST(Needs, OfAPoolAreTheSmallestLimitAndTheShareThatItMayTake) {
  const Needs jax = needs_of(traced(in_a_pool("jax", "property dry-run.pool_share = 0.75\n")), true);
  EXPECT_EQ(jax.segment_bytes, 3 * kGiB);
  EXPECT_EQ(jax.needed_bytes(), 4 * kGiB);
  EXPECT_EQ(jax.taken_bytes(), 6 * kGiB + 500 * kMiB);
  const Needs tensorflow = needs_of(traced(in_a_pool("tensorflow", "")), true);
  EXPECT_EQ(tensorflow.needed_bytes(), 3 * kGiB + 500 * kMiB);
}

TEST(Needs, OfAPoolLeaveOutWhatTheProgramCaughtAndHaveWhatItDiedOf) {
  const std::string caught = in_a_pool("tensorflow", "") + "alloc-failed 100GiB GPU_0_bfc at train.py:4 main\n";
  EXPECT_EQ(needs_of(traced(caught), true).segment_bytes, 3 * kGiB);
  const std::string died = in_a_pool("tensorflow", "") + "alloc-failed 7GiB GPU_0_bfc at train.py:4 main\n";
  EXPECT_GE(needs_of(traced(died), false).segment_bytes, 9 * kGiB);
}

// Constants of compiled programs: where the pool takes its share at once, they have the rest.
TEST(Needs, OfWhatLiesBesideAPoolAreTheRestOfTheDevice) {
  const std::string share = "property dry-run.pool_share = 0.75\n",
                    beside = "heap beside kind=driver below=driver\nalloc #k 2GiB beside at train.py:4 main\n";
  const Trace trace = traced(in_a_pool("jax", share) + beside);
  const Needs at_once = needs_of(trace, false);
  EXPECT_EQ(at_once.outside_bytes, 2 * kGiB);
  EXPECT_EQ(at_once.needed_bytes(), 4 * (2 * kGiB + 500 * kMiB));
  const std::optional<Needs> growing = needs_under({{"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}}, trace, at_once);
  ASSERT_TRUE(growing);
  EXPECT_EQ(growing->needed_bytes(), 3 * kGiB + 2 * kGiB + 500 * kMiB);
}

TEST(Needs, GrowUntilThePoolsShareIsFull) {
  Needs needs = needs_of(traced(in_a_pool("jax", "property dry-run.pool_share = 0.75\n")), true);
  needs.grows_bytes = kGiB, needs.rounds = 10;
  EXPECT_EQ(needs.full_at(16 * kGiB), 10u + 12 - 3);
  needs.share = 0.99;
  EXPECT_EQ(needs.full_at(16 * kGiB), 10u + 15 - 3);
}

TEST(Needs, UnderALargerShareAreLess) {
  const Trace trace = traced(in_a_pool("jax", "property dry-run.pool_share = 0.75\n"));
  const Needs as_run = needs_of(trace, true);
  const std::optional<Needs> larger = needs_under({{"XLA_CLIENT_MEM_FRACTION", "0.9"}}, trace, as_run);
  ASSERT_TRUE(larger);
  EXPECT_LT(larger->needed_bytes(), as_run.needed_bytes());
  EXPECT_EQ(larger->segment_bytes, as_run.segment_bytes);
}

}  // namespace
}  // namespace faultline
