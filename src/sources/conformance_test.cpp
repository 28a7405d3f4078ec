// One suite for every source: whatever the bytes, a trace that holds or an error that says something.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "sources/source.h"
#include "trace/file_writer.h"
#include "trace/text.h"
#include "trace/validate.h"

namespace faultline {
namespace {

std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string unpacked(const std::string& path) {
  Result<ByteStream> stream = ByteStream::open(path);
  return stream ? *stream->read_all(std::size_t{1} << 30) : std::string();
}

// tests/fixtures/samples/KIND with any ending, or the folder of that name; empty where there is none.
std::string sample_path(std::string_view kind) {
  for (const auto& entry : std::filesystem::directory_iterator(FAULTLINE_FIXTURES "/samples")) {
    const std::string name = entry.path().filename();
    if (name.substr(0, name.find('.')) == kind) return entry.path();
  }
  return {};
}

// A small input of the source's own kind. A source without one fails the suite.
std::string sample_of(std::string_view kind) {
  if (kind == "torch-snapshot") return unpacked(FAULTLINE_FIXTURES "/torch/oom_outside_memory.pickle.xz");
  if (kind == "core-dump") return unpacked(FAULTLINE_FIXTURES "/coredump/triton_oob.core.xz");
  if (kind == "error-text") return unpacked(FAULTLINE_FIXTURES "/errors/torch28_room_left.txt");
  if (kind == "trace") {
    const std::string path = testing::TempDir() + "/faultline-conformance-" + std::to_string(::getpid()) + ".trace";
    const Result<Trace> trace = parse_trace_text(sample_of("trace-text"));
    EXPECT_TRUE(trace.ok() && write_trace_file(*trace, path).ok());
    const std::string bytes = file_bytes(path);
    std::remove(path.c_str());
    return bytes;
  }
  const std::string path = sample_path(kind);
  return path.empty() ? std::string() : unpacked(path);
}

std::vector<Source> file_sources() {
  std::vector<Source> found;
  std::copy_if(all_sources().begin(), all_sources().end(), std::back_inserter(found),
               [](const Source& source) { return source.recognises != nullptr; });
  return found;
}

class EverySource : public testing::TestWithParam<std::size_t> {
 protected:
  Source source() const { return file_sources()[GetParam()]; }

  // Gives the bytes to this source whether or not it recognises them, and to whichever source does.
  void expect_sound(std::string_view bytes) const {
    ByteStream stream = open(bytes);
    expect_sound(open_input(stream, ""));
    if (bytes.empty()) return;  // refused for all
    ByteStream direct = open(bytes);
    expect_sound(source().read(direct, ""));
  }
  static ByteStream open(std::string_view bytes) {
    ByteStream stream = ByteStream::from_memory({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    (void)stream.more(stream.begin(), 4096).ok();
    return stream;
  }
  static void expect_sound(const Result<Input>& input) {
    if (!input) {
      EXPECT_FALSE(input.error().what.empty());
      EXPECT_EQ(input.error().what.find('\n'), std::string::npos) << input.error().what;
      return;
    }
    EXPECT_FALSE(input->parts.empty());
    for (const InputPart& part : input->parts) {
      const Status holds = check_trace(part.trace);
      EXPECT_TRUE(holds.ok()) << holds.error().what;
    }
  }
};

TEST_P(EverySource, RecognisesAndReadsItsOwnSample) {
  const std::string sample = sample_of(source().kind);
  ASSERT_FALSE(sample.empty()) << "tests/fixtures/samples has no " << source().kind;
  EXPECT_TRUE(source().recognises({reinterpret_cast<const std::uint8_t*>(sample.data()), sample.size()}));
  ByteStream stream = open(sample);
  const Result<Input> input = open_input(stream, "");
  ASSERT_TRUE(input.ok()) << input.error().message();
  expect_sound(input);
  EXPECT_FALSE(source().what.empty());
}

TEST_P(EverySource, IsChosenForItsSampleBeforeAllOthers) {
  const std::string sample = sample_of(source().kind);
  const std::vector<Source> all = file_sources();
  const auto first = std::find_if(all.begin(), all.end(), [&](const Source& other) {
    return other.recognises({reinterpret_cast<const std::uint8_t*>(sample.data()), sample.size()});
  });
  ASSERT_NE(first, all.end());
  EXPECT_EQ(first->kind, source().kind);
}

TEST_P(EverySource, RefusesNothingAtAll) {
  ByteStream stream = open("");
  const Result<Input> input = open_input(stream, "");
  ASSERT_FALSE(input.ok());
  EXPECT_EQ(input.error().what, "the file is empty");
}

TEST_P(EverySource, SurvivesOneByte) {
  for (int byte = 0; byte < 256; ++byte) expect_sound(std::string(1, static_cast<char>(byte)));
}

TEST_P(EverySource, SurvivesRandomBytes) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 5000 + 1, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    expect_sound(bytes);
  }
}

TEST_P(EverySource, SurvivesItsSampleCutAnywhere) {
  const std::string sample = sample_of(source().kind);
  const std::size_t step = std::max<std::size_t>(1, sample.size() / 500);
  for (std::size_t size = 1; size < sample.size(); size += step) expect_sound(std::string_view(sample).substr(0, size));
}

TEST_P(EverySource, SurvivesItsSampleWithAnyByteChanged) {
  std::string bytes = sample_of(source().kind);
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / 700);
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    for (const int change : {0xff, 0x80, 0x01}) {
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      expect_sound(bytes);
      bytes[at] = static_cast<char>(bytes[at] ^ change);
    }
  }
}

