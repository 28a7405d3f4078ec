#include "report/plan_json.h"

#include <concepts>
#include <string>

#include "base/json_fields.h"
#include "base/json_input.h"

namespace faultline {
namespace {

using Json = nlohmann::ordered_json;

Json gpu_json(const PlanGpu& gpu) {
  return {{"name", gpu.name}, {"capacity", gpu.capacity_bytes}, {"capacity_source", gpu.capacity_source}, {"context", gpu.context_bytes},
          {"context_source", gpu.context_source}};
}

Json live_json(const std::vector<std::pair<std::string, std::uint64_t>>& live) {
  Json json = Json::object();
  for (const auto& [category, size_bytes] : live) json[category] = size_bytes;
  return json;
}

Json modules_json(const std::vector<PlanModule>& modules) {
  Json json = Json::array();
  for (const PlanModule& module : modules) {
    json.push_back({{"path", module.path}, {"count", module.count}, {"bytes", module.bytes}, {"live", live_json(module.live)}});
  }
  return json;
}

Json changes_json(const Plan& plan) {
  Json json = Json::array();
  for (const PlanChange& change : plan.changes) {
    json.push_back({{"kind", change.kind}, {"what", change.what}, {"detail", change.detail}, {"tried", change.tried}, {"fits", change.fits},
                    {"needed", change.needed_bytes}, {"saves", plan.saved_bytes(change)}, {"why_not", change.why_not}});
  }
  return json;
}

Json vary_json(const PlanVary& vary) {
  return {{"name", vary.name}, {"where", vary.where}, {"current", vary.current}, {"largest_fitting", vary.largest_fitting},
          {"smallest_failing", vary.smallest_failing}, {"runs", vary.runs}, {"why_not", vary.why_not}};
}

// --- and back

// Calls `read` with the object of that name, or with each object of the list of that name.
void each(const Json& json, const char* name, const std::invocable<const Json&> auto& read) {
  const auto found = json.find(name);
  if (found == json.end()) return;
  if (found->is_object()) read(*found);
  if (!found->is_array()) return;
  for (const Json& item : *found) {
    if (item.is_object()) read(item);
  }
}

PlanGpu gpu_of(const Json& json) {
  return {text(json, "name"), whole(json, "capacity"), text(json, "capacity_source"), whole(json, "context"), text(json, "context_source")};
}

Location location_of(const Json& json) {
  return {text(json, "file"), static_cast<std::uint32_t>(whole(json, "line")), text(json, "function"), text(json, "op"), text(json, "kernel")};
}

std::vector<std::pair<std::string, std::uint64_t>> live_of(const Json& json, const char* name) {
  std::vector<std::pair<std::string, std::uint64_t>> live;
  each(json, name, [&](const Json& parts) {
    for (const auto& [category, size_bytes] : parts.items()) live.emplace_back(category, size_bytes.is_number_unsigned() ? size_bytes.get<std::uint64_t>() : 0);
  });
  return live;
}

Verdict verdict_of(const std::string& name) {
  for (const Verdict verdict : {Verdict::kFits, Verdict::kTight, Verdict::kDoesNotFit, Verdict::kMeasured, Verdict::kProgramError}) {
    if (name == name_of(verdict)) return verdict;
  }
  return Verdict::kInterrupted;
}

void read_results(const Json& json, Plan& plan) {
  each(json, "fits", [&](const Json& item) { plan.fits.push_back({gpu_of(item), yes(item, "fits")}); });
  each(json, "modules", [&](const Json& item) {
    plan.modules.push_back({text(item, "path"), whole(item, "count"), whole(item, "bytes"), live_of(item, "live")});
  });
  each(json, "changes", [&](const Json& item) {
    plan.changes.push_back({text(item, "kind"), text(item, "what"), text(item, "detail"), yes(item, "tried"), yes(item, "fits"), whole(item, "needed"), text(item, "why_not")});
  });
  each(json, "vary", [&](const Json& item) {
    plan.vary = PlanVary{text(item, "name"), text(item, "where"), whole(item, "current"), whole(item, "largest_fitting"), whole(item, "smallest_failing"),
                         whole(item, "runs"), text(item, "why_not")};
  });
  each(json, "notes", [&](const Json& item) {
    plan.notes.push_back({text(item, "kind"), text(item, "text"), text(item, "line"), whole(item, "count")});
  });
}

Plan plan_of(const Json& json) {
  Plan plan;
  plan.verdict = verdict_of(text(json, "verdict"));
  plan.command = names_of(json, "command");
  plan.exit_status = static_cast<int>(whole(json, "exit_status") & 0xffff);
  each(json, "gpu", [&](const Json& gpu) { plan.gpu = gpu_of(gpu); });
  plan.context_bytes = whole(json, "context");
  plan.needed_bytes = whole(json, "needed");
  plan.taken_bytes = whole(json, "taken");
  plan.limit_bytes = whole(json, "limit");
  each(json, "peak", [&](const Json& peak) {
    plan.peak_allocated_bytes = whole(peak, "allocated");
    plan.peak_reserved_bytes = whole(peak, "reserved");
    plan.peak_outside_bytes = whole(peak, "outside_framework");
    plan.live_at_peak = live_of(peak, "live");
  });
  each(json, "failure", [&](const Json& failure) {
    plan.failed = true;
    plan.failed_in_step = whole(failure, "step");
    each(failure, "location", [&](const Json& place) { plan.failed_at = location_of(place); });
  });
  plan.caught_failures = whole(json, "caught_failures");
  plan.steps = whole(json, "steps");
  plan.stopped = text(json, "stopped");
  plan.how = text(json, "how");
  if (const auto seconds = json.find("seconds"); seconds != json.end() && seconds->is_number()) plan.seconds = seconds->get<double>();
  plan.operations = whole(json, "operations");
  plan.processes = whole(json, "processes");
  each(json, "exception", [&](const Json& item) {
    plan.exception = PlanException{text(item, "type"), text(item, "message"), {}};
    each(item, "location", [&](const Json& place) { plan.exception->location = location_of(place); });
  });
  read_results(json, plan);
  plan.changes_skipped = text(json, "changes_skipped");
  each(json, "effects", [&](const Json& item) { plan.effects = effects_of(item); });
  plan.folder = text(json, "folder");
  plan.trace = text(json, "trace");
  return plan;
}

}  // namespace

Json location_json(const Location& location) {
  return {{"file", location.file}, {"line", location.line}, {"function", location.function}, {"op", location.op}, {"kernel", location.kernel}};
}

Json effects_json(const PlanEffects& effects) {
  return {{"confined", effects.confined}, {"known", effects.known}, {"written", effects.written}, {"written_count", effects.written_count}, {"removed", effects.removed},
          {"removed_count", effects.removed_count}, {"connections", effects.connections}, {"machines", effects.machines},
          {"offline", effects.offline}, {"ran_out_of_space", effects.ran_out_of_space}, {"input_was_cut", effects.input_was_cut}};
}

PlanEffects effects_of(const Json& json) {
  return {yes(json, "confined"), yes(json, "known"), names_of(json, "written"), whole(json, "written_count"), names_of(json, "removed"), whole(json, "removed_count"),
          whole(json, "connections"), names_of(json, "machines"), yes(json, "offline"), yes(json, "ran_out_of_space"), yes(json, "input_was_cut")};
}

Json plan_json(const Plan& plan) {
  Json fits = Json::array(), notes = Json::array();
  for (const PlanFit& fit : plan.fits) {
    Json gpu = gpu_json(fit.gpu);
    gpu["fits"] = fit.fits;
    fits.push_back(std::move(gpu));
  }
  for (const PlanNote& note : plan.notes) notes.push_back({{"kind", note.kind}, {"text", note.text}, {"line", note.line}, {"count", note.count}});

  Json json = Json::object();
  json["verdict"] = name_of(plan.verdict);
  json["command"] = plan.command;
  json["exit_status"] = static_cast<unsigned>(plan.exit_status);
  json["gpu"] = plan.gpu ? gpu_json(*plan.gpu) : Json(nullptr);
  json["context"] = plan.context_bytes;
  json["needed"] = plan.needed_bytes;
  json["taken"] = plan.taken_bytes;
  json["limit"] = plan.limit_bytes;
  json["peak"] = {{"allocated", plan.peak_allocated_bytes}, {"reserved", plan.peak_reserved_bytes}, {"outside_framework", plan.peak_outside_bytes},
                  {"live", live_json(plan.live_at_peak)}};
  json["modules"] = modules_json(plan.modules);
  json["failure"] = plan.failed ? Json{{"step", plan.failed_in_step}, {"location", location_json(plan.failed_at)}} : Json(nullptr);
  json["caught_failures"] = plan.caught_failures;
  json["steps"] = plan.steps;
  json["stopped"] = plan.stopped;
  json["how"] = plan.how;
  json["seconds"] = plan.seconds;
  json["operations"] = plan.operations;
  json["processes"] = plan.processes;
  json["exception"] = plan.exception ? Json{{"type", plan.exception->type}, {"message", plan.exception->message}, {"location", location_json(plan.exception->location)}}
                                     : Json(nullptr);
  json["fits"] = std::move(fits);
  json["changes"] = changes_json(plan);
  json["changes_skipped"] = plan.changes_skipped;
  json["vary"] = plan.vary ? vary_json(*plan.vary) : Json(nullptr);
  json["notes"] = std::move(notes);
  json["effects"] = effects_json(plan.effects);
  json["folder"] = plan.folder;
  json["trace"] = plan.trace;
  return json;
}

std::optional<Plan> plan_of_report(std::string_view report_text) {
  const Result<Json> json = parse_json<Json>(report_text);
  if (!json || !json->is_object()) return std::nullopt;
  const auto plan = json->find("plan");
  if (plan == json->end() || !plan->is_object()) return std::nullopt;
  return plan_of(*plan);
}

}  // namespace faultline
