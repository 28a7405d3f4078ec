// Every text under tests/fixtures/errors is read and judged, and held against the verdict that stands beside it. A .expect file has one claim a
// line ("cause: fragmented", "says: words of the message", "evidence: name" or "evidence: name=value"), or the one word "silent".
#include "rules/error_text/error_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sources/error_text/error_text.h"
#include "trace/validate.h"

namespace faultline {
namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string value_of(const Evidence& evidence) {
  if (const auto* number = std::get_if<std::int64_t>(&evidence.value)) return std::to_string(*number);
  if (const auto* word = std::get_if<std::string>(&evidence.value)) return *word;
  return "";
}

bool has_evidence(const Finding& finding, const std::string& claim) {
  const std::size_t equal = claim.find('=');
  return std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const Evidence& evidence) {
    return equal == std::string::npos ? evidence.name == claim
                                      : evidence.name == claim.substr(0, equal) && value_of(evidence) == claim.substr(equal + 1);
  });
}

std::string evidence_value(const Finding& finding, const std::string& name) {
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.name == name) return value_of(evidence);
  }
  return "";
}

void check_claim(const std::string& key, const std::string& value, const Trace& trace, const Finding& finding) {
  if (key == "kind")
    EXPECT_EQ(stated_word(trace, "kind"), value);
  else if (key == "framework")
    EXPECT_EQ(stated_word(trace, "framework"), value);
  else if (key == "rule")
    EXPECT_EQ(finding.rule, value);
  else if (key == "cause")
    EXPECT_EQ(finding.cause.empty() ? "none" : finding.cause, value);
  else if (key == "confidence")
    EXPECT_EQ(name_of(finding.confidence), value);
  else if (key == "severity")
    EXPECT_EQ(name_of(finding.severity), value);
  else if (key == "device")
    EXPECT_EQ(std::to_string(finding.device), value);
  else if (key == "bytes")
    EXPECT_EQ(std::to_string(finding.bytes), value);
  else if (key == "messages")
    EXPECT_EQ(std::to_string(finding.count), value);
  else if (key == "distinct")
    EXPECT_EQ(stated_word(trace, "distinct"), value);
  else if (key == "log_line")
    EXPECT_EQ(stated_word(trace, "line"), value);
  else if (key == "location")
    EXPECT_EQ(finding.location.file + ":" + std::to_string(finding.location.line), value);
  else if (key == "function")
    EXPECT_EQ(finding.location.function, value);
  else if (key == "memory")
    EXPECT_EQ(finding.memory, value);
  else if (key == "writer")
    EXPECT_EQ(evidence_value(finding, "writer"), value);
  else if (key == "says")
    EXPECT_NE(finding.message.find(value), std::string::npos) << finding.message;
  else if (key == "try")
    EXPECT_TRUE(std::any_of(finding.tries.begin(), finding.tries.end(), [&](const Try& t) { return t.what.find(value) != std::string::npos; }))
        << value;
  else if (key == "evidence")
    EXPECT_TRUE(has_evidence(finding, value)) << value;
  else if (key == "absent")
    EXPECT_FALSE(has_evidence(finding, value)) << value;
  else
    ADD_FAILURE() << "unknown claim: " << key;
}

class ErrorTexts : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ErrorTexts, AreJudgedAsTheirVerdictSays) {
  const std::string text = slurp(GetParam());
  const auto trace = read_error_text(text, GetParam().string());
  std::istringstream expect(slurp(std::filesystem::path(GetParam()).replace_extension(".expect")));
  std::string line;
  ASSERT_TRUE(std::getline(expect, line)) << "no verdict beside the text";
  if (line == "silent") {
    ASSERT_FALSE(trace.ok()) << stated_word(*trace, "kind") << ": " << stated_word(*trace, "text");
    EXPECT_EQ(trace.error().what, "no GPU memory error was found in this text");
    return;
  }
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  const Status valid = check_trace(*trace);
  EXPECT_TRUE(valid.ok()) << valid.error().message();
  std::vector<Finding> findings;
  std::vector<NotJudged> not_judged;
  judge_error_text(*trace, findings, not_judged);
  ASSERT_EQ(findings.size(), 1u);
  SCOPED_TRACE(findings[0].message);
  do {
    if (line.empty()) continue;
    const std::size_t colon = line.find(": ");
    ASSERT_NE(colon, std::string::npos) << line;
    check_claim(line.substr(0, colon), line.substr(colon + 2), *trace, findings[0]);
  } while (std::getline(expect, line));
  EXPECT_FALSE(findings[0].message.empty());
  for (const Try& attempt : findings[0].tries) EXPECT_FALSE(attempt.confirmed.has_value());
}

