#include "sources/run_folder/run_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sources/input.h"
#include "sources/run_folder/join_test_support.h"
#include "trace/file_writer.h"
#include "trace/text.h"
#include "trace/validate.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "faultline-run-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  void write_trace(const std::string& name, const std::string& lines) const {
    Result<Trace> trace = parse_trace_text("faultline-trace-text 1\n" + lines);
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    ASSERT_TRUE(write_trace_file(*trace, (folder_ / name).string()).ok());
  }
  Input opened() const {
    Result<Input> input = open_input(folder_.string());
    EXPECT_TRUE(input.ok()) << input.error().message();
    return input.ok() ? std::move(*input) : Input();
  }
  std::vector<Trace> loaded() const {
    std::vector<Trace> traces;
    Input input = opened();
    for (InputPart& part : input.parts) traces.push_back(std::move(part.trace));
    return traces;
  }

  fs::path folder_;
};

TEST_F(RunFolderTest, TheProcessThatFailedFirstComesFirst) {
  write_trace("process-10.faultline", "heap driver\nalloc 1MiB driver t=5\n");
  write_trace("process-11.faultline",
              "heap driver\nalloc 1MiB driver t=5\ncall f = fault X by=cuInit code=700\nfault call=f t=90\n");
  write_trace("process-12.faultline",
              "heap driver\nalloc 1MiB driver t=5\ncall f = fault X by=cuInit code=700\nfault call=f t=40\n");
  write_trace("process-13.faultline", "heap driver\nop-begin x\n");
  const std::vector<Trace> traces = loaded();
  ASSERT_EQ(traces.size(), 3u);
  EXPECT_EQ(traces[0].properties.at("process.pid"), "12");
  EXPECT_EQ(traces[1].properties.at("process.pid"), "11");
  EXPECT_EQ(traces[2].properties.at("process.pid"), "10");
}

TEST_F(RunFolderTest, WhatIsKnownOfTheProcessBecomesProperties) {
  write_trace("process-10.faultline", "heap driver\nalloc 1MiB driver\n");
  write("process-10.json",
        R"({"exception": {"type": "torch.OutOfMemoryError", "frames": [1, 2]}, "torch": null, "exit_status": 1})");
  write("command.json", R"({"exit_status": 1, "command": ["python", "x.py"]})");
  const Trace trace = std::move(loaded().at(0));
  EXPECT_EQ(trace.properties.at("process.exception.type"), "torch.OutOfMemoryError");
  EXPECT_EQ(trace.properties.at("process.exit_status"), "1");
  EXPECT_EQ(trace.properties.at("run.exit_status"), "1");
  EXPECT_FALSE(trace.properties.contains("process.torch"));
}

TEST_F(RunFolderTest, AHistoryThatFailedIsTakenBeforeTheOneAtTheEnd) {
  Result<Trace> torch = load(FAULTLINE_FIXTURES "/torch/gpt_oom.pickle.xz");
  ASSERT_TRUE(torch.ok());
  ASSERT_TRUE(write_trace_file(CaptureOf(*torch).take(), (folder_ / "process-7.faultline").string()).ok());
  fs::copy(FAULTLINE_FIXTURES "/torch/gpt_oom.pickle.xz", folder_ / "torch-7-oom.pickle.xz");
  fs::copy(FAULTLINE_FIXTURES "/torch/frag.pickle.xz", folder_ / "torch-7-exit.pickle.xz");
  const std::vector<Trace> traces = loaded();
  ASSERT_EQ(traces.size(), 1u);
  ASSERT_TRUE(check_trace(traces[0]).ok()) << check_trace(traces[0]).error().message();
  EXPECT_GT(traces[0].events.size(), torch->events.size());
  EXPECT_EQ(std::count_if(traces[0].events.begin(), traces[0].events.end(),
                          [](const Event& event) { return event.kind == EventKind::kAllocFailed; }),
            1)
      << "the failure that gpt_oom holds";
  EXPECT_NE(traces[0].properties.at("run.pairs"), "0");
}

TEST_F(RunFolderTest, APartThatCannotBeReadIsCounted) {
  write_trace("process-10.faultline", "heap driver\nalloc 1MiB driver\n");
  write("torch-10-exit.pickle", "no pickle");
  write("process-10.json", "no json");
  const Trace trace = std::move(loaded().at(0));
  EXPECT_EQ(trace.lost.size(), 2u);
}

TEST_F(RunFolderTest, AnEmptyFolderHoldsNoRun) {
  EXPECT_FALSE(holds_run(folder_.string()));
  EXPECT_FALSE(open_input(folder_.string()).ok());
}

}  // namespace
}  // namespace faultline
