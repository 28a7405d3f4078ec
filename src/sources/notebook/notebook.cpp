#include "sources/notebook/notebook.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_input.h"
#include "sources/error_text/error_text.h"
#include "sources/stated_fields.h"

namespace faultline {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxDepth = 64;

// Text is a string, or a list of strings one after the other.
std::string text_of(const Json& object, const char* name, std::string_view between) {
  const auto found = object.find(name);
  if (found == object.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  std::string text;
  if (found->is_array()) {
    for (const Json& part : *found) {
      if (part.is_string()) text += part.get_ref<const std::string&>() + std::string(between);
    }
  }
  return text;
}

std::string outputs_of(const Json& cell) {
  std::string text;
  const auto outputs = cell.find("outputs");
  if (outputs == cell.end() || !outputs->is_array()) return text;
  for (const Json& output : *outputs) {
    if (!output.is_object()) continue;
    text += text_of(output, "text", "");
    const std::string traceback = text_of(output, "traceback", "\n");
    if (!text.empty() && text.back() != '\n') text += '\n';
    if (!traceback.empty() && traceback.find("Traceback (most recent call last)") == std::string::npos)
      text += "Traceback (most recent call last)\n";
    text += traceback;
    // Some programs that clean notebooks leave only these.
    if (traceback.empty() && output.contains("ename"))
      text += text_of(output, "ename", "") + ": " + text_of(output, "evalue", "") + "\n";
  }
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

bool fails(const Json& cell) {
  const auto outputs = cell.find("outputs");
  return outputs != cell.end() && outputs->is_array() &&
         std::any_of(outputs->begin(), outputs->end(), [](const Json& output) {
           return output.is_object() && (output.contains("ename") || output.contains("traceback"));
         });
}

}  // namespace

bool looks_like_notebook(std::span<const std::uint8_t> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::size_t first = text.find_first_not_of(" \r\n\t");
  return first != std::string_view::npos && text[first] == '{' &&
         (text.find("\"cell_type\"") != std::string_view::npos || text.find("\"nbformat\"") != std::string_view::npos);
}

Result<Trace> read_notebook(ByteStream& stream, const std::string& path) {
  Result<std::string> bytes = stream.read_all(kMostBytes);
  if (!bytes) return bytes.error();
  // not while it is parsed: the parser looks through a whole list again for each member that it may leave out
  const Json notebook = is_json_within(*bytes, kMaxDepth) ? Json::parse(*bytes, nullptr, false) : Json();
  const auto cells = notebook.is_object() ? notebook.find("cells") : notebook.end();
  if (notebook.is_discarded() || !notebook.is_object() || cells == notebook.end() || !cells->is_array()) {
    return Error{"this looks like a notebook (.ipynb) and is no whole one",
                 {},
                 "Save it again, or paste the output of the failing cell."};
  }
  struct Run {
    std::int64_t count;
    std::string text;
    bool failed;
  };
  std::vector<Run> runs;
  std::size_t outputs = 0;
  std::int64_t last_failed = -1, last_well = -1;  // by the order in which they were run
  for (const Json& cell : *cells) {
    if (!cell.is_object()) continue;
    const auto count = cell.find("execution_count");
    Run run{count != cell.end() && count->is_number_integer() ? count->get<std::int64_t>() : -1, outputs_of(cell),
            fails(cell)};
    const bool is_counted = run.count >= 0;
    if (run.count < 0) run.count = runs.empty() ? 0 : runs.back().count;
    outputs += run.text.empty() ? 0 : 1;
    if (is_counted) (run.failed ? last_failed : last_well) = std::max(run.failed ? last_failed : last_well, run.count);
    runs.push_back(std::move(run));
  }
  std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.count < b.count; });
  std::string text;
  for (const Run& run : runs) {
    // an error of one cell does not end the others
    if (!text.empty() && !run.text.empty()) text += "the next cell was run\n";
    text += run.text;
  }
  Result<Trace> trace = read_error_text(std::string_view(text), path);
  if (!trace) {
    return Error{"this is a notebook with the output of " + std::to_string(outputs) + " of " +
                     std::to_string(runs.size()) + " cells, and no GPU memory error was found in it",
                 {},
                 "Save the notebook after the cell has failed, with its output; an output that was cleared is gone."};
  }
  trace->source_kind = "notebook";
  const bool refused = !trace->events.empty() && trace->events[0].kind == EventKind::kAllocFailed;
  const bool went_on = refused && last_failed >= 0 && last_well > last_failed;
  // The lines of what was put together are nobody's.
  const auto without_line = [](std::string& words) {
    if (!words.starts_with("line ")) return;
    const std::size_t behind = words.find_first_not_of("0123456789", 5);
    if (behind != std::string::npos) words.erase(0, behind + 2);
  };
  restate(trace->properties, [&](StatedError& stated, TextNotes& notes) {
    if (went_on && stated.ended_by.empty()) {
      stated.lives_on = true;
      notes.lives_by_words = false;
    }
    stated.line = 0;
    std::for_each(stated.survived.begin(), stated.survived.end(), without_line);
    std::for_each(notes.also.begin(), notes.also.end(), without_line);
  });
  return trace;
}

}  // namespace faultline
