// What other tools are given: that nothing of an input acts in them, and that the verdict is whole. Schemas and parsers: tests/python/test_exchange.py.
#include "report/exchange/exchange.h"

#include <gtest/gtest.h>

#include "base/json_archive.h"
#include "report/sample_reports.h"

namespace faultline {
namespace {

Report hostile(const std::string& text) {
  Report report = samples::out_of_memory();
  Finding& finding = report.findings.front();
  finding.message = finding.rule = text;
  finding.location = {"/home/user/" + text, 3, text, "", ""};
  finding.tries = {{text, std::nullopt, 0, false}};
  report.input_path = text;
  return report;
}

std::string all_of(std::string (*form)(std::span<const Report>, const ExchangeOptions&), const Report& report) {
  return form(std::span(&report, 1), {"/home/user", "1.2.3"});
}

TEST(Exchange, AnnotationsStayOnTheirLine) {
  const std::string text = all_of(to_github, hostile("a\n::error::b%0A::warning file=x,line=2::c"));
  std::size_t at = 0, commands = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    const std::string line = text.substr(at, end - at);
    commands += line.starts_with("::");
    EXPECT_EQ(line.find("%0A::"), std::string::npos) << line;
    at = end + 1;
  }
  EXPECT_EQ(commands, samples::out_of_memory().findings.size());
}

TEST(Exchange, AFileBelowTheFolderIsRelative) {
  EXPECT_EQ(below("/home/user", "/home/user/train.py"), "train.py");
  EXPECT_EQ(below("/home/user/", "/home/user/a/train.py"), "a/train.py");
  EXPECT_EQ(below("/home/user", "/home/username/train.py"), "/home/username/train.py");
  EXPECT_EQ(below("", "/train.py"), "/train.py");
  EXPECT_EQ(below("/home/user", "/home/user"), "/home/user");
}

TEST(Exchange, MarkdownLinksNothingByItself) {
  const std::pair<const char*, const char*> cases[] = {
      {"www.evil.example", "www&#46;evil.example"},
      {"(WWW.x.y)", "(WWW&#46;x.y)"},
      {"see GH-12, gh-3", "see GH&#45;12, gh&#45;3"},
      // of these nothing is made
      {"awww.x, www, ww.x", "awww.x, www, ww.x"},
      {"HIGH-12, GH-x, GH-, gpu-12", "HIGH-12, GH-x, GH-, gpu-12"},
      {"train_2.py", "train_2.py"},
  };
  for (const auto& [text, written] : cases) EXPECT_EQ(markdown_text(text), written);
}

TEST(Exchange, MarkdownOfAnInputIsText) {
  Report report = hostile("<script>@team #12 [x](http://y) **b** `c` ```d | e</details>");
  EXPECT_NE(all_of(to_markdown, report).find("````text\n"), std::string::npos) << "the fence is longer than any inside";
  report.findings.front().rule = "memory/leak";
  report.findings.front().location = {};
  report.input_path.clear();
  const std::string text = all_of(to_markdown, report);
  const std::string above = text.substr(0, text.find("\n<details>"));
  for (const char* mark : {"<script", "@team", "#12", "[x]", "**b**", "http:", "</details>", " `c`"})
    EXPECT_EQ(above.find(mark), std::string::npos) << mark << " in " << above;
  EXPECT_NE(above.find("&#64;team"), std::string::npos);
}

TEST(Exchange, AVerdictThatNoFindingTellsIsTold) {
  Report report;
  report.plan.emplace();
  report.findings.resize(1);
  report.findings.front().severity = Severity::kNote;
  report.findings.front().rule = "memory/fragmentation";
  for (const auto& [verdict, told] :
       {std::pair(Verdict::kDoesNotFit, "::error title=Faultline::"),
        std::pair(Verdict::kUnplanned, "::error title=Faultline::"), std::pair(Verdict::kFits, "Faultline: ")}) {
    report.plan->verdict = verdict;
    const std::string text = all_of(to_github, report);
    EXPECT_NE(text.find(std::string("\n") + told), std::string::npos) << text;
    const bool fails = all_of(to_junit, report).find("failures=\"0\" errors=\"0\"") == std::string::npos;
    EXPECT_EQ(fails, verdict != Verdict::kFits);
  }
}

TEST(Exchange, WhatWasRefutedIsNoAdvice) {
  Finding finding;
  finding.tries = {{"one", true, 0, false}, {"two", false, 0, false}, {"three", std::nullopt, 0, false}};
  EXPECT_EQ(advice(finding), "\nTry (confirmed): one\nTry: three");
}

TEST(Exchange, EveryFindingHasAPlaceInSarif) {
  Report report = samples::out_of_memory();
  report.findings.front().location = {};
  report.findings.front().call_path.clear();
  const Json log = Json::parse(all_of(to_sarif, report));
  const Json& results = log["runs"][0]["results"];
  ASSERT_FALSE(results.empty());
  for (const Json& result : results)
    EXPECT_FALSE(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].get<std::string>().empty());
}

TEST(Exchange, ACleanReportIsOnePassedCase) {
  const Report report = samples::clean();
  const std::string text = all_of(to_junit, report);
  EXPECT_NE(text.find("failures=\"0\" errors=\"0\""), std::string::npos) << text;
  EXPECT_NE(text.find("name=\"verdict\"></testcase>"), std::string::npos) << text;
}

}  // namespace
}  // namespace faultline
