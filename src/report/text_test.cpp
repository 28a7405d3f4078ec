#include "report/text.h"

#include <gtest/gtest.h>

#include "facts/stack_facts.h"
#include "report/place.h"

namespace faultline {
namespace {

TEST(Clean, EscapesBecomeVisibleText) {
  EXPECT_EQ(clean("\x1b[31mred\x07", true), "\\x1b[31mred\\x07");
  EXPECT_EQ(clean(std::string_view("a\0b", 3), true), "a\\x00b");
  EXPECT_EQ(clean("\x7f\xc2\x9b", true), "\\x7f\\x9b");
}

TEST(Clean, DirectionOverridesAndInvisibleCharactersBecomeVisibleText) {
  EXPECT_EQ(clean("a\xe2\x80\xae"
                  "b\xe2\x80\x8b"
                  "c",
                  true),
            "a\\u202eb\\u200bc");
}

TEST(Clean, NewlinesAndTabsBecomeSpaces) { EXPECT_EQ(clean("a\nb\tc\r", true), "a b c "); }

TEST(Clean, BadUtf8IsReplacedByteByByte) {
  EXPECT_EQ(clean("\xff", true), "\uFFFD");
  EXPECT_EQ(clean("\xc0\xaf", true), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(clean("\xed\xa0\x80", true), "\uFFFD\uFFFD\uFFFD");  // surrogate
  EXPECT_EQ(clean("\xe6\x97", true), "\uFFFD\uFFFD");            // ends inside a character
}

TEST(Clean, GoodUtf8PassesAndAsciiSpellsItOut) {
  EXPECT_EQ(clean("größe × 日本", true), "größe × 日本");
  EXPECT_EQ(clean("gr… × 日", false), "gr... x ?");
}

TEST(Clean, MegabytesAreCut) {
  const std::string cut = clean(std::string(1 << 20, 'm'), true);
  EXPECT_LT(cut.size(), 1000u);
  EXPECT_TRUE(cut.starts_with(std::string(100, 'm'))) << cut;
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("e\xcc\x81"), 1);
  EXPECT_EQ(display_width("█▏"), 2);
}

TEST(Wrap, BreaksAtSpacesAndBreaksWordsOnlyWhenTheyMustBe) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("abcdefghij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrap("日本語", 4), (std::vector<std::string>{"日本", "語"}));
  EXPECT_TRUE(wrap("   ", 4).empty());
}

// GitHub runs such lines, also behind blanks.
TEST(Wrap, NoLineBeginsAsACommand) {
  EXPECT_EQ(wrap("::error::x", 20), (std::vector<std::string>{"\\x3a:error::x"}));
  EXPECT_EQ(wrap("a ::b", 20), (std::vector<std::string>{"a ::b"}));
  for (const char* text : {"one ::stop-commands::two", "at::native::add_kernel_cuda", "::::::::", "a:: ::b ::c"}) {
    for (int width = 2; width < 30; ++width) {
      for (const std::string& line : wrap(text, width)) {
        EXPECT_FALSE(line.starts_with("::")) << text << " at " << width;
        EXPECT_LE(display_width(line), width);
      }
    }
  }
}

TEST(Wrap, KeepsANumberWithItsUnitAndAShapeInOnePiece) {
  EXPECT_EQ(wrap("it saves 4.10 GiB.", 14), (std::vector<std::string>{"it saves", "4.10 GiB."}));
  EXPECT_EQ(wrap("it saves 4.10 Gift", 14), (std::vector<std::string>{"it saves 4.10", "Gift"}));
  EXPECT_EQ(wrap("float32 [8192, 65536]", 16), (std::vector<std::string>{"float32", "[8192, 65536]"}));
}

TEST(ShortenMiddle, FitsAndKeepsBothEnds) {
  EXPECT_EQ(shorten_middle("abcdef", 6, true), "abcdef");
  EXPECT_EQ(shorten_middle("abcdefghij", 7, true), "ab…ghij");
  EXPECT_EQ(shorten_middle("abcdefghij", 9, false), "ab...ghij");
}

const PathStyle kStyle{"/home/ada/llm", "/home/ada", true};

TEST(ShortenPath, TakesOffWhatTheReaderKnows) {
  EXPECT_EQ(shorten_path("/home/ada/llm/model/net.py", kStyle, 80), "model/net.py");
  EXPECT_EQ(shorten_path("/home/ada/other/net.py", kStyle, 80), "~/other/net.py");
  EXPECT_EQ(shorten_path("/home/adam/net.py", kStyle, 80), "/home/adam/net.py");
  EXPECT_EQ(shorten_path("/opt/lib/python3.11/site-packages/torch/nn/linear.py", kStyle, 80), "torch/nn/linear.py");
}

TEST(ShortenPath, FoldersInTheMiddleGiveWayBeforeTheName) {
  const std::string path = "project/alpha/beta/gamma/delta/train.py";
  EXPECT_EQ(shorten_path(path, kStyle, 39), path);
  EXPECT_EQ(shorten_path(path, kStyle, 30), "project/…/gamma/delta/train.py");
  EXPECT_EQ(shorten_path(path, kStyle, 18), "…/delta/train.py");
  EXPECT_EQ(shorten_path("/" + path, kStyle, 26), "/project/…/delta/train.py");
  EXPECT_EQ(shorten_path(path, kStyle, 12), "…/train.py");
  EXPECT_EQ(shorten_path(path, kStyle, 8), "train.py");
  EXPECT_EQ(shorten_path("/a_rather_long_name.py", kStyle, 12), "a_r…_name.py");  // in the root itself
  EXPECT_LE(display_width(shorten_path(std::string(200'000, '/') + "train.py", kStyle, 12)), 12);
  for (int width = 8; width < 45; ++width) EXPECT_LE(display_width(shorten_path(path, kStyle, width)), width);
}

TEST(DescribePlace, SaysFileLineFunctionOpAndKernel) {
  EXPECT_EQ(describe_place({"/home/ada/llm/a.py", 3, "f", "aten::mm", "gemm"}, kStyle, 80),
            "a.py:3 in f, op aten::mm, kernel gemm");
  EXPECT_EQ(describe_place({"a.py", 0, "<module>", "", ""}, kStyle, 80), "a.py");
  EXPECT_EQ(describe_place({"", 0, "", "", "gemm"}, kStyle, 80), "kernel gemm");
  EXPECT_EQ(describe_place({}, kStyle, 80), "");
  EXPECT_EQ(describe_place({"cell [12]", 3, "<module>", "", ""}, kStyle, 80), "cell [12], line 3");
  EXPECT_EQ(describe_place({"cell [12]", 3, "f", "", ""}, kStyle, 80), "cell [12], line 3 in f");
  EXPECT_EQ(describe_place({"/data/cell [1].py", 3, "", "", ""}, kStyle, 80), "/data/cell [1].py:3");
}

TEST(DescribeLine, KeepsFileAndLineWhereItIsTight) {
  EXPECT_EQ(describe_line({"train.py", 83, "a_long_function_name", "", ""}, kStyle, 14), "train.py:83");
}

TEST(IsLibraryFile, TellsInstalledCodeFromTheUsersOwn) {
  EXPECT_TRUE(is_library_file("/venv/lib/python3.11/site-packages/torch/nn/functional.py"));
  EXPECT_TRUE(is_library_file("/opt/conda/lib/python3.11/threading.py"));
  EXPECT_TRUE(is_library_file("<frozen runpy>"));
  EXPECT_TRUE(is_library_file("/usr/lib/libcudart.so.12"));
  EXPECT_FALSE(is_library_file("/home/ada/my.solver.py"));
  EXPECT_FALSE(is_library_file("train.py"));
}

TEST(Text, FirstSentencesAreWhole) {
  EXPECT_EQ(first_sentences("One. Two. Three.", 40, 1), "One. Two. Three.");
  EXPECT_EQ(first_sentences("One is here. Two is longer than a line has room.", 30, 1), "One is here.");
  EXPECT_EQ(first_sentences("A sentence that is far longer than any line here.", 10, 1),
            "A sentence that is far longer than any line here.");
  EXPECT_EQ(first_sentences("It has e.g. one of 1.5 GiB. More follows in another one.", 30, 1),
            "It has e.g. one of 1.5 GiB.");
  EXPECT_EQ(first_sentences("", 30, 1), "");
}

}  // namespace
}  // namespace faultline
