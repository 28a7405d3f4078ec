#include "plan/phases.h"

#include <algorithm>
#include <string_view>

#include "facts/growth.h"
#include "rules/describe.h"
#include "trace/marks.h"

namespace faultline {
namespace {

// The marks, by what came after them.
class Marks {
 public:
  Marks(const Facts& facts, std::uint16_t device, bool trains) : trace_(facts.trace), trains_(trains) {
    const bool stopped = stop_of(trace_) != kNever;
    std::uint32_t untrained = kNever;
    for (std::uint32_t at = 0; at < trace_.events.size(); ++at) {
      const std::string_view name = raw(at);
      if (name == "untrained" && untrained == kNever) untrained = at;
      if (name == "training") last_training_ = at;
      if (!name.empty() && name != "building" && first_ == kNever) first_ = at;
    }
    if (untrained < last_training_ && stopped) last_training_ = kNever;
    find_first_round(facts, device);
  }
  // Empty: it is none, or goes on as before.
  std::string at(std::uint32_t event) const {
    if (event == first_round_) return name_of(first_);
    return name_of(event);
  }

 private:
  std::string_view raw(std::uint32_t event) const {
    if (trace_.events[event].kind != EventKind::kOpBegin) return {};
    const std::string_view text = trace_.strings.at(StringId(trace_.events[event].extra));
    return text.starts_with(kPhaseMark) ? text.substr(kPhaseMark.size()) : std::string_view();
  }
  // A model that is not trained runs without gradients after a step: a part of the next (a teacher), or, where none follows, of an evaluation.
  std::string name_of(std::uint32_t event) const {
    std::string_view name = raw(event);
    if (name == "untrained") name = event < last_training_ ? "training" : "evaluation";
    return std::string(!trains_ && (name == "training" || name == "evaluation") ? "inference" : name);
  }
  // The first batch is made before a model runs, and is no part of building: its line makes more of them later, as what sets a model up does not.
  void find_first_round(const Facts& facts, std::uint16_t device) {
    if (first_ == kNever) return;
    const auto makes = [&](std::uint32_t at) {
      const Event& event = trace_.events[at];
      return event.kind == EventKind::kAlloc && event.device == device && event.stack.value != 0 &&
             !(facts.stacks.roles(event.stack) & (kConstructs | kMovesModule | kLoadsState));
    };
    std::vector<bool> later(trace_.stacks.size());
    for (std::uint32_t at = first_; at < trace_.events.size(); ++at) {
      if (makes(at)) later[trace_.events[at].stack.index()] = true;
    }
    for (std::uint32_t at = 0; at < first_ && first_round_ == kNever; ++at) {
      if (makes(at) && later[trace_.events[at].stack.index()]) first_round_ = at;
    }
  }

  const Trace& trace_;
  bool trains_;
  std::uint32_t last_training_ = 0, first_ = kNever, first_round_ = kNever;
};

}  // namespace

void describe_phases(const Facts& facts, std::size_t device_slot, bool trains, Plan& plan) {
  const Trace& trace = facts.trace;
  const std::uint16_t device = facts.usage[device_slot].device;
  const std::uint32_t failure = plan.failure.happened && !facts.usage[device_slot].failures.empty()
                                    ? facts.usage[device_slot].failures.back().event
                                    : kNever;
  const Marks marks(facts, device, trains);
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
    if (const std::string name = marks.at(at); !name.empty() && (phases.empty() || phases[now].name != name)) {
      const auto known = std::find_if(phases.begin(), phases.end(), [&](const PlanPhase& p) { return p.name == name; });
      now = static_cast<std::size_t>(known - phases.begin());
      if (known == phases.end()) {
        phases.push_back({name, 0, 0, {}});
        fullest.push_back(at);
      }
      ++phases[now].times;
      look(at);
    }
    if (event.kind == EventKind::kOpBegin) continue;
    if (at == failure && !phases.empty()) plan.failure.phase = phases[now].name;
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
    plan.run.phases.push_back(std::move(phases[phase]));
  }
}

}  // namespace faultline
