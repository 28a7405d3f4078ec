#include "sources/symbolise.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <climits>

#include "base/elf/compiled_sample.h"
#include "trace/validate.h"

namespace faultline {
namespace {

class StackMaker {
 public:
  explicit StackMaker(Trace& trace) : trace_(trace) {}
  FrameId native(const std::string& module, std::uint64_t offset) {
    return frame(fmt::format("+0x{:x}", offset), module, 0);
  }
  FrameId frame(const std::string& function, const std::string& file, std::uint32_t line) {
    return trace_.stacks.intern_frame({trace_.strings.intern(function), trace_.strings.intern(file), line});
  }
  // An event from this stack, innermost frame first.
  void event(const std::vector<FrameId>& frames) {
    Event event;
    event.kind = EventKind::kLaunch;
    event.stack = trace_.stacks.intern(frames);
    trace_.events.push_back(event);
  }

 private:
  Trace& trace_;
};

std::string shown(const Trace& trace, StackId stack) {
  std::string text;
  for (; stack != StackId(); stack = trace.stacks.parent(stack)) {
    const Frame& frame = trace.stacks.frame(stack);
    std::string_view file = trace.strings.at(frame.file);
    file.remove_prefix(file.rfind('/') + 1);
    text += fmt::format("{} {}:{}; ", trace.strings.at(frame.function), file, frame.line);
  }
  return text;
}

TEST(Symbolise, FramesOfAModuleWithLinesBecomeSourceLines) {
  const CompiledSample sample("-g");
  ASSERT_TRUE(sample.is_made());
  const ElfSymbol first = sample.symbol(kFirstFunction);
  const ElfSymbol second = sample.symbol(kSecondFunction);
  Trace trace;
  StackMaker make(trace);
  make.event({make.native(sample.library(), second.address + second.size_bytes - 1),
              make.native(sample.library(), first.address), make.frame("main", "train.py", 12)});
  symbolise(trace);
  EXPECT_EQ(shown(trace, trace.events[0].stack),
            "sample::second_function(int, char) sample.cpp:10; first_function(int) sample.cpp:2; main train.py:12; ");
  EXPECT_TRUE(trace.lost.empty());
  EXPECT_TRUE(check_trace(trace).ok());
}

TEST(Symbolise, WithoutLinesTheFunctionIsNamedAndTheModuleStays) {
  const CompiledSample sample("-s");  // stripped: what it exports is still named
  ASSERT_TRUE(sample.is_made());
  Trace trace;
  StackMaker make(trace);
  make.event(
      {make.native(sample.library(), sample.symbol(kFirstFunction).address + 1), make.native(sample.library(), 1)});
  symbolise(trace);
  EXPECT_EQ(shown(trace, trace.events[0].stack), "first_function(int) sample.so:0; +0x1 sample.so:0; ");
}

TEST(Symbolise, StacksThatBecameEqualAreOneAndOthersStayApart) {
  const CompiledSample sample("-g");
  ASSERT_TRUE(sample.is_made());
  const ElfSymbol first = sample.symbol(kFirstFunction);
  Trace trace;
  StackMaker make(trace);
  make.event({make.native(sample.library(), first.address)});
  make.event({make.native(sample.library(), first.address + 1)});
  make.event({make.native(sample.library(), first.address + first.size_bytes - 1)});
  make.event({});
  symbolise(trace);
  EXPECT_EQ(trace.events[0].stack, trace.events[1].stack);
  EXPECT_NE(trace.events[0].stack, trace.events[2].stack);
  EXPECT_EQ(trace.events[3].stack, StackId());
}

TEST(Symbolise, AMissingModuleIsCountedAndItsFramesStay) {
  Trace trace;
  StackMaker make(trace);
  make.event({make.native("/no/such/library.so", 0x1234), make.native("/no/such/library.so", 0x99)});
  symbolise(trace);
  EXPECT_EQ(shown(trace, trace.events[0].stack), "+0x1234 library.so:0; +0x99 library.so:0; ");
  EXPECT_EQ(trace.lost.at("symbolise.missing_modules"), 1u);
  symbolise(trace);  // as when it was saved and is read again
  EXPECT_EQ(trace.lost.at("symbolise.missing_modules"), 1u);
}

TEST(Symbolise, AModuleNewerThanTheTraceIsNotBelieved) {
  const CompiledSample sample("-g");
  ASSERT_TRUE(sample.is_made());
  Trace trace;
  trace.capabilities = kTimes;
  StackMaker make(trace);
  make.event({make.native(sample.library(), sample.symbol(kFirstFunction).address)});
  trace.events[0].time_ns = 1'500'000'000'000'000'000;  // 2017
  symbolise(trace);
  EXPECT_TRUE(shown(trace, trace.events[0].stack).starts_with("+0x"));
  EXPECT_EQ(trace.lost.at("symbolise.changed_modules"), 1u);
}

TEST(Symbolise, PythonFramesAndOddOnesAreLeftAlone) {
  Trace trace;
  StackMaker make(trace);
  make.event({make.frame("forward", "model.py", 30), make.frame("+0xzz", "/lib/x.so", 0), make.frame("+0x10", "", 0),
              make.frame("+0x10", "model.py", 3)});
  const std::string before = shown(trace, trace.events[0].stack);
  symbolise(trace);
  EXPECT_EQ(shown(trace, trace.events[0].stack), before);
  EXPECT_TRUE(trace.lost.empty());
}

extern "C" [[gnu::noinline, gnu::used]] std::uintptr_t faultline_symbolise_test_here() {
  return reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
}
[[gnu::noinline]] std::uintptr_t calling_function() {
  const std::uintptr_t here = faultline_symbolise_test_here();
  return here - 1;
}

TEST(Symbolise, FindsAReturnAddressOfThisVeryProgram) {
  char path[PATH_MAX] = {};
  ASSERT_GT(::readlink("/proc/self/exe", path, sizeof path - 1), 0);
  std::uintptr_t load_bias = 0;  // the first object is the program
  ::dl_iterate_phdr(
      [](dl_phdr_info* one, std::size_t, void* bias) {
        *static_cast<std::uintptr_t*>(bias) = one->dlpi_addr;
        return 1;
      },
      &load_bias);
  Trace trace;
  StackMaker make(trace);
  make.event({make.native(path, calling_function() - load_bias)});
  symbolise(trace);
  EXPECT_NE(shown(trace, trace.events[0].stack).find("calling_function"), std::string::npos)
      << shown(trace, trace.events[0].stack);
}

}  // namespace
}  // namespace faultline
