// A dump from an H200: a Triton kernel that reads far outside of its tensor (tests/fixtures/coredump/triton_oob.py), and dumps made from it.
#include "sources/core_dump/core_dump.h"

#include "sources/core_dump/core_dump_test_support.h"
#include "sources/core_dump/exceptions.h"
#include "sources/source.h"

namespace faultline {
namespace {

TEST(CoreDump, SaysWhatTheDebuggerSays) {
  const Trace trace = read_whole(recorded_dump());
  ASSERT_FALSE(trace.events.empty());
  const Fault& fault = fault_of(trace, 0);
  EXPECT_EQ(trace.events[0].kind, EventKind::kFault);
  EXPECT_EQ(text_of(trace, fault.what), "Warp Invalid Address Space");
  EXPECT_EQ(fault.code, 7u);
  EXPECT_EQ(text_of(trace, fault.reported_by), "");
  EXPECT_EQ(text_of(trace, fault.kernel), "k");
  EXPECT_EQ(text_of(trace, fault.function), "");
  EXPECT_EQ(text_of(trace, fault.file), "/home/user/project/oob.py");
  EXPECT_EQ(fault.line, 5u);
  EXPECT_EQ(text_of(trace, fault.instruction), "LDG.E R0, desc[UR4][R22.64]");
  EXPECT_FALSE(fault.is_store);
  EXPECT_EQ(fault.pc, 0x7efe7f7a2910u);
  EXPECT_EQ(fault.pc_offset, 272u);
  EXPECT_EQ(fault.grid, (Extent3{1024, 1, 1}));
  EXPECT_EQ(fault.block, (Extent3{128, 1, 1}));
  EXPECT_EQ(fault.lanes, 32u);
  EXPECT_TRUE(fault.has_thread);
}

// What the program computes: thread t of block b reads the element (b * 1024 + t) * 1,000,000 of x, its first parameter, in 32-bit arithmetic.
TEST(CoreDump, TheRebuiltAddressesAreThoseThatTheProgramComputes) {
  const Trace trace = read_whole(recorded_dump());
  const Fault& fault = fault_of(trace, 0);
  const std::uint64_t x = fault.parameters.at(0).address;
  EXPECT_EQ(x, 0x7efe77e00000u);
  ASSERT_EQ(fault.addresses.size(), 32u);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t element = (fault.block_index[0] * 1024 + fault.thread_index[0] + lane) * 1'000'000;
    const auto distance = static_cast<std::int64_t>(static_cast<std::int32_t>(element)) * 4;
    EXPECT_EQ(fault.addresses[lane], x + static_cast<std::uint64_t>(distance)) << lane;
  }
  EXPECT_EQ(trace.events[0].address, fault.addresses[0]);
  EXPECT_TRUE(trace.events[0].has(kAddressKnown));
  EXPECT_EQ(trace.events[0].size_bytes, 4u);
}

TEST(CoreDump, TheKernelsParametersAreThoseOfTheLaunch) {
  const Trace trace = read_whole(recorded_dump());
  const std::vector<LaunchArgument>& parameters = fault_of(trace, 0).parameters;
  ASSERT_GE(parameters.size(), 3u);
  EXPECT_EQ(parameters[0], (LaunchArgument{0, 0x7efe77e00000}));
  EXPECT_EQ(parameters[1], (LaunchArgument{8, 0x7efe77e04000}));
  EXPECT_EQ(parameters[2].address & 0xffffffff, 4096u) << "n, the number of elements";
}

TEST(CoreDump, NamesDeviceDriverAndLaunchingThread) {
  const Trace trace = read_whole(recorded_dump());
  EXPECT_EQ(trace.source_kind, "core-dump");
  ASSERT_EQ(trace.devices.size(), 1u);
  EXPECT_EQ(trace.devices[0].name, "NVIDIA H200");
  EXPECT_EQ(trace.properties.at("core-dump.driver"), "580.159");
  EXPECT_EQ(trace.properties.at("core-dump.cuda"), "13.0");
  EXPECT_EQ(trace.properties.at("core-dump.sm_type"), "sm_90");
  EXPECT_EQ(trace.properties.at("core-dump.host_thread"), "464");
  EXPECT_EQ(trace.events[0].time_ns, 1'794'705'607'000'000'000);
}

TEST(CoreDump, EqualFaultsAreOneAndTheBestToldIsFirst) {
  const Trace trace = read_whole(recorded_dump());
  EXPECT_EQ(trace.events.size(), 5u);  // of 132 warps on as many multiprocessors
  EXPECT_EQ(trace.properties.at("core-dump.faulting_warps"), "132");
  EXPECT_EQ(trace.properties.at("core-dump.fault.1.warps"), "101");
  for (std::size_t i = 1; i < trace.events.size(); ++i) {
    EXPECT_LE(trace.events[i].has(kAddressKnown), trace.events[i - 1].has(kAddressKnown));
    EXPECT_EQ(fault_of(trace, i).line, 5u);
  }
}

// Each thread reads eight elements, 128 threads apart, by loads of which some overwrite the register that their address came from.
TEST(CoreDump, AnAddressOverwrittenByItsOwnLoadIsComputedAgain) {
  const Trace trace = read_whole(recorded_dump());
  std::size_t computed = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Fault& fault = fault_of(trace, i);
    const std::string instruction = text_of(trace, fault.instruction);
    // Which of the eight, as the kernel's code has it.
    const std::uint32_t which = instruction == "LDG.E R4, desc[UR4][R4.64]"   ? 3
                                : instruction == "LDG.E R2, desc[UR4][R2.64]" ? 1
                                                                              : 0;
    if (which == 0) continue;
    ++computed;
    ASSERT_EQ(fault.addresses.size(), 32u) << instruction;
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      const std::uint32_t element =
          (fault.block_index[0] * 1024 + fault.thread_index[0] + lane + which * 128) * 1'000'000;
      const auto distance = static_cast<std::int64_t>(static_cast<std::int32_t>(element)) * 4;
      EXPECT_EQ(fault.addresses[lane], fault.parameters[0].address + static_cast<std::uint64_t>(distance))
          << instruction;
    }
  }
  EXPECT_EQ(computed, 2u);
}

