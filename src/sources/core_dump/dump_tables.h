// The tables of a GPU core dump: an ELF file whose sections are tables of devices, grids, multiprocessors, blocks, warps and threads, each naming its
// parent table and row by sh_link and sh_info. Rows grew with the drivers; a field that a row does not have reads as 0.
//
//     devtbl ─┬─ ctxtbl ── modtbl ── relfimg (a loaded cubin, its code at its addresses)
//             ├─ gridtbl ── param
//             └─ smtbl ── ctatbl ── wptbl ─┬─ uregs
//                                          └─ lntbl ─┬─ regs
//                                                    └─ pred
//
// A dump of a full GPU has hundreds of thousands of sections, most of them a thread's registers. DumpTables reads the upper tables once and the threads
// of a warp only when asked. No two tables of a dump share bytes; one whose tables name more bytes than it has is refused, before anything is made of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/elf/elf_file.h"
#include "base/hash.h"
#include "trace/calls.h"

namespace faultline {

struct DumpDevice {
  std::string name;     // "NVIDIA H200"
  std::string type;     // "GH100GL-A"
  std::string sm_type;  // "sm_90"
  std::uint32_t id = 0;
  std::uint32_t sm_version = 0;  // 90
  std::uint32_t instruction_bytes = 0;
};

struct DumpContext {
  std::uint32_t device = 0;  // row of the device table
  std::uint64_t shared_window = 0;
  std::uint64_t local_window = 0;
};

struct DumpModule {
  std::uint32_t device = 0;
  std::uint64_t handle = 0;
  Bytes image;  // the cubin as it was loaded
};

struct DumpGrid {
  std::uint32_t device = 0;
  std::uint64_t id = 0;
  std::uint64_t entry = 0;   // address of the kernel
  std::uint64_t module = 0;  // handle
  Extent3 grid = {};
  Extent3 block = {};
  std::uint32_t host_thread = 0;
  std::uint64_t parameters_offset = 0;  // in the constant bank that kernels read them from
  Bytes parameters;
};

struct DumpWarp {
  std::uint32_t device = 0;
  std::uint64_t sm = 0;    // which multiprocessor: its table and row, packed
  std::uint64_t grid = 0;  // id
  Extent3 block_index = {};
  std::uint64_t error_pc = 0;
  bool has_error_pc = false;
  std::uint32_t valid_lanes = 0;
  std::uint32_t active_lanes = 0;
  std::optional<std::uint64_t> lanes;              // section of its threads
  std::optional<std::uint64_t> uniform_registers;  // section
};

struct DumpLane {
  std::uint32_t lane = 0;  // its number in the warp
  std::uint32_t row = 0;   // in the table of threads
  std::uint64_t pc = 0;
  Extent3 thread_index = {};
  std::uint32_t exception = 0;
};

struct DumpSm {
  std::uint32_t device = 0;
  std::uint64_t place = 0;  // as DumpWarp::sm
  std::uint32_t exception = 0;
  std::uint64_t error_pc = 0;
  bool has_error_pc = false;
};

struct DumpMeta {
  std::string generator;
  std::uint32_t driver_major = 0;
  std::uint32_t driver_minor = 0;
  std::uint32_t cuda_major = 0;
  std::uint32_t cuda_minor = 0;
  std::uint32_t flags = 0;
  std::uint32_t time_s = 0;  // since 1970
};

class DumpTables {
 public:
  static Result<DumpTables> read(const ElfFile& file);  // which must outlive them

  std::vector<DumpDevice> devices;
  std::vector<DumpContext> contexts;
  std::vector<DumpModule> modules;
  std::vector<DumpGrid> grids;
  std::vector<DumpSm> sms;
  std::vector<DumpWarp> warps;
  std::optional<DumpMeta> meta;    // drivers before r565 have none
  std::uint64_t odd_sections = 0;  // whose parent or bytes are not there

  std::vector<DumpLane> lanes(const DumpWarp& warp) const;
  Bytes uniform_registers(const DumpWarp& warp) const {
    return warp.uniform_registers ? file_.raw(file_.section(*warp.uniform_registers)) : Bytes{};
  }
  // Finds the registers and predicates of the threads of these warps: one look at each section header.
  void find_registers(const std::vector<const DumpWarp*>& wanted);
  Bytes registers(const DumpWarp& warp, const DumpLane& lane) const { return thread_bytes(registers_, warp, lane); }
  Bytes predicates(const DumpWarp& warp, const DumpLane& lane) const { return thread_bytes(predicates_, warp, lane); }

 private:
  using SectionsByParent = HashMap<std::uint64_t, std::uint64_t>;  // parent section << 32 | row → section

  explicit DumpTables(const ElfFile& file) : file_(file) {}
  Status read();
  void read_devices(const ElfSection& section, Bytes strings);
  void read_contexts(const ElfSection& section);
  void read_module(const ElfSection& section);
  void read_grids(const ElfSection& section, std::uint64_t index);
  void read_sms(const ElfSection& section, std::uint64_t index);
  void read_warps(const ElfSection& section, std::uint64_t index);
  Bytes row(const ElfSection& section, std::uint64_t number) const;
  std::optional<ElfSection> parent(const ElfSection& section, std::uint32_t type) const;
  Bytes thread_bytes(const SectionsByParent& sections, const DumpWarp& warp, const DumpLane& lane) const;

  const ElfFile& file_;
  SectionsByParent lane_tables_;
  SectionsByParent uniforms_;
  SectionsByParent parameters_;
  SectionsByParent registers_;
  SectionsByParent predicates_;
};

}  // namespace faultline
