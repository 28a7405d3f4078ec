#include "rules/judge.h"

#include <algorithm>

#include "facts/facts_test_support.h"
#include "rules/illegal_address/candidates.h"
#include "rules/rule.h"
#include "trace/recorded_part.h"

namespace faultline {
namespace {

bool not_judged(const Judgement& judgement, const std::string& rule) {
  return std::any_of(judgement.not_judged.begin(), judgement.not_judged.end(),
                     [&](const NotJudged& entry) { return entry.rule == rule && !entry.why.empty(); });
}

TEST(Judge, WhatARuleNeedsAndTheInputLacksIsSaid) {
  const Trace trace = traced("alloc 512\n");  // no stacks, no addresses, no settings
  const Judgement judgement = judge(trace);
  EXPECT_TRUE(not_judged(judgement, "memory/leak"));
  EXPECT_TRUE(not_judged(judgement, "memory/fragmentation"));
  EXPECT_TRUE(not_judged(judgement, "memory/unreturned-cache"));
  EXPECT_TRUE(not_judged(judgement, "config/no-effect"));
  EXPECT_FALSE(not_judged(judgement, "memory/out-of-memory"));
}

TEST(Judge, WhatWasNotRecordedIsNotJudged) {
  Trace trace = traced("alloc 512\n");
  trace.capabilities |= kStacks | kEvents | kAddresses;
  const std::string calls = "are not recorded from a moment on, 3.0 s after it began: enough",
                    all = "after its recording ended, 3.0 s after it began: enough";
  const auto says = [&](const std::string& rule, const std::string& why) {
    const Judgement judgement = judge(trace);
    return std::any_of(judgement.not_judged.begin(), judgement.not_judged.end(),
                       [&](const NotJudged& entry) { return entry.rule == rule && entry.why.ends_with(why); });
  };
  EXPECT_FALSE(says("api/bad-copy", ""));
  trace.properties = {{kCallsUntil, "3000000000"}, {kEndedBecause, "3.0 s after it began: enough"}};
  EXPECT_TRUE(says("api/bad-copy", calls));
  EXPECT_TRUE(says("access/illegal-address", calls));
  EXPECT_FALSE(says("memory/leak", calls));
  trace.properties[kRecordedUntil] = "4000000000";
  EXPECT_TRUE(says("memory/leak", all));
  EXPECT_TRUE(says("api/bad-copy", all));
}

TEST(Judge, FaultIsNotBlamedOnTheLastLaunchThatHappenedToBeRecorded) {
  Trace trace;
  trace.streams.resize(1);
  trace.devices.push_back({0, "GPU", 1 << 30, 0});
  Launch launch;
  launch.kernel = trace.strings.intern("innocent");
  Event event;
  event.kind = EventKind::kLaunch;
  event.extra = trace.launches.intern(launch).value;
  trace.events.push_back(event);
  event.kind = EventKind::kFault;
  event.extra = 0;
  trace.events.push_back(event);
  EXPECT_EQ(launched_since_sync(trace, 1).kernels.size(), 1u);
  trace.properties[kCallsUntil] = "1";
  EXPECT_TRUE(launched_since_sync(trace, 1).kernels.empty());
  EXPECT_FALSE(launched_since_sync(trace, 1).complete);
}

TEST(Judge, WhatAnAllocatorsHistoryCannotShowIsNotJudgedAndWhatTheDriverShowsIs) {
  const auto unjudged = [](const Trace& trace) {
    std::size_t count = 0;
    const Judgement judgement = judge(trace);
    for (const char* rule :
         {"access/illegal-address", "access/out-of-bounds", "access/use-after-free", "access/uninitialized",
          "access/misaligned", "tensor/index-out-of-range", "api/launch-error", "api/bad-free", "api/bad-copy"}) {
      count += not_judged(judgement, rule);
    }
    return count;
  };
  for (const char* name : {"train_clean", "leak_list", "state_only", "oom_fragmented"})
    EXPECT_EQ(unjudged(recording(name)), 9u) << name;
  Trace trace = traced("alloc 512 driver\n");
  EXPECT_EQ(unjudged(trace), 0u);
  trace.properties["driver.library"] = "/usr/lib/libcuda.so.1";  // recorded: all but accesses, one by one
  EXPECT_EQ(unjudged(trace), 3u);
  trace.source_kind = "dry-run";
  trace.properties.clear();
  EXPECT_EQ(unjudged(trace), 9u);
}

TEST(Judge, WhatAProcessHeldAtItsEndIsNotJudgedWhereItDidNotComeToIt) {
  Trace trace = traced("alloc 512 driver at main.cu:3 main\n");
  const auto says = [&] {
    const Judgement judgement = judge(trace);
    return std::any_of(judgement.not_judged.begin(), judgement.not_judged.end(), [](const NotJudged& entry) {
      return entry.rule == "memory/leak" && entry.why.starts_with("what was still held at the end");
    });
  };
  EXPECT_FALSE(says());  // nobody says that it is a process's
  trace.properties["driver.library"] = "/usr/lib/libcuda.so.1";
  EXPECT_TRUE(says());
  trace.properties["process.ended"] = "exit";
  EXPECT_FALSE(says());
}

TEST(Judge, EveryRuleHasItsOwnName) {
  std::vector<std::string_view> names;
  for (const Rule& rule : all_rules()) names.push_back(rule.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Judge, ErrorsComeFirstAndTheFailureBeforeItsExplanation) {
  const Trace trace = recording("oom_fragmented");
  const Judgement judgement = judge(trace);
  ASSERT_EQ(judgement.findings.size(), 3u);
  EXPECT_EQ(judgement.findings[0].rule, "memory/out-of-memory");
  EXPECT_EQ(judgement.findings[2].rule, "memory/fragmentation");
}

TEST(Judge, HeldBytesAreWhatTheModelSetAside) {
  const Trace trace = recording("leak_list");  // 4,000,000 bytes asked for, blocks of 4 MiB
  const Judgement judgement = judge(trace);
  EXPECT_EQ(judgement.facts->usage[0].peak_allocated.allocated, 1258291200u);
  ASSERT_EQ(judgement.proofs.size(), 1u);
  EXPECT_EQ(judgement.proofs[0]->exact, 300u);
}

TEST(Judge, AnUntrustedModelConfirmsNothing) {
  Trace trace = recording("churn_tight");
  const auto tries = [&](std::optional<bool> confirmed) {
    std::size_t count = 0;
    const Judgement judgement = judge(trace);
    for (const Finding& finding : judgement.findings)
      count +=
          static_cast<std::size_t>(std::count_if(finding.tries.begin(), finding.tries.end(),
                                                 [&](const Try& change) { return change.confirmed == confirmed; }));
    return count;
  };
  EXPECT_GT(tries(true), 0u);  // while it is trusted
  for (Event& event : trace.events) {
    if (event.kind == EventKind::kAlloc && event.size_bytes > (1 << 20) &&
        trace.heaps[event.heap.index()].kind == HeapKind::kTorchCaching)
      event.address += 512;
  }
  EXPECT_EQ(tries(true), 0u);
  EXPECT_GT(tries(std::nullopt), 0u);
}

}  // namespace
}  // namespace faultline