TEST_P(ErrorTexts, HaveAccountsThatAddUp) {
  const auto trace = read_error_text(slurp(GetParam()), "text");
  if (!trace) return;
  const auto account = error_account(*trace);
  if (!account) return;
  EXPECT_EQ(account->allocated + account->cached + account->outside_framework + account->other_processes + account->free + account->unknown,
            account->capacity);
  EXPECT_EQ(trace->devices.front().capacity_bytes, account->capacity);
}

std::vector<std::filesystem::path> texts() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FAULTLINE_FIXTURES) / "errors")) {
    if (entry.path().extension() == ".txt") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}
INSTANTIATE_TEST_SUITE_P(Fixtures, ErrorTexts, testing::ValuesIn(texts()), [](const auto& instance) { return instance.param.stem().string(); });

TEST(ErrorAccountOfAMessage, NamesEveryByteThatTheMessageNames) {
  const auto trace = read_error_text(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is free. "
      "Process 7 has 9.00 GiB "
      "memory in use. Including non-PyTorch memory, this process has 69.00 GiB memory in use. Of the allocated memory 66.00 GiB is allocated by "
      "PyTorch, with 4.00 GiB "
      "allocated in private pools (e.g., CUDA Graphs), and 1.50 GiB is reserved by PyTorch but unallocated.",
      "text");
  ASSERT_TRUE(trace.ok());
  const auto account = error_account(*trace);
  ASSERT_TRUE(account.has_value());
  constexpr std::uint64_t kGi = std::uint64_t{1} << 30;
  const auto near = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b < 4 : b - a < 4; };
  EXPECT_TRUE(near(account->allocated, 62 * kGi)) << account->allocated;  // what is printed as allocated includes the pools' free blocks
  EXPECT_TRUE(near(account->cached, 5 * kGi + kGi / 2)) << account->cached;
  EXPECT_TRUE(near(account->outside_framework, kGi + kGi / 2)) << account->outside_framework;
  EXPECT_TRUE(near(account->other_processes, 9 * kGi));
  EXPECT_TRUE(near(account->free, kGi));
  EXPECT_TRUE(near(account->unknown, kGi));
}

TEST(JudgeErrorText, SaysNothingAboutOtherTraces) {
  Trace trace;
  trace.source_kind = "torch-snapshot";
  trace.events.emplace_back();
  std::vector<Finding> findings;
  std::vector<NotJudged> not_judged;
  judge_error_text(trace, findings, not_judged);
  EXPECT_TRUE(findings.empty());
  EXPECT_TRUE(not_judged.empty());
}

// Rounding decides: the same printed numbers may or may not have sufficed, and then nothing is claimed.
TEST(JudgeErrorText, ClaimsNoFragmentationThatRoundingCouldUndo) {
  const auto judged = [](const char* free) {
    const auto trace = read_error_text(
        std::string("CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which ") + free +
            " is free. Including non-PyTorch memory, this process has 15.00 GiB memory in use. Of the allocated memory 11.50 GiB is allocated by "
            "PyTorch, and 3.00 GiB is reserved by PyTorch but unallocated.",
        "text");
    std::vector<Finding> findings;
    std::vector<NotJudged> not_judged;
    judge_error_text(*trace, findings, not_judged);
    return findings.at(0).cause;
  };
  EXPECT_EQ(judged("1.02 GiB"), "fragmented");
  EXPECT_EQ(judged("1.00 GiB"), "");
  EXPECT_EQ(judged("0.96 GiB"), "exhausted");
}

}  // namespace
}  // namespace faultline
