// Native stacks of the calling thread, cheap enough for every launch.
//
// The C++ runtime's unwinder costs hundreds of nanoseconds a frame, because it reads and interprets at every frame what the compiler wrote down about
// it. That depends on the return address alone, so what it comes to is kept per thread, and a stack whose return addresses have all been met
// is walked in a few nanoseconds a frame. Nothing is guessed: a frame that cannot be described so is left to the unwinder, with its whole stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace faultline::capture {

struct NativeFrameText {
  std::string module;  // path of the file that holds the code
  // of the call instruction's last byte in that file's own addresses (return address - 1 - load bias)
  std::uint64_t offset = 0;
};

// Return addresses, innermost first, without those of this library itself. How many were written.
std::size_t read_native_stack(std::span<std::uintptr_t> return_addresses);
// Of this thread's stacks, those for which the unwinder was asked: all others were walked by what is kept.
std::uint64_t native_stacks_unwound();
// False: the address lies in no loaded file (generated code).
bool describe_native_frame(std::uintptr_t return_address, NativeFrameText& text);

}  // namespace faultline::capture
