#include "sources/core_dump/dump_tables.h"

#include <algorithm>
#include <map>

namespace faultline {
namespace {

// Section types count from the first that ELF leaves to applications.
enum DumpSection : std::uint32_t {
  kRegisters = 0x80000005,
  kLoadedImage = 0x80000007,
  kDevices = 0x80000009,
  kContexts = 0x8000000a,
  kSms = 0x8000000b,
  kGrids = 0x8000000c,
  kBlocks = 0x8000000d,
  kWarps = 0x8000000e,
  kLanes = 0x8000000f,
  kModules = 0x80000010,
  kPredicates = 0x80000011,
  kParameters = 0x80000012,
  kUniforms = 0x80000013,
  kMetaData = 0x80000016,
};

constexpr std::uint64_t kMostLanes = 32;
constexpr std::uint64_t kLeastRowBytes = 8;  // every table's rows begin with a number of 8 bytes
constexpr std::size_t kMostDevices = 1024;
constexpr std::size_t kLongestName = 256;

constexpr std::uint64_t key_of(std::uint64_t section, std::uint64_t row) { return section << 32 | (row & 0xffffffff); }

std::uint64_t row_count(const ElfSection& section, Bytes bytes) {
  return section.entry_bytes < kLeastRowBytes ? 0 : bytes.size() / section.entry_bytes;
}

std::string name_at(Bytes strings, std::uint64_t offset) {
  const Bytes near = ByteCursor(strings, offset).ok() ? strings.subspan(static_cast<std::size_t>(offset)) : Bytes{};
  const Bytes looked_at = near.first(std::min(near.size(), kLongestName));
  return std::string(looked_at.begin(), std::find(looked_at.begin(), looked_at.end(), std::uint8_t{0}));
}

Extent3 extent(ByteCursor& cursor) {
  Extent3 read = {};
  for (std::uint32_t& part : read) part = cursor.u32();
  return read;
}

}  // namespace

Bytes DumpTables::row(const ElfSection& section, std::uint64_t number) const {
  const Bytes bytes = file_.raw(section);
  if (number >= row_count(section, bytes)) return {};
  return bytes.subspan(static_cast<std::size_t>(number * section.entry_bytes),
                       static_cast<std::size_t>(section.entry_bytes));
}

std::optional<ElfSection> DumpTables::parent(const ElfSection& section, std::uint32_t type) const {
  if (section.link == 0 || section.link >= file_.section_count()) return std::nullopt;
  const ElfSection above = file_.section(section.link);
  return above.type == type ? std::optional(above) : std::nullopt;
}

Result<DumpTables> DumpTables::read(const ElfFile& file) {
  DumpTables tables(file);
  if (Status done = tables.read(); !done) return done.error();
  return tables;
}

Status DumpTables::read() {
  std::map<std::uint32_t, std::vector<std::uint64_t>> upper;  // by type: the tables that are read whole
  std::optional<ElfSection> meta_at;
  Bytes strings;
  for (std::uint64_t index = 1; index < file_.section_count(); ++index) {
    const ElfSection section = file_.section(index);
    switch (section.type) {
      case kElfStringTable:
        if (index != file_.names_section()) strings = file_.raw(section);
        break;
      case kDevices:
      case kContexts:
      case kLoadedImage:
      case kGrids:
      case kSms:
      case kWarps: upper[section.type].push_back(index); break;
      case kLanes: lane_tables_.emplace(key_of(section.link, section.info), index); break;
      case kUniforms: uniforms_.emplace(key_of(section.link, section.info), index); break;
      case kParameters: parameters_.emplace(key_of(section.link, section.info), index); break;
      case kMetaData: meta_at = section; break;
      default: break;
    }
  }
  std::uint64_t bytes_left = file_.size();
  for (const std::uint32_t type : {kDevices, kContexts, kLoadedImage, kGrids, kSms, kWarps}) {
    for (const std::uint64_t index : upper[type]) {
      const ElfSection section = file_.section(index);
      const std::uint64_t size_bytes = file_.raw(section).size();
      if (size_bytes > bytes_left)
        return Error{"the core dump's tables overlap: together they name more bytes than it has", section.offset, {}};
      bytes_left -= size_bytes;
    }
  }
  for (const std::uint64_t index : upper[kDevices]) read_devices(file_.section(index), strings);
  for (const std::uint64_t index : upper[kContexts]) read_contexts(file_.section(index));
  for (const std::uint64_t index : upper[kLoadedImage]) read_module(file_.section(index));
  for (const std::uint64_t index : upper[kGrids]) read_grids(file_.section(index), index);
  for (const std::uint64_t index : upper[kSms]) read_sms(file_.section(index), index);
  for (const std::uint64_t index : upper[kWarps]) read_warps(file_.section(index), index);
  if (meta_at) {
    ByteCursor cursor(file_.raw(*meta_at));
    meta.emplace();
    meta->generator = name_at(strings, cursor.u64());
    for (std::uint32_t* field :
         {&meta->driver_major, &meta->driver_minor, &meta->cuda_major, &meta->cuda_minor, &meta->flags, &meta->time_s})
      *field = cursor.u32();
  }
  return Ok{};
}

void DumpTables::read_devices(const ElfSection& section, Bytes strings) {
  for (std::uint64_t number = 0; number < row_count(section, file_.raw(section)) && devices.size() < kMostDevices;
       ++number) {
    ByteCursor cursor(row(section, number));
    DumpDevice device;
    device.name = name_at(strings, cursor.u64());
    device.type = name_at(strings, cursor.u64());
    device.sm_type = name_at(strings, cursor.u64());
    device.id = cursor.u32();
    cursor.skip(7 * 4);  // bus, counts of multiprocessors, warps, lanes, registers, predicates
    const std::uint32_t major = cursor.u32();
    const std::uint32_t minor = cursor.u32();
    device.sm_version = major * 10 + minor;
    device.instruction_bytes = cursor.u32();
    devices.push_back(std::move(device));
  }
}

void DumpTables::read_contexts(const ElfSection& section) {
  for (std::uint64_t number = 0; number < row_count(section, file_.raw(section)); ++number) {
    ByteCursor cursor(row(section, number));
    cursor.skip(8);  // handle
    DumpContext context;
    context.device = section.info;
    context.shared_window = cursor.u64();
    context.local_window = cursor.u64();
    contexts.push_back(context);
  }
}

void DumpTables::read_module(const ElfSection& section) {
  const std::optional<ElfSection> table = parent(section, kModules);
  DumpModule module;
  module.image = file_.raw(section);
  if (!table || module.image.empty()) {
    ++odd_sections;
    return;
  }
  module.handle = ByteCursor(row(*table, section.info)).u64();
  if (const std::optional<ElfSection> context = parent(*table, kContexts)) module.device = context->info;
  modules.push_back(module);
}

void DumpTables::read_grids(const ElfSection& section, std::uint64_t index) {
  for (std::uint64_t number = 0; number < row_count(section, file_.raw(section)); ++number) {
    ByteCursor cursor(row(section, number));
    DumpGrid grid;
    grid.device = section.info;
    grid.id = cursor.u64();
    cursor.skip(8 + 8);  // handles of the context and of the function
    grid.entry = cursor.u64();
    grid.module = cursor.u64();
    cursor.skip(8);  // parent
    grid.parameters_offset = cursor.u64();
    cursor.skip(4 * 4);  // kind, origin, status, registers
    grid.grid = extent(cursor);
    grid.block = extent(cursor);
    cursor.skip(4);
    grid.host_thread = cursor.u32();
    if (const auto found = parameters_.find(key_of(index, number)); found != parameters_.end())
      grid.parameters = file_.raw(file_.section(found->second));
    grids.push_back(grid);
  }
}

void DumpTables::read_sms(const ElfSection& section, std::uint64_t index) {
  for (std::uint64_t number = 0; number < row_count(section, file_.raw(section)); ++number) {
    ByteCursor cursor(row(section, number));
    cursor.skip(8);
    DumpSm sm;
    sm.device = section.info;
    sm.place = key_of(index, number);
    sm.exception = cursor.u32();
    sm.has_error_pc = cursor.u32() != 0;
    sm.error_pc = cursor.u64();
    sms.push_back(sm);
  }
}

void DumpTables::read_warps(const ElfSection& section, std::uint64_t index) {
  const std::optional<ElfSection> blocks = parent(section, kBlocks);
  const std::optional<ElfSection> multiprocessors = blocks ? parent(*blocks, kSms) : std::nullopt;
  if (!blocks || !multiprocessors) {
    ++odd_sections;
    return;
  }
  ByteCursor block(row(*blocks, section.info));
  const std::uint64_t grid = block.u64();
  const Extent3 block_index = extent(block);
  for (std::uint64_t number = 0; number < row_count(section, file_.raw(section)); ++number) {
    ByteCursor cursor(row(section, number));
    DumpWarp warp;
    warp.device = multiprocessors->info;
    warp.sm = key_of(blocks->link, blocks->info);
    warp.grid = grid;
    warp.block_index = block_index;
    warp.error_pc = cursor.u64();
    cursor.skip(4);
    warp.valid_lanes = cursor.u32();
    warp.active_lanes = cursor.u32();
    cursor.skip(4);
    warp.has_error_pc = cursor.u32() != 0;
    if (const auto found = lane_tables_.find(key_of(index, number)); found != lane_tables_.end())
      warp.lanes = found->second;
    if (const auto found = uniforms_.find(key_of(index, number)); found != uniforms_.end())
      warp.uniform_registers = found->second;
    warps.push_back(warp);
  }
}

std::vector<DumpLane> DumpTables::lanes(const DumpWarp& warp) const {
  std::vector<DumpLane> found;
  if (!warp.lanes) return found;
  const ElfSection section = file_.section(*warp.lanes);
  const std::uint64_t count = std::min(kMostLanes, row_count(section, file_.raw(section)));
  for (std::uint64_t number = 0; number < count; ++number) {
    ByteCursor cursor(row(section, number));
    DumpLane lane;
    lane.row = static_cast<std::uint32_t>(number);
    lane.pc = cursor.u64();
    cursor.skip(8);  // the same, from the start of the function
    lane.lane = cursor.u32();
    lane.thread_index = extent(cursor);
    lane.exception = cursor.u32();
    if (cursor.ok() && lane.lane < kMostLanes) found.push_back(lane);
  }
  return found;
}

void DumpTables::find_registers(const std::vector<const DumpWarp*>& wanted) {
  HashSet<std::uint64_t> tables;
  for (const DumpWarp* warp : wanted) {
    if (warp->lanes) tables.insert(*warp->lanes);
  }
  for (std::uint64_t index = 1; index < file_.section_count(); ++index) {
    const ElfSection section = file_.section(index);
    if ((section.type != kRegisters && section.type != kPredicates) || !tables.contains(section.link)) continue;
    (section.type == kRegisters ? registers_ : predicates_).emplace(key_of(section.link, section.info), index);
  }
}

Bytes DumpTables::thread_bytes(const SectionsByParent& sections, const DumpWarp& warp, const DumpLane& lane) const {
  if (!warp.lanes) return {};
  const auto found = sections.find(key_of(*warp.lanes, lane.row));
  return found == sections.end() ? Bytes{} : file_.raw(file_.section(found->second));
}

}  // namespace faultline
