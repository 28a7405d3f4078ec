#include "facts/growth.h"

#include "base/units.h"
#include "facts/facts_test_support.h"

namespace faultline {
namespace {

std::vector<Growth> growths(const Trace& trace) {
  const Facts facts(trace, {});
  return find_growth(trace, facts.lifetimes, facts.stacks, facts.steps, facts.categories.at(0), 0,
                     static_cast<std::uint32_t>(trace.events.size() - 1), facts.usage.at(0).peak_allocated.allocated);
}

// `rounds` returns to a line that keeps `bytes` each time, with something passing in between.
std::string kept_each_round(int rounds, const std::string& bytes) {
  std::string lines;
  for (int i = 0; i < rounds; ++i) {
    const std::string n = std::to_string(i);
    lines += "alloc #kept" + n + " " + bytes + " at run.py:5 main\nalloc #tmp" + n +
             " 1MiB at run.py:6 main\nfree #tmp" + n + "\n";
  }
  return lines;
}

TEST(Growth, CountsRoundsBytesAndTensors) {
  const Trace trace = traced(kept_each_round(12, "2MiB"));
  const std::vector<Growth> found = growths(trace);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(place(trace, found[0].program), "run.py:5 main");
  EXPECT_EQ(found[0].rounds, 12u);
  EXPECT_EQ(found[0].kept_count, 12u);
  EXPECT_EQ(found[0].kept_bytes, 24 * kMiB);
  EXPECT_EQ(found[0].bytes_per_round, 2 * kMiB);
  EXPECT_EQ(found[0].round_kind, "rounds");
  EXPECT_EQ(found[0].rounds_by, RoundsBy::kAlike);
}

// Rounds of `main` that each make what `round` says, with # for the round's number.
std::string each_round(int rounds, const std::string& round) {
  std::string lines;
  for (int i = 0; i < rounds; ++i) {
    for (const char c : round)
      lines += c == '#' && lines.ends_with(' ') ? "#" + std::to_string(i) + "_" : std::string(1, c);
  }
  return lines;
}

const std::string kCall = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py:1775 _call_impl";
const std::string kModel = "stack inner = run.py:7 main > " + kCall + " > net.py:8 forward > " + kCall + "\n";

TEST(Growth, CallsOfAModelWithSomethingNewInEachAreRounds) {
  const auto found = growths(traced(
      kModel +
      each_round(
          12,
          "alloc #x 1MiB at run.py:6 main\nalloc #t 4MiB stack=inner\nalloc #y 2MiB stack=inner\nfree #t\nfree #x\n")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rounds_by, RoundsBy::kModelCalls);
}

TEST(Growth, ALoopThatIsOverWhenTheProgramGoesOnCollectedSomething) {
  const std::string loop =
      kModel +
      each_round(
          12,
          "alloc #x 1MiB at run.py:6 main\nalloc #t 4MiB stack=inner\nalloc #y 2MiB stack=inner\nfree #t\nfree #x\n");
  const auto found = growths(traced(loop + "alloc #all 24MiB at run.py:9 main\n"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].is_over);
  EXPECT_EQ(found[0].rounds_by, RoundsBy::kUnknown);
  EXPECT_FALSE(growths(traced(loop + "alloc #again 1MiB at run.py:6 main\n"))[0].is_over);
}

// A round that also makes and lets go other memory, the same each time, and its twins that may be something else.
TEST(Growth, RoundsThatAreAlikeAreALoop) {
  const std::string before = "alloc #w0 32MiB at run.py:2 main\nalloc #w1 32MiB at run.py:2 main\n";
  const std::string round =
      "alloc #a 4MiB at run.py:4 main\nalloc #b 8MiB at run.py:5 main\nalloc #kept 2MiB at run.py:7 main\nfree "
      "#b\nfree #a\n";
  const auto by = [](const std::string& text) {
    const std::vector<Growth> found = growths(traced(text));
    return found.size() == 1 ? found[0].rounds_by : RoundsBy::kSteps;
  };
  EXPECT_EQ(by(before + each_round(100, round)), RoundsBy::kAlike);
  EXPECT_EQ(by(before + each_round(8, round)), RoundsBy::kAlike);
  // what the last round's variables hold is held to the end
  const std::string open_end =
      "alloc #oa 4MiB at run.py:4 main\nalloc #ob 8MiB at run.py:5 main\nalloc #ok 2MiB at run.py:7 main\n";
  EXPECT_EQ(by(before + each_round(100, round) + open_end), RoundsBy::kAlike);
  // as may be what an early one made once
  EXPECT_EQ(by(before + open_end + "alloc #left 4MiB at run.py:4 main\n" + each_round(100, round)), RoundsBy::kAlike);
  // it is over
  EXPECT_EQ(by(before + each_round(100, round) + "alloc #all 200MiB at run.py:9 main\n"), RoundsBy::kUnknown);
  // as deep as the weights
  EXPECT_EQ(by(each_round(100, "alloc #w 4MiB preexisting\n") + each_round(100, round)), RoundsBy::kUnknown);
  // a small part of the peak
  EXPECT_EQ(by("alloc #most 8GiB at run.py:2 main\n" + each_round(100, round)), RoundsBy::kUnknown);
  std::string longer, other;
  for (int i = 0; i < 100; ++i) {
    const std::string n = std::to_string(i);
    longer += "alloc #t" + n + " " + std::to_string(1024 * (i + 1)) + " at run.py:4 main\nalloc #k" + n +
              " 2MiB at run.py:7 main\nfree #t" + n + "\n";  // over all that is kept: a cache
    other += "alloc #t" + n + " 4MiB at run.py:" + std::to_string(20 + i % 3) + " main\nalloc #k" + n +
             " 2MiB at run.py:7 main\nfree #t" + n + "\n";
  }
  EXPECT_EQ(by(before + longer), RoundsBy::kUnknown);
  EXPECT_EQ(by(before + other), RoundsBy::kUnknown);
}

// 12 episodes of more or fewer rounds each, which make what `turn` says and then what `end` does.
std::string episodes(const std::string& turn, const std::string& end) {
  std::string lines;
  for (int episode = 0; episode < 12; ++episode) {
    const std::string n = std::to_string(episode) + "_";
    for (int at = 0; at < 3 + episode * 7 % 5; ++at) {
      const std::string t = n + std::to_string(at);
      lines += "alloc #t" + t + " 4MiB at run.py:4 main\n" + turn + "free #t" + t + "\n";
    }
    for (const char c : end) lines += c == '#' ? "#" + n : std::string(1, c);
  }
  return lines;
}

TEST(Growth, HowOftenALineComesAndGoesInARoundDoesNotCount) {
  const std::string results = "alloc #k 2MiB at run.py:7 main\n";
  const auto found = growths(traced(episodes("", results)));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rounds_by, RoundsBy::kAlike);
  EXPECT_EQ(found[0].rounds, 12u);
  EXPECT_EQ(found[0].bytes_per_round, 2 * kMiB);
  // the same line makes what it lets go of, too
  const auto same_line = growths(traced(episodes("", "alloc #s 8MiB at run.py:7 main\n" + results + "free #s\n")));
  ASSERT_EQ(same_line.size(), 1u);
  EXPECT_EQ(same_line[0].rounds_by, RoundsBy::kAlike);
  EXPECT_EQ(same_line[0].kept_count, 12u);
}

TEST(Growth, RoundsOfWhichTwoLinesKeepSomethingMayBeAPassThatRecordsAGraph) {
  const auto found = growths(traced(episodes("", "alloc #k 2MiB at run.py:7 main\nalloc #v 3MiB at run.py:8 main\n")));
  ASSERT_EQ(found.size(), 2u);
  for (const Growth& growth : found) {
    EXPECT_EQ(growth.rounds_by, RoundsBy::kUnknown);
    EXPECT_TRUE(growth.alike && growth.keeps_others && !growth.loads);
    EXPECT_EQ(growth.rounds, 12u);
  }
}

// 146 arrays that one call returns are one round, and a call that returns two is one each time.
TEST(Growth, ResultsOfOneCallAreOneRound) {
  const auto results = [](int first, int count) {
    std::string lines = "op-begin \"results of one call\"\n";
    for (int at = first; at < first + count; ++at)
      lines += "alloc #r" + std::to_string(at) + " " + std::to_string(1 + at % 5) + "MiB at run.py:5 main\n";
    return lines + "op-end \"\"\n";
  };
  EXPECT_TRUE(growths(traced(results(0, 146))).empty());
  std::string calls;
  for (int at = 0; at < 100; ++at) calls += results(2 * at, 2);
  EXPECT_EQ(growths(traced(calls)).at(0).rounds, 100u);
}

TEST(Growth, CallsThatOnlyHandOnTheirResultMayBeOnePass) {
  const auto found = growths(traced(kModel + each_round(12,
                                                        "alloc #t 4MiB stack=inner\nalloc #y 2MiB stack=inner\nfree "
                                                        "#t\nalloc #z 1KiB at run.py:8 main > f.py:1 f\nfree #z\n")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rounds_by, RoundsBy::kUnknown);
}

TEST(Growth, AsManyRoundsAsWeightsMayBeLayers) {
  const std::string weights = each_round(12, "alloc #w 4MiB preexisting\n");
  const auto found = growths(traced(
      kModel + weights +
      each_round(
          12,
          "alloc #x 1MiB at run.py:6 main\nalloc #t 4MiB stack=inner\nalloc #y 2MiB stack=inner\nfree #t\nfree #x\n")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rounds_by, RoundsBy::kUnknown);
}

TEST(Growth, BackwardPassesAreRoundsWhereNoStepIsMarked) {
  const std::string round =
      "alloc #x 1MiB at run.py:6 main\nalloc #k 2MiB at run.py:7 main\nalloc #b 512 at run.py:8 main > "
      "/usr/lib/python3/dist-packages/torch/_tensor.py:630 backward\nfree #b\nfree #x\n";
  const auto found = growths(traced(each_round(12, round)));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rounds_by, RoundsBy::kBackward);
  EXPECT_EQ(place(traced(each_round(12, round)), found[0].program), "run.py:7 main");
}

TEST(Growth, ABufferThatIsFullAtTheEndDoesNotGrow) {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += "alloc #x" + std::to_string(i) + " 2MiB at run.py:5 main\nalloc #y" + std::to_string(i) +
             " 1MiB at run.py:6 main\nfree #y" + std::to_string(i) + "\n";
    if (i >= 33) lines += "free #x" + std::to_string(i - 33) + "\n";
  }
  EXPECT_TRUE(growths(traced(lines)).empty());
}

TEST(Growth, WhatIsLetGoAfterTheLastStepIsSaid) {
  std::string lines = each_round(
      12, "alloc #k 2MiB at run.py:5 main\nalloc #t 1MiB at run.py:6 main\nfree #t\nstep 1 Optimizer.step#SGD.step\n");
  for (int i = 0; i < 12; ++i) lines += "free #" + std::to_string(i) + "_k\n";
  const auto found = growths(traced(lines));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].let_go_later);
}

