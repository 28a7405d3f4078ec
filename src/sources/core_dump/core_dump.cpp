#include "sources/core_dump/core_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/mapped_file.h"
#include "sources/core_dump/dump_faults.h"
#include "sources/core_dump/exceptions.h"

namespace faultline {
namespace {

constexpr std::size_t kMostUnpackedBytes = std::size_t{8} << 30;
constexpr std::size_t kMostFaultsTold = 16;
constexpr std::size_t kMostParameterWords = 4096;
constexpr std::uint8_t kCudaAbi = 0x33;
constexpr std::uint8_t kCudaAbiNew = 0x41;

class TraceWriter {
 public:
  TraceWriter(const DumpTables& tables, Trace& trace) : tables_(tables), trace_(trace) {}

  void write(const std::vector<DumpFault>& faults) {
    write_devices();
    write_properties(faults);
    for (std::size_t i = 0; i < faults.size(); ++i) {
      if (i < kMostFaultsTold) {
        write_fault(faults[i], i + 1);
      } else {
        trace_.count("core-dump.faults_not_told");
      }
    }
    trace_.source_events = faults.size();
  }

 private:
  std::uint16_t device_number(std::uint32_t row) const {
    const std::uint32_t id = row < tables_.devices.size() ? tables_.devices[row].id : row;
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(id, std::numeric_limits<std::uint16_t>::max()));
  }

  void write_devices() {
    for (std::size_t row = 0; row < tables_.devices.size(); ++row) {
      Device device;
      device.index = device_number(static_cast<std::uint32_t>(row));
      device.name = tables_.devices[row].name;
      const bool is_known = std::any_of(trace_.devices.begin(), trace_.devices.end(),
                                        [&](const Device& other) { return other.index == device.index; });
      if (is_known) {
        trace_.count("core-dump.equal_device_numbers");
      } else {
        trace_.devices.push_back(device);
      }
    }
  }

  void set(std::string_view name, std::string value) {
    if (!value.empty()) trace_.properties[fmt::format("core-dump.{}", name)] = std::move(value);
  }

  void write_properties(const std::vector<DumpFault>& faults) {
    if (tables_.meta) {
      const DumpMeta& meta = *tables_.meta;
      if (meta.driver_major != 0) set("driver", fmt::format("{}.{:02}", meta.driver_major, meta.driver_minor));
      if (meta.cuda_major != 0) set("cuda", fmt::format("{}.{}", meta.cuda_major, meta.cuda_minor));
      set("generator", meta.generator);
      set("flags", fmt::format("0x{:x}", meta.flags));
      trace_.capabilities |= kTimes;
    }
    std::uint64_t warps = 0;
    for (const DumpFault& fault : faults) warps += fault.warp_count;
    set("faulting_warps", std::to_string(warps));
    if (faults.empty()) return;
    const DumpFault& best = faults.front();
    if (best.device < tables_.devices.size()) {
      set("sm_type", tables_.devices[best.device].sm_type);
      set("device_type", tables_.devices[best.device].type);
    }
    if (best.grid != nullptr && best.grid->host_thread != 0) set("host_thread", std::to_string(best.grid->host_thread));
    for (const DumpContext& context : tables_.contexts) {
      if (context.device != best.device) continue;
      set("shared_window", fmt::format("0x{:x}", context.shared_window));
      set("local_window", fmt::format("0x{:x}", context.local_window));
      break;
    }
  }

  StringId intern(std::string_view text) { return trace_.strings.intern(text); }

  void write_fault(const DumpFault& found, std::size_t number) {
    Fault fault;
    Event event;
    event.kind = EventKind::kFault;
    event.device = device_number(found.device);
    if (tables_.meta) event.time_ns = std::int64_t{tables_.meta->time_s} * 1'000'000'000;
    fault.what = intern(found.is_trap ? "Trap" : exception_name(found.exception));
    fault.code = found.exception;
    write_code(found, fault);
    write_launch(found, fault);
    write_threads(found, fault, event);
    event.extra = trace_.faults.intern(fault).value;
    trace_.events.push_back(event);
    set(fmt::format("fault.{}.warps", number), std::to_string(found.warp_count));
    set(fmt::format("fault.{}.multiprocessors", number), std::to_string(found.sm_count));
  }

  void write_code(const DumpFault& found, Fault& fault) {
    fault.pc = found.pc.value_or(0);
    std::string kernel;
    if (found.grid != nullptr) {
      if (const std::optional<CodePlace> entry =
              find_code(tables_, found.device, found.grid->module, found.grid->entry))
        kernel = entry->function;
    }
    if (found.place) {
      const CodePlace& place = *found.place;
      fault.file = intern(place.file);
      fault.line = place.line;
      fault.pc_offset = place.address - place.function_start;
      if (kernel.empty() && found.grid == nullptr) kernel = place.function;
      if (place.function != kernel) fault.function = intern(place.function);
    } else if (found.pc) {
      trace_.count("core-dump.pc_in_no_module");
    }
    fault.kernel = intern(kernel);
    if (found.access) {
      fault.instruction = intern(found.access->text);
      fault.is_store = found.access->is_store;
    } else if (found.place && is_access_exception(found.exception)) {
      trace_.count("core-dump.undecoded_instructions");
    }
  }

