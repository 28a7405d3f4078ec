#include "plan/phases.h"

#include <algorithm>
#include <string_view>

#include "rules/describe.h"

namespace faultline {
namespace {

constexpr std::string_view kMark = "phase ";

std::string phase_name(std::string_view marked, bool trains) {
  const std::string_view name = marked.substr(kMark.size());
  return std::string(!trains && (name == "training" || name == "evaluation") ? "inference" : name);
}

}  // namespace

void describe_phases(const Facts& facts, std::size_t device_slot, bool trains, Plan& plan) {
  const Trace& trace = facts.trace;
  const std::uint16_t device = facts.usage[device_slot].device;
  const std::uint32_t failure = plan.failed && !facts.usage[device_slot].failures.empty()
                                    ? facts.usage[device_slot].failures.back().event
                                    : kNever;
  std::vector<std::uint32_t> fullest;  // event of each phase
  std::vector<PlanPhase> phases;
  std::size_t now = 0;
  std::uint64_t live_bytes = 0;
  const auto look = [&](std::uint32_t event) {
    if (phases.empty() || live_bytes <= phases[now].allocated_bytes) return;
    phases[now].allocated_bytes = live_bytes;
    fullest[now] = event;
  };
  for (std::uint32_t at = 0; at < trace.events.size(); ++at) {
    const Event& event = trace.events[at];
    if (event.kind == EventKind::kOpBegin) {
      const std::string_view text = trace.strings.at(StringId(event.extra));
      if (!text.starts_with(kMark)) continue;
      const std::string name = phase_name(text, trains);
      if (!phases.empty() && phases[now].name == name) continue;
      const auto known = std::find_if(phases.begin(), phases.end(), [&](const PlanPhase& p) { return p.name == name; });
      now = static_cast<std::size_t>(known - phases.begin());
      if (known == phases.end()) {
        phases.push_back({name, 0, 0, {}});
        fullest.push_back(at);
      }
      ++phases[now].times;
      look(at);
      continue;
    }
    if (at == failure && !phases.empty()) plan.failed_phase = phases[now].name;
    if (event.device != device || event.allocation.value == 0 || !facts.uses.is_program(event.heap)) continue;
    const Lifetime& life = facts.lifetimes.of(event.allocation);
    if (event.kind == EventKind::kAlloc && life.born == at)
      live_bytes += facts.lifetimes.held_bytes(event.allocation);
    else if (life.released == at)
      live_bytes -= std::min(live_bytes, facts.lifetimes.held_bytes(event.allocation));
    look(at);
  }
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (phases[phase].allocated_bytes == 0) continue;
    phases[phase].location = whereabouts(facts, device_slot, fullest[phase]).location;
    plan.phases.push_back(std::move(phases[phase]));
  }
}

}  // namespace faultline
