// Real recordings, damaged: always a trace that holds, or one clear error.
#include <random>

#include "sources/torch_snapshot/snapshot_test_support.h"

namespace faultline::snapshot_test {
namespace {

class DamagedRecording : public testing::TestWithParam<const char*> {};

TEST_P(DamagedRecording, IsRefusedWhereverItIsCut) {
  const std::string whole = unpacked_fixture(GetParam());
  ASSERT_TRUE(read(whole).ok());
  for (std::size_t size = 2; size < whole.size(); ++size) {
    const Result<Trace> trace = read(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(trace.ok()) << "cut to " << size;
    ASSERT_FALSE(trace.error().what.empty());
    ASSERT_TRUE(trace.error().offset.has_value()) << "cut to " << size << ": " << trace.error().what;
    ASSERT_LE(*trace.error().offset, size);
  }
}

void expect_sound(const std::string& bytes, std::size_t at) {
  const Result<Trace> trace = read(bytes);
  if (!trace) {
    ASSERT_FALSE(trace.error().what.empty()) << "byte " << at;
    return;
  }
  const Status holds = check_trace(*trace);
  ASSERT_TRUE(holds.ok()) << "byte " << at << ": " << holds.error().what;
}

TEST_P(DamagedRecording, IsSoundWithAnyByteInverted) {
  std::string bytes = unpacked_fixture(GetParam());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 0xff);
    expect_sound(bytes, at);
    bytes[at] = static_cast<char>(bytes[at] ^ 0xff);
  }
}

// Opcodes instead of noise: far more of these are still pickles.
TEST_P(DamagedRecording, IsSoundWithBytesReplacedByOpcodes) {
  constexpr std::string_view kOpcodes = "(.JKMNXae]})sutqrhjG\x85\x86\x87\x88\x89\x8a\x8c\x94\x95";
  std::mt19937 random(1234);
  const std::string whole = unpacked_fixture(GetParam());
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = whole;
    std::size_t at = 0;
    for (int change = 0; change <= round % 4; ++change) {
      at = random() % bytes.size();
      bytes[at] = kOpcodes[random() % kOpcodes.size()];
    }
    expect_sound(bytes, at);
  }
}

TEST_P(DamagedRecording, IsSoundWithAPieceLeftOutOrTwice) {
  std::mt19937 random(99);
  const std::string whole = unpacked_fixture(GetParam());
  for (int round = 0; round < 2000; ++round) {
    const std::size_t from = random() % whole.size(), count = random() % 64;
    std::string bytes = whole;
    if (round % 2 == 0) {
      bytes.erase(from, count);
    } else {
      bytes.insert(random() % whole.size(), whole.substr(from, count));
    }
    expect_sound(bytes, from);
  }
}

INSTANTIATE_TEST_SUITE_P(Torch, DamagedRecording, testing::Values("oom_outside_memory", "state_only", "segments_list"),
                         [](const testing::TestParamInfo<const char*>& recording) {
                           return std::string(recording.param);
                         });

}  // namespace
}  // namespace faultline::snapshot_test
