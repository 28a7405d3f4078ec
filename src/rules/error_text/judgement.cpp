#include "rules/error_text/judgement.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/units.h"
#include "sources/error_text/error_text.h"

namespace faultline {
namespace {

bool is_library(std::string_view file) {
  static constexpr std::array<std::string_view, 9> kMarks = {"site-packages", "dist-packages", "/lib/python3",     "/lib64/python3", "\\lib\\",
                                                             "<frozen ",      "<string>",      "torch/nn/modules", "/python3."};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) { return file.find(mark) != std::string_view::npos; });
}

Location location_of(const Trace& trace, StackId stack) {
  const Frame& frame = trace.stacks.frame(stack);
  Location location;
  location.file = trace.strings.at(frame.file);
  location.line = frame.line;
  location.function = trace.strings.at(frame.function);
  return location;
}

}  // namespace

Finding finding_from(const Trace& trace, std::string rule) {
  Finding finding;
  finding.rule = std::move(rule);
  finding.severity = Severity::kError;
  const Event& event = trace.events.front();
  finding.device = event.device;
  for (StackId stack = event.stack; stack != StackId(); stack = trace.stacks.parent(stack)) {
    const Location location = location_of(trace, stack);
    if (!is_library(location.file)) finding.call_path.push_back(location);
  }
  if (!finding.call_path.empty())
    finding.location = finding.call_path.front();
  else if (event.stack != StackId())
    finding.location = location_of(trace, event.stack);
  finding.count = counter_of(trace, "count");
  const std::size_t slash = finding.location.file.find_last_of("/\\");
  finding.fingerprint = finding.rule + "@" + finding.location.file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" +
                        finding.location.function + "#" + std::string(stated_word(trace, "kind"));
  return finding;
}

std::uint64_t counter_of(const Trace& trace, std::string_view name) {
  const std::string_view word = stated_word(trace, name);
  std::uint64_t number = 1;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

std::string program_of(const Trace& trace) {
  std::string file;
  for (StackId stack = trace.events.front().stack; stack != StackId(); stack = trace.stacks.parent(stack)) {
    const Location location = location_of(trace, stack);
    if (location.file.ends_with(".py") && !is_library(location.file)) file = location.file;
  }
  const std::size_t slash = file.find_last_of("/\\");
  file = file.substr(slash == std::string::npos ? 0 : slash + 1);
  return "python " + (file.empty() ? std::string("your_program.py") : file);
}

std::string device_of(const Trace& trace) {
  const std::string_view device = stated_word(trace, "device");
  return device.empty() ? "the GPU" : "GPU " + std::string(device);
}

void add_evidence(Finding& finding, const std::string& name, std::uint64_t value) {
  constexpr auto kTop = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  finding.evidence.push_back({name, static_cast<std::int64_t>(std::min(value, kTop))});
}
void add_evidence(Finding& finding, const std::string& name, const std::optional<PrintedBytes>& bytes) {
  if (bytes) add_evidence(finding, name, bytes->middle());
}
void add_evidence(Finding& finding, const std::string& name, std::string word) {
  if (!word.empty()) finding.evidence.push_back({name, std::move(word)});
}
void add_try(Finding& finding, std::string what) {
  finding.tries.push_back({std::move(what), std::nullopt, 0});
}

void add_recording_tries(const Trace& trace, Finding& finding) {
  if (stated_word(trace, "framework") != "pytorch" && !stated_word(trace, "framework").empty()) return;
  add_try(finding,
          "record the next run to see which lines hold the memory: call torch.cuda.memory._record_memory_history() at the start and "
          "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") when it fails, then: faultline explain snapshot.pickle");
}

void add_sanitizer_try(const Trace& trace, Finding& finding) {
  add_try(finding, "have the kernel and the address named: PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer " + program_of(trace) +
                       " (slow; without that variable it cannot see past a tensor's end inside PyTorch's cache)");
}

std::string shown(PrintedBytes bytes) {
  return format_bytes(bytes.middle());
}

}  // namespace faultline
