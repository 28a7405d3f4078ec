#include "view/thin.h"

#include <algorithm>

namespace faultline::view {
namespace {

constexpr std::size_t kLeastColumns = 1024;

void merge_columns(Scene& scene) {
  Columns& columns = scene.columns;
  const std::size_t count = columns.count();
  if (count < 2 * kLeastColumns) return;
  const std::size_t groups = scene.groupings.front().groups.size();
  const auto total = [&](std::size_t column) {
    std::uint64_t sum = 0;
    for (std::size_t group = 0; group < groups; ++group) sum += columns.by_group.front()[column * groups + group];
    return sum;
  };
  Columns merged;
  merged.first = columns.first;
  merged.events = columns.events;
  merged.stretch = columns.stretch * 2;
  merged.by_group.resize(columns.by_group.size());
  for (std::size_t left = 0; left < count; left += 2) {
    const std::size_t right = std::min(left + 1, count - 1);
    const std::size_t higher = total(right) > total(left) ? right : left;
    merged.peak.push_back(columns.peak[higher]);
    merged.low.push_back(std::min(columns.low[left], columns.low[right]));
    merged.reserved.push_back(std::max(columns.reserved[left], columns.reserved[right]));
    if (!columns.time_ns.empty()) merged.time_ns.push_back(columns.time_ns[higher]);
    for (std::size_t at = 0; at < columns.by_group.size(); ++at) {
      const auto width = static_cast<std::ptrdiff_t>(scene.groupings[at].groups.size());
      const auto row = columns.by_group[at].begin() + static_cast<std::ptrdiff_t>(higher) * width;
      merged.by_group[at].insert(merged.by_group[at].end(), row, row + width);
    }
  }
  for (Lane& lane : scene.lanes) {
    std::vector<std::uint32_t> counts((count + 1) / 2 * kLaneKinds);
    for (std::size_t at = 0; at < lane.counts.size(); ++at)
      counts[at / kLaneKinds / 2 * kLaneKinds + at % kLaneKinds] += lane.counts[at];
    lane.counts = std::move(counts);
  }
  for (WhatIf& one : scene.what_ifs) {
    for (std::size_t at = 0; at < count; ++at)
      one.reserved[at / 2] = at % 2 == 0 ? one.reserved[at] : std::max(one.reserved[at / 2], one.reserved[at]);
    one.reserved.resize((count + 1) / 2);
  }
  for (std::uint32_t& column : scene.rest.columns) column /= 2;
  columns = std::move(merged);
}

// The half with the larger weights, in their order.
template <class Item, class Weight>
void keep_half(std::vector<Item>& items, Weight weight) {
  if (items.size() < 2) return;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t at = 0; at < items.size(); ++at) order.emplace_back(-weight(items[at]), at);
  const auto half = order.begin() + static_cast<std::ptrdiff_t>(items.size() / 2);
  std::nth_element(order.begin(), half, order.end());
  order.erase(half, order.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<Item> kept;
  for (const auto& [rank, at] : order) kept.push_back(items[at]);
  items = std::move(kept);
}

// Every second of its moments.
void thin_rest(RestOfStacks& rest) {
  const auto stacks = static_cast<std::ptrdiff_t>(rest.stacks.size());
  std::size_t kept = 0;
  for (std::size_t at = 0; at < rest.columns.size(); at += 2, ++kept) {
    const auto row = rest.bytes.begin() + static_cast<std::ptrdiff_t>(at) * stacks;
    std::copy(row, row + stacks, rest.bytes.begin() + static_cast<std::ptrdiff_t>(kept) * stacks);
    rest.columns[kept] = rest.columns[at];
  }
  rest.columns.resize(kept);
  rest.bytes.resize(kept * rest.stacks.size());
}

}  // namespace

void thin(Scene& scene) {
  merge_columns(scene);
  thin_rest(scene.rest);
  const std::uint32_t last = scene.columns.first + scene.columns.events;
  keep_half(scene.allocations, [&](const KeptAllocation& one) {
    return static_cast<double>(one.bytes) * (std::min(one.released, last) - one.born);
  });
  keep_half(scene.segments, [](const KeptSegment& one) { return static_cast<double>(one.bytes); });
  keep_half(scene.spans, [](const Span& one) { return static_cast<double>(one.end - one.begin); });
  for (std::size_t at = 0; 2 * at < scene.calls.size(); ++at) scene.calls[at] = scene.calls[2 * at];
  scene.calls.resize(scene.calls.size() / 2);
}

}  // namespace faultline::view
