#include "facts/cut_loops.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "trace/marks.h"

namespace faultline {

std::vector<CutLoop> cut_loops_of(const Trace& trace, std::size_t least) {
  std::map<std::uint32_t, CutLoop> found;  // by the mark's name
  for (std::uint32_t at = 0; at < trace.events.size(); ++at) {
    const Event& event = trace.events[at];
    if (event.kind != EventKind::kOpBegin) continue;
    auto known = found.find(event.extra);
    if (known == found.end()) {
      const std::string_view name = trace.strings.at(StringId(event.extra));
      if (!name.starts_with(kRoundMark)) continue;
      known = found.try_emplace(event.extra).first;
      std::from_chars(name.data() + kRoundMark.size(), name.data() + name.size(), known->second.number);
    }
    known->second.marks.push_back(at);
  }
  std::vector<CutLoop> loops;
  for (auto& [name, loop] : found) {
    if (loop.marks.size() >= least) loops.push_back(std::move(loop));
  }
  std::stable_sort(loops.begin(), loops.end(),
                   [](const CutLoop& a, const CutLoop& b) { return a.marks.back() < b.marks.back(); });
  return loops;
}

}  // namespace faultline
