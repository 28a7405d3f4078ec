// The recorded dump, and changes to it that make other dumps: the driver's tables are kept, single fields are overwritten.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/byte_stream.h"
#include "base/elf/elf_file.h"
#include "sources/core_dump/core_dump.h"
#include "trace/validate.h"

namespace faultline {

inline std::string recorded_dump(const std::string& name = "triton_oob") {
  Result<ByteStream> stream = ByteStream::open(FAULTLINE_FIXTURES "/coredump/" + name + ".core.xz");
  EXPECT_TRUE(stream.ok());
  Result<std::string> whole = stream->read_all(std::size_t{1} << 30);
  EXPECT_TRUE(whole.ok());
  return *whole;
}

inline Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline Trace read_whole(const std::string& dump) {
  Result<Trace> trace = read_core_dump(bytes_of(dump));
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  const Status holds = check_trace(*trace);
  EXPECT_TRUE(holds.ok()) << holds.error().what;
  return std::move(*trace);
}

inline const Fault& fault_of(const Trace& trace, std::size_t event) {
  return trace.faults.at(FaultId(trace.events[event].extra));
}
inline std::string text_of(const Trace& trace, StringId id) { return std::string(trace.strings.at(id)); }

inline constexpr std::uint32_t kSmTable = 0x8000000b, kWarpTable = 0x8000000e, kLaneTable = 0x8000000f,
                               kRegisterTable = 0x80000005, kDeviceTable = 0x80000009, kPredicateTable = 0x80000011;

// Overwrites the number at `offset` of every row of the tables of a type; `choose(section, row)` says which.
template <class Number, class Choose>
void overwrite(std::string& dump, std::uint32_t type, std::uint64_t offset, Number value, Choose choose) {
  const std::string before = dump;
  const Result<ElfFile> file = ElfFile::read(bytes_of(before));
  ASSERT_TRUE(file.ok());
  for (std::uint64_t index = 1; index < file->section_count(); ++index) {
    const ElfSection section = file->section(index);
    if (section.type != type || section.entry_bytes == 0) continue;
    for (std::uint64_t row = 0; row < section.size_bytes / section.entry_bytes; ++row) {
      if (choose(section, row))
        std::memcpy(dump.data() + section.offset + row * section.entry_bytes + offset, &value, sizeof value);
    }
  }
}
template <class Number>
void overwrite(std::string& dump, std::uint32_t type, std::uint64_t offset, Number value) {
  overwrite(dump, type, offset, value, [](const ElfSection&, std::uint64_t) { return true; });
}

// Offsets of fields in rows.
inline constexpr std::uint64_t kSmException = 8, kWarpErrorPc = 0, kWarpHasErrorPc = 24, kLaneException = 32,
                               kLanePc = 0, kDeviceMajor = 56;

inline void set_exception(std::string& dump, std::uint32_t number) {
  overwrite(dump, kSmTable, kSmException, number, [&](const ElfSection&, std::uint64_t) { return true; });
  overwrite(dump, kLaneTable, kLaneException, number);
}

}  // namespace faultline