// What a dry run's own stop lets go of the program would have kept; what it had let go of before, it had not.
TEST(Growth, WhatTheStopLetsGoOfIsHeld) {
  const std::string steps = each_round(
      12, "alloc #k 2MiB at run.py:5 main\nalloc #t 1MiB at run.py:6 main\nfree #t\nstep 1 Optimizer.step#SGD.step\n");
  std::string frees;
  for (int i = 0; i < 12; ++i) frees += "free #" + std::to_string(i) + "_k\n";
  const std::string stop = "op-begin \"dry run stopped\" at run.py:9 main\nop-end \"\"\n";
  for (const bool by_the_stop : {true, false}) {
    const auto found = growths(traced(by_the_stop ? steps + stop + frees : steps + frees + stop));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].let_go_later, !by_the_stop);
  }
}

TEST(Growth, WhatIsKeptInSomeStepsOnlyGrowsToo) {
  std::string lines;
  for (int i = 0; i < 62; ++i) {
    const std::string n = std::to_string(i);
    if (i % 3 == 0) lines += "alloc #k" + n + " 2MiB at run.py:5 main\n";
    lines += "alloc #t" + n + " 1MiB at run.py:6 main\nfree #t" + n + "\nstep " + n + " Optimizer.step#SGD.step\n";
  }
  EXPECT_EQ(growths(traced(lines)).size(), 1u);
}

