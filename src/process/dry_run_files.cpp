#include "process/dry_run_files.h"

#include <errno.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/json_input.h"
#include "base/plain_file.h"
#include "base/safe_text.h"
#include "confine/filter.h"
#include "fmt/format.h"
#include "plan/plan_fields.h"
#include "process/installation.h"
#include "process/plain_path.h"
#include "process/run_folder.h"
#include "sources/run_folder/layout.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libfaultline_dryrun.so";

// For a process that puts itself under the watch: faultline.plan(function).
Json filter_json() {
  Json filter = Json::array();
  for (const sock_filter& step : confine::confining_filter(confine::Watched::kFilesAndIdentity))
    filter.push_back({step.code, step.jt, step.jf, step.k});
  return filter;
}

// What this dry run's own checkpoints begin with: nobody else's file does.
std::string token() {
  std::array<std::uint64_t, 2> bits{};  // not std::random_device: what is linked for it needs glibc 2.36
  while (::getrandom(bits.data(), sizeof bits, 0) < 0 && errno == EINTR) {
  }
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

Json gpu_json(const ShownGpu& shown) {
  const Gpu& gpu = shown.gpu;
  return {{"name", shown.name},
          {"capacity_bytes", gpu.capacity_bytes},
          {"context_bytes", gpu.context_bytes},
          {"compute_capability", {gpu.compute_major, gpu.compute_minor}},
          {"multi_processor_count", gpu.sm_count},
          {"max_threads_per_multi_processor", gpu.max_threads_per_sm},
          {"warp_size", gpu.warp_size},
          {"l2_cache_size", gpu.l2_bytes},
          {"shared_memory_per_block_optin", gpu.max_shared_bytes_per_block}};
}

Json change_json(const std::string& value) {
  if (value == "true") return true;
  if (value == "false") return false;
  return value;
}

void read_vary(JsonReader& vary, ProcessSummary& summary) {
  struct Place {
    std::string file;
    std::uint64_t line = 0, value = 0;
  };
  std::vector<Place> places;
  vary.each("found", places, [](JsonReader& read, Place& place) {
    read("file", place.file);
    read("line", place.line);
    read("value", place.value);
  });
  std::set<std::string> told;  // two may stand on one line
  // Where the name stands several times, the largest is the one that fills the memory.
  for (const Place& place : places) summary.vary_value = std::max(summary.vary_value, place.value);
  for (const Place& place : places) {
    if (place.value != summary.vary_value) continue;
    const std::string where = fmt::format("{}:{}", fs::path(place.file).filename().string(), place.line);
    if (summary.vary_where.size() > 120 || !told.insert(where).second) continue;
    summary.vary_where += (summary.vary_where.empty() ? "" : ", ") + where;
  }
}

void read_edit(JsonReader& read, Edit& edit) {
  read("file", edit.file);
  read("line", edit.line);
  read("old", edit.old_lines);
  read("new", edit.new_lines);
}

OfferedNumber number_named(const std::string& name) {
  for (const OfferedNumber number : {OfferedNumber::kBatch, OfferedNumber::kLength}) {
    if (name == name_of(number)) return number;
  }
  return OfferedNumber::kNone;
}

void read_offer(JsonReader& inside, Offer& offer) {
  inside("name", offer.name);
  inside("value", offer.value);
  inside("label", offer.label);
  inside("what", offer.what);
  inside("cost", offer.cost);
  bool is_there = false;
  inside.group("keeps", is_there, [&](JsonReader& keeps) {
    for (const char* part : {"parameters", "gradients", "optimizer", "running"}) {
      double share = 1;
      keeps(part, share);
      offer.keeps[part] = share;
    }
  });
  inside("dose", offer.dose);
  inside("excludes", offer.excludes);
  inside("wants", offer.wants);
  inside("beside", offer.beside);
  inside("compute", offer.compute);
  std::string number;
  inside("number", number);
  offer.number = number_named(number);
  inside("cost_step", offer.cost_step);
  inside("answers", offer.answers);
  inside("is_searched", offer.is_searched);
  inside("computes_another", offer.computes_another);
  inside("tells", offer.tells);
  inside("wants_more_gpus", offer.wants_more_gpus);
  inside("many", offer.many);
  inside.each("edits", offer.edits, read_edit);
}

void read_unsupported(JsonReader& read, Unsupported& unsupported) {
  std::string of;
  read("text", unsupported.why);
  read("of", of);
  unsupported.of = of == "framework" ? Unsupported::kFramework
                   : of == "folder"  ? Unsupported::kFolder
                                     : Unsupported::kProgram;
}

void read_summary(const std::string& path, ProcessSummary& summary) {
  Result<std::string> content = read_text_file(path);
  if (!content) return;
  const Result<Json> parsed = parse_json<Json>(*content);
  if (!parsed || !parsed->is_object()) return;
  summary.ended_in_order = true;
  JsonReader read(*parsed);
  read("peak_reserved", summary.peak_reserved);
  read("allocations", summary.allocations);
  read("ooms", summary.failures);
  read("operations", summary.operations);
  read("steps", summary.steps);
  read("optimizers", summary.optimizers);
  read("most_turns", summary.most_turns);
  read("least_turns", summary.least_turns);
  read("alike_from", summary.alike_from);
  bool has_loop = false;
  read.group("loop", has_loop, [&](JsonReader& inside) { fields(inside, summary.loop); });
  read.each("rising", summary.rising, [](JsonReader& inside, RisingLoop& loop) {
    inside("where", loop.where);
    inside("number", loop.number);
    inside("begun", loop.begun);
    inside("rounds", loop.rounds);
  });
  read("training_batch", summary.training_batch);
  read("ranks", summary.ranks);
  read("stopped", summary.stopped);
  read("stopped_by", summary.stopped_by);
  read("framework", summary.framework);
  read("uses", summary.uses);
  read("stand_in", summary.stand_in_line);
  read("asked_free", summary.asked_free_line);
  read("began", summary.began_s);
  read("ended", summary.ended_s);
  read("died_of_memory", summary.ended_out_of_memory);
  read("last_was_out_of_memory", summary.last_was_out_of_memory);
  bool is_there = false;
  read.group("unsupported", is_there, [&](JsonReader& inside) { read_unsupported(inside, summary.unsupported); });
  read.group("unplanned", is_there, [&](JsonReader& inside) {
    inside("text", summary.unplanned);
    inside("line", summary.unplanned_line);
    inside("gpus", summary.uses_gpus);
  });
  PlanException exception;
  read.group("exception", is_there, [&](JsonReader& inside) {
    inside("type", exception.type);
    inside("message", exception.message);
    fields(inside, exception.location);
  });
  if (is_there) summary.exception = std::move(exception);
  read.each("offers", summary.offers, read_offer);
  read.each("number_offers", summary.number_offers, read_offer);
  read("lasting", summary.lasting);
  if (const auto lengths = parsed->find("token_lengths"); lengths != parsed->end() && lengths->is_array()) {
    for (const Json& length : *lengths)
      if (length.is_number_unsigned()) summary.token_lengths.push_back(length.get<std::uint64_t>());
  }
  read("not_reached", summary.not_reached);
  read("phases", summary.phases);
  read.each("numbers", summary.numbers, [](JsonReader& inside, ProgramNumber& number) {
    inside("name", number.name);
    inside("value", number.value);
    inside.each("edits", number.edits, read_edit);
  });
  read.each("accumulation", summary.accumulation, read_edit);
  if (const auto changes = parsed->find("changes"); changes != parsed->end() && changes->is_object()) {
    for (const auto& [name, words] : changes->items()) read_json(words, summary.changes[name]);
  }
  read.group("edited", is_there, [&](JsonReader& inside) {
    inside("remedies", summary.edited_remedies);
    inside.each("edits", summary.edited, read_edit);
  });
  read.group("vary", is_there, [&](JsonReader& inside) { read_vary(inside, summary); });
}

Json op_memory_json(const std::vector<OperationMemory>& told) {
  Json all = Json::array();
  for (const OperationMemory& one : told) {
    Json results = Json::array();
    for (const OperationResult& result : one.results) {
      Json json = Json::object();
      if (result.like) json["like"] = *result.like;
      if (!result.shape.empty()) json["shape"] = result.shape;
      if (!result.dtype.empty()) json["dtype"] = result.dtype;
      results.push_back(std::move(json));
    }
    all.push_back({{"op", one.name}, {"scratch_bytes", one.scratch_bytes}, {"results", std::move(results)}});
  }
  return all;
}

}  // namespace

