#include "base/shell_words.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace faultline {
namespace {

TEST(ShellWords, APlainCommandIsHandedOnAsItStands) {
  for (const char* plain : {"python train.py --lr 1e-3", "python train.py 'a b' \"c\"", "python x.py \"it's\"",
                            "python x.py 'say \"hi\"'", "A=1 python x.py", "python x.py '~/data'", ""})
    EXPECT_TRUE(is_plain_command(plain)) << plain;
  for (const char* odd : {"python ~/x.py", "python x.py --data=~/d", "python \"'x\"'", "python 'a\"b' \"", "python 'a",
                          "python \"a", "python x.py; ls", "python $(ls)", "python `ls`", "python x.py > y", "a\nb",
                          "python \x1b[31m", "python *.py", "python '\"'\"'"})
    EXPECT_FALSE(is_plain_command(odd)) << odd;
}

TEST(ShellWords, APlainWordIsNoOptionAndNothingElse) {
  for (const char* plain : {"train.py", "runs/fit-2.py", "a=b", "\xc3\xbc.py"})
    EXPECT_TRUE(is_plain_word(plain)) << plain;
  for (const char* odd : {"", "-c", "~", "~/x.py", "=ls", "a b", "a'b", "$x"}) EXPECT_FALSE(is_plain_word(odd)) << odd;
}

// A shell is asked.
TEST(ShellWords, AShellReadsBackTheWord) {
  for (const char* word : {"plain-word_1.py", "--", "-o", "", "a b", "it's", "'", "~", "~root", "$HOME", "a;b", "`x`",
                           "*", "\\", "\"", "=ls", "#x", "!x", "a\tb"}) {
    std::FILE* const shell = ::popen(("printf %s. " + shell_word(word)).c_str(), "r");
    ASSERT_NE(shell, nullptr);
    char text[64] = {};
    const std::size_t length = std::fread(text, 1, sizeof text - 1, shell);
    ::pclose(shell);
    EXPECT_EQ(std::string(text, length), std::string(word) + ".");
  }
  EXPECT_EQ(shell_word("--gpu"), "--gpu");
  EXPECT_EQ(shell_word("virtual:4GiB"), "virtual:4GiB");
}

}  // namespace
}  // namespace faultline