TEST(CoreDump, WhatCannotBeComputedAgainIsNotGiven) {
  const Trace trace = read_whole(recorded_dump());
  const Event& event = trace.events.back();
  const Fault& fault = fault_of(trace, trace.events.size() - 1);
  // these warps ran on until even the index was overwritten
  EXPECT_EQ(text_of(trace, fault.what), "Warp Illegal Address");
  EXPECT_TRUE(fault.addresses.empty());
  EXPECT_FALSE(event.has(kAddressKnown));
  EXPECT_TRUE(fault.has_thread);
  EXPECT_EQ(trace.lost.at("core-dump.addresses_overwritten"), 1u);
}

// The half of the address that still stands is what the computation is checked against.
TEST(CoreDump, AComputationThatContradictsARegisterIsNotBelieved) {
  std::string dump = recorded_dump();
  overwrite<std::uint32_t>(dump, kRegisterTable, 0, 0x1234, [](const ElfSection& section, std::uint64_t row) {
    return section.info == 7 && (row == 3 || row == 5);
  });
  const Trace trace = read_whole(dump);
  std::size_t contradicted = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const std::string instruction = text_of(trace, fault_of(trace, i).instruction);
    if (instruction != "LDG.E R4, desc[UR4][R4.64]" && instruction != "LDG.E R2, desc[UR4][R2.64]") continue;
    EXPECT_TRUE(fault_of(trace, i).addresses.empty()) << instruction;
    ++contradicted;
  }
  EXPECT_EQ(contradicted, 2u);
}

TEST(CoreDump, IsTheSameCompressedPlainAndAsAStream) {
  const std::string dump = recorded_dump();
  const std::string path = testing::TempDir() + "/faultline-core-dump-test";
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(dump.data(), 1, dump.size(), file), dump.size());
  std::fclose(file);
  const Result<Trace> mapped = load(path);
  const Result<Trace> unpacked = load(FAULTLINE_FIXTURES "/coredump/triton_oob.core.xz");
  std::remove(path.c_str());
  ASSERT_TRUE(mapped.ok() && unpacked.ok());
  EXPECT_EQ(mapped->events, unpacked->events);
  EXPECT_EQ(mapped->properties, unpacked->properties);
  EXPECT_EQ(mapped->source_kind, "core-dump");
}

