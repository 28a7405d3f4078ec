#include "facts/mapped_ranges.h"

#include <map>

namespace faultline {
namespace {

using Mapped = std::map<std::uint64_t, MappedRange>;

void unmap(Mapped& mapped, ByteRange range) {
  auto at = mapped.upper_bound(range.begin);
  if (at != mapped.begin()) --at;
  while (at != mapped.end() && at->first < range.end) {
    const auto [held, by] = at->second;
    if (!held.overlaps(range)) {
      ++at;
      continue;
    }
    at = mapped.erase(at);
    if (held.begin < range.begin) mapped[held.begin] = {{held.begin, range.begin}, by};
    if (range.end < held.end) at = mapped.insert_or_assign(range.end, MappedRange{{range.end, held.end}, by}).first;
  }
}

}  // namespace

std::vector<MappedRange> mapped_at(const Trace& trace, std::uint32_t event,
                                   const std::function<bool(const Event&)>& counts) {
  Mapped mapped;
  for (std::size_t index = 0; index <= event && index < trace.events.size(); ++index) {
    const Event& at = trace.events[index];
    if ((at.kind != EventKind::kMap && at.kind != EventKind::kUnmap) || at.has(kFailed) ||
        at.size_bytes > ~at.address || !counts(at))
      continue;
    const ByteRange range = ByteRange::of(at.address, at.size_bytes);
    unmap(mapped, range);
    if (at.kind == EventKind::kMap) mapped[range.begin] = {range, &at};
  }
  std::vector<MappedRange> ranges;
  for (const auto& [begin, range] : mapped) ranges.push_back(range);
  return ranges;
}

}  // namespace faultline
