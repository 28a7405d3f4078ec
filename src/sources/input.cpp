#include "sources/input.h"

#include <algorithm>
#include <filesystem>
#include <new>

#include "sources/bounds.h"
#include "sources/source.h"
#include "sources/symbolise.h"

namespace faultline {
namespace {

constexpr std::size_t kHeadBytes = 4096;  // enough to recognise any file by
constexpr const char* kKnownInputs = "It reads PyTorch memory snapshots, GPU core dumps, Faultline traces, text with a GPU error message in it, and the folders that run and plan leave.";

// Whatever goes wrong in a source for want of memory is said in one sentence.
template <class Read>
Result<Input> guarded(const Source& source, const std::string& path, Read read) {
  try {
    Result<Input> input = read();
    if (!input) return input;
    if (input->kind.empty()) input->kind = source.kind;
    input->path = path;
    for (InputPart& part : input->parts) {
      keep_in_bounds(part.trace);
      part.statements = read_statements(part.trace);
    }
    return input;
  } catch (const std::bad_alloc&) {
    return Error{"there is not enough memory to read it", {}, {}};
  }
}

Result<Input> open_folder(const std::string& path) {
  for (const Source& source : all_sources()) {
    if (source.recognises_folder == nullptr || !source.recognises_folder(path)) continue;
    return guarded(source, path, [&] { return source.read_folder(path); });
  }
  return Error{"this folder holds no run of Faultline, and no file that it reads", {}, {}};
}

Result<Trace> first_trace(Result<Input> input) {
  if (!input) return input.error();
  return std::move(input->parts.front().trace);
}

void take_sizes(const Trace& message, Trace& other) {
  for (const Device& stated : message.devices) {
    for (Device& device : other.devices) {
      if (device.index != stated.index) continue;
      if (device.capacity_bytes == 0) device.capacity_bytes = stated.capacity_bytes;
      if (device.allowed_bytes == 0) device.allowed_bytes = stated.allowed_bytes;
    }
  }
}

}  // namespace

Input::Input(Trace trace) { parts.push_back({std::move(trace), {}, {}}); }

std::uint64_t Input::event_count() const {
  std::uint64_t count = 0;
  for (const InputPart& part : parts) count += part.trace.source_event_count();
  return count;
}

Result<Input> open_input(const std::string& path, NamedBy named_by) {
  std::error_code problem;
  if (path != "-" && std::filesystem::is_directory(path, problem)) return open_folder(path);
  Result<ByteStream> stream = ByteStream::open(path, named_by);
  if (!stream) return stream.error();
  return open_input(*stream, path);
}

Result<Input> open_input(ByteStream& stream, const std::string& path) {
  // Let the window hold enough to recognise the input by.
  if (Result<const std::uint8_t*> head = stream.more(stream.begin(), kHeadBytes); !head) return head.error();
  const std::span<const std::uint8_t> head(stream.begin(), stream.end());
  if (head.empty()) return Error{"the file is empty", {}, {}};
  for (const Source& source : all_sources()) {
    if (source.recognises == nullptr || !source.recognises(head)) continue;
    return guarded(source, path, [&]() -> Result<Input> {
      Result<Input> input = source.read(stream, path);
      if (!input) return input;
      for (InputPart& part : input->parts) {
        part.trace.source_path = path;
        symbolise(part.trace);
      }
      if (input->parts.size() == 1) input->kind = input->parts.front().trace.source_kind;  // what was read before it became a trace of ours
      return input;
    });
  }
  return Error{"this is no input that Faultline knows", {}, kKnownInputs};
}

Result<Trace> load(const std::string& path, NamedBy named_by) { return first_trace(open_input(path, named_by)); }
Result<Trace> load(ByteStream& stream, const std::string& path) { return first_trace(open_input(stream, path)); }

void share_device_sizes(std::vector<Input>& inputs) {
  for (const Input& from : inputs) {
    for (const InputPart& message : from.parts) {
      if (!message.statements.error) continue;
      for (Input& into : inputs) {
        for (InputPart& part : into.parts) take_sizes(message.trace, part.trace);
      }
    }
  }
}

}  // namespace faultline
