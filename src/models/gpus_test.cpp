#include "models/gpus.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace faultline {
namespace {

std::vector<std::string> split(std::string_view words) {
  std::istringstream stream{std::string(words)};
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

std::string name_of(std::string_view text) {
  const Result<Gpu> gpu = find_gpu(text);
  return gpu ? std::string(gpu->name) : "unknown: " + gpu.error().message();
}

std::string message_for(std::string_view text) {
  const Result<Gpu> gpu = find_gpu(text);
  return gpu ? std::string() : gpu.error().message();
}

TEST(Gpus, EveryWordOfAnEntryFindsIt) {
  for (const GpuEntry& entry : gpu_catalogue()) {
    EXPECT_EQ(name_of(entry.gpu.name), entry.gpu.name);
    if (entry.gpu.name != "RTX-4060-Ti-16GB") {  // the 8 GB card prints the same
      EXPECT_EQ(name_of(entry.gpu.full_name), entry.gpu.name) << entry.gpu.full_name;
    }
    for (const std::string& word : split(entry.words)) EXPECT_EQ(name_of(word), entry.gpu.name) << word;
    for (const std::string& word : split(entry.loose_words)) EXPECT_EQ(name_of(word), entry.gpu.name) << word;
  }
}

TEST(Gpus, NoTwoEntriesAnswerToTheSameWord) {
  std::map<std::string, std::string_view> owner;
  for (const GpuEntry& entry : gpu_catalogue()) {
    for (const std::string_view words : {entry.words, entry.loose_words}) {
      for (const std::string& word : split(words)) {
        EXPECT_EQ(gpu_word(word), word) << "would never be compared";
        const auto [known, fresh] = owner.emplace(word, entry.gpu.name);
        EXPECT_TRUE(fresh) << word << " is " << known->second << " and " << entry.gpu.name;
      }
    }
  }
}

TEST(Gpus, CaseSpacesDashesAndBrandsDoNotMatter) {
  for (const char* text : {"RTX-4090", "rtx 4090", "rtx-4090", "RTX_4090", "4090", "GeForce RTX 4090",
                           "NVIDIA GeForce RTX 4090", "nvidia rtx4090 24GB"})
    EXPECT_EQ(name_of(text), "RTX-4090") << text;
  for (const char* text : {"t4", "T4", "Tesla T4", "NVIDIA T4", "nvidia-tesla-t4", "T4 GPU", "T4-16GB"})
    EXPECT_EQ(name_of(text), "T4") << text;
  for (const char* text :
       {"A100-80GB", "a100 80gb", "A100-80G", "A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "a100_80GiB"})
    EXPECT_EQ(name_of(text), "A100-80GB") << text;
  for (const char* text : {"NVIDIA A100-PCIE-40GB", "A100 40GB"}) EXPECT_EQ(name_of(text), "A100-40GB") << text;
  for (const char* text : {"RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation"})
    EXPECT_EQ(name_of(text), "RTX-6000-Ada") << text;
  for (const char* text : {"RTX PRO 6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition"})
    EXPECT_EQ(name_of(text), "RTX-PRO-6000") << text;
  EXPECT_EQ(name_of("A6000"), "RTX-A6000");
  EXPECT_EQ(name_of("A10"), "A10");
  EXPECT_EQ(name_of("A10G"), "A10G");
  EXPECT_EQ(name_of("L4"), "L4");
  EXPECT_EQ(name_of("L40"), "L40");
  EXPECT_EQ(name_of("L40S"), "L40S");
}

TEST(Gpus, ANameThatFitsTwoCardsIsTheSmallerAndSaysSo) {
  EXPECT_EQ(name_of("A100"), "A100-40GB");
  EXPECT_EQ(name_of("V100"), "V100-16GB");
  EXPECT_EQ(name_of("H100"), "H100-80GB");
  EXPECT_NE(find_gpu("A100")->note.find("A100-80GB"), std::string_view::npos);
  EXPECT_NE(find_gpu("V100")->note.find("V100-32GB"), std::string_view::npos);
  EXPECT_NE(find_gpu("H100")->note.find("80 GB"), std::string_view::npos);
  EXPECT_TRUE(find_gpu("A100-40GB")->note.empty());
  for (const GpuEntry& entry : gpu_catalogue())
    EXPECT_EQ(entry.loose_words.empty(), entry.loose_note.empty()) << entry.gpu.name;
}

TEST(Gpus, ACardWithASmallerTwinOutsideTheCatalogueIsNotGuessed) {
  EXPECT_NE(message_for("RTX 4060 Ti").find("RTX-4060-Ti-16GB"), std::string::npos);
}

TEST(Gpus, ACapacityIsBelowWhatTheBoxSaysAndNotFarBelow) {
  for (const GpuEntry& entry : gpu_catalogue()) {
    const auto box = static_cast<double>(entry.gpu.box_gib) * static_cast<double>(kGiB);
    EXPECT_LT(static_cast<double>(entry.gpu.capacity_bytes), box) << entry.gpu.name;
    EXPECT_GT(static_cast<double>(entry.gpu.capacity_bytes), 0.9 * box) << entry.gpu.name;
  }
}

TEST(Gpus, EveryFigureOfAnEntryIsThere) {
  for (const GpuEntry& entry : gpu_catalogue()) {
    const Gpu& gpu = entry.gpu;
    EXPECT_NE(gpu.capacity_source, FigureSource::kAssumed) << gpu.name;
    EXPECT_NE(gpu.context_source, FigureSource::kAssumed) << gpu.name;
    EXPECT_GE(gpu.compute_major, 6) << gpu.name;
    EXPECT_GT(gpu.sm_count, 0) << gpu.name;
    EXPECT_EQ(gpu.max_threads_per_sm % gpu.warp_size, 0) << gpu.name;
    EXPECT_GE(gpu.l2_bytes, 2 * kMiB) << gpu.name;
    EXPECT_GE(gpu.max_shared_bytes_per_block, 48 * kKiB) << gpu.name;
  }
}

// What the CUDA context and libraries take: a fixed part, and a part for every thread the card can hold at once (its stack and state are set aside
// with the context). Fitted to the reports in docs/gpus.md.
std::uint64_t estimated_context_bytes(int sm_count, int max_threads_per_sm) {
  constexpr std::uint64_t kFixed = 48 * kMiB, kPerThread = 2355, kStep = 16 * kMiB;
  const std::uint64_t bytes =
      kFixed + kPerThread * static_cast<std::uint64_t>(sm_count) * static_cast<std::uint64_t>(max_threads_per_sm);
  return (bytes + kStep - 1) / kStep * kStep;
}

// The fit was made to the published and measured figures; an estimate that strays from it would be a slip of the pen.
TEST(Gpus, AContextIsTheFitOrMoreAndNeverMuchMore) {
  for (const GpuEntry& entry : gpu_catalogue()) {
    const std::uint64_t fit = estimated_context_bytes(entry.gpu.sm_count, entry.gpu.max_threads_per_sm);
    EXPECT_GE(entry.gpu.context_bytes, fit) << entry.gpu.name;
    EXPECT_LE(entry.gpu.context_bytes, fit + fit / 5) << entry.gpu.name;
  }
}

TEST(Gpus, TheMeasuredCardHasTheMeasuredFigures) {
  const Result<Gpu> gpu = find_gpu("H200");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->capacity_bytes, 150109880320u);
  EXPECT_EQ(format_bytes(gpu->capacity_bytes), "139.80 GiB");
  EXPECT_GE(gpu->context_bytes, 770 * kMiB);
  EXPECT_EQ(to_string(gpu->capacity_source), "measured");
  EXPECT_EQ(describe(*gpu), "NVIDIA H200");
}

TEST(Gpus, ASizeIsADeviceOfThatSize) {
  struct Case {
    const char* text;
    std::uint64_t bytes;
  };
  for (const Case& c :
       {Case{"24GiB", 24 * kGiB}, Case{"24GB", 24000000000}, Case{"24 GB", 24000000000}, Case{"1.5g", kGiB + kGiB / 2},
        Case{"512MiB", 512 * kMiB}, Case{"8589934592", 8 * kGiB}, Case{"80g", 80 * kGiB}, Case{"16m", 16 * kMiB}}) {
    const Result<Gpu> gpu = find_gpu(c.text);
    ASSERT_TRUE(gpu) << c.text;
    EXPECT_EQ(gpu->capacity_bytes, c.bytes) << c.text;
    EXPECT_TRUE(gpu->name.empty()) << c.text;
    EXPECT_EQ(gpu->context_bytes, kContextWhenUnknown);
    EXPECT_EQ(gpu->capacity_source, FigureSource::kAssumed);
    EXPECT_EQ(gpu->compute_major, 8);
  }
  EXPECT_EQ(describe(*find_gpu("24GiB")), "a device of 24.00 GiB");
}

TEST(Gpus, AnUnknownNameIsAnsweredWithCloseOnesAndTheWayOut) {
  EXPECT_EQ(message_for("RTX 4091"),
            "'RTX 4091' is no GPU that Faultline knows (close to it: RTX-4090); a size such as 24GiB works too");
  EXPECT_EQ(
      message_for("A100-60GB"),
      "'A100-60GB' is no GPU that Faultline knows (close to it: A100-40GB, A100-80GB); a size such as 24GiB works too");
  EXPECT_EQ(message_for("nonsense"),
            "'nonsense' is no GPU that Faultline knows; faultline gpus lists them, and a size such as 24GiB works too");
  EXPECT_EQ(message_for("RTX 4900"),
            "'RTX 4900' is no GPU that Faultline knows (close to it: RTX-4090); a size such as 24GiB works too");
  EXPECT_EQ(message_for("24"), "'24' is no GPU that Faultline knows; a size has its unit with it: 24GiB");
  EXPECT_EQ(message_for("T5"), "'T5' is no GPU that Faultline knows (close to it: T4); a size such as 24GiB works too");
  EXPECT_EQ(message_for("T4x2"), "'T4x2' is no GPU that Faultline knows; several are 2xT4");
  EXPECT_EQ(message_for("A100-80GB x4"), "'A100-80GB x4' is no GPU that Faultline knows; several are 4xA100-80GB");
  EXPECT_EQ(message_for("T4y2").find("several"), std::string::npos);
  EXPECT_EQ(message_for("xyzzyx2").find("several"), std::string::npos);
  for (const char* text :
       {"", " ", "-1GiB", "0GiB", "big", "3050", "1e400GiB", "GiB", "nvidia", "rtx", "24GiBs", "\xff\xfe"})
    EXPECT_FALSE(message_for(text).empty()) << text;
  EXPECT_LT(message_for(std::string(100000, 'a')).size(), 200u);
}

TEST(Gpus, SeveralOfANameThatIsAllDigitsAreHintedAtToo) {
  EXPECT_EQ(find_gpus("4090x2").error().message(), "'4090x2' is no GPU that Faultline knows; several are 2x4090");
  EXPECT_EQ(find_gpus("2x4090")->size(), 2u);
  EXPECT_NE(find_gpus("2x4091").error().message().find("'4091' is no GPU"), std::string::npos);
}

TEST(Gpus, ThePageAboutThemHasTheSameFigures) {
  std::ifstream file(std::string(FAULTLINE_FIXTURES) + "/../../docs/gpus.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(page.empty());
  for (const GpuEntry& entry : gpu_catalogue()) {
    const Gpu& gpu = entry.gpu;
    const std::string row = fmt::format("| {} | {} | {:.2f} {}", gpu.name, gpu.full_name,
                                        static_cast<double>(gpu.capacity_bytes) / static_cast<double>(kGiB),
                                        to_string(gpu.capacity_source));
    const std::size_t at = page.find(row);
    ASSERT_NE(at, std::string::npos) << row;
    const std::string line = page.substr(at, page.find('\n', at) - at);
    EXPECT_NE(line.find(fmt::format("| {} {} |", gpu.context_bytes / kMiB, to_string(gpu.context_source))),
              std::string::npos)
        << line;
    const std::string limits =
        fmt::format("| {} | {}.{} | {} | {} | {} | {} |", gpu.name, gpu.compute_major, gpu.compute_minor, gpu.sm_count,
                    gpu.max_threads_per_sm, static_cast<double>(gpu.l2_bytes) / static_cast<double>(kMiB),
                    gpu.max_shared_bytes_per_block / kKiB);
    EXPECT_NE(page.find(limits), std::string::npos) << limits;
  }
}

TEST(GpusTest, SeveralAreNamedByACountOrAList) {
  const auto names = [](std::string_view text) {
    const Result<std::vector<Gpu>> gpus = find_gpus(text);
    std::string all;
    if (!gpus) return "unknown: " + gpus.error().message();
    for (const Gpu& gpu : *gpus)
      all += (all.empty() ? "" : " ") + std::string(gpu.name.empty() ? format_bytes(gpu.capacity_bytes) : gpu.name);
    return all;
  };
  EXPECT_EQ(names("T4"), "T4");
  EXPECT_EQ(names("2xA100-80GB"), "A100-80GB A100-80GB");
  EXPECT_EQ(names("2 x T4"), "T4 T4");
  EXPECT_EQ(names("3XT4"), "T4 T4 T4");
  EXPECT_EQ(names("A100-40GB,T4"), "A100-40GB T4");
  EXPECT_EQ(names("A100-40GB, 2xT4"), "A100-40GB T4 T4");
  EXPECT_EQ(names("2x24GiB"), "24.00 GiB 24.00 GiB");
  EXPECT_EQ(names("4090"), "RTX-4090") << "digits alone are no count";
  EXPECT_TRUE(names("0xT4").starts_with("unknown: 0 GPUs in one program are too few"));
  EXPECT_TRUE(names("65xT4").starts_with("unknown: 65 GPUs in one program are too many"));
  EXPECT_TRUE(names("2xT44").starts_with("unknown: 'T44' is no GPU"));
  EXPECT_TRUE(names("T4,").starts_with("unknown: '' is no GPU"));
  EXPECT_TRUE(names("").starts_with("unknown: '' is no GPU"));
}

}  // namespace
}  // namespace faultline