Result<PlanParts> find_plan_parts() {
  PlanParts parts{python_part(), library_part(kLibrary)};
  if (parts.python.empty() || parts.library.empty()) {
    return Error{fmt::format("{} was not found beside the executable ({})",
                             parts.python.empty() ? "Faultline's Python package" : kLibrary, executable_folder()),
                 {},
                 "Set FAULTLINE_HOME to the folder that has python/ and build/ in it."};
  }
  Result<std::string> python = plain_path(parts.python, kSearchPathSeparators, {});
  if (!python) return python.error();
  parts.python = *python;
  return parts;
}

Status write_request(const std::string& folder, const PlanParts& parts, const DryRunRequest& request, bool confined) {
  Json gpus = Json::array();
  for (const ShownGpu& gpu : request.gpus) gpus.push_back(gpu_json(gpu));
  Json changes = Json::object();
  for (const auto& [name, value] : request.changes) changes[name] = change_json(value);
  Json edits = Json::object();
  for (const auto& [name, of_remedy] : request.edits) {
    edits[name] = Json::array();
    for (const Edit& edit : of_remedy)
      edits[name].push_back(
          {{"file", edit.file}, {"line", edit.line}, {"old", edit.old_lines}, {"new", edit.new_lines}});
  }
  const Json json = {
      {"folder", folder},
      {"library", parts.library},
      {"gpus", std::move(gpus)},
      {"confined", confined},
      {"filter", filter_json()},
      {"token", token()},
      {"overcommit", request.overcommit},
      {"refused", request.refused},
      {"real", request.real},
      {"steps", request.steps},
      {"seconds", request.seconds},
      {"at_least_seconds", request.at_least_seconds},
      {"go_on", request.go_on},
      {"changes", std::move(changes)},
      {"edits", std::move(edits)},
      {"many", request.many},
      {"op_memory", op_memory_json(request.op_memory)},
      {"ranks", request.ranks},
      {"vary", request.vary ? Json{{"name", request.vary->first}, {"value", request.vary->second}} : Json(nullptr)},
  };
  if (Status made = make_private_folder(folder); !made) return made;
  return write_text((fs::path(folder) / layout::kRequest).string(),
                    json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<ProcessSummary> read_summaries(const std::string& folder) {
  std::map<std::string, ProcessSummary> by_process;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(layout::kProcess)) continue;
    const std::string process = entry.path().stem().string();
    if (name.ends_with(layout::kTraceEnd)) by_process[process].trace = entry.path().string();
    if (name.ends_with(layout::kFactsEnd)) read_summary(entry.path().string(), by_process[process]);
  }
  std::vector<ProcessSummary> summaries;
  for (auto& [process, summary] : by_process) summaries.push_back(std::move(summary));
  return summaries;
}

ImportTrouble read_import_trouble(const std::string& folder) {
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    if (!entry.path().filename().string().starts_with(layout::kImport)) continue;
    const Result<std::string> text = read_text_file(entry.path().string());
    const Result<Json> told = text ? parse_json<Json>(*text) : Result<Json>(text.error());
    ImportTrouble trouble;
    if (told && told->is_object()) {
      JsonReader read(*told);
      read("why", trouble.why);
      read("is_under_way", trouble.is_under_way);
    }
    if (!trouble.why.empty()) return trouble;
  }
  return {};
}

}  // namespace faultline::process
