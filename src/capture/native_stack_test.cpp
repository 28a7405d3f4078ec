#include "capture/native_stack.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "capture/frame_rules.h"

// The reader leaves out its own library, so it is used through one: stack_probe.
extern "C" std::size_t probe_native(std::uintptr_t* addresses, std::size_t most);
extern "C" bool probe_describe_native(std::uintptr_t address, char* module, int size, std::uint64_t* offset);
extern "C" std::uint64_t probe_native_unwound();

namespace {

using faultline::capture::find_frame_rule;
using faultline::capture::FrameRule;
using Stack = std::vector<std::uintptr_t>;
using Next = Stack (*)(int);

// A function that stays a frame of its own: not inlined, not copied for a constant argument, its last call no jump.
#if defined(__clang__)
#define FAULTLINE_FRAME __attribute__((noinline, optnone))
#else
#define FAULTLINE_FRAME __attribute__((noipa))
#endif

// Every stack read in these tests is compared with what an unwinder that keeps nothing finds at the same place.
_Unwind_Reason_Code add_address(_Unwind_Context* context, void* stack) {
  if (_Unwind_GetIP(context) != 0) static_cast<Stack*>(stack)->push_back(_Unwind_GetIP(context));
  return _URC_NO_REASON;
}

FAULTLINE_FRAME Stack read(int) {
  Stack stack(256);
  stack.resize(probe_native(stack.data(), stack.size()));
  Stack expected;
  _Unwind_Backtrace(add_address, &expected);
  expected[0] = stack[0];  // this function, but another call
  EXPECT_EQ(stack, expected);
  return stack;
}

FAULTLINE_FRAME Stack recurse(int depth) {
  Stack stack = depth == 0 ? read(0) : recurse(depth - 1);
  asm volatile("" ::: "memory");
  return stack;
}

// Two callers of the same function, alike but for their addresses.
FAULTLINE_FRAME Stack left(int depth) {
  Stack stack = recurse(depth);
  asm volatile("nop" ::: "memory");
  return stack;
}
FAULTLINE_FRAME Stack right(int depth) {
  Stack stack = recurse(depth);
  asm volatile("nop; nop" ::: "memory");
  return stack;
}

FAULTLINE_FRAME Stack through_alloca(int bytes) {
  volatile char* room = static_cast<char*>(__builtin_alloca(static_cast<std::size_t>(bytes)));
  room[0] = 1;
  Stack stack = recurse(2);
  asm volatile("" ::"r"(room) : "memory");
  return stack;
}

// Room of any size at the end of a recursion: the same place on the stack is reached over different numbers of frames, above what they left behind.
FAULTLINE_FRAME Stack recurse_to_alloca(int depth, int bytes) {
  Stack stack;
  if (depth > 0) {
    stack = recurse_to_alloca(depth - 1, bytes);
  } else {
    volatile char* room = static_cast<char*>(__builtin_alloca(static_cast<std::size_t>(bytes)));
    room[0] = 1;
    stack = read(0);
    asm volatile("" ::"r"(room) : "memory");
  }
  asm volatile("" ::: "memory");
  return stack;
}

// A frame that moves itself to a multiple of 64 bytes.
FAULTLINE_FRAME Stack aligned(int depth) {
  alignas(64) volatile char room[64];
  room[0] = 1;
  volatile char* more = static_cast<char*>(__builtin_alloca(static_cast<std::size_t>(depth) * 16 + 16));
  more[0] = 1;
  Stack stack = depth == 0 ? read(0) : aligned(depth - 1);
  asm volatile("" ::"r"(room), "r"(more) : "memory");
  return stack;
}

// So that everything around the call is the same every time.
FAULTLINE_FRAME Stack from_one_place(Next function, int argument) {
  Stack stack = function(argument);
  asm volatile("" ::: "memory");
  return stack;
}

TEST(NativeStack, SecondReadFromTheSamePlaceGivesTheSameStack) {
  Stack first;
  for (int i = 0; i < 5; ++i) {
    const Stack stack = recurse(10);
    if (i == 0) first = stack;
    EXPECT_EQ(stack, first);
  }
  ASSERT_GT(first.size(), 12u);
  for (std::size_t i = 2; i < 12; ++i)
    EXPECT_EQ(first[i], first[2]) << "the recursion's frames share one return address";
  EXPECT_NE(first[12], first[2]);
}

TEST(NativeStack, DepthsOfARecursionAreToldApart) {
  const Stack shallow = from_one_place(recurse, 3);
  for (int round = 0; round < 3; ++round) {
    for (int depth = 3; depth < 40; ++depth)
      EXPECT_EQ(from_one_place(recurse, depth).size(), shallow.size() + static_cast<std::size_t>(depth) - 3);
  }
}

TEST(NativeStack, SameReturnAddressWithDifferentCallersGivesDifferentStacks) {
  const Stack by_left = from_one_place(left, 4);
  const Stack by_right = from_one_place(right, 4);
  ASSERT_EQ(by_left.size(), by_right.size());
  std::size_t differences = 0;
  for (std::size_t i = 0; i < by_left.size(); ++i) differences += by_left[i] != by_right[i];
  EXPECT_EQ(differences, 2u) << "the caller, and the test that called it";
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(from_one_place(left, 4)[6], by_left[6]);
    EXPECT_EQ(from_one_place(right, 4)[6], by_right[6]);
  }
}

TEST(NativeStack, FramesOfChangingSizeAreFollowed) {
  const std::size_t frames = from_one_place(through_alloca, 16).size();
  for (int round = 0; round < 3; ++round) {
    for (int bytes = 16; bytes < 4096; bytes += 16) EXPECT_EQ(from_one_place(through_alloca, bytes).size(), frames);
  }
}

