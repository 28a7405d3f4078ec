// Every text under tests/fixtures/errors is read and judged, and held against the verdict that stands beside it. A .expect file has one claim a
// line ("cause: fragmented", "ended_at: train.py:9", "further: RULE words" of each further finding, "says: words of the message", "evidence: name" or "evidence: name=value", "never: words that neither message nor advice has"), or the one word "silent".
#include "rules/stated_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/units.h"
#include "facts/facts_test_support.h"
#include "rules/describe.h"
#include "rules/judge.h"
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
    return equal == std::string::npos
               ? evidence.name == claim
               : evidence.name == claim.substr(0, equal) && value_of(evidence) == claim.substr(equal + 1);
  });
}

std::string evidence_value(const Finding& finding, const std::string& name) {
  for (const Evidence& evidence : finding.evidence) {
    if (evidence.name == name) return value_of(evidence);
  }
  return "";
}

// "modeling_llama.py:1200", the line of a library below the user's; "none".
std::string inside_of(const Finding& finding) {
  for (const Related& item : finding.related) {
    if (item.role == Related::kInside) return short_place(item.location);
  }
  return "none";
}

void check_claim(const std::string& key, const std::string& value, const StatedError& stated, const Finding& finding) {
  if (key == "kind")
    EXPECT_EQ(name_of(stated.kind), value);
  else if (key == "framework")
    EXPECT_EQ(stated.maker_name(), value);
  else if (key == "program")
    EXPECT_EQ(stated.program_name(), value);
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
    EXPECT_EQ(std::to_string(stated.distinct), value);
  else if (key == "log_line")
    EXPECT_EQ(std::to_string(stated.line), value);
  else if (key == "location")
    EXPECT_EQ(finding.location.file + ":" + std::to_string(finding.location.line), value);
  else if (key == "function")
    EXPECT_EQ(finding.location.function, value);
  else if (key == "inside")
    EXPECT_EQ(inside_of(finding), value);
  else if (key == "memory")
    EXPECT_EQ(finding.memory, value);
  else if (key == "writer")
    EXPECT_EQ(evidence_value(finding, "writer"), value);
  else if (key == "says")
    EXPECT_NE(finding.message.find(value), std::string::npos) << finding.message;
  else if (key == "try")
    EXPECT_TRUE(std::any_of(finding.tries.begin(), finding.tries.end(), [&](const Try& t) {
      return t.what.find(value) != std::string::npos;
    })) << value;
  else if (key == "never")
    EXPECT_TRUE(std::none_of(finding.tries.begin(), finding.tries.end(),
                             [&](const Try& t) { return t.what.find(value) != std::string::npos; }) &&
                finding.message.find(value) == std::string::npos)
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
  auto trace = read_error_text(text, GetParam().string());
  std::istringstream expect(slurp(std::filesystem::path(GetParam()).replace_extension(".expect")));
  std::string line;
  ASSERT_TRUE(std::getline(expect, line)) << "no verdict beside the text";
  if (line == "silent") {
    ASSERT_FALSE(trace.ok()) << trace->properties["error.text"];
    EXPECT_NE(trace.error().what.find("no GPU memory error was found in"), std::string::npos) << trace.error().what;
    return;
  }
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  const Status valid = check_trace(*trace);
  EXPECT_TRUE(valid.ok()) << valid.error().message();
  const Judgement judgement = judge(*trace);
  std::vector<Finding> findings = judgement.findings;
  // What ended the program without being judged comes first, and has claims of its own.
  std::optional<Finding> ended;
  if (!findings.empty() && findings[0].rule == "program/other-error") {
    ended = findings[0];
    findings.erase(findings.begin());
  }
  ASSERT_GE(findings.size(), 1u);
  std::size_t further = 0;
  bool tells_end = false;
  EXPECT_LE(judgement.not_judged.size(), 2u);
  EXPECT_TRUE(std::any_of(all_rules().begin(), all_rules().end(), [&](const Rule& rule) {
    return rule.name == findings[0].rule;
  })) << findings[0].rule;
  SCOPED_TRACE(findings[0].message);
  do {
    if (line.empty()) continue;
    const std::size_t colon = line.find(": ");
    ASSERT_NE(colon, std::string::npos) << line;
    const std::string key = line.substr(0, colon), value = line.substr(colon + 2);
    if (key == "ended_at" || key == "ended_by") {  // "ended_at: train.py:9", "ended_by: KeyError"
      ASSERT_TRUE(ended.has_value()) << line;
      tells_end = true;
      EXPECT_EQ(ended->severity, Severity::kNote);
      if (key == "ended_at")
        EXPECT_EQ(ended->location.file + ":" + std::to_string(ended->location.line), value);
      else
        EXPECT_NE(ended->message.find(value), std::string::npos) << ended->message;
      continue;
    }
    if (key == "further") {  // "further: api/launch-error Xid 79": the next finding
      ASSERT_LT(++further, findings.size()) << line;
      const Finding& next = findings[further];
      EXPECT_EQ(next.rule, value.substr(0, value.find(' ')));
      EXPECT_NE(next.message.find(value.substr(value.find(' ') + 1)), std::string::npos) << next.message;
      continue;
    }
    check_claim(line.substr(0, colon), line.substr(colon + 2), judgement.statements.error, findings[0]);
  } while (std::getline(expect, line));
  EXPECT_EQ(findings.size(), further + 1);
  EXPECT_EQ(ended.has_value(), tells_end) << "what ended the program is a claim";
  EXPECT_FALSE(findings[0].message.empty());
  for (const Try& attempt : findings[0].tries) EXPECT_FALSE(attempt.confirmed.has_value());
}