TEST(Growth, FewRoundsSayNothing) {
  EXPECT_TRUE(growths(traced(kept_each_round(7, "2MiB"))).empty());
  EXPECT_EQ(growths(traced(kept_each_round(8, "2MiB"))).size(), 1u);
}

TEST(Growth, WhatIsSmallIsLeftAlone) { EXPECT_TRUE(growths(traced(kept_each_round(12, "64KiB"))).empty()); }

TEST(Growth, MemoryThatTurnsOverDoesNotGrow) {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += "alloc #x" + std::to_string(i) + " 2MiB at run.py:5 main\nalloc #y" + std::to_string(i) +
             " 2MiB at run.py:6 main\n";
    if (i >= 10) lines += "free #x" + std::to_string(i - 10) + "\nfree #y" + std::to_string(i - 10) + "\n";
  }
  EXPECT_TRUE(growths(traced(lines)).empty());
}

TEST(Growth, AQueueThatLosesItsOldestIsNotCalledGrowth) {
  std::string lines;
  for (int i = 0; i < 42; ++i) {
    lines += "alloc #x" + std::to_string(i) + " 2MiB at run.py:5 main\nalloc #y" + std::to_string(i) +
             " 1MiB at run.py:6 main\nfree #y" + std::to_string(i) + "\n";
    if (i % 3 == 2) lines += "free #x" + std::to_string(i / 3) + "\n";
  }
  EXPECT_TRUE(growths(traced(lines)).empty());
}