TEST(CoreDump, AnAssertNamesTheLineButNoAddress) {
  std::string dump = recorded_dump();
  set_exception(dump, 12);
  const Trace trace = read_whole(dump);
  const Fault& fault = fault_of(trace, 0);
  EXPECT_EQ(text_of(trace, fault.what), "Warp Assert");
  EXPECT_EQ(fault.line, 5u);
  EXPECT_EQ(text_of(trace, fault.instruction), "");
  EXPECT_TRUE(fault.addresses.empty());
  EXPECT_FALSE(trace.events[0].has(kAddressKnown));
}

TEST(CoreDump, MisalignmentPointsToTheThreadWhoseAddressIsOdd) {
  std::string dump = recorded_dump();
  set_exception(dump, 6);
  // All addresses of the recorded dump are multiples of four: they cannot be what such an exception is about.
  EXPECT_TRUE(fault_of(read_whole(dump), 0).addresses.empty());
  overwrite<std::uint8_t>(dump, kRegisterTable, 0, 1,
                          [](const ElfSection& section, std::uint64_t row) { return section.info == 9 && row == 22; });
  const Trace trace = read_whole(dump);
  const Fault& fault = fault_of(trace, 0);
  EXPECT_EQ(text_of(trace, fault.what), "Warp Misaligned Address");
  ASSERT_EQ(fault.addresses.size(), 32u);
  EXPECT_EQ(trace.events[0].address, fault.addresses[9]);
  EXPECT_EQ(trace.events[0].address % 4, 1u);
  EXPECT_EQ(fault.thread_index[0] % 32, 9u);
}

TEST(CoreDump, ThreadsThatWereNotToTakePartHaveNoAddress) {
  std::string dump = recorded_dump();
  const std::string load("\x81\x79\x00\x16\x04\x00\x00\x00", 8);  // LDG.E R0, desc[UR4][R22.64]
  const std::size_t at = dump.find(load);
  ASSERT_NE(at, std::string::npos);
  dump[at + 1] = 0x09;  // with @P0
  overwrite<std::uint32_t>(dump, kPredicateTable, 0, 1, [](const ElfSection&, std::uint64_t row) { return row == 0; });
  overwrite<std::uint32_t>(dump, kPredicateTable, 0, 0,
                           [](const ElfSection& section, std::uint64_t row) { return row == 0 && section.info < 3; });
  const Trace trace = read_whole(dump);
  const Fault& fault = fault_of(trace, 0);
  EXPECT_EQ(text_of(trace, fault.instruction), "@P0 LDG.E R0, desc[UR4][R22.64]");
  EXPECT_EQ(fault.addresses.size(), 29u);
  EXPECT_EQ(fault.lanes, 29u);
  EXPECT_EQ(fault.thread_index[0] % 32, 3u);
}

TEST(CoreDump, WarpsThatHaveExitedLeaveTheExceptionWithTheirMultiprocessor) {
  std::string dump = recorded_dump();
  overwrite<std::uint32_t>(dump, kWarpTable, kWarpHasErrorPc, 0);
  overwrite<std::uint32_t>(dump, kLaneTable, kLaneException, 0);
  const Trace trace = read_whole(dump);
  ASSERT_FALSE(trace.events.empty());
  const Fault& fault = fault_of(trace, 0);
  EXPECT_EQ(text_of(trace, fault.kernel), "k");
  EXPECT_EQ(fault.line, 5u);
  EXPECT_EQ(text_of(trace, fault.instruction), "LDG.E R0, desc[UR4][R22.64]");
  EXPECT_FALSE(fault.has_thread);
  EXPECT_EQ(fault.lanes, 0u);
  EXPECT_TRUE(fault.addresses.empty());
}

TEST(CoreDump, AWarpThatWentOnPastWhatIsKnownGivesNoAddress) {
  std::string dump = recorded_dump();
  // before the faulting instruction: it took a branch
  overwrite<std::uint64_t>(dump, kLaneTable, kLanePc, 0x7efe7f7a2800);
  const Trace trace = read_whole(dump);
  EXPECT_TRUE(fault_of(trace, 0).addresses.empty());
  EXPECT_GT(trace.lost.at("core-dump.addresses_overwritten"), 0u);
}

