#include "sources/bfc_log/program_text.h"

#include <algorithm>

#include "sources/error_text/error_text.h"
#include "sources/statements.h"
#include "sources/trace_import.h"

namespace faultline {
namespace {

constexpr std::size_t kMostText = 8 * 1024 * 1024;

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
  const bool is_host = is_of_host(row_of(stated.error.kind));
  if (!is_host || failed == trace.events.rend()) {
    for (const auto& [name, value] : message->properties) trace.properties.try_emplace(name, value);
  }
  if ((stated.error.group() != ErrorKind::kOutOfMemory && !is_host) || message->events.empty() ||
      failed == trace.events.rend())
    return;
  TraceImport import(*message, trace);
  const StackId python = import.stack(message->events.front().stack);
  if (python.value != 0) failed->stack = python;
}

}  // namespace faultline