TEST(Growth, WhatFillsUpOnceDoesNotGrow) {
  std::string lines = kept_each_round(10, "2MiB");
  for (int i = 0; i < 30; ++i)
    lines += "alloc #later" + std::to_string(i) + " 1MiB at run.py:9 main\nfree #later" + std::to_string(i) + "\n";
  EXPECT_TRUE(growths(traced(lines)).empty());
}

TEST(Growth, LayersOfOneForwardAreOneRound) {
  const std::string call = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py:1775 _call_impl";
  std::string lines = "stack layer = run.py:5 main > " + call + " > net.py:8 forward > " + call + "\n";
  for (int i = 0; i < 40; ++i) lines += "alloc 2MiB stack=layer\n";
  EXPECT_TRUE(growths(traced(lines)).empty());
}

TEST(Growth, SettingUpIsNotGrowth) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "alloc 2MiB at run.py:5 main > net.py:3 load_weights\n";
  EXPECT_TRUE(growths(traced(lines)).empty());
}

TEST(Growth, WhatWasThereBeforeDoesNotCount) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "alloc 2MiB preexisting at run.py:5 main\n";
  lines += "alloc 2MiB at run.py:5 main\n";
  EXPECT_TRUE(growths(traced(lines)).empty());
}

TEST(Growth, StepsCountWhereTheyAreMarked) {
  std::string lines;
  for (int i = 1; i <= 8; ++i)
    lines += "alloc #k" + std::to_string(i) + " 2MiB at run.py:5 main\nstep " + std::to_string(i) +
             " Optimizer.step#SGD.step\n";
  const std::vector<Growth> found = growths(traced(lines));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rounds, 8u);
  EXPECT_EQ(found[0].round_kind, "optimizer steps (SGD)");
}

// Steps, each with `round`; % is its number.
std::string each_step(int steps, const std::string& round, const std::string& in_the_first = "") {
  std::string lines;
  for (int i = 1; i <= steps; ++i) {
    std::string one = round + (i == 1 ? in_the_first : "");
    for (std::size_t at; (at = one.find('%')) != std::string::npos;) one.replace(at, 1, std::to_string(i));
    lines += one + "step " + std::to_string(i) + " Optimizer.step#SGD.step\n";
  }
  return lines;
}

TEST(Growth, OfEachMarkedRoundTheLeastIsKnown) {
  const auto found =
      growths(traced(each_step(12, "alloc #k% 2MiB at run.py:5 main\nalloc #t% 1MiB at run.py:6 main\nfree #t%\n",
                               "alloc #more 6MiB at run.py:5 main\n")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].full_rounds, 10u);
  EXPECT_EQ(found[0].least_bytes, 2 * kMiB);
  EXPECT_EQ(found[0].rise_bytes, 20 * kMiB);
  EXPECT_EQ(found[0].kept_bytes, 30 * kMiB);
}

TEST(Growth, AStepThatKeepsNothingIsTheLeast) {
  std::string lines;
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i);
    if (i % 2 == 0) lines += "alloc #k" + n + " 2MiB at run.py:5 main\n";
    lines += "step " + n + " Optimizer.step#SGD.step\n";
  }
  const auto found = growths(traced(lines));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].least_bytes, 0u);
}

