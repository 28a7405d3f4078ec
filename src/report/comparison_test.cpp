#include "report/comparison.h"

#include <gtest/gtest.h>

#include "report/comparison_text.h"
#include "report/sample_reports.h"
#include "rules/describe.h"

namespace faultline {
namespace {

Holder held(std::uint64_t bytes, const std::string& file, std::uint32_t line, const std::string& function = "forward",
            const std::string& category = "activations") {
  return {bytes, 1, category, {file, line, function, "", ""}, ""};
}

Report report_of_lines(std::vector<Holder> lines, std::uint64_t more_reserved = 0) {
  Report report;
  report.input_path = "run.pickle";
  DeviceReport device;
  for (const Holder& line : lines) device.peak_allocated += line.bytes;
  device.peak_reserved = device.peak_allocated + more_reserved;
  device.holders = std::move(lines);
  report.devices = {device};
  return report;
}

// "train.py:12 new +5", one a line that differs.
std::vector<std::string> told(const Comparison& change) {
  std::vector<std::string> lines;
  for (const PeakChange& peak : change.peaks) {
    for (const LineChange& line : peak.lines) {
      lines.push_back((line.location.known() ? short_place(line.location) : line.detail) + " " +
                      std::string(name_of(line.fate)) +
                      (line.bytes.grew() ? " +" + std::to_string(line.bytes.growth())
                                         : " -" + std::to_string(line.bytes.shrinkage())));
    }
  }
  return lines;
}

using Lines = std::vector<std::string>;

struct Case {
  const char* name;
  std::vector<Holder> before, after;
  Lines told;
};

class GrowthOfLines : public testing::TestWithParam<Case> {};

TEST_P(GrowthOfLines, IsToldAsItIs) {
  const Comparison change = compare(report_of_lines(GetParam().before), report_of_lines(GetParam().after));
  EXPECT_EQ(told(change), GetParam().told);
  // whatever is matched with what: the rows add up to what the peak grew by
  ASSERT_EQ(change.peaks.size(), 1u);
  std::int64_t sum = 0;
  for (const LineChange& line : change.peaks[0].lines)
    sum += static_cast<std::int64_t>(line.bytes.after) - static_cast<std::int64_t>(line.bytes.before);
  const Change& peak = change.peaks[0].allocated;
  EXPECT_EQ(sum, static_cast<std::int64_t>(peak.after) - static_cast<std::int64_t>(peak.before));
}

INSTANTIATE_TEST_SUITE_P(
    Growth, GrowthOfLines,
    testing::Values(
        Case{"same", {held(8, "a.py", 3)}, {held(8, "a.py", 3)}, {}},
        Case{"grown_shrunk_new_gone",
             {held(8, "a.py", 3), held(9, "a.py", 4), held(5, "b.py", 1, "f")},
             {held(18, "a.py", 3), held(1, "a.py", 4), held(7, "c.py", 1, "g")},
             {"a.py:3 same +10", "c.py:1 new +7", "b.py:1 gone -5", "a.py:4 same -8"}},
        Case{"one_line_of_a_function_moved", {held(8, "a.py", 3)}, {held(9, "a.py", 30)}, {"a.py:30 moved +1"}},
        Case{"moved_beside_one_that_stays",
             {held(8, "a.py", 3), held(8, "a.py", 5)},
             {held(8, "a.py", 3), held(9, "a.py", 7)},
             {"a.py:7 moved +1"}},
        // taken by its number, line 4 would be what line 3 was
        Case{"a_whole_function_moved_by_one",
             {held(8, "a.py", 3), held(100, "a.py", 4)},
             {held(8, "a.py", 4), held(101, "a.py", 5)},
             {"a.py:5 moved +1"}},
        Case{"another_kind_of_memory_is_another_line",
             {held(8, "a.py", 3)},
             {held(9, "a.py", 30, "forward", "optimizer")},
             {"a.py:30 new +9", "a.py:3 gone -8"}},
        Case{"two_that_could_be_it_are_not_guessed",
             {held(8, "a.py", 3)},
             {held(9, "a.py", 30), held(7, "a.py", 40)},
             {"a.py:30 new +9", "a.py:40 new +7", "a.py:3 gone -8"}},
        Case{"another_function",
             {held(8, "a.py", 3)},
             {held(9, "a.py", 3, "loss")},
             {"a.py:3 new +9", "a.py:3 gone -8"}},
        Case{"without_a_function_only_the_number_counts",
             {held(8, "a.cu", 3, "")},
             {held(9, "a.cu", 4, "")},
             {"a.cu:4 new +9", "a.cu:3 gone -8"}},
        Case{"another_folder", {held(8, "/ci/a.py", 3)}, {held(9, "/me/a.py", 3)}, {"a.py:3 same +1"}},
        Case{"another_folder_and_two_of_a_name",
             {held(8, "/ci/a.py", 3)},
             {held(9, "/me/a.py", 3), held(7, "/me/x/a.py", 3)},
             {"a.py:3 new +9", "a.py:3 new +7", "a.py:3 gone -8"}},
        Case{"installed_elsewhere",
             {held(8, "/ci/lib/site-packages/torch/nn/linear.py", 3), held(1, "/ci/lib/site-packages/x/linear.py", 3)},
             {held(9, "/me/lib/site-packages/torch/nn/linear.py", 3), held(1, "/me/lib/site-packages/x/linear.py", 3)},
             {"linear.py:3 same +1"}},
        Case{"two_categories_of_one_line",
             {held(8, "a.py", 3), held(4, "a.py", 3, "forward", "other")},
             {held(8, "a.py", 3), held(6, "a.py", 3, "forward", "other")},
             {"a.py:3 same +2"}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Growth, ALineThatIsNotListedIsNotCalledNew) {
  const Holder rest{10, 4, std::string(kUnlistedLines), {}, "4 other lines"};
  const Comparison change = compare(report_of_lines({held(8, "a.py", 3), rest}),
                                    report_of_lines({held(8, "a.py", 3), held(20, "b.py", 1, "f"), rest}));
  ASSERT_EQ(told(change), Lines{"b.py:1 not listed before +20"});
  EXPECT_EQ(change.peaks[0].lines[0].unlisted_before, 8u);  // else it would stand above a.py:3
  const Report before = report_of_lines({held(8, "a.py", 3)}), after = before;
  EXPECT_NE(to_terminal(change, {before, after}, {}).find("+12 B or more"), std::string::npos);
}

Holder rest_of(std::uint64_t bytes, int rows) {
  return {bytes, 4, std::string(kUnlistedLines), {}, std::to_string(rows) + " other lines"};
}

// "change before after" of the row of a line on the page.
std::string row_told(const Comparison& change, const std::string& place) {
  const Report none = report_of_lines({});
  const std::string text = to_terminal(change, {none, none}, {});
  const std::size_t at = text.find(place), begin = text.rfind('\n', at) + 1;
  return at == std::string::npos ? std::string() : text.substr(begin, at - begin);
}

// What the rows leave of the peak is no row of the list: it bounds nothing, and is itself never among the unlisted.
TEST(Growth, WhatTheRowsLeaveOfThePeakBoundsNothing) {
  for (const std::uint64_t left : {1u, 7u, 500u}) {
    Report before = report_of_lines({held(1000, "a.py", 3), held(900, "a.py", 4), rest_of(3000, 4)});
    before.devices[0].peak_allocated += left;
    const Report after = report_of_lines({held(1000, "a.py", 3), held(901, "b.py", 1, "f"), held(900, "a.py", 4)});
    const Comparison change = compare(before, after);
    EXPECT_EQ(told(change), (Lines{"b.py:1 not listed before +901",
                                   "pages mapped by the program itself gone -" + std::to_string(left)}));
    EXPECT_EQ(change.peaks[0].lines[0].unlisted_before, 900u);
    const Comparison back = compare(after, before);
    EXPECT_EQ(told(back), (Lines{"pages mapped by the program itself new +" + std::to_string(left),
                                 "b.py:1 not listed after -901"}));
  }
}

// A row is a line and a category: of a line that is listed a second category may not be.
TEST(Growth, ACategoryThatOneSideDoesNotListIsNoGrowth) {
  const std::vector<Holder> cut = {held(100, "a.py", 3), held(50, "b.py", 1, "f"), rest_of(70, 2)};
  const auto whole = [](std::uint64_t second) {
    return std::vector<Holder>{held(100, "a.py", 3), held(50, "b.py", 1, "f"),
                               held(second, "a.py", 3, "forward", "other"), held(30, "c.py", 1, "g")};
  };
  // 40 may all have been there, of 80 no more than the least that is listed
  const Comparison same = compare(report_of_lines(cut), report_of_lines(whole(40)));
  EXPECT_FALSE(same.grew());
  EXPECT_EQ(summary_of(same).find("hold"), std::string::npos) << summary_of(same);
  EXPECT_EQ(row_told(same, "a.py:3").find("+"), std::string::npos) << row_told(same, "a.py:3");
  EXPECT_NE(row_told(same, "a.py:3").find("not known"), std::string::npos) << row_told(same, "a.py:3");
  EXPECT_NE(row_told(same, "a.py:3").find("at most 150 B"), std::string::npos) << row_told(same, "a.py:3");
  const Comparison back = compare(report_of_lines(whole(40)), report_of_lines(cut));
  EXPECT_EQ(row_told(back, "a.py:3").find("-"), std::string::npos) << row_told(back, "a.py:3");
  EXPECT_NE(row_told(back, "a.py:3").find("not known"), std::string::npos) << row_told(back, "a.py:3");

  const Comparison more = compare(report_of_lines(cut), report_of_lines(whole(80)));
  EXPECT_NE(row_told(more, "a.py:3").find("+30 B or more"), std::string::npos) << row_told(more, "a.py:3");
  EXPECT_NE(summary_of(more).find("1 line holds more"), std::string::npos) << summary_of(more);
  // where all is listed, or the categories are the same, it is exact
  std::vector<Holder> short_list = {held(100, "a.py", 3), held(50, "b.py", 1, "f")};
  EXPECT_EQ(told(compare(report_of_lines(short_list), report_of_lines(whole(40)))),
            (Lines{"a.py:3 same +40", "c.py:1 new +30"}));
  std::vector<Holder> grown = cut;
  grown[0].bytes += 1;
  const Comparison exact = compare(report_of_lines(cut), report_of_lines(grown));
  EXPECT_EQ(told(exact), Lines{"a.py:3 same +1"});
  EXPECT_TRUE(exact.peaks[0].lines[0].is_exact());
}

TEST(Growth, WithoutStacksNoLineIsComparedAndThatIsSaid) {
  Holder none = held(8, "", 0, "");
  none.detail = "recorded without a stack";
  for (const bool is_before : {true, false}) {
    const Report with = report_of_lines({held(9, "a.py", 3)}), without = report_of_lines({none});
    const Comparison change = is_before ? compare(without, with) : compare(with, without);
    EXPECT_TRUE(change.peaks[0].lines.empty());
    ASSERT_EQ(change.notes.size(), 1u);
    EXPECT_TRUE(change.notes[0].starts_with(is_before ? "Before: " : "After: ")) << change.notes[0];
    EXPECT_EQ(change.grew(), is_before);
  }
}

TEST(Growth, ItIsThePeakThatGrows) {
  const Report base = report_of_lines({held(8, "a.py", 3), held(8, "b.py", 3)});
  EXPECT_FALSE(compare(base, base).grew());
  EXPECT_FALSE(compare(base, report_of_lines({held(12, "a.py", 3), held(4, "b.py", 3)})).grew());
  EXPECT_TRUE(compare(base, report_of_lines({held(12, "a.py", 3), held(8, "b.py", 3)})).grew());
  EXPECT_TRUE(compare(base, report_of_lines({held(8, "a.py", 3), held(8, "b.py", 3)}, 1)).grew()) << "reserved";
}

TEST(Growth, FindingsAreNewGoneOrKept) {
  const auto with = [](std::vector<Finding> findings) {
    Report report = report_of_lines({held(8, "a.py", 3)});
    report.findings = std::move(findings);
    return report;
  };
  const auto finding = [](const char* rule, std::uint32_t line, Severity severity = Severity::kWarning) {
    Finding one;
    one.rule = rule;
    one.severity = severity;
    one.location = {"a.py", line, "step", "", ""};
    one.fingerprint = fingerprint(rule, one.location);
    one.bytes = line;
    return one;
  };
  const Comparison moved = compare(with({finding("memory/leak", 3)}), with({finding("memory/leak", 5)}));
  EXPECT_TRUE(moved.new_findings.empty() && moved.gone_findings.empty());
  ASSERT_EQ(moved.kept_findings.size(), 1u);
  EXPECT_EQ(moved.kept_findings[0].bytes.growth(), 2u);
  EXPECT_FALSE(moved.grew());

  const Comparison two =
      compare(with({finding("memory/leak", 3)}), with({finding("memory/leak", 5), finding("memory/leak", 6)}));
  EXPECT_EQ(two.new_findings.size(), 2u) << "either may be the old one";
  EXPECT_EQ(two.gone_findings.size(), 1u);
  EXPECT_TRUE(two.grew());

  EXPECT_FALSE(compare(with({}), with({finding("memory/leak", 3, Severity::kNote)})).grew());
  EXPECT_EQ(compare(with({finding("memory/leak", 3)}), with({})).gone_findings.size(), 1u);
}

TEST(Growth, GpusAreComparedByTheirNumberAndAloneTheyAreOne) {
  Report one = report_of_lines({held(8, "a.py", 3)}), other = report_of_lines({held(9, "a.py", 3)});
  other.devices[0].index = 3;
  EXPECT_EQ(compare(one, other).peaks.size(), 1u);
  other.devices.push_back(one.devices[0]);
  const Comparison change = compare(one, other);
  ASSERT_EQ(change.peaks.size(), 2u);
  EXPECT_FALSE(change.peaks[0].allocated.differs());
  EXPECT_TRUE(change.peaks[1].only_after);
  EXPECT_TRUE(change.grew());
  // of several processes on one GPU the fullest
  one.devices.push_back(one.devices[0]);
  one.devices[1].peak_allocated = 100;
  EXPECT_EQ(compare(one, one).peaks[0].allocated.before, 100u);
}

TEST(Growth, WhatHasNoPeakCannotBeCompared) {
  EXPECT_FALSE(has_peak(Report{}));
  EXPECT_TRUE(has_peak(samples::out_of_memory()));
}

TEST(Growth, TextOfOthersIsText) {
  const std::string bad = "a\x1b[31m|`<b>\xff\n.py";
  Report before = report_of_lines({held(8, bad, 3, bad, bad)});
  Report after = report_of_lines({held(UINT64_MAX, bad, 4, bad, bad), held(7, bad, 9, bad, bad)});
  after.input_path = bad;
  after.findings.resize(1);
  after.findings[0].rule = after.findings[0].message = bad;
  const Comparison change = compare(before, after);
  const ComparedReports compared{before, after};
  for (const std::string& text :
       {to_terminal(change, compared, {}), to_json(change, compared), to_markdown(change, compared, {})}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\xff'), std::string::npos);
  }
  const std::string markdown = to_markdown(change, compared, {});
  for (std::size_t at = markdown.find("\n| +"); at != std::string::npos; at = markdown.find("\n| +", at + 1)) {
    int bars = 0;
    for (std::size_t c = at + 1; c < markdown.size() && markdown[c] != '\n'; ++c)
      bars += markdown[c] == '|' && markdown[c - 1] != '\\';
    EXPECT_EQ(bars, 5) << markdown.substr(at, 200);
  }
}

}  // namespace
}  // namespace faultline
