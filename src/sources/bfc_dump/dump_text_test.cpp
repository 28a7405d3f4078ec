#include "sources/bfc_dump/dump_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "fmt/format.h"
#include "sources/bfc_dump/dump_trace.h"
#include "sources/pool_names.h"
#include "trace/validate.h"

namespace faultline {
namespace {

const std::string kPrefix = "2024-05-01 12:34:56.100000: I external/local_tsl/tsl/framework/bfc_allocator.cc:1105] ";

PoolDump only(const std::string& text) {
  PoolDumps found = read_pool_dumps(text);
  EXPECT_EQ(found.dumps.size(), 1u) << text;
  return found.dumps.empty() ? PoolDump() : std::move(found.dumps.front());
}

// One line of a chunk in every form that was ever printed.
TEST(PoolDumpText, AChunkIsKnownInEveryForm) {
  struct Row {
    const char* line;
    std::uint64_t address, size_bytes;
    bool in_use;
    const char* op;
  };
  for (const Row& row :
       {Row{"Chunk at 0x3a60e2a00 of size 135274496", 0x3a60e2a00, 135274496, true, ""},
        Row{"Free  at 0x7f94a947ca00 of size 1024", 0x7f94a947ca00, 1024, false, ""},
        Row{"Free at 0x7f94a947ca00 of size 1024", 0x7f94a947ca00, 1024, false, ""},
        Row{"InUse at 000000081C56C700 next 1151 of size 2048", 0x81c56c700, 2048, true, ""},
        Row{"Free  at 000000081C56C700 next 18446744073709551615 of size 2048", 0x81c56c700, 2048, false, ""},
        Row{"InUse at f00c54400 of size 1024 next 217", 0xf00c54400, 1024, true, ""},
        Row{"Free  at f00c54400 of size 1024 freed_at_count 12 next 217", 0xf00c54400, 1024, false, ""},
        Row{"InUse at f00c54400 of size 1024 by op model/dense/MatMul action_count 1289 step 12 next 217", 0xf00c54400,
            1024, true, "model/dense/MatMul"},
        Row{"InUse at 7f20 of size 256 tag kLower allocation_annotation xla.execute{executable=jit_f} next 5", 0x7f20,
            256, true, "xla.execute{executable=jit_f}"},
        Row{"InUse at 7f20 of size 256 tag kLower next 5", 0x7f20, 256, true, ""}}) {
    for (const std::string& prefix : {std::string(), kPrefix, "\x1b[32m" + kPrefix + "\x1b[0m",
                                      std::string("[rank0]: "), "2024-05-01T12:34:56.1Z stderr F " + kPrefix,
                                      std::string("I0000 00:00:1794822347.641919   13205 bfc_allocator.cc:1105] ")}) {
      const PoolDump dump = only(prefix + row.line + "\r\n");
      ASSERT_EQ(dump.chunks.size(), 1u) << prefix << row.line;
      EXPECT_EQ(dump.chunks[0].address, row.address) << row.line;
      EXPECT_EQ(dump.chunks[0].size_bytes, row.size_bytes) << row.line;
      EXPECT_EQ(dump.chunks[0].in_use, row.in_use) << row.line;
      EXPECT_EQ(dump.ops[dump.chunks[0].op], row.op) << row.line;
    }
  }
}

TEST(PoolDumpText, OtherSentencesAreNoChunks) {
  for (const char* line : {"a batch at 12 of size 32", "InUse at zz of size 12 next 3", "InUse at 7f of size 0 next 3",
                           "InUse at 7f of size 99999999999999999999 next 3", "looking at cafe of size 12",
                           "InUse at ffffffffffffffff of size 512 next 1", "tensor of size 1024", " of size "}) {
    const PoolDumps found = read_pool_dumps(std::string(line) + "\n");
    EXPECT_TRUE(found.dumps.empty() || !found.dumps[0].has_map()) << line;
  }
}

// The pool's totals in the words of each time: bytes, or rounded.
TEST(PoolDumpText, TotalsAreExactOrBetweenBounds) {
  struct Row {
    const char* line;
    ByteInterval taken, limit;
  };
  for (const Row& row :
       {Row{"total_region_allocated_bytes_: 266338304 memory_limit_: 268435456 available bytes: 2097152 "
            "curr_region_allocation_bytes_: 268435456",
            ByteInterval::exactly(266338304), ByteInterval::exactly(268435456)},
        Row{"Total bytes in pool: 266338304 memory_limit_: 268435456 available bytes: 2097152 "
            "curr_region_allocation_bytes_: 268435456",
            ByteInterval::exactly(266338304), ByteInterval::exactly(268435456)},
        Row{"Total size in pool: 254.00MiB memory_limit_: 256.00MiB available size: 2.00MiB "
            "curr_region_allocation_bytes_: 256.00MiB",
            {266333062, 266344570},
            {268430214, 268441722}}}) {
    const PoolDump dump = only("InUse at 7f20 of size 266338304 next 1\n" + kPrefix + row.line + "\n");
    ASSERT_TRUE(dump.pool && dump.limit && dump.available) << row.line;
    EXPECT_LE(dump.pool->min, 266338304u);
    EXPECT_GE(dump.pool->max, 266338304u);
    EXPECT_EQ(dump.pool->min == dump.pool->max, row.taken.min == row.taken.max);
    EXPECT_LE(dump.limit->min, 268435456u);
    EXPECT_GE(dump.limit->max, 268435456u);
    EXPECT_EQ(dump.unplaced, ByteInterval{});
  }
}

// Where the map is hidden, its header, its bar and what stands in front of them are all that is printed.
TEST(PoolDumpText, AHeaderWithItsBarIsRead) {
  const std::string header =
      "W1116 09:49:12.276241    7587 bfc_allocator.cc:598] Allocator (GPU_0_bfc) ran out of memory trying to allocate "
      "16.00GiB (rounded to 17179869184) from the lower end requested by op \nCurrent allocation summary follows.\n";
  struct Row {
    std::string drawn;
    std::uint64_t free, longest;
  };
  for (const Row& row :
       {Row{std::string(100, '*'), 0, 0}, Row{"*" + std::string(99, '_'), 99, 99},
        Row{"__" + std::string(40, '*') + std::string(27, '_') + std::string(30, 'x') + "_", 30, 27}}) {
    for (const std::string& prefix : {std::string("W1116 09:49:12.276362    7587 bfc_allocator.cc:609] "),
                                      std::string("\x1b[33mW1116 09:49:12.27    7587 b.cc:9] ")}) {
      const PoolDump dump = only(header + prefix + row.drawn + " \r\n");
      ASSERT_TRUE(dump.bar) << row.drawn;
      EXPECT_EQ(dump.bar->free, row.free);
      EXPECT_EQ(dump.bar->longest, row.longest);
      EXPECT_EQ(dump.rounded, 17179869184u);
      EXPECT_FALSE(dump.has_map() || dump.pool);
    }
  }
  const PoolDump empty =
      only(header + "W1116 09:49:12.27    7587 bfc_allocator.cc:609] <allocator contains no memory>\n");
  EXPECT_FALSE(empty.bar);
  EXPECT_EQ(empty.pool, ByteInterval{});
  // nothing but a header, a line of another thread, or a line that is no bar
  for (const std::string& behind : {std::string(), "W1116 09:49:12.27    9999 b.cc:9] " + std::string(100, '*') + "\n",
                                    "W1116 09:49:12.27    7587 b.cc:9] " + std::string(101, '*') + "\n",
                                    "W1116 09:49:12.27    7587 b.cc:9] " + std::string(99, '*') + "\n"})
    EXPECT_TRUE(read_pool_dumps(header + behind).dumps.empty()) << behind;
}

TEST(PoolDumpText, WhatTheDriverRefusedBeforeItIsRead) {
  const std::string header =
      "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB (rounded to 1073741824)\n";
  for (const char* line :
       {"E1116 09:55:17.46 8765 cuda_executor.cc:1365] [0] Failed to allocate device memory of 1.08GiB (1160372480 "
        "bytes): "
        "RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n",
        "E cuda_driver.cc:806] failed to allocate 1.08G (1160372480 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY\n"}) {
    const PoolDump dump = only(line + header);
    EXPECT_EQ(dump.refused, ByteInterval::exactly(1160372480)) << line;
    // of the request behind it alone
    const PoolDumps two = read_pool_dumps(line + header + header);
    EXPECT_EQ(two.dumps.size(), 1u);
  }
  const PoolDump planned = only(
      "E x.cc:1] The byte size of input/output arguments (17179869188) exceeds the base limit "
      "(3003121664). This indicates an error in the calculation!\n" +
      header);
  EXPECT_EQ(planned.base_limit, ByteInterval::exactly(3003121664));
}

// What XLA says that it plans with is of the request behind it: same thread, near, and of that one alone.
TEST(PoolDumpText, TheLimitThatXlaPlansWithIsOfTheNextMapAlone) {
  const auto prefix = [](const char* time, int thread) {
    return "W1116 " + std::string(time) + ".469930    " + std::to_string(thread) + " ";
  };
  const auto limit = [&](const char* time, int thread) {
    return prefix(time, thread) +
           "s.cc:1068] The byte size of input/output arguments (99) exceeds the base limit (512)\n";
  };
  const auto dump = [&](const char* time, int thread, const char* pool = "GPU_0_bfc") {
    return prefix(time, thread) + "bfc_allocator.cc:598] Allocator (" + pool +
           ") ran out of memory trying to allocate 1.00GiB (rounded to 1073741824)requested by op \n" +
           prefix(time, thread) + "bfc_allocator.cc:609] " + std::string(100, '*') + "\n";
  };
  std::string far;
  for (int at = 0; at < 20'000; ++at) far += "epoch 1\n";
  const struct {
    const char* name;
    std::string text;
    std::vector<bool> has_limit;
  } cases[] = {
      {"next", limit("09:49:02", 7587) + dump("09:49:17", 7587), {true}},
      {"compiled for minutes", limit("09:45:02", 7587) + dump("09:49:17", 7587), {true}},
      {"hours later", limit("04:49:02", 7587) + dump("09:49:17", 7587), {false}},
      {"of another thread", limit("09:49:02", 7587) + dump("09:49:17", 9999), {false}},
      {"far away", limit("09:49:02", 7587) + far + dump("09:49:17", 7587), {false}},
      {"the second",
       limit("09:49:02", 7587) + dump("09:49:17", 7587) + dump("09:49:18", 7587, "GPU_3_bfc"),
       {true, false}},
      {"another thread's in between",
       limit("09:49:02", 7587) + dump("09:49:16", 9999) + dump("09:49:17", 7587),
       {false, true}},
  };
  for (const auto& one : cases) {
    std::vector<bool> has_limit;
    for (const PoolDump& read : read_pool_dumps(one.text).dumps) has_limit.push_back(read.base_limit.has_value());
    EXPECT_EQ(has_limit, one.has_limit) << one.name;
  }
}

const std::string kRegion =
    "Next region of size 4096\nInUse at 1000 of size 1024 next 2\nFree  at 1400 of size 1024 next 3\n"
    "InUse at 1800 of size 2048 next 18446744073709551615\n";

TEST(PoolDumpText, ALineThatIsMissingIsAGapInItsRegion) {
  EXPECT_EQ(only(kRegion).unread_bytes, 0u);
  for (const char* line : {"InUse at 1000 of size 1024 next 2\n", "Free  at 1400 of size 1024 next 3\n"}) {
    std::string cut = kRegion;
    cut.erase(cut.find(line), std::string(line).size());
    const PoolDump dump = only(cut);
    EXPECT_EQ(dump.regions.size(), 1u) << line;
    EXPECT_EQ(dump.unread_bytes, 1024u) << line;
  }
  const PoolDump end = only(kRegion.substr(0, kRegion.find("InUse at 1800")));
  EXPECT_EQ(end.unread_bytes, 2048u);
  const PoolDump headless = only("Next region of size 8192\n" + kRegion);
  EXPECT_EQ(headless.unplaced, ByteInterval::exactly(8192));
  EXPECT_EQ(headless.unread_bytes, 0u);
}

TEST(PoolDumpText, ALineThatStandsThereTwiceIsReadOnce) {
  const PoolDump dump = only(kRegion + "InUse at 1000 of size 1024 next 2\n");
  EXPECT_EQ(dump.chunks.size(), 3u);
  EXPECT_EQ(dump.repeated_lines, 1u);
}

// Without lines of regions: chunks that do not follow each other, and free neighbours, which one region would have merged.
TEST(PoolDumpText, RegionsAreToldFromAddressesWhereNoLineSaysThem) {
  const PoolDump dump = only(
      "Chunk at 0x1000 of size 1024\nFree  at 0x1400 of size 1024\nFree  at 0x1800 of size 1024\n"
      "Chunk at 0x1c00 of size 1024\nChunk at 0x9000 of size 256\n");
  ASSERT_EQ(dump.regions.size(), 3u);
  EXPECT_EQ(dump.regions[0].size_bytes, 2048u);
  EXPECT_EQ(dump.regions[1].address, 0x1800u);
  EXPECT_EQ(dump.regions[2].size_bytes, 256u);
}

// All chunks that are in use, then all that are free; in any order at all; and each twice: one region.
TEST(PoolDumpText, ChunksAreOrderedByTheirAddresses) {
  const std::vector<std::string> lines = {"Chunk at 0x1000 of size 1024\n", "Free  at 0x1400 of size 1024\n",
                                          "Chunk at 0x1800 of size 1024\n", "Free  at 0x1c00 of size 512\n",
                                          "Chunk at 0x1e00 of size 512\n"};
  for (const std::vector<int>& order :
       {std::vector<int>{0, 1, 2, 3, 4}, {0, 2, 4, 1, 3}, {4, 3, 2, 1, 0}, {1, 3, 0, 2, 4}, {0, 2, 1, 2, 3, 0, 4}}) {
    std::string text;
    for (const int at : order) text += lines[static_cast<std::size_t>(at)];
    const PoolDump dump = only(text);
    ASSERT_EQ(dump.regions.size(), 1u) << text;
    EXPECT_EQ(dump.regions[0].address, 0x1000u);
    EXPECT_EQ(dump.regions[0].size_bytes, 4096u);
    EXPECT_EQ(dump.chunks.size(), 5u);
    EXPECT_EQ(dump.repeated_lines, order.size() - 5);
    EXPECT_EQ(dump.odd_lines, 0u);
  }
  // one that overlaps is counted, and takes no place
  const PoolDump odd = only(lines[0] + lines[2] + "Free  at 0x1200 of size 256\n" + lines[1]);
  EXPECT_EQ(odd.odd_lines, 1u);
  EXPECT_EQ(odd.chunks.size(), 3u);
}

std::string bins_of(int chunks, int used, const char* bytes, const char* in_use) {
  std::string text;
  for (int bin = 0; bin < 21; ++bin) {
    const bool is_here = bin == 2;  // 1 KiB
    text += "Bin (" + std::to_string(256L << bin) + "): \tTotal Chunks: " + std::to_string(is_here ? chunks : 0) +
            ", Chunks in use: " + std::to_string(is_here ? used : 0) + ". " + (is_here ? bytes : "0B") +
            " allocated for chunks. " + (is_here ? in_use : "0B") + " in use in bin. " + (is_here ? in_use : "0B") +
            " client-requested in use in bin.\n";
  }
  return text;
}

// The list of the bins has the number of all chunks: where it has more than the map, lines are missing, and it tells what they add up to.
TEST(PoolDumpText, TheBinsTellWhatIsMissing) {
  const std::string two = "Chunk at 0x1000 of size 1024\nChunk at 0x1800 of size 1024\n",
                    free = "Free  at 0x1400 of size 1024\n";
  const PoolDump whole = only(bins_of(3, 2, "3.0KiB", "2.0KiB") + two + free);
  EXPECT_EQ(whole.unplaced, ByteInterval{});
  EXPECT_FALSE(whole.is_open);
  const PoolDump cut = only(bins_of(3, 2, "3.0KiB", "2.0KiB") + two);
  ASSERT_TRUE(cut.bins);
  EXPECT_LE(cut.unplaced.min, 1024u);
  EXPECT_GE(cut.unplaced.max, 1024u);
  EXPECT_EQ(cut.bins->largest_free.min, 1024u);
  EXPECT_LT(cut.bins->largest_free.max, 2048u);
  EXPECT_FALSE(cut.is_open);
  EXPECT_TRUE(only(two).is_open);
  const std::string bins = bins_of(3, 2, "3.0KiB", "2.0KiB");
  EXPECT_TRUE(only(bins.substr(bins.find('\n') + 1) + two).is_open);  // a list that lacks its first line
  EXPECT_FALSE(only(two + "total_region_allocated_bytes_: 2048 memory_limit_: 4096\n").is_open);
}

std::string named(const std::string& name, const std::string& rest) {
  return "Allocator (" + name +
         ") ran out of memory trying to allocate 1.00GiB (rounded to 1073741824)requested by op " +
         "Mul\nBFCAllocator dump for " + name + "\n" + rest;
}

TEST(PoolDumpText, TwoPoolsAreTwoDumps) {
  const PoolDumps found = read_pool_dumps(named("GPU_0_bfc", kRegion) + named("GPU_1_bfc", kRegion));
  ASSERT_EQ(found.dumps.size(), 2u);
  EXPECT_EQ(found.dumps[0].allocator, "GPU_0_bfc");
  EXPECT_EQ(found.dumps[1].allocator, "GPU_1_bfc");
  EXPECT_EQ(found.dumps[1].rounded, 1073741824u);
  EXPECT_EQ(found.dumps[1].asked_by, "Mul");
  for (const PoolDump& dump : found.dumps) {
    EXPECT_EQ(dump.chunks.size(), 3u);
    EXPECT_FALSE(dump.is_mixed);
  }
}

TEST(PoolDumpText, ADumpThatBreaksOffIsNotMixedWithTheNext) {
  const PoolDumps found = read_pool_dumps(named("GPU_0_bfc", kRegion.substr(0, kRegion.find("InUse at 1800"))) +
                                          named("GPU_0_bfc", kRegion));
  ASSERT_EQ(found.dumps.size(), 2u);
  EXPECT_EQ(found.dumps[0].unread_bytes, 2048u);
  EXPECT_EQ(found.dumps[1].unread_bytes, 0u);
  EXPECT_EQ(found.dumps[1].chunks.size(), 3u);
  EXPECT_FALSE(found.dumps[0].is_mixed || found.dumps[1].is_mixed);
}

// Two threads write at once: their numbers tell the lines apart. Without any, chunks continue their own region, and it is said that the two are mixed.
TEST(PoolDumpText, MixedDumpsAreToldApart) {
  const std::string other =
      "Next region of size 4096\nFree  at 9000 of size 1024 next 2\nInUse at 9400 of size 3072 next 9\n";
  for (const bool has_threads : {true, false}) {
    const auto lines = [&](const std::string& text, const char* thread) {
      std::vector<std::string> all;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        all.push_back((has_threads ? "I0000 00:00:1794822347.641919   " + std::string(thread) + " bfc.cc:1] " : "") +
                      text.substr(at, end + 1 - at));
        at = end + 1;
      }
      return all;
    };
    const auto a = lines(named("GPU_0_bfc", kRegion), "11"), b = lines(named("GPU_1_bfc", other), "22");
    std::string text;
    for (std::size_t at = 0; at < std::max(a.size(), b.size()); ++at) {
      if (at < a.size()) text += a[at];
      if (at < b.size()) text += b[at];
    }
    const PoolDumps found = read_pool_dumps(text);
    ASSERT_EQ(found.dumps.size(), 2u) << text;
    EXPECT_EQ(found.dumps[0].chunks.size() + found.dumps[1].chunks.size(), 5u);
    for (const PoolDump& dump : found.dumps) {
      EXPECT_EQ(dump.unread_bytes, 0u);
      EXPECT_EQ(dump.is_mixed, !has_threads);
    }
    if (has_threads) {
      EXPECT_EQ(found.dumps[0].chunks.size(), 3u);
    }
  }
}

TEST(PoolDumpText, TheDumpMakesATraceThatHolds) {
  PoolDump dump = only(named("GPU_3_bfc", kRegion));
  Trace trace;
  trace.streams.emplace_back();
  const std::vector<PoolPlace> places = add_pools(trace, {&dump, 1});
  add_failed_request(trace, dump, places.front(), StackId());
  const Status holds = check_trace(trace);
  ASSERT_TRUE(holds.ok()) << holds.error().what;
  EXPECT_EQ(places.front().device, 3u);
  EXPECT_EQ(trace.preexisting_count, 3u);  // a region, two chunks
  EXPECT_EQ(trace.events.back().size_bytes, 1073741824u);
  EXPECT_EQ(trace.final_blocks.size(), 3u);
}

// Lines left out, doubled, exchanged and with any byte changed: whatever is read makes a trace that holds.
TEST(PoolDumpText, SurvivesAnyDamage) {
  std::vector<std::string> lines;
  std::string text = named("GPU_0_bfc", kRegion) +
                     "total_region_allocated_bytes_: 4096 memory_limit_: 8192 available bytes: 4096 "
                     "curr_region_allocation_bytes_: 8192\nStats: \nLimit:  8192\nInUse:  3072\nMaxInUse: 4096\n" +
                     named("GPU_1_bfc", kRegion + kRegion);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end + 1 - at));
    at = end + 1;
  }
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> changed = lines;
    for (int change = 0; change < 4; ++change) {
      const std::size_t at = random() % changed.size(), other = random() % changed.size();
      switch (random() % 4) {
        case 0: changed[at].clear(); break;
        case 1: changed[at] += changed[at]; break;
        case 2: std::swap(changed[at], changed[other]); break;
        default:
          if (!changed[at].empty()) changed[at][random() % changed[at].size()] = static_cast<char>(random());
      }
    }
    std::string damaged;
    for (const std::string& line : changed) damaged += line;
    for (const PoolDump& dump : read_pool_dumps(damaged).dumps) {
      Trace trace;
      trace.streams.emplace_back();
      const std::vector<PoolPlace> places = add_pools(trace, {&dump, 1});
      add_failed_request(trace, dump, places.front(), StackId());
      const Status holds = check_trace(trace);
      ASSERT_TRUE(holds.ok()) << holds.error().what << "\n" << damaged;
    }
  }
}

