#include "report/plan_text.h"

#include <gtest/gtest.h>

#include "report/report.h"
#include "report/terminal.h"

namespace faultline {
namespace {

// What the dry run itself raised is in the verdict; it is not an error that the program ended with.
TEST(PlanText, WhatTheDryRunRaisesIsNotTheProgramsError) {
  for (const char* type : {"Unplannable", "ValueError"}) {
    Report report;
    report.plan.emplace();
    report.plan->verdict = Verdict::kUnplanned;
    report.plan->trouble.unplanned = "quantized tensors are not known to a dry run";
    report.plan->trouble.exception =
        PlanException{type, report.plan->trouble.unplanned, {"/home/ada/llm/train.py", 3, "<module>", "", ""}};
    TerminalOptions options;
    options.width = 200;
    const std::string text = to_terminal(report, options);
    const bool is_ours = std::string_view(type) == "Unplannable";
    EXPECT_EQ(text.find(type) == std::string::npos, is_ours) << text;
    EXPECT_EQ(text.find("The program ended with this") == std::string::npos, is_ours) << text;
    EXPECT_NE(text.find("train.py:3"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace faultline
