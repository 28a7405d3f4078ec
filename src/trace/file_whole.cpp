// A whole trace into a file: write_trace_file.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "base/whole_file.h"
#include "trace/file_writer.h"
#include "trace/validate.h"

namespace faultline {
namespace {

Status write_tables(const Trace& trace, TraceFileWriter& writer) {
  for (std::uint32_t i = 1; i < trace.strings.size(); ++i) {
    if (Status status = writer.define_string(StringId(i), trace.strings.at(StringId(i))); !status) return status;
  }
  for (std::uint32_t i = 1; i < trace.stacks.frame_count(); ++i) {
    if (Status status = writer.define_frame(FrameId(i), trace.stacks.frame(FrameId(i))); !status) return status;
  }
  for (std::uint32_t i = 1; i < trace.stacks.size(); ++i) {
    const StackId stack(i);
    if (Status status = writer.define_stack(stack, trace.stacks.parent(stack), trace.stacks.frame_id(stack)); !status)
      return status;
  }
  for (std::uint32_t i = 1; i < trace.tensors.size(); ++i) {
    if (Status status = writer.define_tensor(TensorId(i), trace.tensors.at(TensorId(i))); !status) return status;
  }
  Status status = Ok{};
  each_call_table(trace, [&](const auto& table) {
    using Id = typename std::remove_cvref_t<decltype(table)>::Id;
    for (std::uint32_t i = 1; i < table.size() && status.ok(); ++i) status = writer.define_call(Id(i), table.at(Id(i)));
  });
  if (!status) return status;
  return Ok{};
}

Status write_places(const Trace& trace, TraceFileWriter& writer) {
  for (std::size_t i = 0; i < trace.heaps.size(); ++i) {
    if (Status status = writer.define_heap(HeapId(static_cast<std::uint16_t>(i)), trace.heaps[i]); !status)
      return status;
  }
  for (std::size_t i = 0; i < trace.streams.size(); ++i) {
    if (Status status = writer.define_stream(StreamId(static_cast<std::uint32_t>(i)), trace.streams[i]); !status)
      return status;
  }
  for (std::size_t i = 0; i < trace.devices.size(); ++i) {
    if (Status status = writer.define_device(static_cast<std::uint32_t>(i), trace.devices[i]); !status) return status;
  }
  for (const auto& [key, value] : trace.properties) {
    if (Status status = writer.define_property(key, value); !status) return status;
  }
  return Ok{};
}

Status write_all(const Trace& trace, TraceFileWriter& writer) {
  const TraceOrigin origin{trace.source_kind, trace.source_path, trace.source_events, trace.capabilities};
  if (Status status = writer.define_origin(origin); !status) return status;
  if (Status status = write_places(trace, writer); !status) return status;
  if (Status status = write_tables(trace, writer); !status) return status;
  for (const Event& event : trace.events) {
    if (Status status = writer.append(event); !status) return status;
  }
  if (!trace.final_segments.empty() || !trace.final_blocks.empty()) {
    if (Status status = writer.define_final_state(trace.final_segments, trace.final_blocks); !status) return status;
  }
  for (const auto& [what, times] : trace.lost) {
    if (Status status = writer.count(what, times); !status) return status;
  }
  return writer.finish();
}

Status write_new_file(const Trace& trace, const std::string& path) {
  auto file = TraceFile::create(path);
  if (!file) return file.error();
  {
    TraceFileWriter writer(**file);
    if (Status status = write_all(trace, writer); !status) return status;
  }
  return (*file)->close();
}

}  // namespace

Status write_trace_file(const Trace& trace, const std::string& named) {
  if (Status status = check_trace(trace); !status) return status;
  const Result<std::string> target = replaceable(named);
  if (!target) return target.error();
  const std::string& path = *target;
  const bool replaces = is_there(path);
  const std::string partial = name_beside(path);
  if (Status status = write_new_file(trace, partial); !status) {
    ::unlink(partial.c_str());
    // Of a recording that breaks off the beginning stays; a copy is there whole or not at all.
    return Error{status.error().what, status.error().offset, "Nothing was written."};
  }
  if (const int error = put_in_place(partial, path, replaces)) {
    return Error{fmt::format("the trace file cannot be put in its place: {}", std::strerror(error)), {}, {}};
  }
  return Ok{};
}

}  // namespace faultline
