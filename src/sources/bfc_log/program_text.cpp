#include "sources/bfc_log/program_text.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "sources/error_text/error_text.h"
#include "sources/run_folder/trace_import.h"
#include "sources/statements.h"

namespace faultline {
namespace {

constexpr std::size_t kMostText = 8 * 1024 * 1024;

// "[32,1024,64]", with or without the brackets: nothing where it is more than numbers.
std::vector<std::int64_t> shape_of(std::string_view text) {
  if (text.starts_with('[')) text.remove_prefix(1);
  if (text.ends_with(']')) text.remove_suffix(1);
  std::vector<std::int64_t> shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end && shape.size() < kMostDimensions) {
    std::int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc{}) return {};
    shape.push_back(extent);
    at = next;
    while (at < end && (*at == ',' || *at == ' ')) ++at;
  }
  return shape;
}

}  // namespace

// A failure is told at the end: of a long output the last part is kept.
void ProgramText::add(std::string_view line) {
  if (text_.size() + line.size() + 1 > kMostText) {
    const std::size_t middle = text_.find('\n', text_.size() / 2);
    text_.erase(0, middle == std::string::npos ? text_.size() : middle + 1);
  }
  text_.append(line);
  text_ += '\n';
}

void ProgramText::tell(Trace& trace, const std::string& path) const {
  const Result<Trace> message = read_error_text(std::string_view(text_), path);
  if (!message) return;
  const Statements stated = read_statements(*message);
  if (!stated.error) return;
  const auto failed = std::find_if(trace.events.rbegin(), trace.events.rend(),
                                   [](const Event& event) { return event.kind == EventKind::kAllocFailed; });
  // A pool of the host's memory that refuses is the pool's doing, which its log shows better than the message.
  const bool is_host = stated.error.name.starts_with("host-");
  if (!is_host || failed == trace.events.rend()) {
    for (const auto& [name, value] : message->properties) trace.properties.try_emplace(name, value);
  }
  if ((stated.error.kind != ErrorKind::kOutOfMemory && !is_host) || message->events.empty() ||
      failed == trace.events.rend())
    return;
  TraceImport import(*message, trace);
  const StackId python = import.stack(message->events.front().stack);
  if (python.value != 0) failed->stack = python;
  if (stated.error.tensor_shape.empty() || failed == trace.events.rbegin()) return;
  Event& note = *std::prev(failed);
  if (note.kind != EventKind::kTensorNote) return;
  Tensor tensor = trace.tensors.at(TensorId(note.extra));
  tensor.shape = shape_of(stated.error.tensor_shape);
  tensor.dtype = trace.strings.intern(stated.error.tensor_type);
  note.extra = trace.tensors.intern(tensor).value;
}

}  // namespace faultline
