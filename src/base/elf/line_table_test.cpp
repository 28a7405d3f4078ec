#include "base/elf/line_table.h"

#include <gtest/gtest.h>

#include <random>

#include "base/elf/compiled_sample.h"

namespace faultline {
namespace {

std::vector<SourceLine> lines_at(const CompiledSample& sample, const std::vector<std::uint64_t>& addresses) {
  const Result<ElfFile> file = ElfFile::read(sample.bytes());
  EXPECT_TRUE(file.ok());
  std::array<std::vector<std::uint8_t>, 3> storage;
  const FoundLines found = find_lines(line_sections(*file, storage), addresses);
  EXPECT_EQ(found.damaged_programs, 0u);
  return found.lines;
}

TEST(LineTable, ReadsEveryVersionPlainAndCompressed) {
  std::size_t made = 0;
  for (const char* flags : {"-gdwarf-2 -gstrict-dwarf", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -gz=zlib",
                            "-gdwarf-4 -gz=zlib", "-gdwarf-5 -gz=zstd"}) {
    const CompiledSample sample(flags);
    if (!sample.is_made()) continue;
    ++made;
    const ElfSymbol first = sample.symbol(kFirstFunction);
    const ElfSymbol second = sample.symbol(kSecondFunction);
    const auto lines = lines_at(sample, {second.address + second.size_bytes - 1, first.address,
                                         first.address + first.size_bytes - 1, second.address});
    EXPECT_EQ(lines[0].line, 10u) << flags;
    EXPECT_EQ(lines[1].line, 2u) << flags;
    EXPECT_EQ(lines[2].line, 4u) << flags;
    EXPECT_EQ(lines[3].line, 7u) << flags;
    for (const SourceLine& line : lines)
      EXPECT_TRUE(line.file.ends_with("inner/sample.cpp")) << flags << ": " << line.file;
  }
  EXPECT_GE(made, 4u);
}

TEST(LineTable, FromVersion5OnTheFileHasItsWholePath) {
  const CompiledSample sample("-gdwarf-5");
  ASSERT_TRUE(sample.is_made());
  const std::vector<SourceLine> lines = lines_at(sample, {sample.symbol(kFirstFunction).address});
  EXPECT_TRUE(lines[0].file.starts_with('/')) << lines[0].file;
}

TEST(LineTable, AnAddressBetweenOrOutsideOfTheCodeHasNoLine) {
  const CompiledSample sample("-g");
  ASSERT_TRUE(sample.is_made());
  const auto lines = lines_at(sample, {0, 1, ~std::uint64_t{0}, sample.symbol(kFirstFunction).address - 1});
  for (const SourceLine& line : lines) EXPECT_EQ(line.line, 0u);
}

// Version 2: one sequence of 32 bytes at the address, all of it line 1 of a.c.
std::string program_at(std::uint64_t address) {
  const std::string tables(
      "\x01\x01\xfb\x0e\x0a"
      "\0\x01\x01\x01\x01\0\0\0\x01"
      "\0"
      "a.c\0\0\0\0"
      "\0",
      5 + 9 + 1 + 7 + 1);
  std::string code("\0\x09\x02", 3);
  code.append(reinterpret_cast<const char*>(&address), sizeof address);
  code.append(
      "\x01"
      "\x02\x20"
      "\0\x01\x01",
      6);
  const auto number = [](std::size_t value) { return std::string{static_cast<char>(value), 0, 0, 0}; };
  const std::string body = std::string("\x02\0", 2) + number(tables.size()) + tables + code;
  return number(body.size()) + body;
}

TEST(LineTable, CodeThatTheLinkerDroppedAnswersNothing) {
  const auto line_at = [](const std::string& program, std::uint64_t address) {
    LineSections sections;
    sections.line = {reinterpret_cast<const std::uint8_t*>(program.data()), program.size()};
    const FoundLines found = find_lines(sections, {address});
    EXPECT_EQ(found.damaged_programs, 0u);
    return found.lines[0].line;
  };
  EXPECT_EQ(line_at(program_at(0x1000), 0x101f), 1u);
  EXPECT_EQ(line_at(program_at(0x1000), 0x1020), 0u);
  EXPECT_EQ(line_at(program_at(0), 0x10), 0u) << "linkers leave the lines of code that is not in the file at address 0";
}

TEST(LineTable, DamagedProgramsAreCountedAndNotRead) {
  const CompiledSample sample("-g");
  ASSERT_TRUE(sample.is_made());
  const Result<ElfFile> file = ElfFile::read(sample.bytes());
  std::array<std::vector<std::uint8_t>, 3> storage;
  const LineSections whole = line_sections(*file, storage);
  const std::vector<std::uint64_t> addresses = {sample.symbol(kFirstFunction).address};
  for (std::size_t size = 1; size < whole.line.size(); ++size) {
    LineSections cut = whole;
    cut.line = whole.line.first(size);
    EXPECT_EQ(find_lines(cut, addresses).damaged_programs, 1u) << size;
  }
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::uint8_t> bytes(whole.line.begin(), whole.line.end());
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    LineSections changed = whole;
    changed.line = bytes;
    EXPECT_EQ(find_lines(changed, addresses).lines.size(), 1u);
  }
}

}  // namespace
}  // namespace faultline
