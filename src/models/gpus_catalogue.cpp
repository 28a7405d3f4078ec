#include "models/gpus.h"

namespace faultline {
namespace {

constexpr auto kMeasured = FigureSource::kMeasured;
constexpr auto kPublished = FigureSource::kPublished;
constexpr auto kEstimated = FigureSource::kEstimated;

// PyTorch prints capacities with two decimals.
constexpr std::uint64_t gib(double value) { return static_cast<std::uint64_t>(value * static_cast<double>(kGiB)); }
constexpr std::uint64_t mib(std::uint64_t value) { return value * kMiB; }

// What all cards of one compute capability share.
struct Generation {
  int major, minor, threads;
  std::uint64_t shared_kib;
};
constexpr Generation kPascal{6, 0, 2048, 48}, kVolta{7, 0, 2048, 96}, kTuring{7, 5, 1024, 64},
    kAmpere80{8, 0, 2048, 163}, kAmpere86{8, 6, 1536, 99}, kAda{8, 9, 1536, 99}, kHopper{9, 0, 2048, 227},
    kBlackwell100{10, 0, 2048, 227}, kBlackwell120{12, 0, 1536, 99};

struct Names {
  std::string_view name, full_name, words;
  std::string_view loose_words = {}, loose_note = {};
};
struct Memory {
  std::uint32_t box_gib;
  std::uint64_t capacity;
  FigureSource capacity_source;
  std::uint64_t context;
  FigureSource context_source;
};

constexpr GpuEntry entry(const Names& names, const Generation& generation, int sm_count, double l2_mib,
                         const Memory& memory, std::string_view note = {}) {
  Gpu gpu;
  gpu.name = names.name;
  gpu.full_name = names.full_name;
  gpu.capacity_bytes = memory.capacity;
  gpu.capacity_source = memory.capacity_source;
  gpu.context_bytes = memory.context;
  gpu.context_source = memory.context_source;
  gpu.box_gib = memory.box_gib;
  gpu.compute_major = generation.major;
  gpu.compute_minor = generation.minor;
  gpu.sm_count = sm_count;
  gpu.max_threads_per_sm = generation.threads;
  gpu.l2_bytes = static_cast<std::uint64_t>(l2_mib * static_cast<double>(kMiB));
  gpu.max_shared_bytes_per_block = generation.shared_kib * kKiB;
  gpu.note = note;
  return {gpu, names.words, names.loose_words, names.loose_note};
}

constexpr std::string_view kWithEcc = "the card is taken with error correction on; without it there are about 47.3 GiB";

constexpr GpuEntry kCatalogue[] = {
    entry({"P100", "Tesla P100-PCIE-16GB", "p100 p10016 p100pcie p100pcie16 p100sxm2 p100sxm216"}, kPascal, 56, 4,
          {16, gib(15.89), kPublished, mib(320), kEstimated}),
    entry({"V100-16GB", "Tesla V100-SXM2-16GB", "v10016 v10016g v100sxm216 v100pcie16", "v100 v100sxm2 v100pcie",
           "V100 is read as the 16 GB card; V100-32GB is the other"},
          kVolta, 80, 6, {16, gib(15.57), kEstimated, mib(416), kEstimated}),
    entry({"V100-32GB", "Tesla V100-SXM2-32GB", "v10032 v10032g v100sxm232 v100sxm332 v100pcie32 v100spcie32 v100s"},
          kVolta, 80, 6, {32, gib(31.54), kEstimated, mib(416), kEstimated}),
    entry({"T4", "Tesla T4", "t4 t416"}, kTuring, 40, 4, {16, gib(14.56), kPublished, mib(144), kPublished}),
    entry({"RTX-2080-Ti", "NVIDIA GeForce RTX 2080 Ti", "2080ti 2080ti11"}, kTuring, 68, 5.5,
          {11, gib(10.56), kEstimated, mib(208), kEstimated}),
    entry({"A100-40GB", "NVIDIA A100-SXM4-40GB",
           "a10040 a10040g a100sxm440 a100sxm40 a100pcie40 a10040sxm a10040sxm4 a10040pcie",
           "a100 a100sxm a100sxm4 a100pcie", "A100 is read as the 40 GB card; A100-80GB is the other"},
          kAmpere80, 108, 40, {40, 42298834944, kPublished, mib(560), kEstimated}),
    entry({"A100-80GB", "NVIDIA A100-SXM4-80GB",
           "a10080 a10080g a100sxm480 a100sxm80 a100pcie80 a10080sxm a10080sxm4 a10080pcie"},
          kAmpere80, 108, 40, {80, gib(79.14), kPublished, mib(560), kEstimated}),
    entry({"A10", "NVIDIA A10", "a10 a1024 a10pcie"}, kAmpere86, 72, 6,
          {24, gib(21.99), kPublished, mib(304), kEstimated}),
    entry({"A10G", "NVIDIA A10G", "a10g a10g24"}, kAmpere86, 80, 6, {24, gib(21.99), kPublished, mib(336), kEstimated}),
    entry({"A40", "NVIDIA A40", "a40 a4048"}, kAmpere86, 84, 6, {48, gib(44.35), kPublished, mib(352), kEstimated}),
    entry({"RTX-A6000", "NVIDIA RTX A6000", "a6000 a600048"}, kAmpere86, 84, 6,
          {48, gib(47.34), kEstimated, mib(352), kEstimated}),
    entry({"RTX-3060-12GB", "NVIDIA GeForce RTX 3060", "306012", "3060",
           "RTX 3060 is read as the 12 GB card; give the size for the 8 GB one"},
          kAmpere86, 28, 2.25, {12, gib(11.55), kEstimated, mib(160), kEstimated}),
    entry({"RTX-3070", "NVIDIA GeForce RTX 3070", "3070 30708"}, kAmpere86, 46, 4,
          {8, gib(7.58), kEstimated, mib(208), kEstimated}),
    entry({"RTX-3080-10GB", "NVIDIA GeForce RTX 3080", "308010", "3080",
           "RTX 3080 is read as the 10 GB card; give the size for the 12 GB one"},
          kAmpere86, 68, 5, {10, gib(9.57), kEstimated, mib(288), kEstimated}),
    entry({"RTX-3090", "NVIDIA GeForce RTX 3090", "3090 309024"}, kAmpere86, 82, 6,
          {24, gib(23.5), kEstimated, mib(336), kPublished}),
    entry({"L4", "NVIDIA L4", "l4 l424"}, kAda, 58, 48, {24, gib(22.03), kPublished, mib(256), kEstimated}),
    entry({"L40", "NVIDIA L40", "l40 l4048"}, kAda, 142, 96, {48, gib(44.4), kPublished, mib(544), kEstimated}),
    entry({"L40S", "NVIDIA L40S", "l40s l40s48"}, kAda, 142, 96, {48, gib(44.42), kPublished, mib(544), kEstimated}),
    entry({"RTX-6000-Ada", "NVIDIA RTX 6000 Ada Generation", "6000ada 6000adageneration 6000ada48 ada6000"}, kAda, 142,
          96, {48, gib(44.43), kPublished, mib(544), kEstimated}, kWithEcc),
    entry({"RTX-4060-Ti-16GB", "NVIDIA GeForce RTX 4060 Ti", "4060ti16"}, kAda, 34, 32,
          {16, gib(15.5), kEstimated, mib(176), kEstimated}),
    entry({"RTX-4070", "NVIDIA GeForce RTX 4070", "4070 407012"}, kAda, 46, 36,
          {12, gib(11.53), kEstimated, mib(208), kEstimated}),
    entry({"RTX-4080", "NVIDIA GeForce RTX 4080", "4080 408016"}, kAda, 76, 64,
          {16, gib(15.5), kEstimated, mib(320), kEstimated}),
    entry({"RTX-4090", "NVIDIA GeForce RTX 4090", "4090 409024"}, kAda, 128, 72,
          {24, gib(23.43), kPublished, mib(512), kPublished}),
    entry({"H100-80GB", "NVIDIA H100 80GB HBM3",
           "h10080 h10080g h10080hbm3 h100sxm h100sxm5 h100sxm80 h100sxm580 h10080sxm h10080sxm5", "h100",
           "H100 is read as the 80 GB SXM card; H100-PCIe is also known"},
          kHopper, 132, 50, {80, gib(79.1), kPublished, mib(784), kEstimated}),
    entry({"H100-PCIe", "NVIDIA H100 PCIe", "h100pcie h100pcie80 h10080pcie"}, kHopper, 114, 50,
          {80, gib(79.1), kEstimated, mib(688), kEstimated}),
    entry({"H200", "NVIDIA H200", "h200 h200141 h200sxm h200sxm5 h200sxm141"}, kHopper, 132, 60,
          {141, 150109880320, kMeasured, mib(784), kMeasured}),
    entry({"GH200", "NVIDIA GH200 480GB", "gh200 gh200480 gh20096"}, kHopper, 132, 60,
          {96, gib(94.88), kPublished, mib(784), kEstimated}),
    entry({"B200", "NVIDIA B200", "b200 b200180 b200192 b200sxm"}, kBlackwell100, 148, 126.5,
          {180, gib(178.35), kPublished, mib(880), kEstimated}),
    entry({"RTX-5070-Ti", "NVIDIA GeForce RTX 5070 Ti", "5070ti 5070ti16"}, kBlackwell120, 70, 48,
          {16, gib(15.45), kEstimated, mib(304), kEstimated}),
    entry({"RTX-5080", "NVIDIA GeForce RTX 5080", "5080 508016"}, kBlackwell120, 84, 64,
          {16, gib(15.48), kPublished, mib(352), kEstimated}),
    entry({"RTX-5090", "NVIDIA GeForce RTX 5090", "5090 509032"}, kBlackwell120, 170, 96,
          {32, gib(31.36), kPublished, mib(640), kEstimated}),
    entry({"RTX-PRO-6000", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
           "pro6000 pro600096 pro6000blackwell pro6000blackwellworkstationedition pro6000blackwellserveredition "
           "pro6000blackwellmaxqworkstationedition 6000blackwell"},
          kBlackwell120, 188, 128, {96, gib(94.97), kPublished, mib(704), kEstimated}),
};

}  // namespace

std::span<const GpuEntry> gpu_catalogue() { return kCatalogue; }

}  // namespace faultline
