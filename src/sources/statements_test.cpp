#include "sources/statements.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TEST(Statements, AnInputThatSaysNothingStatesNothing) {
  const Statements stated = read_statements(Trace{});
  EXPECT_FALSE(stated.error);
  EXPECT_FALSE(stated.message_only);
  EXPECT_FALSE(stated.ending.well());
  EXPECT_FALSE(stated.ending.status.has_value());
  EXPECT_FALSE(stated.placed_by_model);
}

TEST(Statements, HowAProcessEnded) {
  Trace trace;
  trace.properties = {{"process.ended", "exit"}, {"run.exit_status", "0"}};
  EXPECT_TRUE(read_statements(trace).ending.well());
  trace.properties["process.exit_status"] = "1";  // its own comes before the command's
  EXPECT_FALSE(read_statements(trace).ending.well());
  trace.properties["process.exit_status"] = "0";
  trace.properties["process.exception.type"] = "ValueError";
  EXPECT_FALSE(read_statements(trace).ending.well());
  trace.properties = {{"run.exit_status", "139"}, {"run.launch_blocking", "1"}};
  const Statements stated = read_statements(trace);
  EXPECT_EQ(stated.ending.status, 139);
  EXPECT_EQ(stated.ending.command_status, 139);
  EXPECT_TRUE(stated.waits_for_launches);
}

TEST(Statements, WhatADryRunWasTold) {
  Trace trace;
  trace.properties = {{"dry-run.context_bytes", "1000"}};
  EXPECT_FALSE(read_statements(trace).planned_context_bytes.has_value());
  trace.source_kind = "dry-run";
  EXPECT_EQ(read_statements(trace).planned_context_bytes, 1000u);
  EXPECT_TRUE(read_statements(trace).planned_to_end);
  trace.properties["dry-run.exception"] = "{}";
  EXPECT_FALSE(read_statements(trace).planned_to_end);
}

TEST(Statements, DamagedNumbersAreNotStated) {
  Trace trace;
  trace.properties = {{"error.kind", "out-of-memory"},
                      {"error.free_bytes.min", "20"},
                      {"error.free_bytes.max", "10"},
                      {"error.requested_bytes.min", "x"},
                      {"error.requested_bytes.max", "9"}};
  const Statements stated = read_statements(trace);
  EXPECT_TRUE(stated.message_only);
  EXPECT_EQ(stated.error.group(), ErrorKind::kOutOfMemory);
  EXPECT_FALSE(stated.error.free || stated.error.requested);
}

TEST(Statements, AKindOfFaultIsToldFromItsWords) {
  Trace trace;
  for (const auto& [name, kind] : {std::pair("illegal-address", FaultKind::kIllegalAddress),
                                   {"misaligned-address", FaultKind::kMisaligned},
                                   {"device-assert", FaultKind::kAssert},
                                   {"launch-failure", FaultKind::kLaunchFailure},
                                   {"illegal-instruction", FaultKind::kIllegalInstruction},
                                   {"launch-timeout", FaultKind::kTimeout},
                                   {"launch-resources", FaultKind::kResources},
                                   {"launch-configuration", FaultKind::kConfiguration},
                                   {"no-kernel-image", FaultKind::kNoKernelImage},
                                   {"ecc-error", FaultKind::kHardware},
                                   {"illegal-state", FaultKind::kEarlierError},
                                   {"shared-memory-limit", FaultKind::kSharedMemoryLimit}}) {
    trace.properties["error.kind"] = name;
    EXPECT_EQ(read_statements(trace).error.group(), ErrorKind::kFault) << name;
    EXPECT_EQ(read_statements(trace).error.fault(), kind) << name;
  }
}

}  // namespace
}  // namespace faultline
