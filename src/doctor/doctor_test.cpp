#include <gtest/gtest.h>

#include <algorithm>

#include "base/units.h"
#include "doctor/judgement.h"
#include "doctor/machine.h"
#include "process/driver_release.h"
#include "process/quick_child.h"

namespace faultline::doctor {
namespace {

// A machine where everything is in place.
Machine good_machine() {
  Machine machine;
  machine.glibc = "2.36";
  machine.driver_path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
  machine.driver_release = machine.module_release = "570.86.10";
  machine.driver = {{}, 12080, 0, {}, {{"NVIDIA T4", 15 * kGiB}}};
  machine.has_device_files = machine.can_open_device_files = true;
  machine.virtual_path = "/opt/faultline/vgpu/libfaultline_vgpu.so";
  machine.virtual_driver = {{}, 13000, 0, {}, {{"Faultline virtual GPU", 4 * kGiB}}};
  machine.recorder_path = "/opt/faultline/capture/libcuda.so.1";
  machine.dry_run_path = "/opt/faultline/libfaultline_dryrun.so";
  machine.python_part = "/opt/faultline/python";
  machine.python = {"/usr/bin/python3", "3.11.7", {}, {{"torch", "2.6.0+cu124"}}};
  machine.folder = "/home/me";
  machine.free_bytes = 10 * kGiB;
  return machine;
}

Ability of(const Machine& machine, const std::string& name) {
  const std::vector<Ability> abilities = judge_machine(machine);
  const auto found =
      std::find_if(abilities.begin(), abilities.end(), [&](const Ability& one) { return one.name == name; });
  EXPECT_NE(found, abilities.end()) << name;
  return found == abilities.end() ? Ability{} : *found;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Doctor, FindsNothingMissingWhereNothingIs) {
  for (const Ability& one : judge_machine(good_machine())) {
    EXPECT_EQ(name_of(one.mark), "ok") << one.name << ": " << one.says;
    EXPECT_TRUE(one.advice.empty()) << one.name;
    EXPECT_FALSE(one.says.empty()) << one.name;
  }
  EXPECT_TRUE(contains(of(good_machine(), "driver").says, "NVIDIA T4, 15.00 GiB"));
}

TEST(Doctor, MainJobsNeedNoGpu) {
  Machine machine = good_machine();
  machine.driver_path = {};
  machine.driver = {};
  EXPECT_TRUE(main_jobs_work(judge_machine(machine)));
  EXPECT_EQ(of(machine, "driver").mark, Mark::kNo);
  EXPECT_EQ(of(machine, "run").mark, Mark::kNo);
  EXPECT_EQ(of(machine, "GPU core dumps").mark, Mark::kNo);
  EXPECT_EQ(of(machine, "run --gpu virtual").mark, Mark::kOk);
}

// It has no kernels, and what programs of PyTorch need is not there.
TEST(Doctor, TheVirtualGpuIsNotForFrameworks) {
  Machine machine = good_machine();
  EXPECT_NE(of(machine, "run --gpu virtual").says.find("PyTorch, TensorFlow and JAX cannot"), std::string::npos);
  machine.driver_path = {};
  machine.driver = {};
  machine.has_device_files = false;
  EXPECT_EQ(of(machine, "driver").advice, "plan needs none");
}

TEST(Doctor, MainJobsNeedTheirParts) {
  for (std::string Machine::*part :
       {&Machine::recorder_path, &Machine::virtual_path, &Machine::dry_run_path, &Machine::python_part}) {
    Machine machine = good_machine();
    machine.*part = {};
    EXPECT_FALSE(main_jobs_work(judge_machine(machine)));
  }
  Machine machine = good_machine();
  machine.python.packages.clear();
  EXPECT_FALSE(main_jobs_work(judge_machine(machine)));
  EXPECT_TRUE(contains(of(machine, "plan").says, "has no PyTorch, JAX or TensorFlow"));
}

TEST(Doctor, SaysWhyTheDriverHasNoGpu) {
  Machine machine = good_machine();
  machine.driver.gpus.clear();
  machine.driver.init = 100;
  machine.driver.init_name = "CUDA_ERROR_NO_DEVICE";
  EXPECT_TRUE(contains(of(machine, "driver").says, "the driver sees no GPU"));

  Machine hidden = machine;
  hidden.visible_devices = "";
  EXPECT_TRUE(contains(of(hidden, "driver").says, "because CUDA_VISIBLE_DEVICES is \"\""));

  Machine forbidden = machine;
  forbidden.can_open_device_files = false;
  EXPECT_TRUE(contains(of(forbidden, "driver").says, "may not be opened by this user"));

  Machine detached = machine;
  detached.has_device_files = false;
  detached.module_release = {};
  EXPECT_TRUE(contains(of(detached, "driver").says, "no NVIDIA GPU is attached"));

  Machine mixed = machine;
  mixed.driver.init = 803;
  mixed.module_release = "550.54.15";
  EXPECT_TRUE(contains(of(mixed, "driver").says, "the kernel's module is 550.54.15"));

  Machine broken = machine;
  broken.driver.trouble = "it ended by signal 11 (Segmentation fault) when it listed its GPUs";
  EXPECT_TRUE(contains(of(broken, "driver").says, "signal 11"));

  Machine unknown = machine;
  unknown.driver.init = 12345;
  unknown.driver.init_name = {};
  EXPECT_TRUE(contains(of(unknown, "driver").says, "cuInit returns error 12345"));
}

TEST(Doctor, GpuCoreDumpsNeedANewDriverAndRoom) {
  Machine old = good_machine();
  old.driver.cuda_version = 12040;
  old.driver_release = old.module_release = "550.54.14";
  EXPECT_EQ(of(old, "GPU core dumps").mark, Mark::kNo);
  EXPECT_EQ(of(old, "run").mark, Mark::kPartly);
  Machine full = good_machine();
  full.free_bytes = 300 * kMiB;
  EXPECT_EQ(of(full, "GPU core dumps").mark, Mark::kNo);
  EXPECT_EQ(of(full, "run folder").mark, Mark::kOk);
  Machine closed = good_machine();
  closed.folder_trouble = "Permission denied";
  EXPECT_EQ(of(closed, "GPU core dumps").mark, Mark::kNo);
  EXPECT_EQ(of(closed, "run folder").mark, Mark::kNo);
  EXPECT_EQ(of(closed, "run --gpu virtual").mark, Mark::kPartly);
  EXPECT_TRUE(main_jobs_work(judge_machine(closed)));
}

TEST(Doctor, ComparesVersionsAsNumbers) {
  Machine machine = good_machine();
  for (const char* enough : {"2.35", "2.100", "3.0"}) {
    machine.glibc = enough;
    EXPECT_EQ(of(machine, "C library").mark, Mark::kOk) << enough;
  }
  for (const char* too_old : {"2.34", "2.9", "1.99"}) {
    machine.glibc = too_old;
    EXPECT_EQ(of(machine, "C library").mark, Mark::kPartly) << too_old;
  }
}

TEST(Doctor, SaysWhenPyTorchIsBuiltWithoutCuda) {
  Machine machine = good_machine();
  machine.python.packages["torch"] = "2.6.0+cpu";
  EXPECT_EQ(of(machine, "frameworks").mark, Mark::kPartly);
  EXPECT_EQ(of(machine, "plan").mark, Mark::kOk);
  machine.python.packages = {{"jax", "0.11.2"}};
  EXPECT_TRUE(contains(of(machine, "plan").says, "has JAX 0.11.2 (without its CUDA plugin"));
  machine.python.packages = {{"jax", "0.11.2"}, {"jax-cuda", "0.11.2"}, {"tensorflow", "2.21.0"}};
  EXPECT_TRUE(contains(of(machine, "plan").says, "JAX 0.11.2 (with its CUDA plugin"));
  EXPECT_TRUE(contains(of(machine, "plan").says, ", TensorFlow 2.21.0"));
}

TEST(Doctor, TellsWhatRunRecordsWithoutGpu) {
  Machine machine = good_machine();
  machine.driver = {};
  machine.python.packages = {{"torch", "2.11.0"}};
  EXPECT_EQ(of(machine, "run").mark, Mark::kNo);
  machine.python.packages["tensorflow"] = "2.21.0";
  EXPECT_EQ(of(machine, "run").mark, Mark::kPartly);
  EXPECT_TRUE(contains(of(machine, "run").says, "of TensorFlow programs on the CPU each tensor is recorded"));
  EXPECT_FALSE(contains(of(machine, "run").says, "JAX"));
  machine.python.packages = {{"jax", "0.11.2"}};
  EXPECT_TRUE(contains(of(machine, "run").says, "of JAX programs on the CPU how their memory ran out"));
  machine.python_part.clear();
  EXPECT_EQ(of(machine, "run").mark, Mark::kNo);
}

TEST(Doctor, ReadsReleasesWhereTheyStand) {
  EXPECT_EQ(process::release_in_name("libcuda.so.535.104.05"), "535.104.05");
  EXPECT_EQ(process::release_in_name("libcuda.so.1"), "");
  EXPECT_EQ(process::release_in_name("libcuda.so."), "");
  EXPECT_EQ(process::release_in_name("other.so.1.2"), "");
  EXPECT_EQ(process::module_release_in(
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023"),
            "535.104.05");
  EXPECT_EQ(
      process::module_release_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build"),
      "570.86.10");
  EXPECT_EQ(process::module_release_in(""), "");
}

TEST(Doctor, ReadsWhatADriverAnswered) {
  const DriverAnswer answer = parse_driver_answer("cuda 12080\ninit 0\ngpu 15843721216 NVIDIA T4\ngpu 1 \n");
  EXPECT_EQ(answer.cuda_version, 12080);
  EXPECT_EQ(answer.init, 0);
  ASSERT_EQ(answer.gpus.size(), 2u);
  EXPECT_EQ(answer.gpus[0].name, "NVIDIA T4");
  EXPECT_EQ(answer.gpus[0].memory_bytes, 15843721216u);
  EXPECT_EQ(answer.gpus[1].name, "");
  const DriverAnswer none = parse_driver_answer("init 100\ninit-name CUDA_ERROR_NO_DEVICE\n");
  EXPECT_EQ(none.init_name, "CUDA_ERROR_NO_DEVICE");
  EXPECT_FALSE(parse_driver_answer("").init.has_value());
}

TEST(Doctor, ReadsWhatPythonAnswered) {
  PythonAnswer answer;
  parse_python_answer(
      "hello from sitecustomize\n{\"path\": \"/p\", \"version\": \"3.11.7\", \"packages\": {\"torch\": \"2.6.0\", "
      "\"odd\": 3}}\n",
      answer);
  EXPECT_EQ(answer.trouble, "");
  EXPECT_EQ(answer.version, "3.11.7");
  EXPECT_EQ(answer.packages, (std::map<std::string, std::string>{{"torch", "2.6.0"}}));
  for (const char* nonsense : {"", "Python 2", "{\"path\"", "{\"path\": 1, \"packages\": []}"}) {
    PythonAnswer other;
    parse_python_answer(nonsense, other);
    EXPECT_NE(other.trouble, "") << nonsense;
  }
}

TEST(QuickChild, AnswersCrashesAndHangsAreToldApart) {
  using namespace std::chrono_literals;
  const process::ChildAnswer good = process::ask_program({"sh", "-c", "echo $WORD"}, {"WORD=there"}, 60'000ms);
  EXPECT_EQ(good.output, "there\n");
  EXPECT_EQ(good.trouble, "");
  EXPECT_EQ(process::ask_child([] { __builtin_trap(); }, 60'000ms).trouble.substr(0, 15), "ended by signal");
  EXPECT_EQ(process::ask_program({"sh", "-c", "exit 7"}, {}, 60'000ms).trouble, "ended with status 7");
  EXPECT_EQ(process::ask_program({"/nowhere/at-all"}, {}, 60'000ms).trouble, "could not be started");
  // A grandchild that holds the pipe open is ended with the child.
  EXPECT_EQ(process::ask_program({"sh", "-c", "sleep 600 & sleep 600"}, {}, 1000ms).trouble,
            "did not answer within 1 s");
}

}  // namespace
}  // namespace faultline::doctor
