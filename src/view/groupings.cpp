#include "view/groupings.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/hash.h"
#include "base/units.h"
#include "plan/modules.h"
#include "view/columns.h"

namespace faultline::view {
namespace {

constexpr std::uint32_t kNone = 0;  // the key of what has no line or no module

struct Most {
  std::uint64_t now = 0, bytes = 0;
  std::uint32_t event = 0;
};

// The most that each key ever held, and when.
std::vector<Most> most_of(const Facts& facts, std::uint16_t device, const std::vector<std::uint32_t>& keys,
                          std::size_t key_count) {
  std::vector<Most> most(key_count);
  for (std::uint32_t index = 0; index < facts.trace.events.size(); ++index) {
    const Change change = change_of(facts, device, facts.trace.events[index]);
    if (change.program_bytes == 0) continue;
    Most& key = most[keys[change.allocation.index()]];
    apply(key.now, change.program_bytes, change.is_gain);
    if (key.now > key.bytes) {
      key.bytes = key.now;
      key.event = index;
    }
  }
  return most;
}

std::vector<std::uint32_t> frames_of_lines(const Facts& facts, std::uint16_t device) {
  std::vector<std::uint32_t> keys(facts.trace.allocation_count + std::size_t{1}, kNone);
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime&, const Event& birth) {
    if (birth.device != device || !facts.uses.is_program(birth.heap)) return;
    // an allocator's own log knows no lines, but which operation asked
    const StackId line = facts.stacks.line(birth.stack);
    keys[id.index()] = facts.trace.stacks.frame_id(line.value != 0 ? line : birth.stack).value;
  });
  return keys;
}

// The largest keys become groups; the key of none and whatever is left are the last group.
Grouping grouped(std::string by, const std::vector<std::uint32_t>& keys, const std::vector<Most>& most,
                 const std::vector<std::string>& names, const std::string& none) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t key = 1; key < most.size(); ++key) {
    if (most[key].bytes != 0) order.push_back(key);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return most[a].bytes > most[b].bytes; });
  const std::size_t told = std::min(order.size(), kMostGroups - 1);
  Grouping grouping;
  grouping.by = std::move(by);
  std::vector<std::uint8_t> group_of_key(most.size(), static_cast<std::uint8_t>(told));
  for (std::size_t at = 0; at < told; ++at) {
    group_of_key[order[at]] = static_cast<std::uint8_t>(at);
    grouping.groups.push_back(names[order[at]]);
  }
  const std::size_t others = order.size() - told;
  grouping.groups.push_back(others == 0 ? none : format_count(others) + " others, and " + none);
  grouping.of.resize(keys.size());
  std::transform(keys.begin(), keys.end(), grouping.of.begin(), [&](std::uint32_t key) { return group_of_key[key]; });
  return grouping;
}

Grouping by_category(const Facts& facts, std::size_t slot) {
  Grouping grouping;
  grouping.by = "category";
  for (std::size_t at = 0; at < kCategoryCount; ++at) grouping.groups.emplace_back(name_of(static_cast<Category>(at)));
  grouping.of.resize(facts.trace.allocation_count + std::size_t{1}, static_cast<std::uint8_t>(Category::kOther));
  for (std::uint32_t id = 1; id <= facts.trace.allocation_count; ++id)
    grouping.of[id] = static_cast<std::uint8_t>(facts.categories[slot].of(AllocationId(id)));
  return grouping;
}

Grouping by_line(const Facts& facts, std::uint16_t device) {
  const Trace& trace = facts.trace;
  const std::vector<std::uint32_t> keys = frames_of_lines(facts, device);
  std::vector<std::string> names(trace.stacks.frame_count());
  for (std::uint32_t at = 1; at < names.size(); ++at) {
    const Frame& frame = trace.stacks.frame(FrameId(at));
    const std::string_view file = trace.strings.at(frame.file);
    names[at] = file.empty() ? std::string(trace.strings.at(frame.function))
                             : std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(frame.line);
  }
  return grouped("line", keys, most_of(facts, device, keys, names.size()), names, "what has no line");
}

// "GPT.blocks.3.mlp.fc1" is "GPT.blocks.*.mlp": layers that differ in a number are one, and four words deep is enough for a legend.
std::string module_group(std::string_view path) {
  constexpr int kWords = 4;
  std::string group;
  for (int word = 0; word < kWords && !path.empty(); ++word) {
    const std::size_t end = std::min(path.find('.'), path.size());
    const std::string_view name = path.substr(0, end);
    const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
    group += (group.empty() ? "" : ".") + (is_number ? std::string("*") : std::string(name));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return group;
}

Grouping by_module(const Facts& facts, std::uint16_t device) {
  const std::vector<std::string_view> modules =
      module_names(facts, static_cast<std::uint32_t>(facts.trace.events.size()));
  std::vector<std::uint32_t> keys(modules.size(), kNone);
  std::vector<std::string> names(1);
  HashMap<std::string_view, std::uint32_t> known_paths;
  std::map<std::string, std::uint32_t> known_groups;
  for (std::size_t id = 1; id < modules.size(); ++id) {
    if (modules[id].empty()) continue;
    const auto [path, is_new] = known_paths.try_emplace(modules[id], kNone);
    if (is_new) {
      const auto [group, is_new_group] =
          known_groups.try_emplace(module_group(modules[id]), static_cast<std::uint32_t>(names.size()));
      if (is_new_group) names.push_back(group->first);
      path->second = group->second;
    }
    keys[id] = path->second;
  }
  if (names.size() == 1) return {};
  return grouped("module", keys, most_of(facts, device, keys, names.size()), names, "what belongs to no module");
}

}  // namespace

std::vector<Grouping> make_groupings(const Facts& facts, std::size_t device_slot) {
  const std::uint16_t device = facts.usage[device_slot].device;
  std::vector<Grouping> groupings;
  groupings.push_back(by_category(facts, device_slot));
  groupings.push_back(by_line(facts, device));
  if (groupings.back().groups.size() < 2) groupings.pop_back();  // no line is known
  if (Grouping modules = by_module(facts, device); modules.groups.size() > 1) groupings.push_back(std::move(modules));
  return groupings;
}

std::vector<LineMoment> line_moments(const Facts& facts, std::uint16_t device) {
  const std::vector<std::uint32_t> keys = frames_of_lines(facts, device);
  const std::vector<Most> most = most_of(facts, device, keys, facts.trace.stacks.frame_count());
  std::vector<LineMoment> moments;
  for (std::uint32_t key = 1; key < most.size(); ++key) {
    if (most[key].bytes != 0) moments.push_back({FrameId(key), most[key].bytes, most[key].event});
  }
  return moments;
}

}  // namespace faultline::view
