#include "rules/leak/held_by.h"

#include <algorithm>

#include "base/json_input.h"

namespace faultline {
namespace {

std::uint64_t number(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

bool flag(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

HeldBy::HeldBy(const Trace& trace) : trace_(trace) {
  const std::string prefix = "dry-run.held.";
  for (auto at = trace.properties.lower_bound(prefix); at != trace.properties.end() && at->first.starts_with(prefix);
       ++at) {
    const Result<nlohmann::json> json = parse_json(at->second);
    if (!json || !json->is_object()) continue;
    Seen seen{{},
              number(*json, "count"),
              number(*json, "bytes"),
              number(*json, "length"),
              number(*json, "limit"),
              flag(*json, "graph"),
              flag(*json, "has_graph"),
              flag(*json, "graph_is_freed"),
              {}};
    if (const auto holder = json->find("holder"); holder != json->end() && holder->is_string())
      seen.holder = holder->get<std::string>();
    if (const auto lines = json->find("lines"); lines != json->end() && lines->is_array()) {
      for (const nlohmann::json& line : *lines) {
        if (line.is_string()) seen.lines.push_back(line.get<std::string>());
      }
    }
    seen_.push_back(std::move(seen));
  }
}

std::optional<Holding> HeldBy::of(const Growth& growth) const {
  if (growth.program.value == 0 || seen_.empty()) return std::nullopt;
  const Frame& frame = trace_.stacks.frame(growth.program);
  const std::string place = std::string(trace_.strings.at(frame.file)) + ":" + std::to_string(frame.line);
  std::optional<Holding> holding;
  const Seen* main = nullptr;
  bool all_limited = true, graph_is_limited = true, is_full = false;
  double own_bytes = 0, by_graph_bytes = 0, when_full_bytes = 0, most_times = 0;
  for (const Seen& seen : seen_) {
    // It was looked at now and then, at last when at least half of them were there; fewer are those of one pass.
    if (std::find(seen.lines.begin(), seen.lines.end(), place) == seen.lines.end() || seen.count * 4 < growth.rounds)
      continue;
    if (!holding) holding = Holding{{}, false, true, false, 0, 0};
    holding->by_graph = holding->by_graph || seen.graph || seen.has_graph;
    holding->graph_is_freed = holding->graph_is_freed || seen.graph_is_freed;
    (seen.graph ? by_graph_bytes : own_bytes) += static_cast<double>(seen.bytes);
    holding->only_graph = holding->only_graph && seen.graph;
    const auto rank = [](const Seen& one) { return std::pair(!one.graph, one.bytes); };
    if (!seen.holder.empty() && (main == nullptr || rank(*main) < rank(seen))) main = &seen;
    const bool is_limited = seen.limit != 0 && seen.length != 0;
    (seen.graph ? graph_is_limited : all_limited) &= is_limited;
    if (!is_limited) continue;
    const double times = static_cast<double>(seen.limit) / static_cast<double>(seen.length);
    when_full_bytes += static_cast<double>(seen.bytes) * times;
    most_times = std::max(most_times, times);
    is_full = is_full || seen.length >= seen.limit;
  }
  if (!holding) return holding;
  if (main != nullptr) holding->holder = main->holder;
  if (own_bytes > 0) holding->own_share = own_bytes / (own_bytes + by_graph_bytes);
  // A graph lasts as long as what is kept with it. What is full and grows all the same is kept by one that goes from each to the next.
  if (holding->by_graph && (is_full || (holding->only_graph && !graph_is_limited))) all_limited = false;
  if (all_limited)
    holding->limit_bytes = static_cast<std::uint64_t>(
        holding->by_graph ? most_times * static_cast<double>(growth.kept_bytes) : when_full_bytes);
  return holding;
}

}  // namespace faultline
