#include "cli/effects.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_input.h"
#include "cli/plan_folder.h"
#include "report/json_fields.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostNames = 200;

// Python's own caches are written by every program that imports something.
bool is_cache(const std::string& path) { return path.find("/__pycache__") != std::string::npos; }

std::vector<std::string> from_here(std::vector<std::string> names) {
  std::error_code problem;
  const std::string here = fs::current_path(problem).string() + "/";
  for (std::string& path : names) {
    if (path.starts_with(here)) path.erase(0, here.size());
  }
  std::stable_partition(names.begin(), names.end(), [](const std::string& path) { return !path.starts_with('/'); });
  return names;
}

}  // namespace

Status write_effects(const std::string& path, const confine::Effects& effects) {
  Json written = Json::array(), removed = Json::array(), machines = Json::array();
  std::uint64_t written_count = 0, removed_count = 0;
  for (std::size_t at = 0; at < effects.changes.size(); ++at) {
    const confine::Change& change = effects.changes[at];
    const bool has_content = at + 1 < effects.changes.size() && effects.changes[at + 1].path.starts_with(change.path + "/");  // which is told
    if ((change.folder && change.kind != confine::Change::Kind::kRemoved && has_content) || is_cache(change.path)) continue;
    const bool gone = change.kind == confine::Change::Kind::kRemoved;
    std::uint64_t& count = gone ? removed_count : written_count;
    if (count++ < kMostNames) (gone ? removed : written).push_back(change.path);
  }
  for (const auto& [machine, times] : effects.machines) machines.push_back(machine);
  const Json json = {{"written", written}, {"written_count", written_count}, {"removed", removed}, {"removed_count", removed_count},
                     {"connections", effects.connections}, {"machines", machines}, {"offline", effects.offline}, {"ran_out_of_space", effects.ran_out_of_space}, {"input_was_cut", effects.input_was_cut}, {"done_for_real", effects.done_for_real}};
  return write_text(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

PlanEffects read_effects(const std::string& path) {
  PlanEffects effects;
  effects.confined = true;
  const Result<std::string> content = read_text_file(path);
  const Result<Json> parsed = content ? parse_json<Json>(*content) : Result<Json>(content.error());
  if (!parsed || !parsed->is_object()) return effects;
  const Json& json = *parsed;
  effects.known = true;
  effects.input_was_cut = yes(json, "input_was_cut");
  effects.written = from_here(names_of(json, "written"));
  effects.written_count = whole(json, "written_count");
  effects.removed = from_here(names_of(json, "removed"));
  effects.removed_count = whole(json, "removed_count");
  effects.connections = whole(json, "connections");
  effects.machines = names_of(json, "machines");
  effects.offline = yes(json, "offline");
  effects.ran_out_of_space = yes(json, "ran_out_of_space");
  effects.done_for_real = from_here(names_of(json, "done_for_real"));
  return effects;
}

}  // namespace faultline::cli
