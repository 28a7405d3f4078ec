#include "view/columns.h"

namespace faultline::view {

Columns measure_columns(const Facts& facts, std::uint16_t device, std::size_t most_columns) {
  const Trace& trace = facts.trace;
  Columns columns;
  // What existed before the recording has no order in time: it is where the picture begins.
  columns.first = trace.preexisting_count != 0 ? trace.preexisting_count - 1 : 0;
  columns.events = static_cast<std::uint32_t>(trace.events.size()) - columns.first;
  columns.stretch = static_cast<std::uint32_t>((columns.events + most_columns - 1) / most_columns);
  columns.stretch = std::max(columns.stretch, 1u);
  const std::size_t count = (columns.events + columns.stretch - 1) / columns.stretch;
  columns.peak.resize(count);
  columns.low.resize(count);
  columns.reserved.resize(count);
  std::uint64_t total = 0, reserved = 0, highest = 0;
  std::uint32_t left = 0;  // events of the column that are still to come
  std::size_t column = 0;
  for (std::uint32_t index = 0; index < trace.events.size(); ++index) {
    const Change change = change_of(facts, device, trace.events[index]);
    apply(total, change.program_bytes, change.is_gain);
    apply(reserved, change.reserved_bytes, change.is_gain);
    if (index < columns.first) continue;
    const bool is_new = left == 0;
    if (is_new) {
      column = (index - columns.first) / columns.stretch;
      left = columns.stretch;
      columns.low[column] = total;
    }
    --left;
    if (is_new || total > highest) {
      highest = total;
      columns.peak[column] = index;
    }
    columns.low[column] = std::min(columns.low[column], total);
    columns.reserved[column] = std::max(columns.reserved[column], reserved);
  }
  if (trace.can(kTimes)) {
    for (const std::uint32_t at : columns.peak) columns.time_ns.push_back(trace.events[at].time_ns);
  }
  return columns;
}

std::vector<std::uint64_t> measure_groups(const Facts& facts, std::uint16_t device, const Columns& columns,
                                          const Grouping& grouping) {
  const Trace& trace = facts.trace;
  const std::size_t groups = grouping.groups.size();
  std::vector<std::uint64_t> now(groups), result;
  result.reserve(columns.count() * groups);
  std::uint32_t index = 0;
  for (const std::uint32_t peak : columns.peak) {
    for (; index <= peak; ++index) {
      const Change change = change_of(facts, device, trace.events[index]);
      if (change.program_bytes != 0)
        apply(now[grouping.of[change.allocation.index()]], change.program_bytes, change.is_gain);
    }
    result.insert(result.end(), now.begin(), now.end());
  }
  return result;
}

}  // namespace faultline::view
