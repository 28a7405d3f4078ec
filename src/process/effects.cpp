#include "process/effects.h"

#include <algorithm>
#include <filesystem>

#include "base/json_input.h"
#include "plan/plan_fields.h"
#include "process/run_folder.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNames = 200;

// Python's own caches are written by every program that imports something.
bool is_cache(const std::string& path) {
  // the last: what tf.function makes of a function, for Python to read
  return path.find("/__pycache__") != std::string::npos ||
         path.find("/__autograph_generated_file") != std::string::npos;
}

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
  PlanEffects told{true,
                   true,
                   {},
                   0,
                   {},
                   0,
                   effects.connections,
                   {},
                   effects.offline,
                   effects.ran_out_of_space,
                   effects.input_was_cut,
                   effects.done_for_real,
                   {},
                   effects.unsent_signals};
  for (std::size_t at = 0; at < effects.changes.size(); ++at) {
    const confine::Change& change = effects.changes[at];
    const bool has_content = at + 1 < effects.changes.size() &&
                             effects.changes[at + 1].path.starts_with(change.path + "/");  // which is told
    const bool gone = change.kind == confine::Change::Kind::kRemoved;
    if ((change.folder && !gone && has_content) || is_cache(change.path)) continue;
    std::uint64_t& count = gone ? told.removed_count : told.written_count;
    if (count++ < kMostNames) (gone ? told.removed : told.written).push_back(change.path);
  }
  for (const auto& [machine, times] : effects.machines) told.machines.push_back(machine);
  for (const auto& [whom, times] : effects.unsent_to) told.unsent_signals.push_back(whom);
  return write_text(path, json_of(told).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

PlanEffects read_effects(const std::string& path) {
  PlanEffects effects;
  if (const Result<std::string> content = read_text_file(path)) {
    const Result<Json> parsed = parse_json<Json>(*content);
    if (parsed && parsed->is_object()) read_json(*parsed, effects);
  }
  effects.confined = true;
  effects.written = from_here(std::move(effects.written));
  effects.removed = from_here(std::move(effects.removed));
  effects.done_for_real = from_here(std::move(effects.done_for_real));
  return effects;
}

}  // namespace faultline::process
