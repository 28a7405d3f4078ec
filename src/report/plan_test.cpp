#include "plan/plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "base/units.h"
#include "report/assemble.h"
#include "report/exit_status.h"
#include "report/json.h"
#include "report/sample_reports.h"
#include "report/terminal.h"
#include "report/text.h"

namespace faultline {
namespace {

Plan sample_plan() {
  Plan plan;
  plan.verdict = Verdict::kDoesNotFit;
  plan.command = {"python", "train.py", "--name", "a b"};
  plan.run.exit_status = 1;
  plan.gpu = PlanGpu{"Tesla T4", 14 * kGiB, "published", 144 * kMiB, "estimated"};
  plan.context_bytes = 144 * kMiB;
  plan.need.bytes = 18 * kGiB;
  plan.need.taken_bytes = 19 * kGiB;
  plan.peak.allocated_bytes = 17 * kGiB;
  plan.peak.reserved_bytes = 18 * kGiB;
  plan.peak.live = {{"parameters", 2 * kGiB}, {"activations", 15 * kGiB}};
  plan.peak.modules = {{"GPT.blocks.*.mlp", 12, 10 * kGiB, {{"activations", 10 * kGiB}}}};
  plan.failure.happened = true;
  plan.failure.at = {"/home/ada/llm/train.py", 12, "forward", "", ""};
  plan.failure.in_step = 1;
  plan.run.steps = 3;
  plan.run.stopped = "after 8 optimizer steps";
  plan.run.stop_asked = true;
  plan.run.how = "fake";
  plan.run.seconds = 2.5;
  plan.trouble.exception = PlanException{"ValueError", "no", {"a.py", 3, "f", "", ""}};
  plan.fits = {{PlanGpu{"H200", 140 * kGiB, "measured", kGiB, "measured"}, true}};
  plan.tried.changes = {{ChangeKind::kProgram, "Use checkpointing", "12 × Block", true, true, 9 * kGiB, ""},
                        {ChangeKind::kSetting, "Set X", "", false, false, 0, "it broke"}};
  plan.tried.vary = PlanVary{"batch_size", "train.py:4", 8, 5, true, 6, 4, "", ""};
  plan.notes = {{NoteKind::kValue, "a number was read", "train.py:15", 3}};
  plan.folder = "/tmp/run";
  plan.trace = "larger/process-7.faultline";
  return plan;
}

TEST(PlanJson, WhatIsReadBackIsWhatWasWritten) {
  Report report;
  report.plan = sample_plan();
  const std::optional<Report> back = report_of(to_json(report));
  ASSERT_TRUE(back.has_value());
  ASSERT_TRUE(back->plan.has_value());
  EXPECT_EQ(to_json(*back), to_json(report));
}

TEST(PlanText, FilesAreAsBeforeOnlyWhereAllWasKeptAside) {
  const auto text_with = [](const PlanEffects& effects) {
    Report report;
    report.plan = sample_plan();
    report.plan->effects = effects;
    std::string text = to_terminal(report, {});
    std::string line;  // the rows may be broken anywhere
    for (std::istringstream words(text); words >> text;) line += text + " ";
    return line;
  };
  PlanEffects effects;
  effects.confined = effects.known = true;
  effects.written = {"a.pt"};
  effects.written_count = 1;
  const std::string claim = "yours are as before";
  EXPECT_NE(text_with(effects).find(claim), std::string::npos);
  PlanEffects allowed = effects, full = effects, given = effects;
  allowed.confined = false;
  full.ran_out_of_space = true;
  given.done_for_real = {"log.txt"};
  for (const PlanEffects& not_all : {allowed, full, given})
    EXPECT_EQ(text_with(not_all).find(claim), std::string::npos);
  EXPECT_NE(text_with(given).find("1 changed (log.txt)"), std::string::npos);
}

TEST(PlanJson, AChangedReportLosesFieldsAndNothingElse) {
  EXPECT_FALSE(report_of("").has_value());
  EXPECT_FALSE(report_of("[1,2]").has_value());
  EXPECT_FALSE(report_of(R"({"schema": "faultline.report/1", "plan": 3})")->plan.has_value());
  const std::optional<Plan> plan = plan_of(
      R"({"verdict": 7, "command": "x", "gpu": [3], "needed": -1, "modules": {"path": 4}, "vary": [], "changes": [1, {"what": []}], "seconds": "long"})");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->verdict, Verdict::kInterrupted);
  EXPECT_EQ(plan->need.bytes, 0u);
  EXPECT_FALSE(plan->gpu.has_value());
  EXPECT_EQ(plan->tried.changes.size(), 1u);
}

TEST(Plan, TheExitStatusFollowsTheVerdict) {
  Report report;
  report.plan = sample_plan();
  EXPECT_EQ(exit_status(report), 1);
  report.plan->verdict = Verdict::kTight;
  EXPECT_EQ(exit_status(report), 0);
  report.plan->verdict = Verdict::kProgramError;
  EXPECT_EQ(exit_status(report), 2);
  report.findings.push_back({});
  EXPECT_EQ(exit_status(report), 1);  // the failure is explained
}

// A script must not take a part for the whole.
TEST(Plan, AVerdictOnAPartHasAStatusOfItsOwnUnlessThePartWasAskedFor) {
  struct Row {
    Verdict verdict;
    const char* stopped;
    bool asked;
    int status;
  };
  for (const Row& row :
       {Row{Verdict::kFits, "", false, 0}, Row{Verdict::kFits, "after 8 optimizer steps", true, 0},
        Row{Verdict::kFits, "after 8 optimizer steps", false, 4}, Row{Verdict::kTight, "after 120 seconds", false, 4},
        Row{Verdict::kMeasured, "after 120 seconds", false, 4}, Row{Verdict::kMeasured, "", false, 0},
        Row{Verdict::kDoesNotFit, "after 8 optimizer steps", false, 1},
        Row{Verdict::kFitsUntil, "after 8 optimizer steps", false, 1}}) {
    Report report;
    report.plan = sample_plan();
    report.plan->verdict = row.verdict;
    report.plan->run.stopped = row.stopped;
    report.plan->run.stop_asked = row.asked;
    EXPECT_EQ(exit_status(report), row.status) << name_of(row.verdict) << " " << row.stopped << row.asked;
    report.findings.emplace_back().severity = Severity::kWarning;
    EXPECT_EQ(exit_status(report), 1);
  }
}

Finding leak_at(std::int64_t full_at_step, std::uint64_t kept_bytes, Severity severity = Severity::kError) {
  Finding leak;
  leak.rule = "memory/leak";
  leak.severity = severity;
  leak.message = "Memory grows by 96.00 MiB a round on average.";
  leak.location = {"/home/ada/llm/eval.py", 7, "evaluate", "", ""};
  leak.memory = "Several tensors from inside the model's forward survive.";
  leak.evidence = {{"full_at_step", full_at_step}, {"kept_when_full_bytes", static_cast<std::int64_t>(kept_bytes)}};
  leak.tries = {{"Keep values, not graphs.", std::nullopt, 0}};
  return leak;
}

std::string summary_line(const Report& report) {
  const std::string text = to_terminal(report, {});
  return text.substr(text.find("SUMMARY"));
}

TEST(Plan, TheCauseIsToldBeforeTheFailureThatComesOfIt) {
  struct Row {
    Finding leak;
    bool is_cause;
  };
  for (const Row& row : {Row{leak_at(114, 10 * kGiB), true}, Row{leak_at(3, 2 * kGiB), true},
                         Row{leak_at(114, kGiB), false},                              // less than was asked for
                         Row{leak_at(1, 10 * kGiB), false},                           // one round is no leak
                         Row{leak_at(114, 10 * kGiB, Severity::kWarning), false}}) {  // may be meant
    Report report = samples::out_of_memory();
    report.findings.push_back(row.leak);
    attach_plan(report, sample_plan());
    EXPECT_EQ(report.findings.front().rule, row.is_cause ? "memory/leak" : "memory/out-of-memory");
    const std::string summary = summary_line(report);
    EXPECT_EQ(summary.find("memory/leak at eval.py:7, which fills the GPU in about round") != std::string::npos,
              row.is_cause)
        << summary;
    EXPECT_NE(summary.find("memory/out-of-memory"), std::string::npos) << summary;
  }
}

TEST(PlanText, WhereALeakGoesOnNoGpuIsLargeEnough) {
  for (const bool stopped : {true, false}) {
    Report report = samples::out_of_memory();
    report.findings.push_back(leak_at(114, 10 * kGiB));
    report.findings.back().bytes = 10 * kGiB;
    Plan plan = sample_plan();
    plan.trouble.exception.reset();
    plan.run.stopped = stopped ? "after 450 optimizer steps" : "";
    plan.tried.changes.clear();
    for (int at = 0; at < 4; ++at)
      plan.tried.changes.push_back(
          {ChangeKind::kProgram, "Change number " + std::to_string(at), "", true, !stopped, kGiB, ""});
    plan.tried.where = {{PlanGpu{"NVIDIA H200", 140 * kGiB, "measured", 500 * kMiB, "measured"}, ""}};
    attach_plan(report, std::move(plan));
    TerminalOptions options;
    options.width = 100;
    const std::string text = to_terminal(report, options);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 45) << text;
    EXPECT_EQ(text.find("Fix the leak shown below: 10.00 GiB of what it needs") != std::string::npos, stopped) << text;
    EXPECT_EQ(text.find("The smallest GPUs on which it fits") == std::string::npos, stopped) << text;
    EXPECT_EQ(text.find("Change number") == std::string::npos, stopped) << text;
  }
}

