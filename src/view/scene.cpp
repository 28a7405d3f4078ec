#include "view/scene.h"

#include <algorithm>

#include "base/safe_text.h"
#include "view/calls.h"
#include "view/columns.h"
#include "view/groupings.h"
#include "view/held_stacks.h"
#include "view/kept.h"
#include "view/moments.h"
#include "view/what_if.h"

namespace faultline::view {

bool has_scene(const Judgement& judgement, std::size_t device_slot) {
  const Facts& facts = *judgement.facts;
  if (facts.trace.events.empty() || device_slot >= facts.usage.size()) return false;
  const DeviceUsage& usage = facts.usage[device_slot];
  return usage.peak_allocated.allocated != 0 || usage.peak_reserved.reserved != 0 ||
         std::any_of(facts.trace.events.begin(), facts.trace.events.end(), [&](const Event& event) {
           return event.device == usage.device && event.kind >= EventKind::kCopy && event.kind <= EventKind::kSync;
         });
}

Scene make_scene(const std::string& part, const Judgement& judgement, std::size_t device_slot, std::size_t share) {
  const Facts& facts = *judgement.facts;
  const Trace& trace = facts.trace;
  const DeviceUsage& usage = facts.usage[device_slot];
  const std::uint16_t device = usage.device;
  Scene scene;
  scene.part = shown(part, 240);
  scene.device = device;
  scene.device_name = shown(trace.devices[device_slot].name, 240);
  scene.capacity_bytes = trace.devices[device_slot].capacity_bytes;
  scene.allowed_bytes = trace.devices[device_slot].allowed_bytes;
  scene.peak_bytes = usage.peak_allocated.allocated;
  scene.peak_event = usage.peak_allocated.event;
  scene.columns = measure_columns(facts, device, std::max<std::size_t>(kMostColumns / share, 256));
  scene.has_times = !scene.columns.time_ns.empty();
  scene.groupings = make_groupings(facts, device_slot);
  for (Grouping& grouping : scene.groupings) {
    scene.columns.by_group.push_back(measure_groups(facts, device, scene.columns, grouping));
    for (std::string& name : grouping.groups) name = shown(name, 240);
  }
  SceneTables tables(facts, scene);
  add_allocations(facts, device, kMostAllocations / share, tables, scene);
  add_rest_of_stacks(facts, device, std::max<std::size_t>(kMostRestMoments / share, 64), tables, scene);
  add_largest_stacks(facts, device, scene);
  add_segments(facts, device, kMostSegments / share, scene);
  add_calls(facts, device, kMostCalls / share, tables, scene);
  add_spans(facts, kMostSpans / share, tables, scene);
  add_marks(facts, device_slot, scene);
  add_what_ifs(judgement, device_slot, kMostReplayedEvents / share, scene);
  scene.moments = moments_of(judgement, device_slot);
  return scene;
}

}  // namespace faultline::view
