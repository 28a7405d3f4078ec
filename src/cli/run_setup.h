// What `run` puts around a program: the recorder, the driver behind it, the Python side, the GPU core dump.
//
// Every part that cannot be had is left out and said in one sentence; the program is started all the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/child_process.h"

namespace faultline::cli {

struct RunArguments {
  std::vector<std::string> command;
  std::string gpu;      // empty: the machine's own; "virtual", "virtual:T4", "virtual:4GiB"
  std::string folder;
  std::string history = "on";
  std::uint64_t history_entries = 200000;
  bool native_stacks = false;
  bool buffers = false;
  bool no_core_dump = false;
  std::string keep = "2GiB";  // of traces, all processes together
};

// FAULTLINE_VGPU's text for "virtual[:T4|:4GiB]".
Result<std::string> virtual_gpu_settings(const std::string& gpu);

struct RunSetup {
  Environment environment;
  std::vector<std::string> left_out;  // sentences: what will not be recorded, and why
  bool records = false;               // the recorder is in
};
// `folder`: where the run is kept; empty where none could be made. The Error is about --gpu alone.
Result<RunSetup> set_up_run(const RunArguments& arguments, const std::string& folder);

}  // namespace faultline::cli
