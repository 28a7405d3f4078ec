#include "view/held_stacks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include "base/safe_text.h"
#include "view/columns.h"

namespace faultline::view {
namespace {

// Calls visit(slot, bytes, is_gain) up to each of the moments, then at_moment(). A slot stands for a stack and a category.
template <class Slot, class Visit, class AtMoment>
void walk(const Facts& facts, std::uint16_t device, const std::vector<std::uint32_t>& moments, Slot slot_of,
          Visit visit, AtMoment at_moment) {
  std::uint32_t index = 0;
  for (const std::uint32_t moment : moments) {
    for (; index <= moment; ++index) {
      const Change change = change_of(facts, device, facts.trace.events[index]);
      if (change.program_bytes == 0 || change.allocation.value == 0) continue;
      if (const std::uint32_t slot = slot_of(change.allocation); slot != 0)
        visit(slot, change.program_bytes, change.is_gain);
    }
    at_moment();
  }
}

std::vector<std::uint32_t> highest_columns(const Scene& scene, std::size_t most) {
  const std::vector<std::uint64_t>& bytes = scene.columns.by_group.front();
  const auto groups = static_cast<std::ptrdiff_t>(scene.groupings.front().groups.size());
  const auto total = [&](std::size_t column) {
    const auto row = bytes.begin() + static_cast<std::ptrdiff_t>(column) * groups;
    return std::accumulate(row, row + groups, std::uint64_t{0});
  };
  const std::size_t count = scene.columns.count(), step = std::max<std::size_t>((count + most - 1) / most, 1);
  std::vector<std::uint32_t> columns;
  for (std::size_t begin = 0; begin < count; begin += step) {
    std::size_t highest = begin;
    for (std::size_t at = begin + 1; at < std::min(begin + step, count); ++at) {
      if (total(at) > total(highest)) highest = at;
    }
    columns.push_back(static_cast<std::uint32_t>(highest));
  }
  return columns;
}

std::string words_of(const Trace& trace, StackId stack) {
  const Frame& frame = trace.stacks.frame(stack);
  const std::string_view file = trace.strings.at(frame.file);
  std::string words = file.empty() ? "" : std::string(file.substr(file.rfind('/') + 1));
  if (frame.line != 0) words += ":" + std::to_string(frame.line);
  const std::string_view function = trace.strings.at(frame.function);
  if (!function.empty()) words += (words.empty() ? "" : " ") + std::string(function);
  return shown(words, 240);
}

// The program's own frames from the outside in, and the innermost of Python's; of long stacks the ends.
std::string path_of(const Trace& trace, StackId stack, const std::vector<PlaceKind>& kinds) {
  constexpr std::size_t kMostFrames = 6;
  std::vector<StackId> frames;
  bool is_inside = false;  // of a frame that is told
  for (; stack.value != 0; stack = trace.stacks.parent(stack)) {
    const PlaceKind kind = kinds[trace.stacks.frame_id(stack).index()];
    if (kind != PlaceKind::kOwn && (is_inside || kind == PlaceKind::kNative)) continue;
    frames.push_back(stack);
    is_inside = true;
  }
  std::string path;
  for (std::size_t at = frames.size(); at-- > 0;) {
    const std::size_t from_outside = frames.size() - 1 - at;
    if (frames.size() > kMostFrames && from_outside != 0 && at >= kMostFrames - 1) {
      if (from_outside == 1) path += " › …";
      continue;
    }
    path += (path.empty() ? "" : " › ") + words_of(trace, frames[at]);
  }
  return path.empty() ? "no call stack" : path;
}

}  // namespace

void add_rest_of_stacks(const Facts& facts, std::uint16_t device, std::size_t most, SceneTables& tables, Scene& scene) {
  if (scene.allocations.size() == scene.allocation_count || scene.columns.count() == 0) return;
  const Trace& trace = facts.trace;
  const Grouping& categories = scene.groupings.front();
  const std::size_t groups = categories.groups.size();
  std::vector<bool> is_kept(trace.allocation_count + std::size_t{1});
  for (const KeptAllocation& kept : scene.allocations) is_kept[kept.id.index()] = true;
  scene.rest.columns = highest_columns(scene, most);
  std::vector<std::uint32_t> moments;
  for (const std::uint32_t column : scene.rest.columns) moments.push_back(scene.columns.peak[column]);

  struct Slot {
    std::size_t key = 0;  // stack × groups + category
    std::uint64_t now = 0, most = 0;
    bool is_told = false;
  };
  std::vector<Slot> slots(1);
  std::vector<std::uint32_t> slot_of_key(trace.stacks.size() * groups);
  const auto slot_of = [&](AllocationId id) -> std::uint32_t {
    if (is_kept[id.index()]) return 0;
    const std::size_t key = facts.lifetimes.birth(id).stack.index() * groups + categories.of[id.index()];
    if (slot_of_key[key] == 0) {
      slot_of_key[key] = static_cast<std::uint32_t>(slots.size());
      slots.push_back({key});
    }
    return slot_of_key[key];
  };
  const auto take = [&](std::uint32_t slot, std::uint64_t bytes, bool is_gain) {
    apply(slots[slot].now, bytes, is_gain);
  };
  walk(facts, device, moments, slot_of, take, [&] {
    for (Slot& slot : slots) slot.most = std::max(slot.most, slot.now);
  });

  std::vector<std::uint32_t> order;
  for (std::uint32_t at = 1; at < slots.size(); ++at) {
    if (slots[at].most != 0) order.push_back(at);
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return slots[a].most != slots[b].most ? slots[a].most > slots[b].most : slots[a].key < slots[b].key;
  });
  if (order.size() > kMostRestStacks) order.resize(kMostRestStacks);
  for (const std::uint32_t at : order) {
    const auto stack = static_cast<std::uint32_t>(slots[at].key / groups);
    scene.rest.stacks.push_back({tables.stack(StackId(stack)), static_cast<std::uint8_t>(slots[at].key % groups)});
  }
  for (Slot& slot : slots) slot.now = 0;
  walk(facts, device, moments, slot_of, take, [&] {
    for (const std::uint32_t at : order) scene.rest.bytes.push_back(slots[at].now);
  });
}

