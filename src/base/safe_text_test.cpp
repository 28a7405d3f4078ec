#include "base/safe_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/demangle.h"

namespace faultline {
namespace {

TEST(SafeText, WhatActsOrHidesIsSpelledOut) {
  EXPECT_EQ(shown("\x1b[2J\a"), "\\x1b[2J\\x07");
  // C1: another way to begin an escape sequence
  EXPECT_EQ(shown("\xc2\x9b"
                  "31m"),
            "\\x9b31m");
  EXPECT_EQ(shown("\u202egnp.exe\u2066\u200b\ufeff"), "\\u202egnp.exe\\u2066\\u200b\\ufeff");
  EXPECT_EQ(shown("a\nb\u2028c"), "a b\\u2028c");
  EXPECT_EQ(shown("größe 日本 ✓"), "größe 日本 ✓");
}

TEST(SafeText, CommandsOfServersAreSpelledOut) {
  EXPECT_EQ(shown("a ##[error]b"), "a #\\x23[error]b");
  EXPECT_EQ(shown("###vso[task.x]"), "##\\x23vso[task.x]");
  for (const char* harmless : {"## heading", "a # [b]", "##vs", "##"}) EXPECT_EQ(shown(harmless), harmless);
}

TEST(SafeText, WhatNoXmlMayHoldIsSpelledOut) {
  EXPECT_EQ(shown("a\xef\xbf\xbe\xef\xbf\xbf"), "a\\ufffe\\uffff");
  EXPECT_EQ(shown("\xef\xbf\xbd"), "\xef\xbf\xbd");
}

TEST(SafeText, BytesThatAreNoTextBecomeReplacementCharacters) {
  EXPECT_EQ(shown("\xc0\xaf"), "\uFFFD\uFFFD");
  EXPECT_EQ(shown("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(shown("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(SafeText, AnEscapedDocumentIsTheSameDocument) {
  const nlohmann::json document = {{"name\u202e", "\x7f\u0085\u2028\U000e0041 plain é \"quoted\\"}};
  const std::string escaped = escaped_json(document.dump());
  EXPECT_EQ(nlohmann::json::parse(escaped), document);
  EXPECT_NE(escaped.find("\\u202e"), std::string::npos);
  EXPECT_NE(escaped.find("\\u0085"), std::string::npos);
  EXPECT_NE(escaped.find("\\udb40\\udc41"), std::string::npos);
  EXPECT_EQ(escaped.find("\u2028"), std::string::npos);
}

TEST(Demangle, NamesAreMadeReadable) {
  EXPECT_EQ(demangled("_Z3addPfS_"), "add(float*, float*)");
  EXPECT_EQ(demangled("plain"), "plain");
  EXPECT_EQ(demangled("_Zwhat"), "_Zwhat");
}

// Templates of libraries refer to their own parts and arguments dozens of times, and stay small.
TEST(Demangle, ALongKernelOfALibraryIsReadable) {
  EXPECT_EQ(
      demangled("_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIffffEEjfLi4ELi4EEEEEvT1_"),
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, "
      "float>, unsigned int, float, 4, 4> >(at::native::ReduceOp<float, at::native::MeanOps<float, float, float, "
      "float>, unsigned int, float, 4, 4>)");
}

// A reference may be hidden in what looks like a part's name, behind the number of a literal.
TEST(Demangle, WhatANumberPassesOverIsCountedAllTheSame) {
  for (const char* const literal : {"LN1a1bE900E", "LS_900E", "LDn0E"}) {
    std::string name = std::string("_Z1f1aI") + literal + "E";
    for (int part = 1; part <= 36; ++part) {
      const std::string reference = std::string("S") + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[part - 1] + "_";
      name += "S_I" + reference + reference + "E";
    }
    EXPECT_LE(demangled(name).size(), std::size_t{16} << 10);
  }
}

// Each part repeats the one before twice: 36 of them are 2^36 letters.
TEST(Demangle, ANameThatWouldFillTheMemoryStaysAsItIs) {
  std::string name = "_Z1f1aIiiE";
  for (int part = 1; part <= 36; ++part) {
    const std::string reference = std::string("S") + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[part - 1] + "_";
    name += "S_I" + reference + reference + "E";
  }
  EXPECT_EQ(demangled(name), name);
}

}  // namespace
}  // namespace faultline
