#include "facts/steps.h"

#include <map>

namespace faultline {

Steps find_steps(const Trace& trace) {
  Steps steps;
  if (!trace.can(kSteps)) return steps;
  const auto kind_of = [&](const Event& event) {
    std::string_view name = trace.strings.at(StringId(event.extra));
    return name.starts_with("ProfilerStep#") ? std::string_view("ProfilerStep#") : name;  // numbered by the profiler
  };
  std::vector<std::uint32_t> marks;
  for (std::size_t index = 0; index < trace.events.size(); ++index) {
    if (trace.events[index].kind == EventKind::kStepMark) marks.push_back(static_cast<std::uint32_t>(index));
  }
  std::map<std::string_view, std::pair<std::size_t, std::size_t>> uses;  // name → count, first position
  for (const std::uint32_t index : marks) {
    auto& [count, first] = uses.try_emplace(kind_of(trace.events[index]), 0, index).first->second;
    ++count;
  }
  std::string_view best;
  for (const auto& [name, use] : uses) {
    if (best.empty() || use.first > uses[best].first ||
        (use.first == uses[best].first && use.second < uses[best].second))
      best = name;
  }
  for (const std::uint32_t index : marks) {
    if (kind_of(trace.events[index]) == best) steps.ends.push_back(index);
  }
  constexpr std::string_view kOptimizer = "Optimizer.step#";
  if (best.starts_with(kOptimizer)) {
    std::string_view name = best.substr(kOptimizer.size());
    if (name.ends_with(".step")) name.remove_suffix(5);
    steps.how = "optimizer steps (" + std::string(name) + ")";
  } else if (best == "optimizer.step") {
    steps.how = "optimizer steps";
  } else if (!best.empty()) {
    steps.how = "profiler steps";
  } else if (!steps.ends.empty()) {
    steps.how = "steps";
  }
  return steps;
}

}  // namespace faultline
