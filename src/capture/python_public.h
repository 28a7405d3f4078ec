// The calling thread's Python frames through CPython's public functions: the truth that a learned layout is measured against, and the way to
// read stacks where none was learned. Everything here needs the GIL, runs no Python code, and leaves the thread's exception as it was.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "capture/python_api.h"
#include "capture/python_layout.h"

namespace faultline::capture {

struct PublicStack {
  std::vector<FrameTruth> frames;  // innermost first
  std::vector<int> lines;
  std::vector<CodeTruth> codes;  // of the frames, each once
};

bool read_public_stack(const PythonApi& python, void* thread, std::size_t most_frames, PublicStack& stack);
std::size_t read_public_frames(const PythonApi& python, void* thread, std::span<PythonFrame> frames);
bool describe_public_frame(const PythonApi& python, const PythonFrame& frame, PythonFrameText& text);

// How objects, str and bytes look, from ones of our own. False: not as expected.
bool learn_objects(const PythonApi& python, PythonLayout& layout);

// UTF-8; what has no UTF-8 (half of a surrogate pair) becomes U+FFFD. Needs no GIL. False: `object` is no str.
bool copy_text(const PythonApi& python, void* object, std::string& text);

}  // namespace faultline::capture
