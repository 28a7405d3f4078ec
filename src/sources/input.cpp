#include "sources/input.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/plain_file.h"
#include "sources/bounds.h"
#include "sources/source.h"
#include "sources/symbolise.h"
#include "trace/validate.h"

namespace faultline {
namespace {

constexpr std::uint64_t kMostRounding = 20;  // a message tells the segment that was asked for, a recording the block
constexpr std::size_t kHeadBytes = 4096;     // enough to recognise any file by

std::string what_it_reads() { return "It reads " + known_inputs() + "."; }

// Whatever goes wrong in a source for want of memory is said in one sentence.
template <class Read>
Result<Input> guarded(const Source& source, const std::string& path, Read read) {
  try {
    Result<Input> input = read();
    if (!input) return input;
    if (input->kind.empty()) input->kind = source.kind;
    input->path = path;
    for (InputPart& part : input->parts) {
      if (Status sound = check_sizes(part.trace); !sound) return sound.error();
      keep_in_bounds(part.trace);
      part.statements = read_statements(part.trace);
    }
    return input;
  } catch (const std::bad_alloc&) {
    return Error{"there is not enough memory to read it", {}, {}};
  }
}

Result<Input> open_folder(const std::string& path) {
  if (::access(path.c_str(), R_OK | X_OK) != 0) return file_error("cannot be read", errno);
  std::optional<Error> first;  // what looks like one kind may still be another
  for (const Source& source : all_sources()) {
    if (source.recognises_folder == nullptr || !source.recognises_folder(path)) continue;
    Result<Input> input = guarded(source, path, [&] { return source.read_folder(path); });
    if (input) return input;
    if (!first) first = input.error();
  }
  return first.value_or(Error{"this folder holds no run of Faultline, and no file that it reads", {}, what_it_reads()});
}

Result<Trace> first_trace(Result<Input> input) {
  if (!input) return input.error();
  return std::move(input->parts.front().trace);
}

// The message is about a failure of this recording: a request of its size failed there, and the device it speaks of can hold what the recording saw.
bool is_about(const StatedError& message, const Device& stated, const Trace& other) {
  return message.requested && std::any_of(other.events.begin(), other.events.end(), [&](const Event& event) {
           if (event.kind != EventKind::kAllocFailed || event.device != stated.index ||
               (event.has(kHasDeviceFree) && stated.capacity_bytes != 0 && event.address > stated.capacity_bytes))
             return false;
           return event.size_bytes <= message.requested->max &&
                  event.size_bytes >= message.requested->min / kMostRounding;
         });
}

void take_sizes(const InputPart& message, Trace& other) {
  for (const Device& stated : message.trace.devices) {
    if (!is_about(message.statements.error, stated, other)) continue;
    for (Device& device : other.devices) {
      if (device.index != stated.index) continue;
      if (device.capacity_bytes == 0) device.capacity_bytes = stated.capacity_bytes;
      if (device.allowed_bytes == 0) device.allowed_bytes = stated.allowed_bytes;
    }
  }
}

// The recorder tells of a free before the driver has it: another thread may be given the address at once. One that the driver then refuses is told again, flagged kFailed, and ended nothing.
void withdraw_refused_frees(Trace& trace) {
  if (!trace.properties.contains("driver.library")) return;
  std::unordered_map<std::uint32_t, Event*> told;  // by allocation
  for (const Event& event : trace.events) {
    if (ends_allocation(event.kind) && event.has(kFailed) && event.allocation.value != 0)
      told.emplace(event.allocation.value, nullptr);
  }
  if (told.empty()) return;
  for (Event& event : trace.events) {
    if (!ends_allocation(event.kind)) continue;
    const auto at = told.find(event.allocation.value);
    if (at == told.end()) continue;
    if (!event.has(kFailed))
      at->second = &event;
    else if (Event* const before = std::exchange(at->second, nullptr); before != nullptr)
      before->set(kFailed);
  }
}

}  // namespace

Input::Input(Trace trace) { parts.push_back({std::move(trace), {}, {}}); }

Result<Input> open_input(const std::string& path, NamedBy named_by) {
  std::error_code problem;
  if (named_by == NamedBy::kUser && path != "-" && std::filesystem::is_directory(path, problem))
    return open_folder(path);  // a folder in a folder is not entered
  Result<ByteStream> stream = ByteStream::open(path, named_by);
  if (!stream) return stream.error();
  return open_input(*stream, path);
}

Result<Input> open_input(ByteStream& stream, const std::string& path) {
  // Let the window hold enough to recognise the input by.
  if (Result<const std::uint8_t*> head = stream.more(stream.begin(), kHeadBytes); !head) return head.error();
  // A log that was cut while its writer went on begins with as many NULs as it had bytes.
  if (std::all_of(stream.begin(), stream.end(), [](std::uint8_t byte) { return byte == 0; })) {
    if (Result<const std::uint8_t*> more = stream.more(stream.begin(), ByteStream::kWindowBytes); !more)
      return more.error();
  }
  const std::span<const std::uint8_t> head(stream.begin(), stream.end());
  if (head.empty()) return Error{"the file is empty", {}, {}};
  for (const Source& source : all_sources()) {
    if (source.recognises == nullptr || !source.recognises(head)) continue;
    return guarded(source, path, [&]() -> Result<Input> {
      Result<Input> input = source.read(stream, path);
      if (!input) return input;
      for (InputPart& part : input->parts) {
        part.trace.source_path = path;
        if (part.trace.source_kind.empty()) part.trace.source_kind = source.kind;
        withdraw_refused_frees(part.trace);
        symbolise(part.trace);
      }
      // what was read before it became a trace of ours
      if (input->parts.size() == 1 && input->kind.empty()) input->kind = input->parts.front().trace.source_kind;
      return input;
    });
  }
  return Error{"this is no input that Faultline knows", {}, what_it_reads()};
}

Result<Trace> load(const std::string& path, NamedBy named_by) { return first_trace(open_input(path, named_by)); }
Result<Trace> load(ByteStream& stream, const std::string& path) { return first_trace(open_input(stream, path)); }

void share_device_sizes(std::vector<Input>& inputs) {
  for (const Input& from : inputs) {
    for (const InputPart& message : from.parts) {
      if (!message.statements.error) continue;
      for (Input& into : inputs) {
        for (InputPart& part : into.parts) take_sizes(message, part.trace);
      }
    }
  }
}

}  // namespace faultline
