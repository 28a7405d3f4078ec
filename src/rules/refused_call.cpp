#include "rules/refused_call.h"

#include <algorithm>

#include "facts/libraries.h"

namespace faultline {

bool Refusal::blames_arguments() const {
  for (const std::string_view word : {"INVALID_VALUE", "INVALID_HANDLE", "HOST_MEMORY_NOT_REGISTERED",
                                      "INVALID_DEVICE_POINTER", "MAP_FAILED", "NOT_MAPPED"}) {
    if (error.find(word) != std::string::npos) return true;
  }
  return error.empty();
}

Refusal refusal_of(const Trace& trace, std::uint32_t event) {
  constexpr std::uint32_t kLooksAhead = 4;  // other threads' events may stand between
  const Event& refused = trace.events[event];
  const auto end =
      static_cast<std::uint32_t>(std::min<std::size_t>(trace.events.size(), std::size_t{event} + 1 + kLooksAhead));
  for (std::uint32_t index = event + 1; index < end; ++index) {
    const Event& at = trace.events[index];
    if (at.kind != EventKind::kOpEnd || !at.has(kFailed) || at.thread != refused.thread) continue;
    const std::string words(trace.strings.at(StringId(at.extra)));
    const std::size_t colon = words.find(": ");
    if (colon == std::string::npos) return {words, {}};
    return {words.substr(0, colon), words.substr(colon + 2)};
  }
  return {};
}

std::string asking_library(const Facts& facts, StackId stack) {
  if (facts.stacks.user(stack).value != 0) return {};
  const std::string library = library_of(facts.trace, stack);
  return library == "the program" ? std::string() : library;
}

}  // namespace faultline
