// replay FILE --set …: the same requests under other allocator settings or on another device.
#include "models/replay.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "base/given_size.h"
#include "base/safe_text.h"
#include "base/units.h"
#include "cli/options.h"
#include "facts/facts.h"
#include "fmt/format.h"
#include "models/gpus.h"
#include "models/search.h"
#include "process/overwriting.h"
#include "process/progress.h"
#include "report/page.h"
#include "rules/describe.h"
#include "sources/input.h"
#include "trace/file_writer.h"

namespace faultline::cli {
namespace {

struct ReplayArguments {
  std::string path;
  std::string part;
  std::vector<std::string> settings;
  std::string gpu;
  std::string context;
  std::string output_trace;
  std::uint16_t device = 0;
  bool search = false;
  OutputOptions output;
};

// One row of the answer: the recording itself, or a replay of it.
struct Row {
  std::string name;
  ReplayResult result;
  std::string place;  // where it fails
};

// A program that was refused memory might have gone on to ask for more: of that a recording knows nothing. A dry run goes on.
bool ended_for_want_of_memory(const Facts& facts, std::size_t slot, const Statements& statements) {
  const DeviceUsage& usage = facts.usage[slot];
  return !usage.failures.empty() &&
         !(statements.placed_by_model && is_served_after_all(facts.trace, usage.failures.back().event));
}

std::string verdict(const Row& row, bool cut_short) {
  if (row.result.failure_count == 0) return cut_short ? "fits as far as it was recorded" : "fits";
  return fmt::format("out of memory{}", row.place.empty() ? "" : " at " + row.place);
}

std::string place_of_failure(const Facts& facts, std::size_t slot, const ReplayResult& result) {
  if (result.failures.empty()) return {};
  return short_place(whereabouts(facts, slot, static_cast<std::uint32_t>(result.failures.front().event)).location);
}

// A row a line where the page is wide enough; else the settings and the verdict, and the figures below.
void add_table(Page& page, const std::vector<Row>& rows, bool cut_short) {
  const auto base = static_cast<std::int64_t>(rows.front().result.peak_reserved_bytes);
  std::vector<std::string> figures, verdicts;
  int name_columns = display_width("settings"), verdict_columns = 0;
  for (const Row& row : rows) {
    const std::int64_t saved = base - static_cast<std::int64_t>(row.result.peak_reserved_bytes);
    const bool is_better_or_worse =
        &row != &rows.front() && saved != 0 && row.result.failure_count == 0 && rows.front().result.failure_count == 0;
    const std::string change = is_better_or_worse
                                   ? fmt::format(", {} {}", saved > 0 ? "saves" : "costs",
                                                 format_bytes(static_cast<std::uint64_t>(std::abs(saved))))
                                   : "";
    verdicts.push_back(page.clean(verdict(row, cut_short) + change));
    figures.push_back(fmt::format("{:>13}  {:>14}  {:>8}  {:>7}  ", format_bytes(row.result.peak_reserved_bytes),
                                  format_bytes(row.result.peak_allocated_bytes), row.result.segments_taken,
                                  row.result.cache_flushes));
    name_columns = std::max(name_columns, display_width(page.clean(row.name)));
    verdict_columns = std::max(verdict_columns, display_width(verdicts.back()));
  }
  const std::string head = "peak reserved  peak allocated  segments  flushes  ";
  const bool is_wide = 2 + name_columns + 2 + display_width(head) + verdict_columns <= page.width();
  page.line({{"  " + (is_wide ? pad_right("settings", name_columns + 2) + head + "verdict" : head), Style::kDim}});
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::string name = page.clean(rows[at].name);
    if (is_wide) {
      page.line({{"  " + pad_right(name, name_columns + 2) + figures[at] + verdicts[at]}});
    } else {
      page.paragraph(2, name + ": " + verdicts[at]);
      page.line({{"  " + figures[at]}});
    }
  }
}

nlohmann::ordered_json row_json(const Row& row, bool cut_short) {
  nlohmann::ordered_json out{{"settings", row.name},
                             {"peak_reserved", row.result.peak_reserved_bytes},
                             {"peak_allocated", row.result.peak_allocated_bytes},
                             {"segments_taken", row.result.segments_taken},
                             {"segments_returned", row.result.segments_returned},
                             {"cache_flushes", row.result.cache_flushes},
                             {"events", row.result.events},
                             {"fits", row.result.failure_count == 0},
                             {"as_far_as_recorded", cut_short},
                             {"failures", nlohmann::ordered_json::array()}};
  for (const ReplayFailure& failure : row.result.failures) {
    out["failures"].push_back({{"event", failure.event},
                               {"requested", failure.requested_bytes},
                               {"segment", failure.segment_bytes},
                               {"allocated", failure.allocated_bytes},
                               {"reserved", failure.reserved_bytes},
                               {"at", &failure == &row.result.failures.front() ? nlohmann::ordered_json(row.place)
                                                                               : nlohmann::ordered_json(nullptr)}});
  }
  return out;
}

Result<const InputPart*> named_part(const Input& input, const std::string& wanted) {
  std::string names;
  for (const InputPart& part : input.parts) {
    if (part.name == wanted || part.name == "process " + wanted) return &part;
    names += (names.empty() ? "" : ", ") + part.name;
  }
  return Error{fmt::format("--part: there is no {} in it; there are {}", wanted, names), {}, {}};
}

// The first that ran out of memory, else the first recording; a message only where there is nothing else, and replay then says what it lacks.
const InputPart& likeliest_part(const Input& input) {
  const auto is_recording = [](const InputPart& part) { return !part.statements.message_only; };
  const auto failed = std::find_if(input.parts.begin(), input.parts.end(), [&](const InputPart& part) {
    return is_recording(part) && part.holds(EventKind::kAllocFailed);
  });
  const auto recording =
      failed != input.parts.end() ? failed : std::find_if(input.parts.begin(), input.parts.end(), is_recording);
  if (recording == input.parts.end()) return input.parts.front();
  if (input.parts.size() > 1)
    hint(fmt::format("the recording has {} parts; this is {} (--part chooses another)", input.parts.size(),
                     recording->name));
  return *recording;
}

std::vector<Row> search(const Trace& trace, const ReplayOptions& base, const std::vector<SettingChanges>& candidates) {
  std::vector<std::optional<Row>> found(candidates.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < candidates.size(); at = next++) {
      ReplayOptions options = base;
      options.changes = candidates[at];
      if (Result<ReplayResult> result = replay(trace, options))
        found[at] = Row{result->settings, std::move(*result), {}};
    }
  };
  std::vector<std::thread> threads;
  for (unsigned extra = 1; extra < std::min(4u, std::max(1u, std::thread::hardware_concurrency())); ++extra)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<Row> rows;
  for (std::optional<Row>& row : found) {
    if (row) rows.push_back(std::move(*row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    const auto key = [](const Row& r) {
      return std::tuple(r.result.failure_count, r.result.peak_reserved_bytes, r.result.segments_taken);
    };
    return key(a) < key(b);
  });
  return rows;
}

// What can be said of the arguments before the input is opened.
Status check(const ReplayArguments& arguments) {
  const std::string& output = arguments.output_trace;
  if (!output.empty() && is_same_file(output, arguments.path))
    return Error{"--save-trace: " + output + " is the input itself; give another name", {}, {}};
  if (!may_be_overwritten(output))
    return Error{"--save-trace: " + output + " is there already and is no Faultline trace; give another name", {}, {}};
  if (arguments.search && arguments.output.writes_recordings() != nullptr)
    return Error{"--format " + arguments.output.format + " takes one replay, not with --search", {}, {}};
  if (arguments.search && !output.empty()) return Error{"--save-trace takes one replay, not with --search", {}, {}};
  if (!arguments.context.empty() && arguments.gpu.empty()) return Error{"--context needs --gpu", {}, {}};
  return Ok{};
}

std::string name_of_input(const ReplayArguments& arguments) {
  return arguments.path == "-" ? "standard input" : arguments.path;
}

Result<const InputPart*> part_to_replay(const ReplayArguments& arguments, const Input& input) {
  if (!input.report.empty())
    return Error{name_of_input(arguments) + " is a report and holds no events: give the recording itself", {}, {}};
  const Result<const InputPart*> part =
      arguments.part.empty() ? &likeliest_part(input) : named_part(input, arguments.part);
  if (part && (*part)->statements.message_only)
    return Error{name_of_input(arguments) +
                     " is an error message, not a recording: there is nothing to replay. faultline explain says what "
                     "it says; faultline run or a PyTorch memory snapshot records what a replay needs",
                 {},
                 {}};
  return part;
}

// The memory that the replay may take.
struct Room {
  std::optional<std::uint64_t> segment_budget_bytes;  // none: as much as it asks for
  std::string words;                                  // behind "Replay of N allocator events of FILE"
  nlohmann::ordered_json gpu;
  std::optional<TargetGpu> target;  // where a GPU was named
};

Result<Room> room_on_named_gpu(const ReplayArguments& arguments) {
  Result<Gpu> found = find_gpu(arguments.gpu);
  if (!found) return Error{"--gpu: " + found.error().message(), {}, {}};
  Gpu gpu = *found;
  std::string source = gpu.name.empty() ? "an assumption that --context changes"
                                        : fmt::format("{}; --context changes it", to_string(gpu.context_source));
  if (!arguments.context.empty()) {
    Result<std::uint64_t> context = parse_size(arguments.context);
    if (!context) return Error{"--context: " + context.error().message(), {}, {}};
    gpu.context_bytes = *context;
    source = "as --context says";
  }
  if (gpu.context_bytes >= gpu.capacity_bytes) {
    return Error{"--gpu: " + format_bytes(gpu.capacity_bytes) + " leave nothing beside the CUDA context (" +
                     format_bytes(gpu.context_bytes) + ")",
                 {},
                 {}};
  }
  const std::string size =
      gpu.name.empty() ? std::string()
                       : fmt::format(", {} ({})", format_bytes(gpu.capacity_bytes), to_string(gpu.capacity_source));
  if (!gpu.note.empty()) hint("--gpu: " + std::string(gpu.note));
  return Room{gpu.capacity_bytes - gpu.context_bytes,
              fmt::format(" on {}{}, of which the CUDA context and libraries take {} ({})", describe(gpu), size,
                          format_bytes(gpu.context_bytes), source),
              {{"name", gpu.full_name},
               {"capacity", gpu.capacity_bytes},
               {"capacity_source", to_string(gpu.capacity_source)},
               {"context", gpu.context_bytes},
               {"context_source", arguments.context.empty() ? to_string(gpu.context_source) : "given"},
               {"note", gpu.note}},
              TargetGpu{gpu.capacity_bytes, gpu.compute_major}};
}

// Without another GPU a plan is held against its own, and a recording against none.
Result<Room> room_for(const ReplayArguments& arguments, const Statements& statements, const Device& device,
                      std::uint64_t outside_bytes) {
  Room room;
  if (!arguments.gpu.empty()) {
    Result<Room> named = room_on_named_gpu(arguments);
    if (!named) return named;
    room = std::move(*named);
  } else if (const std::uint64_t context = statements.planned_context_of(device.index).value_or(0);
             statements.placed_by_model && device.capacity_bytes > context) {
    room.segment_budget_bytes = device.capacity_bytes - context;
    room.words = fmt::format(" on the planned GPU, {}, of which the CUDA context and libraries take {}",
                             format_bytes(device.capacity_bytes), format_bytes(context));
  }
  if (room.segment_budget_bytes && outside_bytes != 0) {
    *room.segment_budget_bytes -= std::min(*room.segment_budget_bytes, outside_bytes);
    room.words += fmt::format(" and other libraries {}", format_bytes(outside_bytes));
  }
  return room;
}

// First what was recorded, proved by the model, so that the numbers beside it can be believed; then the replays.
Result<std::vector<Row>> answer(const ReplayArguments& arguments, const Facts& facts, std::size_t slot,
                                ReplayOptions options) {
  const Trace& trace = facts.trace;
  ReplayOptions proof_options;
  proof_options.proof = true;
  proof_options.device = arguments.device;
  Result<ReplayResult> proof = replay(trace, proof_options);
  if (!proof) return Error{proof.error().message(arguments.path), {}, {}};
  std::vector<Row> rows;
  rows.push_back({"as recorded: " + proof->settings, std::move(*proof), {}});
  rows.front().result.failure_count = facts.usage[slot].failure_count;
  if (!facts.usage[slot].failures.empty())
    rows.front().place = short_place(whereabouts(facts, slot, facts.usage[slot].failures.front().event).location);

  options.want_trace = !arguments.output_trace.empty() || arguments.output.writes_recordings() != nullptr;
  if (arguments.search) {
    std::vector<SettingChanges> candidates = sensible_settings(trace, arguments.device);
    for (SettingChanges& changes : candidates)
      changes.insert(changes.begin(), options.changes.begin(), options.changes.end());
    for (Row& row : search(trace, options, candidates)) rows.push_back(std::move(row));
  } else {
    Result<ReplayResult> result = replay(trace, options);
    if (!result) {
      // without changes it was replayed a moment ago
      return Error{
          options.changes.empty() ? result.error().message(arguments.path) : "--set: " + result.error().message(),
          {},
          {}};
    }
    rows.push_back({result->settings, std::move(*result), {}});
  }
  for (std::size_t at = 1; at < rows.size(); ++at) rows[at].place = place_of_failure(facts, slot, rows[at].result);
  return rows;
}

std::string to_json(const Input& input, const InputPart& part, const std::vector<Row>& rows, const Room& room,
                    bool cut_short) {
  const ReplayResult& proved = rows.front().result;
  nlohmann::ordered_json out{{"schema", "faultline.replay/1"},
                             {"input", {{"kind", input.kind}, {"path", input.path}, {"part", part.name}}},
                             {"model",
                              {{"name", proved.model},
                               {"placements", proved.placements},
                               {"exact", proved.exact},
                               {"segment_events", proved.segment_events},
                               {"segment_events_exact", proved.segment_events_exact}}},
                             {"recorded", row_json(rows.front(), cut_short)},
                             {"replays", nlohmann::ordered_json::array()}};
  if (room.segment_budget_bytes) {
    out["segment_budget"] = *room.segment_budget_bytes;
    if (!room.gpu.is_null()) out["gpu"] = room.gpu;
  }
  for (std::size_t at = 1; at < rows.size(); ++at) out["replays"].push_back(row_json(rows[at], cut_short));
  return escaped_json(out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

std::string to_page(const ReplayArguments& arguments, const std::vector<Row>& rows, const Room& room, bool cut_short) {
  const ReplayResult& proved = rows.front().result;
  Page page(terminal_options(arguments.output));
  page.paragraph(0, page.clean(fmt::format("Replay of {} allocator events of {}{}", format_count(proved.events),
                                           arguments.path, room.words)));
  page.blank();
  add_table(page, rows, cut_short);
  page.blank();
  if (cut_short)
    page.paragraph(2,
                   "The program was refused memory in this recording: what it would have requested had it been served "
                   "is not known.");
  page.blank();
  page.paragraph(2, fmt::format("model: {} of {} allocations and {} of {} segment events replayed exactly as recorded",
                                format_count(proved.exact), format_count(proved.placements),
                                format_count(proved.segment_events_exact), format_count(proved.segment_events)));
  if (proved.exact < proved.placements) {
    for (const Mismatch& mismatch : proved.mismatches) {
      page.paragraph(2, page.clean("not exact: " + mismatch.what));
      if (arguments.output.verbose == 0) break;
    }
  }
  return page.take();
}

int run_replay(const ReplayArguments& arguments) {
  if (Status usable = check(arguments); !usable) return fail(usable.error().message());
  std::optional<Progress> progress(std::in_place, reading(arguments.path), arguments.path);
  Result<Input> input = open_input(arguments.path);
  if (!input) return fail(input.error().message(name_of_input(arguments)));
  const Result<const InputPart*> part = part_to_replay(arguments, *input);
  if (!part) return fail(part.error().message());
  const Trace& trace = (*part)->trace;
  const auto device = std::find_if(trace.devices.begin(), trace.devices.end(),
                                   [&](const Device& d) { return d.index == arguments.device; });
  if (device == trace.devices.end()) return fail(fmt::format("the recording has no device {}", arguments.device));
  const auto slot = static_cast<std::size_t>(device - trace.devices.begin());

  ReplayOptions options;
  options.device = arguments.device;
  for (const std::string& text : arguments.settings) {
    Result<SettingChanges> changes = parse_setting_changes(text);
    if (!changes) return fail("--set: " + changes.error().message());
    options.changes.insert(options.changes.end(), changes->begin(), changes->end());
  }
  const Facts facts(trace, {});
  const Result<Room> room = room_for(arguments, (*part)->statements, *device, facts.usage[slot].peak_outside_bytes);
  if (!room) return fail(room.error().message());
  options.segment_budget_bytes = room->segment_budget_bytes;
  options.gpu = room->target;
  progress->step(fmt::format("replaying {} events", format_count(trace.events.size())));
  Result<std::vector<Row>> rows = answer(arguments, facts, slot, options);
  if (!rows) return fail(rows.error().message());
  if (!arguments.output_trace.empty() && rows->back().result.trace) {
    if (Status saved = write_trace_file(*rows->back().result.trace, arguments.output_trace); !saved)
      return fail(saved.error().message(arguments.output_trace));
  }
  progress.reset();
  const bool cut_short = ended_for_want_of_memory(facts, slot, (*part)->statements);
  const bool fits = rows->size() > 1 && (*rows)[1].result.failure_count == 0;
  if (RecordingsForm* const write_replay = arguments.output.writes_recordings();
      write_replay != nullptr && rows->back().result.trace) {
    const Input replayed(std::move(*rows->back().result.trace));
    return write_replay({{&replayed, 1}, fits ? kClean : kFindings});
  }
  return write_out(arguments.output.format == format_name::kJson ? to_json(*input, **part, *rows, *room, cut_short)
                                                                 : to_page(arguments, *rows, *room, cut_short),
                   fits ? kClean : kFindings);
}

}  // namespace

void add_replay(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("replay", "the same requests under other allocator settings or on another GPU");
  auto arguments = std::make_shared<ReplayArguments>();
  verb->add_option("FILE", arguments->path,
                   "a PyTorch memory snapshot, a log of TensorFlow's or JAX's allocator, a Faultline trace, or the "
                   "folder that a "
                   "run or a plan left; - is standard input")
      ->required()
      ->option_text(" ");
  verb->add_option("--part", arguments->part,
                   "of a folder with several processes or files: which one, by the number or name that the report "
                   "shows; without it the one that failed first")
      ->option_text("NAME");
  verb->add_option("--set", arguments->settings,
                   "a setting, for example expandable_segments=True or max_split_size_mb=128, of TensorFlow "
                   "TF_FORCE_GPU_ALLOW_GROWTH=false (may be repeated)")
      ->option_text("NAME=VALUE");
  add_gpu_option(*verb, arguments->gpu, "for example T4 or 16GiB");
  verb->add_option("--context", arguments->context,
                   "what the CUDA context and libraries take of --gpu; without it what such a GPU is known to need, or "
                   "640MiB where --gpu is a size")
      ->option_text("SIZE");
  verb->add_flag("--search", arguments->search, "try the sensible settings and rank them by what they save");
  verb->add_option("--device", arguments->device, "which of the recording's devices; 0 by default")->option_text("N");
  verb->add_option("--save-trace,-o", arguments->output_trace, "write the replay as a Faultline trace")
      ->option_text("PATH");
  verb->footer(
      "Exit status: 0 the replay, or the best of a search, fits, 1 it does not, 2 bad usage or an input that cannot be "
      "read, 3 internal error.");
  add_output_options(*verb, arguments->output);
  verb->callback([arguments, &status] { status = run_replay(*arguments); });
}

}  // namespace faultline::cli