TEST(PlanText, AFailingPlanIsOneScreenAndTellsNothingTwice) {
  Report report = samples::out_of_memory();
  report.findings.push_back(leak_at(114, 10 * kGiB));
  Plan plan = sample_plan();
  plan.trouble.exception.reset();
  plan.run.stopped.clear();
  plan.fits.clear();
  plan.effects.confined = plan.effects.known = true;
  report.not_judged.resize(2);
  for (int at = 0; at < 12; ++at) {
    plan.peak.modules.push_back({"GPT.part" + std::to_string(at), 1, kGiB, {{"activations", kGiB}}});
    plan.tried.changes.push_back({ChangeKind::kProgram, "Change number " + std::to_string(at), "", true, at % 3 == 0,
                                  (10 + std::uint64_t(at)) * kGiB, ""});
    plan.notes.push_back({NoteKind::kValue, "a number was read, note " + std::to_string(at), "train.py:15", 3});
  }
  attach_plan(report, std::move(plan));
  TerminalOptions options;
  options.width = 100;
  const std::string text = to_terminal(report, options);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 45) << text;
  EXPECT_EQ(text.find("ERROR  memory/out-of-memory"), std::string::npos) << text;
  EXPECT_NE(text.find("ERROR  memory/leak"), std::string::npos) << text;
  EXPECT_NE(text.find("requested   2.00 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("faultline rule memory/out-of-memory"), std::string::npos) << text;
  EXPECT_EQ(text.find("not enough"), std::string::npos) << text;
  EXPECT_EQ(text.find("Change number 1."), std::string::npos) << text;
  std::size_t marks = 0;
  for (std::size_t at = text.find("✔"); at != std::string::npos; at = text.find("✔", at + 1)) ++marks;
  EXPECT_EQ(marks, 3u) << text;
  options.verbose = true;
  const std::string all = to_terminal(report, options);
  for (const char* said : {"ERROR  memory/out-of-memory", "Change number 1.", "GPT.part11", "note 11", "the GPU"})
    EXPECT_NE(all.find(said), std::string::npos) << said;
}

TEST(PlanText, AnExceptionThatNothingJudgesSaysSo) {
  Report report;
  TerminalOptions wide;
  wide.width = 120;
  report.plan = sample_plan();
  report.plan->failure.happened = false;
  report.plan->verdict = Verdict::kProgramError;
  const std::string claim = "Faultline does not judge it";
  EXPECT_NE(to_terminal(report, wide).find("ValueError: no"), std::string::npos);
  EXPECT_NE(to_terminal(report, wide).find(claim), std::string::npos);
  Finding& finding = report.findings.emplace_back();
  finding.severity = Severity::kWarning;
  finding.rule = "memory/leak";
  EXPECT_NE(to_terminal(report, wide).find(claim), std::string::npos) << "a finding about something else";
  finding.severity = Severity::kError;
  finding.rule = "tensor/device-mismatch";
  EXPECT_EQ(to_terminal(report, wide).find(claim), std::string::npos);
}

// What cannot hurt never changes the status.
TEST(Plan, WhatCannotHurtIsANoteWhereItFits) {
  struct Row {
    const char* rule;
    Severity severity;
    const char* file;
    Verdict verdict;
    Severity weighed;
  };
  const char* const library = "/usr/lib/python3/dist-packages/torch/nn/functional.py";
  for (const Row& row :
       {Row{"memory/fragmentation", Severity::kWarning, "train.py", Verdict::kFits, Severity::kNote},
        Row{"memory/fragmentation", Severity::kWarning, "train.py", Verdict::kTight, Severity::kWarning},
        Row{"memory/unreturned-cache", Severity::kWarning, "train.py", Verdict::kFits, Severity::kNote},
        Row{"tensor/silent-upcast", Severity::kWarning, library, Verdict::kFits, Severity::kNote},
        Row{"tensor/silent-upcast", Severity::kWarning, "train.py", Verdict::kFits, Severity::kWarning},
        Row{"tensor/silent-upcast", Severity::kWarning, library, Verdict::kDoesNotFit, Severity::kWarning},
        Row{"memory/leak", Severity::kWarning, library, Verdict::kFits, Severity::kWarning},
        Row{"memory/leak", Severity::kError, "train.py", Verdict::kFits, Severity::kError},
        Row{"memory/out-of-memory", Severity::kError, "train.py", Verdict::kFits, Severity::kWarning},
        Row{"memory/out-of-memory", Severity::kError, "train.py", Verdict::kTight, Severity::kWarning},
        Row{"memory/out-of-memory", Severity::kError, "train.py", Verdict::kDoesNotFit, Severity::kError}}) {
    Report report;
    Finding finding;
    finding.rule = row.rule;
    finding.severity = row.severity;
    finding.location.file = row.file;
    report.findings = {finding};
    Plan plan = sample_plan();
    plan.verdict = row.verdict;
    attach_plan(report, std::move(plan));
    EXPECT_EQ(report.findings.front().severity, row.weighed)
        << row.rule << " in " << row.file << " " << name_of(row.verdict);
    EXPECT_EQ(exit_status(report), row.weighed == Severity::kNote ? 0 : 1);
  }
}

std::string one_line(const Plan& plan) {
  Report report;
  report.plan = plan;
  std::string text = to_terminal(report, {}), line;
  for (std::istringstream words(text); words >> text;) line += text + " ";
  return line;
}

TEST(PlanText, WhatIsSaidFollowsWhatWasSeen) {
  struct Row {
    std::function<void(Plan&)> change;
    const char* said;
    const char* not_said;
  };
  const auto fits = [](Plan& plan) {
    plan.verdict = Verdict::kFits;
    plan.failure.happened = false;
    plan.trouble.exception.reset();
    plan.run.stopped.clear();
    plan.need.bytes = 6 * kGiB;
  };
  const Row rows[] = {
      {[&](Plan& plan) { fits(plan); }, "8.00 GiB to spare", "caught"},
      {[&](Plan& plan) {
         fits(plan);
         plan.failure.caught = 1;
       },
       "FITS on Tesla T4, after an out-of-memory that the program caught It needs", "fits; "},
      {[&](Plan& plan) {
         fits(plan);
         plan.failure.caught = 4;
       },
       "It ran out of memory 4 times and went on; what it requested then is not in this number.",
       "It ran out of memory once"},
      {[&](Plan& plan) {
         fits(plan);
         plan.need.together_bytes = 9 * kGiB;
         plan.run.processes = 2;
       },
       "take up to 9.00 GiB together and the GPU has 14.00 GiB: 5.00 GiB to spare; the one that needs most needs 6.00 "
       "GiB.",
       "8.00 GiB to spare"},
      {[](Plan& plan) { plan.failure.in_step = 3; }, "It fits until step 3, which fails.", "optimizer steps before"},
      {[](Plan& plan) {
         plan.failure.in_step = 0;
         plan.failure.steps_before = 20;
       },
       "train.py:12 in forward, after 20 optimizer steps", "in step"},
      {[](Plan& plan) {
         plan.failure.in_step = 0;
         plan.failure.steps_before = 10;
         plan.failure.phase = "evaluation";
       },
       "train.py:12 in forward, in evaluation after 10 optimizer steps", "in step"},
      {[](Plan& plan) {
         plan.verdict = Verdict::kMeasured;
         plan.gpu.reset();
         plan.failure.happened = false;
         plan.need.filling = PlanFilling{"train.py:2", kGiB, kGiB / 2};
       },
       "WHAT IT NEEDS DEPENDS ON THE GPU, and none was named (--gpu)", "NEEDS 1"},
      {[](Plan& plan) {
         plan.verdict = Verdict::kFits;
         plan.failure.happened = false;
         plan.devices = {{0, 1, 1}, {1, 2, 2}};
         plan.device = 1;
       },
       "FITS on both GPUs; cuda:1, Tesla T4, is the fullest", "on cuda:1"},
      {[](Plan& plan) {
         plan.failure.in_step = 0;
         plan.run.steps = 0;
       },
       "train.py:12 in forward at the peak", "before the first step"},
      {[](Plan& plan) {
         plan.notes = {{NoteKind::kValue,
                        "masked_select() with an unknown mask: all 9 elements were taken, the most there can be",
                        "train.py:3", 1, "", true}};
       },
       "so it may need less: --real computes them", "FITS on"},
      {[](Plan&) {}, "DOES NOT FIT", "so it may need less"},
      {[](Plan& plan) { plan.run.stopped.clear(); },
       "It needs 18.00 GiB and the GPU has 14.00 GiB: 4.00 GiB too little.", "at least"},
      {[](Plan& plan) {
         plan.run.stopped.clear();
         plan.need.least_bytes = 16 * kGiB, plan.need.most_bytes = 20 * kGiB;
       },
       "It needs 16.00 GiB to 20.00 GiB and the GPU has 14.00 GiB: at least 2.00 GiB too little.",
       "4.00 GiB too little"},
      {[](Plan& plan) { plan.run.stopped = "after 437 optimizer steps"; },
       "As far as it was run it needs 18.00 GiB and the GPU has 14.00 GiB: at least 4.00 GiB too little.",
       "It needs 18.00 GiB"},
      {[](Plan& plan) {
         plan.run.stopped = "after 6 optimizer steps";
         plan.run.steps = 6, plan.run.alike_from = 3;
       },
       "It needs 18.00 GiB and the GPU has 14.00 GiB: 4.00 GiB too little.", "at least"},
      {[](Plan& plan) {
         plan.run.stopped = "after 6 optimizer steps";
         plan.run.steps = 6, plan.run.alike_from = 3, plan.growth.is_there = true;
       },
       "As far as it was run it needs 18.00 GiB and the GPU has 14.00 GiB: at least 4.00 GiB too little.",
       "It needs 18.00 GiB"},
      {[](Plan& plan) {
         plan.failure.phase = "training";
         plan.run.phases = {{"building", 1, kGiB, {"train.py", 3, {}, {}, {}}},
                            {"training", 1, 2 * kGiB, plan.failure.at}};
       },
       "fails here", "fails at train.py"},
      {[](Plan& plan) {
         plan.failure.phase = "training";
         plan.run.phases = {{"building", 1, kGiB, {"train.py", 3, {}, {}, {}}},
                            {"training", 1, 2 * kGiB, {"train.py", 30, {}, {}, {}}}};
       },
       "train.py:30, fails at …/llm/train.py:12", "fails here"},
      {[&](Plan& plan) {
         fits(plan);
         plan.growth.unit = "step";
         plan.growth.loop = {"train.py:9", 500, 1000};
         plan.growth.needed_at_end_bytes = 7 * kGiB;
       },
       "own loop (train.py:9, 500 rounds) makes about 1,000 optimizer steps. It then needs about 7.00 GiB",
       "is not known"},
      {[](Plan& plan) {
         plan.verdict = Verdict::kFitsUntil;
         plan.growth.unit = "step";
         plan.growth.until = 300;
       },
       "full at about optimizer step 300. How many steps the program makes is not known.", "own loop"},
      {[](Plan& plan) {
         plan.run.stopped.clear();
         plan.need.is_least = true;
       },
       "It needs at least 18.00 GiB and the GPU has 14.00 GiB: at least 4.00 GiB too little.", "needs 18.00 GiB and"},
      {[](Plan& plan) {
         plan.run.stopped.clear();
         plan.need.is_least = plan.run.interrupted = true;
         plan.need.bytes = 6 * kGiB;
       },
       "What it needs in all is not known. The plan was stopped by a signal", "too little"},
      {[](Plan& plan) { plan.run.interrupted = true; }, "too little (the plan was stopped by a signal)",
       "the program was stopped"},
      {[&](Plan& plan) {
         fits(plan);
         plan.run.steps = plan.run.most_turns = 12, plan.run.least_turns = 6, plan.run.optimizers = 2;
       },
       "12 steps of one optimizer, 6 of the other in", "each a round"},
      {[&](Plan& plan) {
         fits(plan);
         plan.run.steps = plan.run.most_turns = plan.run.least_turns = 6, plan.run.optimizers = 2;
       },
       "6 optimizer steps (each a round of the 2 optimizers) in", "of the other"},
      {[&](Plan& plan) {
         fits(plan);
         plan.growth.unit = "round";
         plan.growth.loop = {"serve.py:9", 500, 0, 20};
         plan.growth.needed_at_end_bytes = 7 * kGiB;
       },
       "grows with every round. The program's own loop (serve.py:9) has 500 rounds. It then needs about 7.00 GiB",
       "optimizer step."},
      {[](Plan& plan) { plan.need.taken_bytes = 17 * kGiB; }, "That is 1.00 GiB more than it takes at the fullest",
       "Where there is room"},
      {[](Plan& plan) {
         plan.tried.vary.reset();
         plan.tried.changes = {{ChangeKind::kProgram, "Use X", "", true, false, 18 * kGiB, ""}};
       },
       "One change was tried, and nothing that was tried helps", "None of these is enough"},
      {[](Plan& plan) {
         plan.tried.vary.reset();
         plan.tried.changes = {{ChangeKind::kProgram, "Use X", "", true, false, 17 * kGiB, ""}};
       },
       "None of these is enough.", "nothing that was tried helps"},
  };
  for (const Row& row : rows) {
    Plan plan = sample_plan();
    row.change(plan);
    const std::string text = one_line(plan);
    EXPECT_NE(text.find(row.said), std::string::npos) << row.said << "\n" << text;
    EXPECT_EQ(text.find(row.not_said), std::string::npos) << row.not_said << "\n" << text;
  }
}

TEST(PlanText, TheVerdictComesFirstAndStaysWithinThePage) {
  Report report;
  report.plan = sample_plan();
  for (const int width : {48, 80, 120}) {
    TerminalOptions options;
    options.width = width;
    options.cwd = "/home/ada/llm";
    const std::string text = to_terminal(report, options);
    EXPECT_TRUE(text.starts_with("DOES NOT FIT on Tesla T4\n")) << text;
    EXPECT_NE(text.find("SUMMARY: does not fit, at least 4.00 GiB too little"), std::string::npos) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("SUMMARY")) continue;
      EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(PlanText, HostileWordsAreMadeHarmless) {
  Report report;
  report.plan = sample_plan();
  report.plan->command = {"python\x1b[2J"};
  report.plan->trouble.exception->message = "\x1b]0;x\x07";
  report.plan->notes.front().text = "\x1b[31m";
  report.plan->peak.modules.front().path = "\x1b[31m";
  report.plan->tried.vary->where = "\x1b[31m";
  EXPECT_EQ(to_terminal(report, {}).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace faultline
