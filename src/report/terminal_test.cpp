// Golden reports: golden/NAME.txt is what a person reads. FAULTLINE_WRITE_GOLDEN=1 rewrites them; look at the difference before keeping it.
#include "report/terminal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

#include "report/json.h"
#include "report/sample_reports.h"
#include "report/text.h"

namespace faultline {
namespace {

TerminalOptions options_of(int width, bool unicode = true) {
  TerminalOptions options;
  options.width = width;
  options.unicode = unicode;
  options.home = "/home/ada";
  options.cwd = "/home/ada/llm";
  return options;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

struct Golden {
  std::string name;
  Report report;
  TerminalOptions options;
};

TerminalOptions verbose_of(int width, bool unicode = true) {
  TerminalOptions options = options_of(width, unicode);
  options.verbose = true;
  return options;
}

TerminalOptions brief_of(int width) {
  TerminalOptions options = options_of(width);
  options.brief = true;
  options.source = [](const std::string& file, std::uint32_t line) {
    return file.ends_with(".py") ? "    losses.append(loss)  # \x1b[31mline " + std::to_string(line) : "";
  };
  return options;
}

std::vector<Golden> goldens() {
  return {{"out_of_memory_80", samples::out_of_memory(), options_of(80)},
          {"out_of_memory_60", samples::out_of_memory(), options_of(60)},
          {"out_of_memory_120_verbose", samples::out_of_memory(), verbose_of(120)},
          {"out_of_memory_ascii", samples::out_of_memory(), verbose_of(80, false)},
          {"out_of_memory_brief", samples::out_of_memory(), brief_of(80)},
          {"leak_brief", samples::leak(), brief_of(80)},
          {"clean_brief", samples::clean(), brief_of(80)},
          {"hostile_brief", samples::hostile(), brief_of(80)},
          {"leak_80", samples::leak(), options_of(80)},
          {"fragmentation_80", samples::fragmentation(), options_of(80)},
          {"clean_80", samples::clean(), options_of(80)},
          {"unknown_capacity_80", samples::unknown_capacity(), verbose_of(80)},
          {"hostile_80", samples::hostile(), options_of(80)}};
}

TEST(Terminal, ReportsReadAsTheirGoldenFiles) {
  const std::string folder = FAULTLINE_FIXTURES "/../../src/report/golden/";
  for (const Golden& golden : goldens()) {
    const std::string text = to_terminal(golden.report, golden.options);
    const std::string path = folder + golden.name + ".txt";
    if (std::getenv("FAULTLINE_WRITE_GOLDEN") != nullptr) std::ofstream(path) << text;
    std::ostringstream expected;
    expected << std::ifstream(path).rdbuf();
    EXPECT_EQ(text, expected.str()) << golden.name;
  }
}

TEST(Terminal, WhatNoInputOfItsKindShowsIsToldToThoseWhoAsk) {
  struct Row {
    bool always, proved, told;
  };
  for (const Row& row :
       {Row{false, true, true}, Row{true, true, false}, Row{true, false, true}, Row{false, false, true}}) {
    Report report = samples::out_of_memory();
    report.findings.front().confidence = row.proved ? Confidence::kProved : Confidence::kLikely;
    report.not_judged = {{"memory/fragmentation", "no pieces are seen", row.always}};
    EXPECT_EQ(contains(to_terminal(report, options_of(80)), "no pieces are seen"), row.told)
        << row.always << row.proved;
    EXPECT_TRUE(contains(to_terminal(report, verbose_of(80)), "no pieces are seen"));
    EXPECT_TRUE(contains(to_json(report), "no pieces are seen"));
  }
  Report report = samples::clean();
  report.not_judged = {{"access/out-of-bounds", "nothing ran", true}};
  EXPECT_FALSE(contains(to_terminal(report, options_of(80)), "nothing ran"));
  report.unseen = {"It was killed by a signal."};
  EXPECT_TRUE(contains(to_terminal(report, options_of(80)), "nothing ran"));
}

TEST(Terminal, MoreIsNamedOnlyWhereThereIsMore) {
  Report report = samples::clean();
  EXPECT_TRUE(contains(to_terminal(report, options_of(80)), "-vv: who holds what, memory over time"));
  EXPECT_FALSE(contains(to_terminal(report, verbose_of(80)), "-vv"));
  for (DeviceReport& device : report.devices) device.peak_allocated = device.peak_reserved = 0;
  report.not_judged = {{"access/out-of-bounds", "nothing ran", true}};
  EXPECT_FALSE(contains(to_terminal(report, options_of(80)), "  more "));
}

TEST(Terminal, NoLineIsWiderThanTheTerminalButTheSummary) {
  for (const int width : {48, 60, 72, 80, 100, 120}) {
    for (const bool unicode : {true, false}) {
      for (const Report& report :
           {samples::out_of_memory(), samples::leak(), samples::clean(), samples::unknown_capacity()}) {
        for (const std::string& line : lines_of(to_terminal(report, options_of(width, unicode)))) {
          EXPECT_TRUE(display_width(line) <= width || line.starts_with("SUMMARY:")) << width << ": " << line;
          EXPECT_FALSE(line.ends_with(' ')) << line;
        }
      }
    }
  }
}

TEST(Terminal, NothingFromTheInputReachesTheTerminalAsAControlCharacter) {
  for (const bool unicode : {true, false}) {
    for (const bool verbose : {true, false}) {
      TerminalOptions options = options_of(80, unicode);
      options.verbose = verbose;
      for (const char byte : to_terminal(samples::hostile(), options)) {
        const auto value = static_cast<unsigned char>(byte);
        EXPECT_TRUE(byte == '\n' || (value >= 0x20 && value != 0x7f)) << static_cast<int>(value);
        EXPECT_TRUE(unicode || value < 0x80) << static_cast<int>(value);
      }
      EXPECT_FALSE(contains(to_terminal(samples::hostile(), options), "\xe2\x80\xae"));
    }
  }
}

TEST(Terminal, ColourOnlyWhenAskedAndOnlyColour) {
  TerminalOptions options = options_of(80);
  const std::string plain = to_terminal(samples::out_of_memory(), options);
  EXPECT_FALSE(contains(plain, "\x1b"));
  options.colour = true;
  std::string coloured = to_terminal(samples::out_of_memory(), options);
  EXPECT_TRUE(contains(coloured, "\x1b[1;31mERROR\x1b[0m"));
  for (std::size_t at; (at = coloured.find("\x1b[")) != std::string::npos;)
    coloured.erase(at, coloured.find('m', at) - at + 1);
  EXPECT_EQ(coloured, plain);
}

TEST(Terminal, AReportIsOneScreenUnlessAllIsAskedFor) {
  constexpr std::size_t kScreen = 40;
  Report many = samples::out_of_memory();
  for (int at = 0; at < 40; ++at) {
    many.findings.push_back(many.findings[0]);
    many.findings.back().severity = Severity::kNote;
    many.findings.back().fingerprint += std::to_string(at);
  }
  for (const Report& report : {samples::out_of_memory(), samples::leak(), samples::fragmentation(), samples::clean(),
                               samples::unknown_capacity()}) {
    EXPECT_LE(lines_of(to_terminal(report, options_of(80))).size(), kScreen) << to_terminal(report, options_of(80));
  }
  EXPECT_LE(lines_of(to_terminal(many, options_of(80))).size(), 2 * kScreen) << to_terminal(many, options_of(80));
  EXPECT_GT(lines_of(to_terminal(many, verbose_of(80))).size(), 10 * kScreen);
}

TEST(Terminal, PrintedAccountAddsUp) {
  const std::string text = to_terminal(samples::out_of_memory(), verbose_of(80, false));
  std::vector<long> parts, totals;
  for (const std::string& line : lines_of(text)) {
    const std::size_t unit = line.find(" GiB  ");
    const bool is_part = (line.starts_with("    parameters") || line.starts_with("  + ")) && unit != std::string::npos;
    const bool is_total = line.starts_with("  = capacity");
    if (!is_part && !is_total) continue;
    const std::size_t end = line.find(" GiB");
    const std::size_t begin = line.rfind(' ', end - 1) + 1;
    const long hundredths = std::lround(std::stod(line.substr(begin, end - begin)) * 100);
    (is_total ? totals : parts).push_back(hundredths);
  }
  EXPECT_EQ(parts.size(), 10u);
  EXPECT_EQ(totals, std::vector<long>{7911});
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0l), 7911);
}

TEST(Terminal, TheUsersOwnLineStandsBeforeTheLibrarys) {
  const std::string text = to_terminal(samples::out_of_memory(), options_of(80));
  EXPECT_LT(text.find("train.py:83"), text.find("torch/nn/functional.py:3494"));
  EXPECT_TRUE(contains(text, "SUMMARY: 1 error: memory/out-of-memory at train.py:83 ·"));
}

TEST(Terminal, TheLocationStaysFirstWhenItIsTheUsersOwn) {
  Report report = samples::out_of_memory();
  report.findings[0].location = {"/home/ada/llm/loss.py", 9, "loss", "", ""};
  const std::string text = to_terminal(report, options_of(80));
  EXPECT_TRUE(contains(text, "  where       loss.py:9 in loss\n  called from train.py:83 in training_step\n"));
}

TEST(Terminal, EqualFindingsAreShownOnceWithACount) {
  const std::string text = to_terminal(samples::leak(), options_of(80));
  EXPECT_TRUE(contains(text, "ERROR  memory/leak  ×3  (likely)\n"));
  EXPECT_TRUE(contains(text, "3 times, 1.28 GiB together"));
  EXPECT_TRUE(contains(text, "SUMMARY: 1 error: memory/leak"));
  EXPECT_EQ(text.find("memory-leak.md"), text.rfind("memory-leak.md"));
}

TEST(Terminal, FindingsWithoutAFingerprintAreNotGrouped) {
  Report report = samples::leak();
  for (Finding& finding : report.findings) finding.fingerprint.clear();
  EXPECT_TRUE(contains(to_terminal(report, options_of(80)), "SUMMARY: 3 errors: memory/leak"));
}

TEST(Terminal, NotesLeaveAReportClean) {
  Report report = samples::leak();
  for (Finding& finding : report.findings) finding.severity = Severity::kNote;
  const std::string text = to_terminal(report, options_of(80));
  EXPECT_TRUE(text.starts_with("Nothing wrong was found.\n"));
  EXPECT_TRUE(contains(text, "NOTE  memory/leak"));
  EXPECT_TRUE(contains(text, "SUMMARY: clean, 1 note ·"));
}

TEST(Terminal, WhatWasNotSeenTakesTheVerdictAndIsTold) {
  Report report = samples::clean();
  report.unseen = {"The program was killed by signal 9 (SIGKILL); nothing explains it."};
  const std::string text = to_terminal(report, options_of(120));
  EXPECT_TRUE(text.starts_with(
      "Nothing was found in what was seen; that is not all there was.\n  The program was killed by signal 9 (SIGKILL)"))
      << text;
  EXPECT_TRUE(contains(text, "SUMMARY: nothing found in what was seen, which is not all")) << text;
  EXPECT_FALSE(contains(text, "clean ·") || contains(text, "Nothing wrong")) << text;
  Report with_findings = samples::leak();
  with_findings.unseen = report.unseen;
  EXPECT_TRUE(contains(to_terminal(with_findings, options_of(120)), "  not seen    The program was killed by signal 9"))
      << to_terminal(with_findings, options_of(120));
  EXPECT_EQ(report_of(to_json(report))->unseen, report.unseen);
}

TEST(Terminal, APageThatASentenceNamesCanBeOpened) {
  Report report = samples::clean();
  report.unseen = {"It lacks what docs/virtual-gpu.md lists. That is all."};
  TerminalOptions options = options_of(120);
  EXPECT_TRUE(contains(to_terminal(report, options),
                       "It lacks what docs/virtual-gpu.md (of Faultline's sources) lists. That is all."))
      << to_terminal(report, options);
  options.docs = "/opt/faultline";
  EXPECT_TRUE(
      contains(to_terminal(report, options), "It lacks what /opt/faultline/docs/virtual-gpu.md lists. That is all."))
      << to_terminal(report, options);
  report.unseen = {"A folder docs/ and an end.md are no page."};
  EXPECT_TRUE(contains(to_terminal(report, options), report.unseen[0])) << to_terminal(report, options);
}

TEST(Terminal, RefutedTriesAreLeftToTheCurious) {
  TerminalOptions options = options_of(80);
  EXPECT_FALSE(contains(to_terminal(samples::out_of_memory(), options), "garbage_collection_threshold"));
  options.verbose = true;
  EXPECT_TRUE(contains(to_terminal(samples::out_of_memory(), options), "garbage_collection_threshold"));
}

TEST(Terminal, ManyFindingsAreCutAndTheCutIsSaid) {
  Report report = samples::leak();
  report.findings.resize(1);
  for (int at = 1; at < 40; ++at) {
    report.findings.push_back(report.findings[0]);
    report.findings.back().fingerprint += std::to_string(at);
  }
  const std::string text = to_terminal(report, options_of(80));
  EXPECT_TRUE(contains(text, "  also        error: memory/leak at "));
  EXPECT_TRUE(contains(text, "and 32 more findings")) << text;
  EXPECT_TRUE(contains(text, "SUMMARY: 40 errors"));
}

TEST(Terminal, BrieflyAFindingIsADozenLinesAndTheRestIsCounted) {
  Report report = samples::out_of_memory();
  report.unseen = {"The program was killed by signal 9 (SIGKILL); nothing explains it."};
  const std::string one = to_terminal(report, brief_of(80));
  EXPECT_LE(std::count(one.begin(), one.end(), '\n'), 20) << one;
  EXPECT_TRUE(contains(one, "not seen    The program was killed by signal 9")) << one;
  EXPECT_TRUE(contains(one, "faultline rule memory/out-of-memory")) << one;
  report.findings.resize(1);
  for (int at = 1; at < 9; ++at) {
    report.findings.push_back(report.findings[0]);
    report.findings.back().fingerprint += std::to_string(at);
  }
  report.findings.back().severity = Severity::kNote;
  const std::string text = to_terminal(report, brief_of(80));
  std::size_t shown = 0;
  for (std::size_t at = text.find("(proved)"); at != std::string::npos; at = text.find("(proved)", at + 1)) ++shown;
  EXPECT_EQ(shown, 3u) << text;
  EXPECT_TRUE(contains(text, "-v: 6 more findings")) << text;
  EXPECT_TRUE(contains(text, "SUMMARY: 8 errors, 1 note")) << text;
}

TEST(Terminal, WhatProvesItIsPrintedBriefly) {
  for (const Report& report : {samples::out_of_memory(), samples::leak(), samples::fragmentation()}) {
    for (const Finding& finding : report.findings) {
      for (const Evidence& item : finding.evidence) {
        if (finding.confidence != Confidence::kProved || item.name != "inequality") continue;
        const std::string words = std::get<std::string>(item.value).substr(0, 30);
        EXPECT_TRUE(contains(to_terminal(report, brief_of(120)), words)) << words;
      }
    }
  }
}

TEST(Terminal, WithSeveralDevicesEachFindingNamesItsOwn) {
  Report report = samples::leak();
  report.devices.push_back(samples::h100());
  report.devices.back().index = 1;
  const std::string text = to_terminal(report, options_of(80));
  EXPECT_TRUE(contains(text, "  on          GPU 0\n"));
  EXPECT_TRUE(contains(text, "  GPU 1       72.29 GiB allocated"));
  EXPECT_TRUE(contains(to_terminal(report, verbose_of(80)), "Memory of GPU 0 (NVIDIA T4) over time"));
}

TEST(Terminal, AStateWithoutHistoryIsNotCalledFaultless) {
  const std::string text = to_terminal(Report{}, options_of(80));
  EXPECT_TRUE(text.starts_with("This input holds a state and no history")) << text;
  EXPECT_TRUE(contains(text, "_record_memory_history")) << text;
  EXPECT_TRUE(text.ends_with("SUMMARY: nothing found in a state without its history · 0 events read\n")) << text;
}

TEST(Terminal, AShortSpikeIsNotLostInTheNarrowestPicture) {
  Report report = samples::clean();
  DeviceReport& device = report.devices[0];
  for (CurvePoint& point : device.curve) point = {point.time_ns, kMiB, 2 * kMiB};
  device.curve[101].allocated = device.curve[101].reserved = device.peak_reserved;
  const std::vector<std::string> lines = lines_of(to_terminal(report, verbose_of(48)));
  const auto top = std::find_if(lines.begin(), lines.end(),
                                [](const std::string& line) { return line.starts_with("  4.85 GiB ┤"); });
  ASSERT_NE(top, lines.end());
  EXPECT_TRUE(contains(*top, "█")) << *top;
}

}  // namespace
}  // namespace faultline
