// How to step from a return address to its caller: what the compiler wrote down in .eh_frame, boiled down to two small sums.
//
// The unwinder of the C++ runtime interprets this information again at every frame of every stack. Nearly all frames are described by one of very few
// forms, and the form depends on the return address alone, so it can be kept. Frames of any other form have no rule here. x86-64 only.
#pragma once

#include <cstdint>

namespace faultline::capture {

struct FrameRule {
  enum class Kind : std::uint8_t {
    kNone,          // not one of the forms below
    kEnd,           // the outermost frame
    kStackPointer,  // the caller's frame begins at rsp + offset
    kFramePointer,  // … at rbp + offset
    kSavedPointer,  // … where the word at rbp + offset says (a frame aligned to more than 16 bytes)
  };
  enum class FramePointer : std::uint8_t {
    kKept,         // rbp is the caller's
    kSaved,        // the caller's is saved at the caller's frame + frame_pointer_offset
    kSavedNearby,  // … at rbp + frame_pointer_offset
  };
  Kind kind = Kind::kNone;
  FramePointer frame_pointer = FramePointer::kKept;
  std::int32_t offset = 0;
  std::int32_t frame_pointer_offset = 0;
};

FrameRule find_frame_rule(std::uintptr_t return_address);

}  // namespace faultline::capture
