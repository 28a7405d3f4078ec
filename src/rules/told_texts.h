// What Faultline says of a text, for tests of texts.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "rules/judge.h"
#include "sources/error_text/error_text.h"

namespace faultline {

// The first finding.
inline Finding told_of(const std::string& text) {
  const Result<Trace> trace = read_error_text(text, "log.txt");
  EXPECT_TRUE(trace) << text;
  if (!trace) return {};
  const Judgement judgement = judge(*trace);
  EXPECT_FALSE(judgement.findings.empty()) << text;
  return judgement.findings.empty() ? Finding() : judgement.findings.front();
}

// All that is said to a person: the message, and what to try.
inline std::string words_of(const Finding& finding) {
  std::string words = finding.message;
  for (const Try& attempt : finding.tries) words += "\n" + attempt.what;
  return words;
}

}  // namespace faultline
