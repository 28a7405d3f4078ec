#include "base/elf/elf_file.h"

#include <gtest/gtest.h>

#include <random>

#include "base/elf/compiled_sample.h"

namespace faultline {
namespace {

TEST(ElfFile, FindsSectionsAndSymbols) {
  const CompiledSample sample("-g");
  ASSERT_TRUE(sample.is_made());
  const Result<ElfFile> file = ElfFile::read(sample.bytes());
  ASSERT_TRUE(file.ok()) << file.error().message();
  ASSERT_TRUE(file->find(".text").has_value());
  EXPECT_NE(file->find(".text")->flags & kElfExecutable, 0u);
  EXPECT_FALSE(file->find(".no_such_section").has_value());
  const ElfSymbol function = sample.symbol(kFirstFunction);
  EXPECT_TRUE(function.is_function && function.is_global);
  EXPECT_GT(function.size_bytes, 0u);
}

TEST(ElfFile, SaysWhyItRefuses) {
  const auto reason = [](const std::string& text) {
    const Result<ElfFile> file = ElfFile::read({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    return file ? std::string() : file.error().what;
  };
  EXPECT_EQ(reason(""), "this is no ELF file");
  EXPECT_EQ(reason("#!/bin/sh\nexit 0\n"), "this is no ELF file");
  EXPECT_EQ(reason(std::string("\x7f"
                               "ELF\x01\x01\x01",
                               7) +
                   std::string(60, '\0')),
            "the ELF file is not of 64 bits and little-endian");
  EXPECT_EQ(reason(std::string("\x7f"
                               "ELF\x02\x01\x01",
                               7) +
                   std::string(20, '\0')),
            "the ELF header is cut short");
}

TEST(ElfFile, NamesTheOffsetOfHeadersBeyondTheEnd) {
  const CompiledSample sample("");
  ASSERT_TRUE(sample.is_made());
  const Result<ElfFile> file = ElfFile::read(sample.bytes().first(2000));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().offset, 2000u);
}

TEST(ElfFile, SurvivesBeingCutAndChangedAnywhere) {
  const CompiledSample sample("-g");
  ASSERT_TRUE(sample.is_made());
  const auto look = [](Bytes bytes) {
    const Result<ElfFile> file = ElfFile::read(bytes);
    if (!file) return;
    std::vector<std::uint8_t> storage;
    std::size_t seen = 0;
    for (std::uint64_t index = 0; index < file->section_count(); ++index) {
      const Result<Bytes> content = file->content(file->section(index), storage);
      if (content) seen += content->size();
    }
    file->for_each_symbol(kElfSymbolTable, [&](const ElfSymbol& symbol) { seen += symbol.name.size(); });
    EXPECT_LT(seen, bytes.size() * 1000);
  };
  for (std::size_t size = 0; size < sample.bytes().size(); size += 61) look(sample.bytes().first(size));
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = sample.content();
    const std::size_t headers = bytes.size() - 3000;  // where the section headers are
    for (int change = 0; change < 4; ++change)
      bytes[random() % 2 == 0 ? random() % 64 : headers + random() % 3000] = static_cast<char>(random());
    look({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
}

TEST(ByteCursor, AReadThatDoesNotFitSticks) {
  const std::uint8_t bytes[] = {1, 2, 3};
  ByteCursor cursor(bytes);
  EXPECT_EQ(cursor.u16(), 0x0201);
  EXPECT_EQ(cursor.u16(), 0);
  EXPECT_FALSE(cursor.ok());
  EXPECT_EQ(cursor.u8(), 0) << "there is a byte left, but the cursor no longer knows where it is";
}

TEST(ByteCursor, ReadsNumbersOfAnyLength) {
  const std::uint8_t bytes[] = {0xe5, 0x8e, 0x26, 0x7f, 0x80, 0x7f, 0xff, 0xff, 0xff,
                                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  ByteCursor cursor(bytes);
  EXPECT_EQ(cursor.uleb(), 624485u);
  EXPECT_EQ(cursor.sleb(), -1);
  EXPECT_EQ(cursor.sleb(), -128);
  EXPECT_EQ(cursor.uleb(), ~std::uint64_t{0});
  EXPECT_TRUE(cursor.ok());
  EXPECT_EQ(cursor.remaining(), 0u);
}

TEST(ByteCursor, ATextWithoutAnEndIsNone) {
  const std::uint8_t bytes[] = {'a', 0, 'b'};
  ByteCursor cursor(bytes);
  EXPECT_EQ(cursor.text(), "a");
  EXPECT_EQ(cursor.text(), "");
  EXPECT_FALSE(cursor.ok());
}

}  // namespace
}  // namespace faultline
