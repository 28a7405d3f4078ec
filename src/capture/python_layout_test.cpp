// The learner on memory laid out as the structures of each CPython version are; the interpreters themselves are tried in
// tests/python/run/test_python_stack.py.
#include "capture/python_layout.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace faultline::capture {
namespace {

struct Version {
  const char* name;
  PythonLayout::Chain chain;
  PythonLayout::Instruction instruction;
  std::uint16_t file, name_offset, line_table, first_line;
  bool tagged = false;          // low bits of the code pointer
  bool has_own_frames = false;  // frames of the interpreter's own between Python's
};

// As the headers of each version have them on a 64-bit machine.
const std::array kVersions{
    Version{"3.9", {24, PythonLayout::kDirect, 32, 24}, {104, false, 0, 1}, 104, 112, 120, 40},
    Version{"3.10", {24, PythonLayout::kDirect, 32, 24}, {96, false, 0, 2}, 104, 112, 120, 40},
    Version{"3.11", {56, 8, 32, 48}, {56, true, 192, 1}, 112, 128, 136, 72},
    Version{"3.12", {56, 0, 0, 8}, {56, true, 192, 1}, 112, 128, 136, 68, false, true},
    Version{"3.13", {72, PythonLayout::kDirect, 0, 8}, {56, true, 200, 1}, 112, 128, 136, 68, false, true},
    Version{"3.14", {72, PythonLayout::kDirect, 0, 8}, {56, true, 208, 1}, 112, 128, 136, 68, true, true},
};

// A thread state with frames, made of blocks that stay where they are.
class Image {
 public:
  explicit Image(const Version& version) : version_(version), thread_(block(512)), record_(block(64)) {
    // What else a thread state holds: small numbers, and pointers to things that are no frames.
    for (std::uint16_t offset = 0; offset < 512; offset += 8)
      put(thread_, offset, offset % 24 == 0 ? block(64) : std::uintptr_t{offset});
    put(thread_, 16, std::uintptr_t{0xdead0000beef0000});
  }

  // Frames from the outermost in; the truth comes out innermost first.
  void call(int function, std::int32_t instruction) {
    const std::uintptr_t code = code_of(function);
    if (version_.has_own_frames && frames_.size() % 2 == 1) push(own_code(), 0);
    push(code, instruction);
    truth_.insert(truth_.begin(), {code, instruction});
  }
  void clear() {
    truth_.clear();
    frames_.clear();
    top_ = 0;
    set_top();
  }

  std::uintptr_t thread() const { return thread_; }
  const std::vector<FrameTruth>& truth() const { return truth_; }
  const std::vector<CodeTruth>& codes() const { return codes_; }
  void put(std::uintptr_t at, std::uint16_t offset, auto value) {
    std::memcpy(reinterpret_cast<void*>(at + offset), &value, sizeof value);
  }
  std::uintptr_t top() const { return top_; }

 private:
  std::uintptr_t block(std::size_t size_bytes) {
    blocks_.emplace_back(size_bytes / 8);
    return reinterpret_cast<std::uintptr_t>(blocks_.back().data());
  }

  std::uintptr_t code_of(int function) {
    while (codes_.size() <= static_cast<std::size_t>(function)) {
      CodeTruth code{block(512), block(64), block(64), block(64), static_cast<std::int32_t>(31 + 17 * codes_.size())};
      if (!codes_.empty()) code.file = codes_[0].file;
      put(code.code, version_.file, code.file);
      put(code.code, version_.name_offset, code.name);
      put(code.code, version_.line_table, code.line_table);
      put(code.code, version_.first_line, code.first_line);
      codes_.push_back(code);
    }
    return codes_[static_cast<std::size_t>(function)].code;
  }

  std::uintptr_t own_code() {
    if (own_code_ == 0) own_code_ = block(256);
    return own_code_;
  }

  void push(std::uintptr_t code, std::int32_t instruction) {
    const std::uintptr_t frame = block(256);
    put(frame, version_.chain.code_offset, code | (version_.tagged ? 1u : 0u));
    put(frame, version_.chain.previous_offset, top_);
    if (version_.instruction.is_pointer) {
      put(frame, version_.instruction.offset,
          code + static_cast<std::uintptr_t>(version_.instruction.bias + instruction));
    } else {
      put(frame, version_.instruction.offset, instruction / version_.instruction.scale);
    }
    frames_.push_back(frame);
    top_ = frame;
    set_top();
  }

  void set_top() {
    if (version_.chain.record_offset == PythonLayout::kDirect) {
      put(thread_, version_.chain.thread_offset, top_);
    } else {
      put(thread_, version_.chain.thread_offset, record_);
      put(record_, version_.chain.record_offset, top_);
    }
  }

