#include "view/moments.h"

#include <algorithm>
#include <optional>

#include "rules/registry.h"
#include "view/groupings.h"

namespace faultline::view {
namespace {

bool is_at(const Trace& trace, const Frame& frame, const Location& place) {
  return place.line != 0 && frame.line == place.line && trace.strings.at(frame.file) == place.file;
}

bool passes(const Trace& trace, StackId stack, const Location& place) {
  for (; stack.value != 0; stack = trace.stacks.parent(stack)) {
    if (is_at(trace, trace.stacks.frame(stack), place)) return true;
  }
  return false;
}

std::optional<std::uint32_t> first_on(const Facts& facts, const std::vector<std::uint32_t>& events,
                                      std::uint16_t device) {
  const auto at = std::find_if(events.begin(), events.end(),
                               [&](std::uint32_t event) { return facts.trace.events[event].device == device; });
  return at == events.end() ? std::nullopt : std::optional(*at);
}

// The first call that failed, of those at the place if there is one.
std::optional<std::uint32_t> failed_call(const Trace& trace, const Location& place) {
  std::optional<std::uint32_t> first;
  for (std::uint32_t at = 0; at < trace.events.size(); ++at) {
    if (!trace.events[at].has(kFailed)) continue;
    if (!first) first = at;
    if (passes(trace, trace.events[at].stack, place)) return at;
  }
  return first;
}

// When the line held most.
std::optional<std::uint32_t> fullest(const Trace& trace, const std::vector<LineMoment>& lines, const Location& place) {
  const LineMoment* most = nullptr;
  for (const LineMoment& line : lines) {
    if (is_at(trace, trace.stacks.frame(line.frame), place) && (most == nullptr || line.bytes > most->bytes))
      most = &line;
  }
  return most == nullptr ? std::nullopt : std::optional(most->event);
}

}  // namespace

std::vector<std::uint32_t> moments_of(const Judgement& judgement, std::size_t device_slot) {
  const Facts& facts = *judgement.facts;
  const DeviceUsage& usage = facts.usage[device_slot];
  std::vector<LineMoment> lines;
  if (!judgement.findings.empty()) lines = line_moments(facts, usage.device);
  std::vector<std::uint32_t> moments;
  for (const Finding& finding : judgement.findings) {
    if (finding.device != usage.device) {
      moments.push_back(kNever);
      continue;
    }
    const Topic topic = topic_of(finding);
    std::optional<std::uint32_t> at;
    if (topic == Topic::kExhausted && !usage.failures.empty()) at = usage.failures.back().event;
    if (topic == Topic::kAccess || !finding.location.kernel.empty()) {
      at = first_on(facts, facts.violations, usage.device);
      if (!at) at = first_on(facts, facts.faults, usage.device);
    }
    if (!at && (topic == Topic::kCall || topic == Topic::kTensors)) at = failed_call(facts.trace, finding.location);
    for (const Location* place : {&finding.location, &finding.allocated_at}) {
      if (!at) at = fullest(facts.trace, lines, *place);
    }
    for (const Location& place : finding.call_path) {
      if (!at) at = fullest(facts.trace, lines, place);
    }
    moments.push_back(at.value_or(facts.focus(device_slot).event));
  }
  return moments;
}

}  // namespace faultline::view
