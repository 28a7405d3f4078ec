// What `run` puts around a program: the recorder, the driver behind it, the Python side, and, where it is asked for, the GPU core dump.
//
// Every part that cannot be had is left out and said in one sentence; the program is started all the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/child_process.h"
#include "process/own_folder.h"
#include "trace/keeper.h"

namespace faultline::process {

struct RunArguments {
  std::vector<std::string> command;
  std::string gpu;  // empty: the machine's own; "virtual", "virtual:T4", "virtual:4GiB"
  WantedFolder folder;
  std::string history = "on";
  std::uint64_t history_entries = 200000;
  bool native_stacks = false;
  bool buffers = false;
  bool core_dump = false;
  std::string keep = "2GiB";  // of traces, all processes together
};

// FAULTLINE_VGPU's text for "virtual[:T4|:4GiB]".
Result<std::string> virtual_gpu_settings(const std::string& gpu);
// What it can be, "," between, for who completes it.
std::string virtual_gpu_words();

struct RunSetup {
  Environment environment;
  std::vector<std::string> left_out;  // sentences: what will not be recorded, and why
  // sentences: what will be different for the program, because the user asked for it
  std::vector<std::string> beforehand;
  bool records = false;  // the recorder is in
  bool core_dump_is_armed = false;
};
// `folder`: where the run is kept; empty where none could be made. The Error is about --gpu alone.
Result<RunSetup> set_up_run(const RunArguments& arguments, const std::string& folder);

// Takes what the program's processes record, from before they start until they have ended; said where it cannot be had: the program then runs
// unrecorded.
std::unique_ptr<TraceKeeper> start_keeper(const RunArguments& arguments, const std::string& folder, RunSetup& setup);
void end_keeper(TraceKeeper* keeper);  // none is fine

}  // namespace faultline::process
