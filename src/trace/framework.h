// The frameworks that Faultline knows by themselves, and their names: the only place where those are decided.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace faultline {

struct Trace;

enum class Framework : std::uint8_t {
  kNone,
  kPyTorch,
  kJax,
  kTensorFlow,
  kTensorFlowOrJax,  // of the allocator that both share, where nothing tells which
  kOther,            // another program
};

struct FrameworkNames {
  Framework framework;
  std::string_view in_files, words;
};
inline constexpr std::array kFrameworks = {
    FrameworkNames{Framework::kPyTorch, "pytorch", "PyTorch"}, FrameworkNames{Framework::kJax, "jax", "JAX"},
    FrameworkNames{Framework::kTensorFlow, "tensorflow", "TensorFlow"},
    FrameworkNames{Framework::kTensorFlowOrJax, "TensorFlow or JAX", "TensorFlow or JAX"}};

// "jax", in traces, reports and settings; empty for those without a name.
constexpr std::string_view file_name_of(Framework framework) {
  for (const FrameworkNames& known : kFrameworks) {
    if (known.framework == framework) return known.in_files;
  }
  return {};
}
// "JAX", in sentences.
constexpr std::string_view words_of(Framework framework) {
  for (const FrameworkNames& known : kFrameworks) {
    if (known.framework == framework) return known.words;
  }
  return {};
}
// By either name.
constexpr Framework framework_named(std::string_view name) {
  for (const FrameworkNames& known : kFrameworks) {
    if (known.in_files == name || known.words == name) return known.framework;
  }
  return name.empty() ? Framework::kNone : Framework::kOther;
}

// Of the allocator that TensorFlow and JAX share.
constexpr bool has_pool(Framework framework) {
  return framework == Framework::kTensorFlow || framework == Framework::kJax ||
         framework == Framework::kTensorFlowOrJax;
}

// The property of a trace that says whose pools are in it.
inline constexpr const char* kPoolsFramework = "bfc.framework";
Framework pools_framework(const Trace& trace);

}  // namespace faultline
