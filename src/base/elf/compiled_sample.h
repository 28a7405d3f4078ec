// A small library made by the machine's own compiler while a test runs, with debug information of a chosen kind.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "base/elf/elf_file.h"

namespace faultline {

// Line 1 is the comment; the functions' lines are what tests know.
inline constexpr const char* kSampleSource =
    "// a sample\n"
    "int first_function(int x) {\n"
    "  return x + 1;\n"
    "}\n"
    "\n"
    "namespace sample {\n"
    "int second_function(int x, char y) {\n"
    "  int z = x * 2;\n"
    "  return z + y;\n"
    "}\n"
    "}\n";

class CompiledSample {
 public:
  explicit CompiledSample(const std::string& flags) {
    static int count = 0;
    folder_ = testing::TempDir() + "/faultline-sample-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    std::system(("mkdir -p '" + folder_ + "/inner'").c_str());
    std::ofstream(folder_ + "/inner/sample.cpp") << kSampleSource;
    const std::string command =
        "cd '" + folder_ + "' && c++ -O0 -shared -fPIC " + flags + " inner/sample.cpp -o sample.so 2>compiler.log";
    is_made_ = std::system(command.c_str()) == 0;
    std::ifstream in(library(), std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  ~CompiledSample() { std::system(("rm -rf '" + folder_ + "'").c_str()); }
  CompiledSample(const CompiledSample&) = delete;
  CompiledSample& operator=(const CompiledSample&) = delete;

  bool is_made() const { return is_made_; }  // false: this compiler does not know the flags
  std::string folder() const { return folder_; }
  std::string library() const { return folder_ + "/sample.so"; }
  Bytes bytes() const { return {reinterpret_cast<const std::uint8_t*>(bytes_.data()), bytes_.size()}; }
  const std::string& content() const { return bytes_; }

  ElfSymbol symbol(std::string_view mangled) const {
    ElfSymbol found;
    const Result<ElfFile> file = ElfFile::read(bytes());
    if (!file) return found;
    for (const std::uint32_t kind : {kElfSymbolTable, kElfDynamicSymbols}) {
      file->for_each_symbol(kind, [&](const ElfSymbol& symbol) {
        if (symbol.name == mangled) found = symbol;
      });
    }
    return found;
  }

 private:
  std::string folder_;
  std::string bytes_;
  bool is_made_ = false;
};

inline constexpr const char* kFirstFunction = "_Z14first_functioni";
inline constexpr const char* kSecondFunction = "_ZN6sample15second_functionEic";

}  // namespace faultline
