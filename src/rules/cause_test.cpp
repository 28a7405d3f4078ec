#include "rules/cause.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <regex>

#include "fmt/format.h"
#include "models/torch/segment_sizes.h"

namespace faultline {
namespace {

ByteInterval gib(double size) {
  return ByteInterval::exactly(static_cast<std::uint64_t>(size * static_cast<double>(kGiB)));
}
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

// A hostile recording states what no device has; sizes from 1e18 bytes on cannot be written as one either.
TEST(CauseOf, NumbersThatNoDeviceHasAreJudgedToo) {
  for (const std::uint64_t huge : {std::uint64_t{1} << 59, std::uint64_t{1} << 60, std::uint64_t{1} << 62,
                                   ~std::uint64_t{0} >> 1, ~std::uint64_t{0}}) {
    const ByteInterval bytes = ByteInterval::exactly(huge);
    for (const auto field :
         {&Shortage::capacity, &Shortage::reserved, &Shortage::live, &Shortage::idle, &Shortage::free,
          &Shortage::largest_piece, &Shortage::returnable, &Shortage::allowed_so_far}) {
      for (const bool is_sized : {true, false}) {
        Shortage s = recorded();
        if (!is_sized) s.capacity.reset();
        s.*field = bytes;
        EXPECT_FALSE(cause_of(s).why.empty()) << huge;
      }
    }
  }
}

TEST(CauseOf, TellsTheInequalityThatHolds) {
  Shortage s = recorded();
  EXPECT_EQ(verdict(s), "exhausted proved");
  EXPECT_EQ(cause_of(s).inequality, "1.00 GiB free + 2.00 GiB idle < 4.00 GiB requested");
  s.requested = s.segment = gib(1.5);
  EXPECT_EQ(verdict(s), "fragmented proved");
  EXPECT_EQ(cause_of(s).inequality, "2.00 GiB idle ≥ 1.50 GiB requested");
  s.requested = s.segment = gib(2.5);
  EXPECT_EQ(verdict(s), "fragmented likely");
  EXPECT_EQ(cause_of(s).inequality, "1.00 GiB free + 2.00 GiB idle ≥ 2.50 GiB requested");
}

// Where the numbers leave several causes, each is named with what would make it the one, and none that they exclude.
TEST(CauseOf, NamesEveryCauseThatRoundedNumbersLeaveOpen) {
  struct Row {
    const char* what;
    double requested, free, idle, capacity;  // in GiB; live 18
    std::vector<std::string> named, not_named;
  };
  const std::vector<Row> rows = {
      {"the sum just meets the request",
       3,
       1,
       2,
       21.2,
       {"exhausted, if", "fragmented, if free + idle ≥", "(1.00 GiB free + 2.00 GiB idle is 2.99 GiB to 3.01 GiB"},
       {"other programs", "limit"}},
      {"much is held by nobody",
       3,
       1,
       2,
       24.5,
       {"exhausted, if", "fragmented, if", "other programs or libraries, if"},
       {"limit"}},
      {"the size of the device is not said",
       3,
       1,
       2,
       0,
       {"exhausted, if", "fragmented, if", "size the input does not say"},
       {"limit"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Shortage s;
    s.states_limits = true;
    s.requested = s.segment = printed(gib(row.requested));
    s.free = printed(gib(row.free));
    s.idle = printed(gib(row.idle));
    s.live = printed(gib(18));
    s.reserved = printed(gib(18 + row.idle));
    if (row.capacity != 0) s.capacity = printed(gib(row.capacity));
    const CauseVerdict v = cause_of(s);
    ASSERT_EQ(v.story, Story::kOpen) << v.why;
    EXPECT_STREQ(v.cause(), "");
    EXPECT_NE(v.why.find("more than one cause ("), std::string::npos) << v.why;
    EXPECT_TRUE(v.inequality.empty()) << "none of them is proved";
    for (const std::string& words : row.named) EXPECT_NE(v.why.find(words), std::string::npos) << v.why;
    for (const std::string& words : row.not_named) EXPECT_EQ(v.why.find(words), std::string::npos) << v.why;
  }
}

TEST(CauseOf, SaysWhatIsNotKnownWhereTheIdleBytesAreNotTold) {
  Shortage s;
  s.states_limits = true;
  s.requested = s.segment = gib(3);
  s.free = gib(1);
  s.live = gib(18);
  s.capacity = gib(22);
  const CauseVerdict v = cause_of(s);
  ASSERT_EQ(v.story, Story::kOpen);
  EXPECT_NE(v.why.find("exhausted, if less than 2.00 GiB was idle"), std::string::npos) << v.why;
  EXPECT_NE(v.why.find("fragmented, if 2.00 GiB or more was"), std::string::npos) << v.why;
  s.capacity = gib(20);  // however much of it lies idle
  EXPECT_EQ(cause_of(s).inequality, "18.00 GiB in use + 3.00 GiB requested > 20.00 GiB in all");
}

TEST(CauseOf, NeverLeavesItOpenWithoutACandidate) {
  std::mt19937 random(7);
  const auto some = [&](double most) { return printed(gib(std::uniform_real_distribution(0.0, most)(random))); };
  int open = 0;
  for (int round = 0; round < 20000; ++round) {
    Shortage s;
    s.states_limits = random() % 2 != 0;
    s.requested = s.segment = some(6);
    s.free = some(2);
    s.live = some(20);
    if (random() % 4 != 0) s.idle = some(5);
    if (s.idle) s.reserved = *s.live + *s.idle;
    if (random() % 3 != 0) s.capacity = printed(gib(24));
    if (random() % 3 == 0) s.allowed = some(24);
    const CauseVerdict v = cause_of(s);
    if (v.story != Story::kOpen) continue;
    ++open;
    EXPECT_NE(v.why.find(", if "), std::string::npos) << v.why;
  }
  EXPECT_GT(open, 100);
}

TEST(CauseOf, SaysItInBytesWhereRoundingWouldHideTheDifference) {
  Shortage s = recorded();
  s.requested = s.segment = ByteInterval::exactly(3 * kGiB + 1);
  EXPECT_EQ(cause_of(s).inequality,
            "1,073,741,824 bytes free + 2,147,483,648 bytes idle < 3,221,225,473 bytes requested");
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
    for (auto* number : {&stated.live, &stated.reserved, &stated.idle, &stated.free, &stated.capacity})
      *number = printed(**number);
    stated.requested = stated.segment = printed(stated.segment);
    EXPECT_STREQ(cause_of(stated).cause(), cause_of(exact).cause()) << request;
  }
}

TEST(CauseOf, ALimitThatIsStatedAndOneThatIsNot) {
  Shortage s = recorded();
  s.capacity = gib(80);
  s.free = gib(50);
  EXPECT_EQ(verdict(s), "own-limit likely");  // inferred
  EXPECT_NE(cause_of(s).why.find("nothing here states one"), std::string::npos) << cause_of(s).why;
  EXPECT_EQ(cause_of(s).inequality, "50.00 GiB free ≥ 4.00 GiB requested");
  s.states_limits = true;
  EXPECT_EQ(verdict(s), " likely");  // it would have said so
  s.allowed = gib(21);
  EXPECT_EQ(verdict(s), "own-limit proved");
  EXPECT_EQ(cause_of(s).inequality, "20.00 GiB held + 4.00 GiB requested > 21.00 GiB allowed");
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

struct State {
  std::uint64_t live, idle, free, others, context, request, segment, allowed;  // allowed 0: none
  std::uint64_t reserved() const { return live + idle; }
  std::uint64_t capacity() const { return live + idle + free + others + context; }
  bool limited() const { return allowed != 0 && reserved() + segment > allowed; }
  // The truth, by arithmetic on the bytes themselves.
  bool fits_without_waste() const { return request <= free + idle && (allowed == 0 || live + request <= allowed); }
  bool fits_with_limit_raised() const { return limited() && segment <= free; }
  bool fits_without_others() const { return segment <= free + others + context; }
};

// As a message prints it: two decimals of its own unit.
ByteInterval as_printed(std::uint64_t bytes) {
  const std::uint64_t unit = bytes >= kGiB ? kGiB : bytes >= kMiB ? kMiB : bytes >= kKiB ? kKiB : 0;
  if (unit == 0) return ByteInterval::exactly(bytes);
  const auto hundredths =
      static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * 100 / static_cast<double>(unit)));
  const auto at = [&](double h) { return static_cast<std::uint64_t>(h * static_cast<double>(unit) / 100); };
  return {at(static_cast<double>(hundredths) - 0.5), at(static_cast<double>(hundredths) + 0.5) + 1};
}

Shortage shortage(const State& s, bool message) {
  const auto number = [&](std::uint64_t bytes) { return message ? as_printed(bytes) : ByteInterval::exactly(bytes); };
  Shortage t;
  t.segment = number(s.segment);
  t.requested = message ? TorchSegmentSizes().block_behind(t.segment) : ByteInterval::exactly(s.request);
  t.live = number(s.live);
  t.idle = number(s.idle);
  t.reserved = message ? *t.live + *t.idle : ByteInterval::exactly(s.reserved());
  t.free = number(s.free);
  t.capacity = number(s.capacity());
  if (s.allowed != 0) t.allowed = number(s.allowed);
  t.states_limits = message;
  if (!message)
    t.largest_piece = ByteInterval::exactly(std::min(s.idle, s.request - 1)), t.returnable = ByteInterval::exactly(0),
    t.allowed_so_far = ByteInterval::exactly(std::max(s.allowed, s.reserved()));
  return t;
}

// What a reader adds up on each side of every inequality of a text.
void expect_holds(const std::string& text) {
  static const std::regex kNumber("([0-9][0-9,]*(?:\\.[0-9]+)?) (bytes|B|KiB|MiB|GiB|TiB)\\b");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("; ", begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    begin = end + 2;
    const std::string sign = one.find("≥") != std::string::npos ? "≥" : one.find('<') != std::string::npos ? "<" : ">";
    const std::size_t middle = one.find(sign);
    ASSERT_NE(middle, std::string::npos) << text;
    const auto side = [&](const std::string& part) {
      double total = 0;
      for (std::sregex_iterator at(part.begin(), part.end(), kNumber), none; at != none; ++at) {
        std::string digits = (*at)[1];
        std::erase(digits, ',');
        const std::string unit = (*at)[2];
        total += static_cast<double>(*parse_bytes(digits + (unit == "bytes" ? "" : unit)));
      }
      return total;
    };
    const double left = side(one.substr(0, middle)), right = side(one.substr(middle));
    EXPECT_TRUE(sign == "≥" ? left >= right : sign == "<" ? left < right : left > right) << text;
  }
}

// Thousands of states of a device on which the request did fail, exact as a recording has them and rounded as a message does.
TEST(CauseOf, AgreesWithTheTruthAndPrintsWhatHolds) {
  std::mt19937_64 random(20'261'116);
  const auto pick = [&](std::initializer_list<double> gib_sizes) {
    const double base = *(gib_sizes.begin() + random() % gib_sizes.size());
    return static_cast<std::uint64_t>(base * static_cast<double>(kGiB)) / 512 * 512 +
           (base == 0 ? 0 : random() % 4096 * 512);
  };
  std::map<std::string, int> named;
  for (int round = 0; round < 60'000; ++round) {
    State s{};
    s.live = pick({0.01, 1, 4, 12, 22, 70});
    s.idle = pick({0, 0, 0.004, 0.02, 0.3, 2, 6});
    s.free = pick({0, 0.002, 0.012, 0.3, 1.5, 9});
    s.others = pick({0, 0, 0.5, 3, 11});
    s.context = pick({0.4, 0.7, 1.2});
    s.request = std::max<std::uint64_t>(512, pick({0, 0.0004, 0.002, 0.005, 0.02, 0.4, 2, 5, 13, 90}));
    s.segment = TorchSegmentSizes().segment_bytes(s.request);
    if (random() % 3 == 0) s.allowed = s.reserved() + pick({0, 0.01, 0.5, 3});
    if (s.segment <= s.free && !s.limited()) continue;  // it would have been served
    for (const bool message : {false, true}) {
      const CauseVerdict v = cause_of(shortage(s, message));
      const std::string cause = v.cause();
      SCOPED_TRACE(
          fmt::format("{} live {} idle {} free {} others {} context {} request {} segment {} allowed {}: {} {} | {}",
                      message ? "message" : "recording", s.live, s.idle, s.free, s.others, s.context, s.request,
                      s.segment, s.allowed, cause, v.why, v.inequality));
      ++named[cause];
      expect_holds(v.inequality);
      if (cause == "exhausted") {
        EXPECT_FALSE(s.fits_without_waste());
      }
      if (cause == "fragmented") {
        EXPECT_TRUE(s.fits_without_waste());
      }
      if (cause == "own-limit" && v.confidence == Confidence::kProved) {
        EXPECT_TRUE(s.fits_with_limit_raised());
      }
      if (cause == "own-limit") {
        EXPECT_TRUE(s.allowed != 0 && s.segment <= s.free + 5 * kMiB);
      }
      if (cause == "other-process" || cause == "outside-framework") {
        EXPECT_TRUE(s.fits_without_others());
      }
      if (v.confidence == Confidence::kProved) {
        EXPECT_FALSE(v.inequality.empty());
      }
      EXPECT_NE(v.story, Story::kContradiction);
      // Where the truth is plain the cause is named.
      if (!message && !s.limited() && !s.fits_without_waste() && !s.fits_without_others()) {
        EXPECT_EQ(cause, "exhausted");
      }
      if (!message && s.fits_without_waste() && s.idle >= s.request && s.idle * 10 >= s.reserved()) {
        EXPECT_EQ(cause, "fragmented");
      }
      if (s.limited() && !s.fits_without_waste() && s.free >= s.segment + kGiB &&
          s.allowed + kGiB < s.reserved() + s.segment && s.request <= s.capacity()) {
        EXPECT_EQ(cause, "own-limit");
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
  for (const char* cause : {"exhausted", "fragmented", "own-limit", "outside-framework", ""})
    EXPECT_GT(named[cause], 500) << cause;
}

TEST(CauseOf, NumbersThatCannotAllBeTrueTellNothing) {
  using Spoil = void (*)(Shortage&);
  const std::vector<std::pair<const char*, Spoil>> cases = {
      {"more in use than reserved", [](Shortage& s) { s.live = gib(21), s.idle = gib(0); }},
      {"more idle than reserved", [](Shortage& s) { s.idle = gib(20.5); }},
      {"more free than there is", [](Shortage& s) { s.free = gib(24); }},
      {"others hold more than there is", [](Shortage& s) { s.others = gib(30), s.other_pids = {"7"}; }},
      {"outside is more than there is", [](Shortage& s) { s.outside = gib(40); }},
      {"held and free are more than there is", [](Shortage& s) { s.free = gib(6); }},
      {"all together are more than there is", [](Shortage& s) { s.others = gib(8), s.other_pids = {"7"}; }},
  };
  for (const auto& [name, spoil] : cases) {
    for (const double request : {0.01, 1.5, 4.0}) {
      Shortage s = recorded();
      s.requested = s.segment = gib(request);
      spoil(s);
      const CauseVerdict v = cause_of(s);
      EXPECT_STREQ(v.cause(), "") << name;
      EXPECT_EQ(v.confidence, Confidence::kHint) << name;
      EXPECT_NE(v.why.find("contradict each other"), std::string::npos) << name << ": " << v.why;
      expect_holds(v.why.substr(v.why.rfind(": ") + 2));
    }
  }
}

TEST(CauseOf, MemoryThatWindowsLendsIsNotFragmented) {
  for (const double reserved : {25.0, 30.0, 46.0})
    for (const double idle : {0.1, 5.0, 12.0})
      for (const double request : {0.5, 2.0, 9.0}) {
        Shortage s = recorded();
        s.free = gib(0);
        s.reserved = gib(reserved);
        s.idle = gib(idle);
        s.live = gib(reserved - idle);
        s.requested = s.segment = gib(request);
        s.largest_piece = std::nullopt;
        const CauseVerdict v = cause_of(s);
        EXPECT_STREQ(v.cause(), reserved - idle + request > 23 ? "exhausted" : "") << v.why;
        EXPECT_NE(v.why.find("as Windows does"), std::string::npos) << v.why;
        expect_holds(v.inequality);
      }
}

// A model that is far too large fails at some small request, for which there may be enough in pieces.
TEST(CauseOf, WhatADryRunNeedsInAllDecides) {
  Shortage s = recorded();
  s.live = gib(19.9);
  s.idle = gib(0.1);
  s.requested = s.segment = gib(0.05);
  s.free = gib(0.02);
  s.capacity = gib(20.92);
  EXPECT_EQ(verdict(s), " likely");  // in effect full
  s.whole_live = gib(67);
  EXPECT_EQ(verdict(s), "exhausted proved");
  EXPECT_EQ(cause_of(s).inequality, "67.00 GiB in use at the fullest + 921.60 MiB beside it > 20.92 GiB in all");
  s.whole_live = gib(20.0);  // all of it fits without the pieces
  EXPECT_EQ(verdict(s), "fragmented proved");
}

TEST(CauseOf, ALimitIsNamedOnlyWhereRaisingItHelps) {
  for (const double free : {0.0, 1.0, 3.9, 4.0, 10.0})
    for (const double left : {0.0, 0.5, 3.0}) {
      Shortage s = recorded();
      s.capacity = gib(22 + free);
      s.free = gib(free);
      s.allowed = gib(20 + left);
      s.allowed_so_far = std::nullopt;
      EXPECT_EQ(std::string_view(cause_of(s).cause()) == "own-limit", free >= 4 && 18 + 4 > 20 + left)
          << free << " " << left << cause_of(s).why;
    }
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
      EXPECT_FALSE(surely_at_least(*s.capacity, *s.live + s.requested + (*s.capacity - *s.free - *s.reserved)))
          << v.why;
    }
    if (cause == "fragmented") {
      EXPECT_GE(left_without_waste, 0) << v.why;
    }
    if (cause == "fragmented" && v.confidence == Confidence::kProved) {
      EXPECT_TRUE(surely_at_least(
          std::max(s.reserved->min, s.allowed_so_far.value_or(*s.reserved).min) == s.reserved->min ? *s.reserved
                                                                                                   : *s.allowed_so_far,
          *s.live + s.requested))
          << v.why;
    }
    if (cause == "own-limit" && v.confidence == Confidence::kProved && s.allowed) {
      EXPECT_TRUE(surely_less(*s.allowed, *s.reserved + s.segment)) << v.why;
    }
  };
  for (const double live : kSizes)
    for (const double idle : kSizes)
      for (const double free : kSizes)
        for (const double outside : kSizes)
          for (const double request : {0.001, 0.3, 2.0, 5.0, 30.0}) {
            Shortage s;
            s.requested = gib(request);
            s.segment = ByteInterval::exactly((s.requested.min + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB));
            s.live = gib(live);
            s.reserved = gib(live + idle);
            s.idle = gib(idle);
            s.free = gib(free);
            s.capacity = gib(live + idle + free + outside);
            const double room = idle + free - request;
            for (const bool from_driver : {false, true})
              for (const bool picture : {false, true})
                for (const double allowed : {0.0, 4.0, 12.0}) {
                  Shortage t = s;
                  t.from_driver = t.sees_own_requests = from_driver;
                  if (picture)
                    t.largest_piece = gib(idle / 4), t.returnable = gib(idle / 8),
                    t.allowed_so_far = gib(std::max(allowed, live + idle));
                  t.states_limits = !picture;
                  if (allowed != 0) t.allowed = gib(allowed);
                  const double without_limit =
                      allowed != 0 || picture ? std::max(room, std::max(allowed, live + idle) - live - request) : room;
                  check(t, without_limit);
                  if (picture) continue;
                  for (auto* number : {&t.live, &t.reserved, &t.idle, &t.free, &t.capacity, &t.allowed})
                    if (*number) *number = printed(**number);
                  t.requested = {t.requested.min, t.segment.max + 5 * kMiB};
                  t.segment = printed(t.segment);
                  check(t, without_limit);
                }
          }
  EXPECT_GT(asked, 40'000u);
}

}  // namespace
}  // namespace faultline