void add_largest_stacks(const Facts& facts, std::uint16_t device, Scene& scene) {
  const Trace& trace = facts.trace;
  const Grouping& categories = scene.groupings.front();
  std::vector<PlaceKind> kinds(trace.stacks.frame_count());
  for (std::uint32_t at = 1; at < kinds.size(); ++at)
    kinds[at] = kind_of_place(trace.strings.at(trace.stacks.frame(FrameId(at)).file));
  struct Held {
    std::uint64_t bytes = 0, count = 0;
    std::vector<std::uint64_t> by_category;
  };
  std::map<std::uint32_t, Held> by_stack;
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (birth.kind != EventKind::kAlloc || birth.device != device || !facts.uses.is_program(birth.heap) ||
        !life.alive_at(scene.peak_event))
      return;
    Held& held = by_stack[birth.stack.value];
    held.by_category.resize(categories.groups.size());
    held.bytes += facts.lifetimes.held_bytes(id);
    held.by_category[categories.of[id.index()]] += facts.lifetimes.held_bytes(id);
    ++held.count;
  });
  // stacks that differ in what is not told are one
  std::map<std::string, Held> by_path;
  for (const auto& [stack, held] : by_stack) {
    Held& all = by_path[path_of(trace, StackId(stack), kinds)];
    all.by_category.resize(categories.groups.size());
    all.bytes += held.bytes;
    all.count += held.count;
    for (std::size_t at = 0; at < held.by_category.size(); ++at) all.by_category[at] += held.by_category[at];
  }
  for (const auto& [path, held] : by_path) {
    const auto most = std::max_element(held.by_category.begin(), held.by_category.end()) - held.by_category.begin();
    scene.largest.push_back({path, categories.groups[static_cast<std::size_t>(most)], held.bytes, held.count});
  }
  std::stable_sort(scene.largest.begin(), scene.largest.end(),
                   [](const HeldStack& a, const HeldStack& b) { return a.bytes > b.bytes; });
  scene.stack_count = scene.largest.size();
  if (scene.largest.size() > kMostLargestStacks) scene.largest.resize(kMostLargestStacks);
}

}  // namespace faultline::view