// Numbers of four and eight bytes overwritten with the largest there are: lengths, counts, offsets.
TEST_P(EverySource, SurvivesHugeLengthsAnywhere) {
  const std::string sample = sample_of(source().kind);
  const std::size_t step = std::max<std::size_t>(1, sample.size() / 400);
  for (std::size_t at = 0; at + 8 <= sample.size(); at += step) {
    for (const std::string& huge :
         {std::string(8, '\xff'), std::string("\xff\xff\xff\x7f"), std::string("\xff\xff\xff\xff\xff\xff\xff\x7f"),
          std::string("\0\0\0\0\x02\0\0\0", 8)}) {
      std::string bytes = sample;
      bytes.replace(at, huge.size(), huge);
      expect_sound(bytes);
    }
  }
}

TEST_P(EverySource, SurvivesItsFirstBytesAloneAndRepeated) {
  const std::string sample = sample_of(source().kind);
  std::string repeated;
  for (int round = 0; round < 300; ++round) repeated += sample.substr(0, 64);
  expect_sound(repeated);
  expect_sound(sample.substr(0, 64) + std::string(100'000, '\0'));
  expect_sound(sample.substr(0, 64) + std::string(100'000, '\xff'));
  expect_sound(sample + sample);
}

TEST_P(EverySource, SurvivesOtherVersionsOfItself) {
  const std::string sample = sample_of(source().kind);
  for (std::size_t at = 0; at < std::min<std::size_t>(sample.size(), 16); ++at) {
    for (int version = 0; version < 256; ++version) {
      std::string bytes = sample;
      bytes[at] = static_cast<char>(version);
      expect_sound(bytes);
    }
  }
}

TEST_P(EverySource, SurvivesTextAndTheSamplesOfOthers) {
  expect_sound("The quick brown fox jumps over the lazy dog.\n");
  expect_sound(std::string(200'000, '\n'));
  expect_sound(std::string(200'000, 'a'));
  expect_sound("\xef\xbb\xbf{\"segments\": []}");
  for (const Source& other : file_sources()) expect_sound(sample_of(other.kind));
}

INSTANTIATE_TEST_SUITE_P(Registry, EverySource, testing::Range(std::size_t{0}, file_sources().size()),
                         [](const testing::TestParamInfo<std::size_t>& place) {
                           std::string name(file_sources()[place.param].kind);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A folder of the source's own kind. A source without one fails.
void fill_sample_folder(std::string_view kind, const std::string& folder) {
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
  };
  if (kind == "run") write("process-7.faultline", sample_of("trace"));
  if (kind == "folder") {
    write("train.log", sample_of("error-text"));
    write("a.pickle", sample_of("torch-snapshot"));
    write("other.txt", "all is well\n");
  }
  if (const std::string path = sample_path(kind); !path.empty())
    std::filesystem::copy(path, folder, std::filesystem::copy_options::recursive);
}

TEST(FolderSources, EachReadsItsOwnSampleAndHoldsItsNameInAnyOrder) {
  for (const Source& source : all_sources()) {
    EXPECT_EQ(source.recognises == nullptr, source.read == nullptr) << source.kind;
    EXPECT_EQ(source.recognises == nullptr, source.endings[0].empty()) << source.kind;
    EXPECT_EQ(source.recognises_folder == nullptr, source.read_folder == nullptr) << source.kind;
    if (source.recognises_folder == nullptr) continue;
    std::string folder = testing::TempDir() + "/faultline-folder-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    fill_sample_folder(source.kind, folder);
    const Result<Input> input = open_input(folder);
    ASSERT_TRUE(input.ok()) << source.kind << ": " << input.error().message();
    EXPECT_EQ(input->kind, source.kind);
    for (const InputPart& part : input->parts) EXPECT_TRUE(check_trace(part.trace).ok());
    std::filesystem::remove_all(folder);
  }
}

TEST(FolderSources, AFolderOfFilesKnowsEachFileByTheEndingsOfItsSource) {
  for (const Source& source : file_sources()) {
    for (const std::string_view ending : source.endings) {
      if (ending.empty()) continue;
      std::string folder = testing::TempDir() + "/faultline-folder-XXXXXX";
      ASSERT_NE(::mkdtemp(folder.data()), nullptr);
      std::ofstream(folder + "/a" + std::string(ending), std::ios::binary) << sample_of(source.kind);
      const Result<Input> input = open_input(folder);
      if (source.kind == "report") {  // it tells of a recording, and is none: beside recordings it is left out
        EXPECT_FALSE(input.ok());
        std::filesystem::remove_all(folder);
        continue;
      }
      ASSERT_TRUE(input.ok()) << source.kind << ", " << ending;
      ByteStream alone = ByteStream::open(folder + "/a" + std::string(ending)).value();
      const Result<Input> file = open_input(alone, "");
      ASSERT_TRUE(file.ok() && input->parts.size() == 1) << source.kind << ", " << ending;
      EXPECT_EQ(input->kind, "folder");
      EXPECT_EQ(input->parts[0].trace.source_kind, file->parts[0].trace.source_kind) << source.kind << ", " << ending;
      std::filesystem::remove_all(folder);
    }
  }
}

TEST(FolderSources, AFolderOfFilesHasOnePartForEachThatIsKnownAndCountsTheOthers) {
  std::string folder = testing::TempDir() + "/faultline-folder-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  fill_sample_folder("folder", folder);
  const Result<Input> input = open_input(folder);
  ASSERT_TRUE(input.ok());
  ASSERT_EQ(input->parts.size(), 2u);
  EXPECT_EQ(input->parts[0].name, "a.pickle");
  EXPECT_EQ(input->parts[1].name, "train.log");
  EXPECT_EQ(input->lost, (std::map<std::string, std::uint64_t>{
                             {"files that could not be read (no GPU memory error was found in this text)", 1}}));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace faultline