// Everything that a report says of a text, its path aside.
std::string said_of(const std::string& text) {
  auto trace = read_error_text(text, "text");
  if (!trace) return trace.error().message();
  const Judgement judgement = judge(*trace);
  std::ostringstream said;
  for (const Finding& finding : judgement.findings) {
    said << finding.rule << '|' << finding.cause << '|' << name_of(finding.confidence) << '|'
         << name_of(finding.severity) << '|' << finding.location.file << ':' << finding.location.line << '|'
         << finding.message << '\n';
    for (const Try& attempt : finding.tries) said << "  " << attempt.what << '\n';
    for (const Evidence& evidence : finding.evidence)
      said << "  " << evidence.name << '=' << value_of(evidence) << '\n';
  }
  return said.str();
}

std::string with_line_ends(const std::string& text, const std::string& end) {
  std::string other;
  for (const char c : text) other += c == '\n' ? end : std::string(1, c);
  return other;
}

// Of ASCII alone.
std::string in_utf16(const std::string& text, bool little) {
  std::string wide;
  for (const char c : text) wide += little ? std::string{c, '\0'} : std::string{'\0', c};
  return wide;
}

TEST_P(ErrorTexts, AreJudgedAlikeInEveryFormOfTheirLines) {
  std::string text = slurp(GetParam());
  if (text.find('\r') != std::string::npos) GTEST_SKIP() << "has forms of its own";
  const std::string said = said_of(text);
  EXPECT_EQ(said_of(with_line_ends(text, "\r\n")), said) << "Windows";
  EXPECT_EQ(said_of(with_line_ends(text, "\r\r\n")), said) << "translated twice";
  EXPECT_EQ(said_of(with_line_ends(text, "\r")), said) << "returns alone";
  EXPECT_EQ(said_of("\xEF\xBB\xBF" + text), said) << "with a mark of UTF-8";
  EXPECT_EQ(said_of(std::string(500, '\0') + text), said) << "cut while it was written";
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) return;
  EXPECT_EQ(said_of("\xFF\xFE" + in_utf16(with_line_ends(text, "\r\n"), true)), said) << "of PowerShell";
  EXPECT_EQ(said_of("\xFE\xFF" + in_utf16(text, false)), said) << "UTF-16, the other order";
  if (text.size() < 8) return;
  EXPECT_EQ(said_of(in_utf16(text, true)), said) << "UTF-16 without a mark";
  EXPECT_EQ(said_of(in_utf16(text, false)), said) << "UTF-16 without a mark, the other order";
}

std::vector<std::filesystem::path> texts() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FAULTLINE_FIXTURES) / "errors")) {
    if (entry.path().extension() == ".txt") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}
INSTANTIATE_TEST_SUITE_P(Fixtures, ErrorTexts, testing::ValuesIn(texts()),
                         [](const auto& instance) { return instance.param.stem().string(); });

TEST(StatedError, IsNotJudgedWhereTheFailureWasRecorded) {
  Trace trace = traced(
      "device 0 capacity=5GiB\nalloc #s 4GiB driver @0x100000000 at run.py:1 main\nalloc #x 4GiB @0x100000000 at "
      "run.py:1 main\nalloc-failed 1GiB device-free=400MiB at run.py:2 main\n");
  const auto message =
      read_error_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.", "text");
  Statements stated = read_statements(*message);
  stated.message_only = false;  // as an input puts it that has both
  const Judgement both = judge(trace, stated);
  ASSERT_EQ(both.findings.size(), 1u);
  EXPECT_EQ(both.findings[0].bytes, 1 * kGiB);
  trace.events.pop_back();
  const Judgement only_told = judge(trace, stated);
  ASSERT_EQ(only_told.findings.size(), 1u);
  EXPECT_EQ(only_told.findings[0].bytes, 3 * kGiB);
}

// Rounding decides: the same printed numbers may or may not have sufficed, and then nothing is claimed.
TEST(StatedError, ClaimsNoFragmentationThatRoundingCouldUndo) {
  const auto judged = [](const char* free) {
    const auto trace = read_error_text(
        std::string(
            "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which ") +
            free +
            " is free. Including non-PyTorch memory, this process has 15.00 GiB memory in use. Of the allocated memory "
            "11.50 GiB is allocated by "
            "PyTorch, and 3.00 GiB is reserved by PyTorch but unallocated.",
        "text");
    return judge(*trace).findings.at(0).cause;
  };
  EXPECT_EQ(judged("1.02 GiB"), "fragmented");
  EXPECT_EQ(judged("1.00 GiB"), "");
  EXPECT_EQ(judged("0.96 GiB"), "exhausted");
}

}  // namespace
}  // namespace faultline
