// What `doctor` looks at, as it was found: facts without an opinion. probe.cpp finds them, judgement.cpp says what they mean.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace faultline::doctor {

struct SeenGpu {
  std::string name;
  std::uint64_t memory_bytes = 0;
};

// A library that speaks the CUDA driver's interface, asked in a process of its own.
struct DriverAnswer {
  std::string trouble;      // why it did not answer: "ended by signal 11"; empty: it did
  int cuda_version = 0;     // 13000: CUDA 13.0; 0: it did not say
  std::optional<int> init;  // what cuInit returned
  std::string init_name;    // "CUDA_ERROR_NO_DEVICE"
  std::vector<SeenGpu> gpus;
};
// Reads what the asking process wrote: one fact a line.
DriverAnswer parse_driver_answer(const std::string& text);

struct PythonAnswer {
  std::string path;                             // empty: none on PATH
  std::string version;                          // "3.11.7"
  std::string trouble;                          // it was there and did not answer
  std::map<std::string, std::string> packages;  // "torch" → "2.6.0+cu124"
};
// The JSON that the asking script prints; anything else is trouble.
void parse_python_answer(const std::string& text, PythonAnswer& to);

struct Machine {
  std::string glibc;           // "2.36"; empty: another C library
  std::string driver_path;     // libcuda.so.1; empty: not found
  std::string driver_release;  // "535.104.05", where the file's name tells it
  std::string module_release;  // of the kernel's module; empty: not loaded, or not shown here
  DriverAnswer driver;
  bool has_device_files = false;  // /dev/nvidiactl or its like
  bool can_open_device_files = false;
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES

  std::string virtual_path;  // empty: not there
  DriverAnswer virtual_driver;
  std::string recorder_path;     // empty: not there
  std::string recorder_trouble;  // why a program did not start with it; empty: it did
  std::string dry_run_path;      // empty: not there
  std::string python_part;       // empty: not there
  PythonAnswer python;

  std::string folder;          // where run folders go
  std::string folder_trouble;  // why nothing can be made there; empty: it can
  std::uint64_t free_bytes = 0;

  std::string watch_trouble;                  // why a program's calls cannot be watched here; empty: they can
  std::optional<int> ptrace_scope;            // Yama's; unset: no Yama
  std::optional<std::uint64_t> locked_bytes;  // ulimit -l; unset: unlimited
  std::map<std::string, std::string> tools;   // "nvcc" → its path
};

// Takes seconds at the most: whatever could hang is a child with a time limit.
Machine look_at_machine();

}  // namespace faultline::doctor