TEST(PoolDumpText, APoolIsOfItsGpu) {
  EXPECT_EQ(gpu_of("GPU_0_bfc"), 0);
  EXPECT_EQ(gpu_of("GPU_collectivememory_12_bfc"), 12);
  for (const char* name :
       {"gpu_host_bfc", "xla_gpu_host_bfc", "bfc_cpu_allocator_for_gpu", "GPU_bfc", "GPU__bfc", "", "GPU_99999_bfc"})
    EXPECT_EQ(gpu_of(name), std::nullopt) << name;
}

// What goes over it all again for each region does not come to an end with these.
TEST(PoolDumpText, TimeGrowsWithTheText) {
  for (const char* total : {"memory_limit_: 268435456", "Total bytes in pool: 77 memory_limit_: 268435456",
                            "Sum Total of in-use chunks: 12.0KiB", "Stats:"}) {
    std::string text;
    for (int at = 0; at < 100'000; ++at) text += "Next region of size 256\n" + std::string(total) + "\n";
    EXPECT_LE(read_pool_dumps(text).dumps.size(), 64U) << total;
  }
}

TEST(PoolDumpText, RegionsThatLieOverEachOtherShareNoChunk) {
  constexpr std::uint64_t kCount = 50'000, kFirst = 0x7f0000000000;
  std::string loose, regions;
  for (std::uint64_t at = 0; at < kCount; ++at) {
    loose += fmt::format("Chunk at {:#x} of size 256\n", kFirst + 512 * at + 256);
    regions += fmt::format("Next region of size 999999999\nInUse at {:x} of size 256 next 1\n", kFirst + 512 * at);
  }
  const PoolDumps read = read_pool_dumps("BFCAllocator dump for GPU_0_bfc\n" + loose + regions);
  ASSERT_EQ(read.dumps.size(), 1U);
  EXPECT_LE(read.dumps[0].chunks.size(), 2 * kCount);
}

}  // namespace
}  // namespace faultline