  static void write_launch(const DumpFault& found, Fault& fault) {
    if (found.grid == nullptr) return;
    fault.grid = found.grid->grid;
    fault.block = found.grid->block;
    ByteCursor words(found.grid->parameters);
    while (words.remaining() >= 8 && fault.parameters.size() < kMostParameterWords) {
      const auto offset = static_cast<std::uint32_t>(words.offset());
      fault.parameters.push_back({offset, words.u64()});
    }
  }

  void write_threads(const DumpFault& found, Fault& fault, Event& event) {
    if (found.access) event.size_bytes = found.access->size_bytes;
    if (found.warp == nullptr) return;
    fault.block_index = found.warp->block_index;
    fault.lanes = static_cast<std::uint32_t>(std::popcount(found.warp->valid_lanes & found.warp->active_lanes));
    if (found.access && found.addresses.executing != 0) fault.lanes = found.addresses.executing;
    if (!found.addresses.lanes.empty()) {
      for (const LaneAddress& lane : found.addresses.lanes) fault.addresses.push_back(lane.address);
      const LaneAddress& worst = worst_of(found);
      fault.thread_index = worst.lane.thread_index;
      fault.has_thread = true;
      event.address = worst.address;
      event.set(kAddressKnown);
      return;
    }
    if (found.access && found.addresses.result != RebuildResult::kNotGlobal) count_missing(found.addresses.result);
    const std::vector<DumpLane> lanes = tables_.lanes(*found.warp);
    const auto thread =
        std::find_if(lanes.begin(), lanes.end(), [](const DumpLane& lane) { return lane.exception != 0; });
    const auto active = std::find_if(lanes.begin(), lanes.end(), [&](const DumpLane& lane) {
      return (found.warp->active_lanes >> lane.lane & 1) != 0;
    });
    const auto first = thread != lanes.end() ? thread : active;
    if (first == lanes.end()) return;
    fault.thread_index = first->thread_index;
    fault.has_thread = true;
  }

  // Which of the threads went wrong is known for misalignment alone; else the first stands for all.
  static const LaneAddress& worst_of(const DumpFault& found) {
    const std::vector<LaneAddress>& lanes = found.addresses.lanes;
    if (!is_alignment_exception(found.exception)) return lanes.front();
    return *std::find_if(lanes.begin(), lanes.end(),
                         [&](const LaneAddress& lane) { return lane.address % found.access->size_bytes != 0; });
  }

  void count_missing(RebuildResult result) {
    switch (result) {
      case RebuildResult::kOverwritten: trace_.count("core-dump.addresses_overwritten"); break;
      case RebuildResult::kUnknownThreads: trace_.count("core-dump.executing_threads_unknown"); break;
      default: trace_.count("core-dump.registers_missing");
    }
  }

  const DumpTables& tables_;
  Trace& trace_;
};

}  // namespace

bool looks_like_core_dump(std::span<const std::uint8_t> head) {
  ByteCursor cursor(head);
  const Bytes mark = cursor.take(kElfMarkBytes);
  if (!is_elf(head)) return false;
  const std::uint16_t type = cursor.u16();
  return cursor.u16() == kElfMachineCuda && type == kElfCore && (mark[7] == kCudaAbi || mark[7] == kCudaAbiNew);
}

Result<Trace> read_core_dump(std::span<const std::uint8_t> bytes) {
  const Result<ElfFile> file = ElfFile::read(bytes);
  if (!file) {
    Error error = file.error();
    error.next = "The dump was cut short: the program may have been stopped while the driver wrote it.";
    return error;
  }
  if (!looks_like_core_dump(bytes)) return Error{"this is no GPU core dump", 0, {}};
  Result<DumpTables> read = DumpTables::read(*file);
  if (!read) return read.error();
  DumpTables& tables = *read;
  if (tables.devices.empty())
    return Error{"the core dump has no table of devices",
                 {},
                 "The dump was cut short: the program may have been stopped while the driver wrote it."};
  Trace trace;
  trace.source_kind = "core-dump";
  trace.streams.emplace_back();
  trace.count("core-dump.missing_sections", file->missing_sections());
  trace.count("core-dump.odd_sections", tables.odd_sections);
  TraceWriter(tables, trace).write(find_faults(tables));
  return trace;
}

Result<Trace> read_core_dump(ByteStream& stream, const std::string& path) {
  if (stream.compression()[0] == '\0' && stream.plain_size() && !path.empty() && path != "-") {
    const MappedFile mapped(path);
    if (!mapped.bytes().empty() && mapped.bytes().size() == *stream.plain_size()) return read_core_dump(mapped.bytes());
  }
  Result<std::string> whole = stream.read_all(kMostUnpackedBytes);
  if (!whole) return whole.error();
  return read_core_dump(std::span(reinterpret_cast<const std::uint8_t*>(whole->data()), whole->size()));
}

}  // namespace faultline