TEST(NativeStack, WhatEarlierFramesLeftBehindIsNotTakenForAFrame) {
  const std::size_t base = recurse_to_alloca(0, 16).size();
  for (int bytes = 16; bytes < 4096; bytes += 48) {
    for (int depth = 0; depth < 12; ++depth)
      ASSERT_EQ(recurse_to_alloca(depth, bytes).size(), base + static_cast<std::size_t>(depth));
  }
}

TEST(NativeStack, FramesThatAlignThemselvesAreFollowed) {
  for (int depth = 0; depth < 40; ++depth) EXPECT_GT(aligned(depth).size(), static_cast<std::size_t>(depth));
}

TEST(NativeStack, OrdinaryFramesHaveRules) {
  for (const Stack& stack : {recurse(3), through_alloca(64), aligned(3)}) {
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_NE(find_frame_rule(stack[i]).kind, FrameRule::Kind::kNone) << "frame " << i;
  }
  EXPECT_EQ(find_frame_rule(through_alloca(64)[4]).kind, FrameRule::Kind::kFramePointer);
  EXPECT_EQ(find_frame_rule(8).kind, FrameRule::Kind::kNone);
}

TEST(NativeStack, LeavesItsOwnLibraryOut) {
  for (int round = 0; round < 2; ++round) {
    for (const std::uintptr_t address : read(0)) {
      char module[4096];
      std::uint64_t offset = 0;
      ASSERT_TRUE(probe_describe_native(address, module, sizeof module, &offset));
      EXPECT_EQ(std::string(module).find("stack_probe"), std::string::npos);
    }
  }
}

TEST(NativeStack, ShortBufferGetsTheInnermostFrames) {
  for (int round = 0; round < 2; ++round) {
    const Stack whole = read(0);
    std::array<std::uintptr_t, 3> some{};
    EXPECT_EQ(probe_native(some.data(), some.size()), some.size());
    EXPECT_EQ(probe_native(nullptr, 0), 0u);
    ASSERT_GT(whole.size(), 4u);
    // The same callers: whole[0] is read()'s own frame, whole[1] and some[0] this function's, by two of its calls.
    EXPECT_EQ((Stack{some[1], some[2]}), (Stack{whole[2], whole[3]}));
  }
}

TEST(NativeStack, ThreadsHaveTheirOwnStacks) {
  std::vector<std::thread> threads;
  std::array<bool, 8> right_depth{};
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([number, &right_depth] {
      const std::size_t base = recurse(0).size();
      bool good = base > 1;
      for (int i = 0; i < 2000; ++i)
        good = good && recurse(number + i % 3).size() == base + static_cast<std::size_t>(number + i % 3);
      right_depth[static_cast<std::size_t>(number)] = good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const bool good : right_depth) EXPECT_TRUE(good);
}

TEST(NativeStack, MoreStacksThanAreKeptStayRight) {
  const std::size_t base = from_one_place(recurse, 0).size();
  for (int round = 0; round < 2; ++round) {
    for (int bytes = 16; bytes < 65536; bytes += 16) {
      const std::size_t frames = through_alloca(bytes).size();
      ASSERT_GE(frames, base);
    }
    EXPECT_EQ(from_one_place(recurse, 7).size(), base + 7);
  }
}

TEST(NativeStack, FrameIsDescribedByItsFileAndOffset) {
  const Stack stack = read(0);
  ASSERT_FALSE(stack.empty());
  char module[4096];
  std::uint64_t offset = 0;
  ASSERT_TRUE(probe_describe_native(stack[0], module, sizeof module, &offset));
  std::array<char, 4096> program{};
  ASSERT_GT(readlink("/proc/self/exe", program.data(), program.size() - 1), 0);
  EXPECT_STREQ(module, program.data());
  Dl_info found{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(stack[0]), &found), 0);
  EXPECT_EQ(offset, stack[0] - 1 - reinterpret_cast<std::uintptr_t>(found.dli_fbase));

  ASSERT_TRUE(probe_describe_native(reinterpret_cast<std::uintptr_t>(&getpid) + 1, module, sizeof module, &offset));
  EXPECT_NE(std::string(module).find("libc"), std::string::npos);
  EXPECT_EQ(module[0], '/');
}

TEST(NativeStack, AddressInNoFileIsNotDescribed) {
  char module[16];
  std::uint64_t offset = 0;
  std::vector<char> memory(64);
  EXPECT_FALSE(
      probe_describe_native(reinterpret_cast<std::uintptr_t>(memory.data()) + 8, module, sizeof module, &offset));
}

// Reads at one place, and for how many of them the unwinder was asked.
FAULTLINE_FRAME std::uint64_t unwound_at(int depth) {
  std::uint64_t unwound = 0;
  if (depth > 0) {
    unwound = unwound_at(depth - 1);
  } else {
    const std::uint64_t before = probe_native_unwound();
    std::array<std::uintptr_t, 256> addresses;
    for (int call = 0; call < 20000; ++call) EXPECT_GT(probe_native(addresses.data(), addresses.size()), 0u);
    unwound = probe_native_unwound() - before;
  }
  asm volatile("" ::: "memory");
  return unwound;
}

TEST(NativeStack, OnlyAStackWithANewAddressIsUnwound) {
  std::thread([] {  // that has met no address
    EXPECT_EQ(unwound_at(10), 1u);
    EXPECT_EQ(unwound_at(10), 1u);  // from another line
    EXPECT_EQ(unwound_at(30), 1u);
    for (int line = 0; line < 2; ++line) EXPECT_EQ(unwound_at(10), line == 0 ? 1u : 0u);
  })
      .join();
}

}  // namespace