TEST(Growth, WorkspacesAreNotKeptByTheLine) {
  const auto found =
      growths(traced(each_step(12, "alloc #k% 2MiB at run.py:5 main\n", "alloc #w 8519680 at run.py:5 main\n")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kept_count, 12u);
  EXPECT_EQ(found[0].kept_bytes, 24 * kMiB);
}

TEST(Growth, ATensorThatEachStepMakesLargerGrows) {
  const auto steps = [](const std::string& other_bytes) {
    std::string lines = "alloc #p0 64KiB at run.py:3 main\n";
    for (int i = 1; i <= 12; ++i) {
      const std::string n = std::to_string(i), kib = std::to_string(256 * i);
      lines += "alloc #p" + n + " " + kib + "KiB at run.py:5 main\nfree #p" + std::to_string(i - 1) + "\nalloc #t" + n +
               " " + (other_bytes.empty() ? kib + "KiB" : other_bytes) + " at run.py:6 main\nfree #t" + n + "\nstep " +
               n + " Optimizer.step#SGD.step\n";
    }
    return lines;
  };
  const auto found = growths(traced(steps("1MiB")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].in_place);
  EXPECT_EQ(found[0].bytes_per_round, 256 * kKiB);
  EXPECT_EQ(found[0].least_bytes, 256 * kKiB);
  EXPECT_EQ(found[0].kept_bytes, 3 * kMiB);
  EXPECT_TRUE(growths(traced(steps(""))).empty());  // longer sequences: all of a step grows
}

// A cache of `layers` tensors of one line, joined to in each of the rounds; begun anew after so many of them.
std::string joined(int rounds, int layers, int anew_after = 1 << 20, const std::string& op = "aten::cat",
                   bool stopped = true) {
  std::string lines;
  for (int i = 0; i < rounds; ++i) {
    const int length = i % anew_after + 1;
    const std::string tensor = "t" + std::to_string(i);
    lines += "tensor " + tensor + " = float32[" + std::to_string(length * 65536) + "] op=" + op + "\n";
    for (int layer = 0; layer < layers; ++layer) {
      const std::string name = "_" + std::to_string(layer);
      lines += "alloc #c" + std::to_string(i) + name + " " + std::to_string(256 * length) + "KiB tensor=" + tensor +
               " at run.py:5 main\n" + (i == 0 ? "" : "free #c" + std::to_string(i - 1) + name + "\n");
    }
    lines += "alloc #x" + std::to_string(i) + " 1MiB at run.py:6 main\nfree #x" + std::to_string(i) + "\n";
  }
  return lines + (stopped ? "op-begin \"dry run stopped\" at run.py:9 main\nop-end \"\"\n" : "");
}

TEST(Growth, WhatIsJoinedToInEachRoundGrowsWithoutMarks) {
  for (const int layers : {1, 4}) {
    const auto found = growths(traced(joined(40, layers)));
    ASSERT_EQ(found.size(), 1u) << layers;
    EXPECT_TRUE(found[0].in_place);
    EXPECT_EQ(found[0].rounds, 40u);
    EXPECT_EQ(found[0].kept_count, static_cast<std::uint64_t>(layers));
    EXPECT_EQ(found[0].bytes_per_round, static_cast<std::uint64_t>(layers) * 256 * kKiB);
  }
}

TEST(Growth, ACacheThatEndsWithItsGenerationDoesNotGrow) {
  EXPECT_TRUE(growths(traced(joined(80, 1, 30))).empty());                           // and begins anew
  EXPECT_TRUE(growths(traced(joined(40, 1, 1 << 20, "aten::cat", false))).empty());  // the program came to its end
  EXPECT_TRUE(growths(traced(joined(40, 1, 1 << 20, "aten::zeros"))).empty());       // longer data, nothing is joined
  EXPECT_TRUE(growths(traced(joined(8, 1))).empty());                                // few
}

TEST(Growth, GradientsOfModelsThatAreKeptAreNone) {
  const auto folds = [](const std::string& weights) {
    std::string lines;
    for (int fold = 0; fold < 8; ++fold) {
      const std::string f = std::to_string(fold);
      lines += weights;
      for (int i = 0; i < 4; ++i) {
        const std::string n = f + "_" + std::to_string(i);
        lines +=
            "alloc #g" + n + " 2MiB at run.py:9 main > /usr/lib/python3/dist-packages/torch/_tensor.py:525 backward\n";
        if (i != 0) lines += "free #g" + f + "_" + std::to_string(i - 1) + "\n";
        lines += "step " + std::to_string(fold * 4 + i) + " Optimizer.step#SGD.step\n";
      }
    }
    return lines;
  };
  EXPECT_TRUE(growths(traced(folds("alloc 2MiB at run.py:4 main > net.py:3 __init__\n"))).empty());
  EXPECT_EQ(growths(traced(folds(""))).size(), 1u);
}

TEST(Growth, WhatOnlyTheFirstStepsMakeIsWarmUp) {
  std::string lines;
  for (int i = 1; i <= 12; ++i) {
    if (i <= 2) {
      for (int k = 0; k < 10; ++k) lines += "alloc 2MiB at run.py:5 main\n";
    }
    lines += "alloc #t" + std::to_string(i) + " 2MiB at run.py:6 main\nfree #t" + std::to_string(i) + "\nstep " +
             std::to_string(i) + " Optimizer.step#SGD.step\n";
  }
  EXPECT_TRUE(growths(traced(lines)).empty());
}

TEST(Growth, IsJudgedAtAFailureNotAfterItsCleanup) {
  std::string lines = kept_each_round(12, "2MiB") + "alloc-failed 1GiB\n";
  for (int i = 0; i < 12; ++i) lines += "free #kept" + std::to_string(i) + "\n";
  const Trace trace = traced(lines);
  const Facts facts(trace, {});
  const auto at_failure = find_growth(trace, facts.lifetimes, facts.stacks, facts.steps, facts.categories.at(0), 0,
                                      facts.usage[0].failures.back().event, 0);
  EXPECT_EQ(at_failure.size(), 1u);
  EXPECT_TRUE(growths(trace).empty());
}

// `looks` at what is alive: `lines` is what came since the last, with # for the look's number.
std::string looked_at(int looks, const std::string& lines) {
  std::string text = "heap jax kind=other device=0\n";
  for (int i = 0; i < looks; ++i) {
    const std::string n = std::to_string(i);
    for (std::size_t at = 0; at < lines.size(); ++at)
      text += lines[at] == '#' ? "#" + n + "_" : std::string(1, lines[at]);
    text += "op-begin \"look at what is alive\"\nop-end \"look at what is alive\"\n";
  }
  return text;
}

std::string eight_at(const std::string& where) {
  std::string lines;
  for (const char name : std::string("abcdefgh")) lines += std::string("alloc #") + name + " 1MiB jax " + where + "\n";
  return lines;
}

TEST(Growth, MoreAtEveryLookIsGrowth) {
  const std::vector<Growth> found = growths(traced(looked_at(12, eight_at("at run.py:5 main"))));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rounds_by, RoundsBy::kLooks);
  EXPECT_EQ(found[0].rounds, 10u);
  EXPECT_EQ(found[0].kept_count, 96u);
  EXPECT_EQ(found[0].least_bytes, 8 * kMiB);
}

