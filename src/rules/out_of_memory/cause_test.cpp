#include "rules/out_of_memory/cause.h"

#include <gtest/gtest.h>

#include <array>

namespace faultline {
namespace {

ByteInterval gib(double size) { return ByteInterval::exactly(static_cast<std::uint64_t>(size * static_cast<double>(kGiB))); }
// As a message prints it, to two decimals.
ByteInterval printed(ByteInterval exact) { return {exact.min - std::min(exact.min, 5 * kMiB), exact.max + 5 * kMiB}; }

// A device of 23 GiB: 20 reserved, 2 of it idle, 1 free, 2 outside.
Shortage recorded() {
  Shortage s;
  s.requested = s.segment = gib(4);
  s.capacity = gib(23);
  s.reserved = gib(20);
  s.live = gib(18);
  s.idle = gib(2);
  s.free = gib(1);
  s.largest_piece = gib(0.5);
  s.returnable = gib(0);
  s.allowed_so_far = gib(20);
  return s;
}

std::string verdict(const Shortage& s) {
  const CauseVerdict v = cause_of(s);
  return std::string(v.cause()) + " " + std::string(name_of(v.confidence));
}

TEST(CauseOf, TellsTheInequalityThatHolds) {
  Shortage s = recorded();
  EXPECT_EQ(verdict(s), "exhausted proved");
  EXPECT_EQ(cause_of(s).inequality, "1.00 GiB free + 2.00 GiB idle < 4.00 GiB asked for");
  s.requested = s.segment = gib(1.5);
  EXPECT_EQ(verdict(s), "fragmented proved");
  EXPECT_EQ(cause_of(s).inequality, "2.00 GiB idle ≥ 1.50 GiB asked for");
  s.requested = s.segment = gib(2.5);
  EXPECT_EQ(verdict(s), "fragmented likely");
  EXPECT_EQ(cause_of(s).inequality, "1.00 GiB free + 2.00 GiB idle ≥ 2.50 GiB asked for");
}

TEST(CauseOf, SaysItInBytesWhereRoundingWouldHideTheDifference) {
  Shortage s = recorded();
  s.requested = s.segment = ByteInterval::exactly(3 * kGiB + 1);
  EXPECT_EQ(cause_of(s).inequality, "1,073,741,824 bytes free + 2,147,483,648 bytes idle < 3,221,225,473 bytes asked for");
}

TEST(CauseOf, IsTheSameForARecordingAndForAMessageOfTheSameNumbers) {
  for (const double request : {1.2, 1.5, 2.7, 5.0, 30.0}) {
    const Shortage exact = [&] {
      Shortage s = recorded();
      s.live = gib(17.5);
      s.idle = gib(2.5);
      s.requested = s.segment = gib(request);
      return s;
    }();
    Shortage stated = exact;
    stated.largest_piece = stated.returnable = stated.allowed_so_far = std::nullopt;
    stated.states_limits = true;
    for (auto* number : {&stated.live, &stated.reserved, &stated.idle, &stated.free, &stated.capacity}) *number = printed(**number);
    stated.requested = stated.segment = printed(stated.segment);
    EXPECT_STREQ(cause_of(stated).cause(), cause_of(exact).cause()) << request;
  }
}

TEST(CauseOf, ALimitThatIsStatedAndOneThatIsNot) {
  Shortage s = recorded();
  s.capacity = gib(80);
  s.free = gib(50);
  EXPECT_EQ(verdict(s), "own-limit proved");
  EXPECT_EQ(cause_of(s).inequality, "50.00 GiB free ≥ 4.00 GiB asked for");
  s.states_limits = true;
  EXPECT_EQ(verdict(s), " likely");  // it would have said so
  s.allowed = gib(21);
  EXPECT_EQ(verdict(s), "own-limit proved");
  EXPECT_EQ(cause_of(s).inequality, "1.00 GiB left of the limit < 4.00 GiB asked for");
  s.from_driver = true;
  EXPECT_EQ(verdict(s), "own-limit hint");  // of a pool, not of PyTorch
}

TEST(CauseOf, MemoryOfOthersIsNamedByWhoIsKnownToHoldIt) {
  Shortage s = recorded();
  s.live = s.reserved = gib(6);
  s.idle = gib(0);
  EXPECT_EQ(verdict(s), "outside-framework likely");
  s.before_start = gib(15);
  EXPECT_EQ(verdict(s), "other-process likely");
  s.others = gib(15);
  s.other_pids = {"7", "8"};
  EXPECT_EQ(verdict(s), "other-process proved");
  EXPECT_NE(cause_of(s).why.find("processes 7, 8"), std::string::npos);
  s.others = s.before_start = std::nullopt;
  s.sees_own_requests = true;
  EXPECT_EQ(verdict(s), "other-process hint");
}

TEST(CauseOf, WhatTheFrameworkKeepsIdleIsMissingToTheDriver) {
  Shortage s = recorded();
  s.from_driver = s.sees_own_requests = true;
  s.largest_piece = std::nullopt;
  EXPECT_EQ(verdict(s), "exhausted proved");
  s.requested = s.segment = gib(2.5);
  EXPECT_EQ(verdict(s), "fragmented likely");  // it could not be given back
  s.returnable = gib(2);
  EXPECT_EQ(verdict(s), "idle-cache proved");
}

// Every combination of a grid, exact and rounded, recorded, stated and of the driver.
TEST(CauseOf, NeverSaysMoreThanItsNumbers) {
  constexpr std::array kSizes = {0.0, 0.2, 1.0, 3.0, 9.0};
  std::size_t asked = 0;
  const auto check = [&](const Shortage& s, double left_without_waste) {
    const CauseVerdict v = cause_of(s);
    const std::string cause = v.cause();
    ++asked;
    ASSERT_FALSE(v.why.empty());
    if (cause == "exhausted") {
      EXPECT_FALSE(surely_at_least(*s.capacity, *s.live + s.requested + (*s.capacity - *s.free - *s.reserved))) << v.why;
    }
    if (cause == "fragmented") {
      EXPECT_GE(left_without_waste, 0) << v.why;
    }
    if (cause == "fragmented" && v.confidence == Confidence::kProved) {
      EXPECT_TRUE(surely_at_least(std::max(s.reserved->min, s.allowed_so_far.value_or(*s.reserved).min) == s.reserved->min ? *s.reserved : *s.allowed_so_far, *s.live + s.requested)) << v.why;
    }
    if (cause == "own-limit" && v.confidence == Confidence::kProved && s.allowed) {
      EXPECT_TRUE(surely_less(*s.allowed, *s.reserved + s.segment)) << v.why;
    }
  };
  for (const double live : kSizes) for (const double idle : kSizes) for (const double free : kSizes) for (const double outside : kSizes) for (const double request : {0.001, 0.3, 2.0, 5.0, 30.0}) {
    Shortage s;
    s.requested = gib(request);
    s.segment = ByteInterval::exactly((s.requested.min + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB));
    s.live = gib(live);
    s.reserved = gib(live + idle);
    s.idle = gib(idle);
    s.free = gib(free);
    s.capacity = gib(live + idle + free + outside);
    const double room = idle + free - request;
    for (const bool from_driver : {false, true}) for (const bool picture : {false, true}) for (const double allowed : {0.0, 4.0, 12.0}) {
      Shortage t = s;
      t.from_driver = t.sees_own_requests = from_driver;
      if (picture) t.largest_piece = gib(idle / 4), t.returnable = gib(idle / 8), t.allowed_so_far = gib(std::max(allowed, live + idle));
      t.states_limits = !picture;
      if (allowed != 0) t.allowed = gib(allowed);
      const double without_limit = allowed != 0 || picture ? std::max(room, std::max(allowed, live + idle) - live - request) : room;
      check(t, without_limit);
      if (picture) continue;
      for (auto* number : {&t.live, &t.reserved, &t.idle, &t.free, &t.capacity, &t.allowed}) if (*number) *number = printed(**number);
      t.requested = {t.requested.min, t.segment.max + 5 * kMiB};
      t.segment = printed(t.segment);
      check(t, without_limit);
    }
  }
  EXPECT_GT(asked, 40'000u);
}

}  // namespace
}  // namespace faultline
