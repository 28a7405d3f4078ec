#include "view/html_page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/units.h"
#include "report/sample_reports.h"
#include "rules/rule.h"
#include "sources/run_folder/layout.h"
#include "view/headline.h"
#include "view/html.h"
#include "view/snippets.h"

namespace faultline::view {
namespace {

std::size_t count_of(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

Viewed findings_only(Report report) {
  Viewed viewed;
  viewed.jumps.resize(report.findings.size());
  viewed.report = std::move(report);
  return viewed;
}

TEST(ViewPage, FindingsAreReadableWithoutAScript) {
  const Report report = samples::out_of_memory();
  const std::string page = make_page(findings_only(report), {});
  EXPECT_TRUE(page.starts_with(layout::kPageBegins));
  for (const Finding& finding : report.findings) {
    EXPECT_NE(page.find(escaped(finding.message)), std::string::npos);
    for (const Try& attempt : finding.tries) EXPECT_NE(page.find(escaped(attempt.what)), std::string::npos);
  }
  EXPECT_EQ(count_of(page, "<script"), 0u);  // nothing to draw, nothing to run
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(count_of(page, "http://") + count_of(page, "https://"), 0u);
}

// Beside a bar that is shorter than the GPU "does not fit" says nothing.
TEST(ViewPage, AChangeWithWhichMemoryStillGrowsSaysUntilWhen) {
  for (const std::uint64_t until : {0u, 894u}) {
    Report report = samples::out_of_memory();
    report.plan.emplace();
    report.plan->gpu.emplace();
    report.plan->need.bytes = 2 * kGiB;
    PlanChange& change = report.plan->tried.changes.emplace_back();
    change.what = "Use checkpointing";
    change.needed_bytes = kGiB;
    change.until = until;
    change.until_unit = "step";
    const std::string page = make_page(findings_only(std::move(report)), {});
    EXPECT_EQ(count_of(page, "fits until about step 894"), until == 0 ? 0u : 1u);
  }
}

// In every place where a word of an input can stand.
TEST(ViewPage, HostileWordsStayWords) {
  const std::string words[] = {"<script>hostile()</script>",
                               "</script><script>hostile()</script>",
                               "\"><img src=x onerror=hostile()>",
                               "' onclick='hostile()",
                               "<!--",
                               "-->",
                               "]]><svg onload=hostile()>",
                               "\xe2\x80\xa8hostile()\xe2\x80\xa9",
                               "javascript:hostile()",
                               "</pre></details><iframe srcdoc=hostile>",
                               "\x1b]8;;http://x\x07",
                               std::string("nul\0<b>", 7)};
  for (const std::string& word : words) {
    Report report = samples::out_of_memory();
    report.input_kind = report.input_path = word;
    report.notes = report.unseen = report.left_out = {word};
    report.lost[word] = 1;
    const Location place{word, 3, word, word, word};
    for (Finding& finding : report.findings) {
      finding.rule = finding.message = finding.cause = finding.process = finding.memory = finding.fingerprint = word;
      finding.location = finding.allocated_at = finding.freed_at = place;
      finding.call_path = {place};
      finding.holders = {{1, 1, word, place, word}};
      finding.related = {{word, word, 1, place}};
      finding.evidence = {{word, word}};
      finding.tries = {{word, true, 1, false}};
    }
    for (DeviceReport& device : report.devices) {
      device.name = device.process = device.model.name = word;
      device.holders = {{1, 1, word, place, word}};
    }
    report.plan.emplace();
    report.plan->command = {word};
    report.plan->gpu.emplace();
    report.plan->gpu->name = word;
    report.plan->peak.modules = {{word, 2, 5, {{word, 5}}}};
    report.plan->tried.changes.resize(1);
    report.plan->tried.changes[0].label = report.plan->tried.changes[0].what = report.plan->tried.changes[0].why_not =
        word;
    Viewed viewed = findings_only(std::move(report));
    Scene scene;
    scene.part = scene.device_name = word;
    scene.columns.events = 1;
    scene.columns.peak = {0};
    scene.columns.low = scene.columns.reserved = {1};
    scene.groupings.push_back({word, {word}, {0}});
    scene.columns.by_group = {{1}};
    scene.places = {{}, {word, word, 3}};
    scene.stacks.resize(2);
    scene.texts = {"", word};
    scene.largest = {{word, word, 1, 1}};
    scene.peak_bytes = 1;
    scene.marks = {{0, word, word}};
    viewed.scenes = {scene};
    viewed.left_out = {word};
    viewed.program = word;
    const std::string page = make_page(std::move(viewed), {});
    SCOPED_TRACE(word);
    // Apart from the page's own two scripts, and its comment, no markup of that kind is there.
    EXPECT_EQ(count_of(page, "<script"), 2u);
    EXPECT_EQ(count_of(page, "</script"), 2u);
    EXPECT_EQ(count_of(page, "<!--"), 1u);
    for (const char* markup :
         {"<img", "<iframe", "<svg onload", "' onclick", "\" onclick", "\xe2\x80\xa8", "\x1b", "<b>"}) {
      if (std::string_view(markup) == "<b>")
        EXPECT_EQ(page.find("nul<b>"), std::string::npos);
      else
        EXPECT_EQ(page.find(markup), std::string::npos) << markup;
    }
    EXPECT_EQ(page.find('\0'), std::string::npos);
  }
}

TEST(ViewPage, TheTitleNamesTheProgramAndWhatHappened) {
  for (const Rule& rule : all_rules()) EXPECT_FALSE(words_of(rule.name).empty()) << rule.name;
  Report report = samples::out_of_memory();
  EXPECT_EQ(what_happened(report), "out of GPU memory");
  for (Finding& finding : report.findings) finding.severity = Severity::kWarning;
  const std::size_t count = report.findings.size();
  EXPECT_EQ(what_happened(report), count == 1 ? "1 warning" : std::to_string(count) + " warnings");
  report.findings.clear();
  EXPECT_EQ(what_happened(report), "nothing wrong was found");
  Input input;
  input.parts.resize(1);
  const auto program = [&](const char* command) {
    input.parts[0].trace.properties["run.command"] = command;
    return program_of(report, input);
  };
  EXPECT_EQ(program("torchrun --nproc-per-node 2 src/train.py --lr 3"), "train.py");
  EXPECT_EQ(program("python '/home/ada/my model.py' x"), "my model.py");
  EXPECT_EQ(program("/usr/bin/python3 -m pack.train x"), "python -m pack.train");
  EXPECT_EQ(program("./bin/simulate 7"), "simulate");
  EXPECT_EQ(program(""), "");
  report.plan.emplace();
  report.plan->command = {"python", "plan_me.py"};
  report.plan->verdict = Verdict::kDoesNotFit;
  report.plan->gpu.emplace();
  report.plan->gpu->name = "Tesla T4";
  EXPECT_EQ(program_of(report, input), "plan_me.py");
  EXPECT_EQ(what_happened(report), "does not fit on Tesla T4");
}

TEST(ViewPage, OnlySourceCodeIsQuoted) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("view-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  Snippets snippets;
  const std::string code = write("train.py", "import torch\n\tx = 1\nloss = f(\n  y)\nend\n");
  EXPECT_TRUE(snippets.add(code, 3));
  const Snippet* snippet = snippets.find(code, 3);
  ASSERT_NE(snippet, nullptr);
  EXPECT_EQ(snippet->first_line, 1u);
  EXPECT_EQ(snippet->lines, (std::vector<std::string>{"import torch", "    x = 1", "loss = f(", "  y)", "end"}));
  EXPECT_FALSE(snippets.add(code, 6));  // past its end
  EXPECT_FALSE(snippets.add(code, 0));
  for (const char* name : {"id_rsa", ".env", "passwords.txt", "secret.json", "py"})
    EXPECT_FALSE(snippets.add(write(name, "secret\nsecret\n"), 1)) << name;
  EXPECT_FALSE(snippets.add(folder.string() + "/missing.py", 1));
  EXPECT_FALSE(snippets.add("train.py", 1));  // from where is not known
  std::filesystem::create_directory(folder / "folder.py");
  EXPECT_FALSE(snippets.add((folder / "folder.py").string(), 1));
  EXPECT_TRUE(snippets.add(write("long.py", std::string(100'000, 'x') + "\n"), 1));
  EXPECT_LT(snippets.find((folder / "long.py").string(), 1)->lines.front().size(), 300u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace faultline::view