TEST(Growth, LooksAtCopiesOfTheHostOrAtWhatIsOverAreNoLoop) {
  const std::string put = "stack put = run.py:5 main > /usr/lib/jax/_src/api.py:2118 device_put\n";
  const std::vector<Growth> copies = growths(traced(put + looked_at(12, eight_at("stack=put"))));
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].rounds_by, RoundsBy::kUnknown);
  const std::vector<Growth> over =
      growths(traced(looked_at(12, eight_at("at run.py:5 main")) + "alloc #later 1MiB jax at run.py:9 main\n"));
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].rounds_by, RoundsBy::kUnknown);
}

// A program may compile for longer than it then runs.
TEST(Growth, LooksBeforeALineBeginsDoNotCount) {
  std::string text = looked_at(20, "");
  const std::string rest = looked_at(10, eight_at("at run.py:5 main"));
  text += rest.substr(rest.find('\n') + 1);
  const std::vector<Growth> found = growths(traced(text));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rounds_by, RoundsBy::kLooks);
  EXPECT_EQ(found[0].rounds, 9u);
  EXPECT_EQ(found[0].least_bytes, 8 * kMiB);
}

TEST(Growth, AFewLooksTellNothing) { EXPECT_TRUE(growths(traced(looked_at(6, eight_at("at run.py:5 main")))).empty()); }

TEST(Growth, WhatIsMadeAnewBetweenLooksDoesNotGrow) {
  std::string text = looked_at(1, eight_at("at run.py:5 main"));
  for (int i = 1; i < 12; ++i) text += "op-begin \"look at what is alive\"\nop-end \"look at what is alive\"\n";
  EXPECT_TRUE(growths(traced(text)).empty());
}

}  // namespace
}  // namespace faultline
