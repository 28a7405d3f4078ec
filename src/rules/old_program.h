// What programs that were written for TensorFlow 1 end in under TensorFlow 2, and what runs them.
#pragma once

#include <array>
#include <string_view>

namespace faultline {

// Empty: the message is none of theirs.
inline std::string_view remedy_for_old_program(std::string_view message) {
  constexpr std::string_view kCompat =
      "This is a program for TensorFlow 1: `import tensorflow.compat.v1 as tf` and `tf.disable_v2_behavior()` run it "
      "as it is.";
  constexpr std::string_view kEager =
      "A tensor that is computed at once (eager) is no part of a session's graph: read it with `.numpy()`, or call "
      "`tf.compat.v1.disable_eager_execution()` before anything is made.";
  struct OldProgram {
    std::string_view words, remedy;
  };
  constexpr std::array<OldProgram, 7> kOldPrograms = {{
      {"module 'tensorflow' has no attribute", kCompat},
      {"is not compatible with eager execution", kCompat},
      {"is not supported when eager execution is enabled", kCompat},
      {"The Session graph is empty", kEager},
      {"is undefined when eager execution is enabled", kEager},
      {"Tensor.graph is", kEager},
      {"EagerTensor' object has no attribute", kEager},
  }};
  for (const OldProgram& known : kOldPrograms) {
    if (message.find(known.words) != std::string_view::npos) return known.remedy;
  }
  return {};
}

}  // namespace faultline