  const Version& version_;
  std::deque<std::vector<std::uintptr_t>> blocks_;
  std::uintptr_t thread_, record_;
  std::uintptr_t top_ = 0;
  std::uintptr_t own_code_ = 0;
  std::vector<std::uintptr_t> frames_;
  std::vector<FrameTruth> truth_;
  std::vector<CodeTruth> codes_;
};

class EveryVersion : public testing::TestWithParam<Version> {};

TEST_P(EveryVersion, PlacesAreFoundFromTwoStacks) {
  const Version& version = GetParam();
  Image image(version);
  LayoutLearner learner;
  for (int i = 0; i < 3; ++i) image.call(i, 10 + 12 * i);
  ASSERT_TRUE(learner.observe(image.thread(), image.truth(), image.codes()));
  EXPECT_FALSE(learner.ready()) << "one stack is no proof";
  for (int i = 0; i < 3; ++i) image.call(i + 1, 60 + 2 * i);
  ASSERT_TRUE(learner.observe(image.thread(), image.truth(), image.codes()));
  ASSERT_TRUE(learner.ready());
  const PythonLayout layout = learner.layout();
  EXPECT_EQ(layout.chain, version.chain);
  EXPECT_EQ(layout.instruction, version.instruction);
  EXPECT_EQ(layout.file_offset, version.file);
  EXPECT_EQ(layout.name_offset, version.name_offset);
  EXPECT_EQ(layout.line_table_offset, version.line_table);
  EXPECT_EQ(layout.first_line_offset, version.first_line);
}

TEST_P(EveryVersion, StackThatDoesNotFitStartsTheSearchAnew) {
  Image image(GetParam());
  LayoutLearner learner;
  for (int i = 0; i < 4; ++i) image.call(i, 10 + 12 * i);
  ASSERT_TRUE(learner.observe(image.thread(), image.truth(), image.codes()));
  std::vector<FrameTruth> wrong = image.truth();
  wrong[1].instruction += 2;
  EXPECT_FALSE(learner.observe(image.thread(), wrong, image.codes()));
  EXPECT_FALSE(learner.ready());
  image.call(4, 90);
  EXPECT_TRUE(learner.observe(image.thread(), image.truth(), image.codes()));
  EXPECT_FALSE(learner.ready());
}

TEST_P(EveryVersion, TooShortAStackTeachesNothing) {
  Image image(GetParam());
  LayoutLearner learner;
  image.call(0, 4);
  image.call(1, 8);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(learner.observe(image.thread(), image.truth(), image.codes()));
  EXPECT_FALSE(learner.ready());
}

TEST_P(EveryVersion, FramesThatCannotBeReadEndTheSearchQuietly) {
  Image image(GetParam());
  LayoutLearner learner;
  for (int i = 0; i < 4; ++i) image.call(i, 10 + 12 * i);
  image.put(image.top(), GetParam().chain.previous_offset, std::uintptr_t{0x10});
  EXPECT_FALSE(learner.observe(image.thread(), image.truth(), image.codes()));
  EXPECT_FALSE(learner.ready());
}

INSTANTIATE_TEST_SUITE_P(Python, EveryVersion, testing::ValuesIn(kVersions), [](const auto& test) {
  std::string name = test.param.name;
  name[1] = '_';
  return name;
});

TEST(ReadOwnMemory, StopsWhereMemoryEnds) {
  constexpr std::size_t kPage = 4096;
  auto* pages =
      static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages + kPage, kPage, PROT_NONE), 0);
  std::memset(pages, 'x', kPage);
  std::array<char, 128> copy{};
  const auto address = reinterpret_cast<std::uintptr_t>(pages);
  EXPECT_EQ(read_own_memory(address + kPage - 128, copy.data(), copy.size()), 128u);
  EXPECT_EQ(read_own_memory(address + kPage - 40, copy.data(), copy.size()), 40u);
  EXPECT_EQ(copy[39], 'x');
  EXPECT_EQ(read_own_memory(address + kPage, copy.data(), copy.size()), 0u);
  EXPECT_EQ(read_own_memory(8, copy.data(), copy.size()), 0u);
  munmap(pages, 2 * kPage);
}

// Makes process_vm_readv fail as a container's sandbox does.
bool forbid_reading_processes() {
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{filter.size(), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ReadOwnMemory, WorksInASandboxToo) {
  const pid_t child = fork();
  if (child == 0) {
    if (!forbid_reading_processes()) _exit(2);
    const std::array<char, 5> text{'t', 'e', 'x', 't', 0};
    std::array<char, 5> copy{};
    const bool read =
        read_own_memory(reinterpret_cast<std::uintptr_t>(text.data()), copy.data(), copy.size()) == 5 && copy == text;
    _exit(read && read_own_memory(8, copy.data(), copy.size()) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this machine allows no filters";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace faultline::capture