TEST(CoreDump, AnErrorOutsideOfAllModulesHasNoLine) {
  std::string dump = recorded_dump();
  overwrite<std::uint64_t>(dump, kWarpTable, kWarpErrorPc, 0x1234560);
  const Trace trace = read_whole(dump);
  const Fault& fault = fault_of(trace, 0);
  EXPECT_EQ(text_of(trace, fault.kernel), "k") << "the launch is known all the same";
  EXPECT_EQ(fault.line, 0u);
  EXPECT_EQ(text_of(trace, fault.instruction), "");
  EXPECT_GT(trace.lost.at("core-dump.pc_in_no_module"), 0u);
}

TEST(CoreDump, AGpuFromBeforeVoltaIsNotDecoded) {
  std::string dump = recorded_dump();
  overwrite<std::uint32_t>(dump, kDeviceTable, kDeviceMajor, 6);
  const Trace trace = read_whole(dump);
  EXPECT_EQ(text_of(trace, fault_of(trace, 0).instruction), "");
  EXPECT_EQ(fault_of(trace, 0).line, 5u);
}

TEST(CoreDump, WithoutAnyExceptionThereIsNoFault) {
  std::string dump = recorded_dump();
  overwrite<std::uint32_t>(dump, kWarpTable, kWarpHasErrorPc, 0);
  set_exception(dump, 0);
  EXPECT_TRUE(read_whole(dump).events.empty()) << "somebody asked for it, and nothing is wrong";
}

TEST(CoreDump, WarpsThatStandAtATrapTrapped) {
  const Trace trace = read_whole(recorded_dump("trap"));
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(text_of(trace, fault_of(trace, 0).what), "Trap");
  EXPECT_EQ(text_of(trace, fault_of(trace, 0).kernel), "_Z7trappedPf");
  EXPECT_EQ(fault_of(trace, 0).line, 35u);
}

TEST(CoreDump, CutShortItIsRefusedOrToldInPart) {
  const std::string dump = recorded_dump();
  const std::uint64_t headers = ByteCursor(bytes_of(dump), 40).u64();  // e_shoff
  std::size_t told = 0;
  for (std::size_t size = 0; size < dump.size(); size += 97) {
    const Result<Trace> trace = read_core_dump(bytes_of(dump).first(size));
    if (size <= headers) {
      ASSERT_FALSE(trace.ok()) << size;
      continue;
    }
    if (!trace) continue;
    ASSERT_TRUE(check_trace(*trace).ok()) << size;
    ASSERT_GT(trace->lost.at("core-dump.missing_sections"), 0u) << size;
    if (!trace->events.empty()) ++told;
  }
  EXPECT_GT(told, 0u);
}

TEST(CoreDump, IsNotTakenForOneWhenItIsAnotherElfFile) {
  std::string dump = recorded_dump();
  EXPECT_TRUE(looks_like_core_dump(bytes_of(dump)));
  dump[16] = 2;  // a program, not a core dump
  EXPECT_FALSE(looks_like_core_dump(bytes_of(dump)));
  EXPECT_FALSE(read_core_dump(bytes_of(dump)).ok());
  dump[16] = 4;
  dump[18] = 62;  // of x86-64
  EXPECT_FALSE(looks_like_core_dump(bytes_of(dump)));
}

TEST(Exceptions, HaveTheDebuggersNames) {
  EXPECT_EQ(exception_name(14), "Warp Illegal Address");
  EXPECT_EQ(exception_name(6), "Warp Misaligned Address");
  EXPECT_EQ(exception_name(12), "Warp Assert");
  EXPECT_EQ(exception_name(4), "Warp Illegal Instruction");
  EXPECT_EQ(exception_name(30), "Warp MMU Fault");
  EXPECT_EQ(exception_name(35), "Warp User Stack Overflow");
  EXPECT_EQ(exception_name(99), "Exception 99");
  EXPECT_EQ(exception_name(0xffffffff), "Unknown Exception");
  EXPECT_FALSE(is_access_exception(12));
  EXPECT_TRUE(is_access_exception(14));
}

}  // namespace
}  // namespace faultline
