#include "sources/bfc_dump/dump_text.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <string>
#include <utility>

#include "base/hash.h"
#include "sources/bfc_dump/dump_line.h"
#include "sources/error_text/log_lines.h"
#include "sources/pool_names.h"

namespace faultline {
namespace {

constexpr std::size_t kMostDumps = 64;
constexpr std::size_t kBefore = std::size_t{16} << 10,
                      kBehind = std::size_t{16} << 10;  // a dump's lines around its map
constexpr std::size_t kLongestDumpLine = 4096;
constexpr std::uint32_t kBins = 21;
constexpr std::uint64_t kBinUnit = 256, kMostBinSize = std::uint64_t{1} << 40;

struct Zone {
  std::size_t begin = 0, end = 0;
};

std::size_t find_from(std::string_view text, std::string_view words, std::size_t at) {
  if (at >= text.size()) return std::string_view::npos;
  const void* const found = ::memmem(text.data() + at, text.size() - at, words.data(), words.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

void add_zones(std::string_view text, std::string_view words, bool (*is_one)(std::string_view, std::size_t),
               std::vector<Zone>& zones) {
  for (std::size_t hit = find_from(text, words, 0); hit != std::string_view::npos;
       hit = find_from(text, words, hit + words.size())) {
    if (!is_one(text, hit)) continue;
    const std::size_t begin = hit > kBefore ? hit - kBefore : 0, end = std::min(text.size(), hit + kBehind);
    if (!zones.empty() && begin <= zones.back().end && hit >= zones.back().begin)
      zones.back().end = std::max(zones.back().end, end);
    else
      zones.push_back({begin, end});
  }
}

// Where dumps may stand.
std::vector<Zone> zones_of(std::string_view text) {
  std::vector<Zone> zones;
  add_zones(text, " of size ", is_size_line, zones);
  add_zones(
      text, "Total Chunks:", [](std::string_view, std::size_t) { return true; }, zones);
  add_zones(
      text, "MaxInUse:", [](std::string_view, std::size_t) { return true; }, zones);
  // its header and its bar may be all that is printed
  add_zones(
      text, "an out of memory trying to allocate ", [](std::string_view, std::size_t) { return true; }, zones);
  std::sort(zones.begin(), zones.end(), [](const Zone& a, const Zone& b) { return a.begin < b.begin; });
  std::vector<Zone> merged;
  for (const Zone& zone : zones) {
    if (!merged.empty() && zone.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, zone.end);
    else
      merged.push_back(zone);
  }
  return merged;
}

struct Open {
  PoolDump dump;
  DumpWriter writer;
  std::uint64_t cursor = 0;        // where the next chunk of the region must begin
  std::uint64_t loose_cursor = 0;  // where the last chunk of no stated region ended
  std::uint64_t region_bytes = 0;  // of all regions, as stated
  bool in_region = false, has_name_line = false, is_over = false, is_fed = false;
  bool awaits_statistics = false, statistics_are_mixed = false;
  std::uint32_t bins = 0;
  DumpedBins bin_sums;
  bool bins_are_odd = false;
  HashMap<std::string, std::uint32_t> op_ids;

  bool region_is_complete() const {
    if (!in_region) return true;
    const DumpedRegion& region = dump.regions.back();
    return region.is_stated && region.chunk_count != 0 &&
           cursor >= dump.chunks[region.first_chunk].address + region.size_bytes;
  }
};

class Reader {
 public:
  // A log that was written twice has each line twice; two maps that are mixed may begin regions of one size.
  void read(std::string_view line, std::size_t at, bool is_repeated) {
    const DumpLine read = read_dump_line(line);
    if (read.kind == DumpLine::Kind::kNone || (is_repeated && read.kind != DumpLine::Kind::kRegion)) return;
    is_repeated_ = is_repeated;
    at_ = at;
    end_ = at + line.size();
    writer_ = writer_of(line);
    line_ = line;
    switch (read.kind) {
      case DumpLine::Kind::kHeader: return header(read);
      case DumpLine::Kind::kName: return name(read);
      case DumpLine::Kind::kBin: return bin(read);
      case DumpLine::Kind::kRegion: return region(read);
      case DumpLine::Kind::kChunk: return chunk(read);
      case DumpLine::Kind::kRefused: refused_ = said(read); return;
      case DumpLine::Kind::kRefusedHost: refused_host_ = said(read); return;
      case DumpLine::Kind::kBaseLimit: base_limit_ = said(read); return;
      case DumpLine::Kind::kBar: return bar(read);
      case DumpLine::Kind::kSizes: return sizes(read);
      case DumpLine::Kind::kSum: return sum(read);
      case DumpLine::Kind::kPool: return pool(read);
      case DumpLine::Kind::kStatistics: return statistics();
      case DumpLine::Kind::kStatistic: return statistic(read);
      case DumpLine::Kind::kNone: return;
    }
  }

  PoolDumps finish() {
    PoolDumps found;
    found.not_kept = not_kept_;
    for (Open& open : open_) {
      PoolDump& dump = open.dump;
      if (open.bins == kBins && !dump.is_mixed && !open.bins_are_odd) dump.bins = open.bin_sums;
      settle(dump);
      const bool holds = dump.has_map() || dump.pool || dump.in_use || dump.bins || dump.bar ||
                         (dump.asked && (dump.refused || dump.base_limit));
      if (!holds) continue;
      dump.writer = std::move(open.writer.tag);
      found.dumps.push_back(std::move(dump));
    }
    return found;
  }

 private:
  void touch(Open& open) { open.dump.end = end_; }

  Open& begin_dump(const std::string& allocator = {}) {
    std::size_t chunks = 0;
    for (const Open& open : open_) chunks += open.dump.chunks.size() + open.dump.loose.size();
    while (!open_.empty() && (open_.size() >= kMostDumps || chunks > kMostChunks)) {
      // what holds nothing goes before what does
      const auto oldest =
          std::find_if(open_.begin(), open_.end(), [](const Open& open) { return !open.dump.has_map(); });
      const auto goes = oldest == open_.end() ? open_.begin() : oldest;
      chunks -= goes->dump.chunks.size() + goes->dump.loose.size();
      not_kept_ += goes->dump.has_map();
      if (fed_ == &*goes) fed_ = nullptr;
      open_.erase(goes);
    }
    Open& open = open_.emplace_back();
    open.writer = writer_;
    open.dump.begin = at_;
    open.dump.end = end_;
    open.dump.allocator = allocator;
    // A pool that the driver refuses waits for what is freed meanwhile, ten seconds at most, and then prints its map.
    constexpr std::int64_t kRefusedSeconds = 15;
    std::optional<Said>& refused = memory_of(allocator) == PoolMemory::kHost ? refused_host_ : refused_;
    if (is_near(refused, kRefusedSeconds)) open.dump.refused = refused->bytes;
    refused.reset();
    // XLA names it while it compiles what the same thread runs next; it says of no GPU which.
    if (base_limit_ && base_limit_->writer == writer_) {
      if (is_near(base_limit_, 600)) open.dump.base_limit = base_limit_->bytes;
      base_limit_.reset();
    }
    return open;
  }

  // What stands in front of a map and is told of the map behind it alone.
  struct Said {
    std::optional<ByteInterval> bytes;
    std::size_t at = 0;
    std::optional<LineTime> time;
    DumpWriter writer;
  };
  Said said(const DumpLine& read) const { return {read.sizes[0], at_, time_of_line(line_), writer_}; }
  bool is_near(const std::optional<Said>& said, std::int64_t most_seconds) const {
    if (!said || at_ - said->at > kBefore) return false;
    const std::optional<LineTime> time = said->time ? time_of_line(line_) : std::nullopt;
    return !time || time->seconds_from(*said->time) <= most_seconds;
  }

  // The latest of this writer that has not come to its end.
  Open* latest() {
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      if (open->writer == writer_) return open->is_over ? nullptr : &*open;
    }
    return nullptr;
  }

  // A line of a map. Where one is gone back to after another of the same writer, the two are mixed, and nothing in front of the lines tells them apart.
  void feed(Open& open) {
    if (fed_ != nullptr && fed_ != &open && open.is_fed && fed_->writer == open.writer)
      fed_->dump.is_mixed = open.dump.is_mixed = true;
    open.is_fed = true;
    fed_ = &open;
    touch(open);
  }

  template <class Is>
  Open* latest_that(Is is) {
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      if (open->writer == writer_ && !open->is_over && is(*open)) return &*open;
    }
    return nullptr;
  }

  void header(const DumpLine& line) {
    if (line.is_afterwards) {  // of the oldest form: it stands behind the map
      for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
        if (open->writer != writer_) continue;
        if (!open->dump.asked) open->dump.asked = line.sizes[0];
        open->dump.form = line.form;
        open->is_over = true;
        return touch(*open);
      }
      return;
    }
    Open& open = begin_dump(line.words);
    open.dump.asked = line.sizes[0];
    open.dump.rounded = line.number;
    open.dump.asked_by = line.more_words;
    open.dump.form = line.form;
  }

  void name(const DumpLine& line) {
    Open* open = latest_that([&](const Open& one) {
      return !one.has_name_line && one.bins == 0 && !one.dump.has_map() &&
             (one.dump.allocator.empty() || one.dump.allocator == line.words);
    });
    if (open == nullptr) open = &begin_dump(line.words);
    open->dump.allocator = line.words;
    open->has_name_line = true;
    touch(*open);
  }

  void bin(const DumpLine& line) {
    // Its place in the list tells which of several it continues.
    const auto continues = [&](const Open& one) {
      return one.bins < kBins && line.number == std::uint64_t{256} << one.bins && !one.dump.has_map();
    };
    Open* open = latest_that(continues);
    if (open == nullptr && line.number == 256) open = &begin_dump();
    if (open == nullptr) open = latest();
    if (open == nullptr) open = &begin_dump();
    if (open->bins == kBins) return;
    ++open->bins;
    add_bin(line, *open);
    feed(*open);
  }

  // The chunks of one bin are at least as large as it, and, but for those of the last, smaller than twice that.
  static void add_bin(const DumpLine& line, Open& open) {
    const auto& [in_use, requested, bytes, unused] = line.sizes;
    const auto& [count, used] = line.counts;
    if (!in_use || !requested || !bytes || !count || !used || *used > *count || *count > kMostChunks) {
      ++open.dump.odd_lines;
      open.bins_are_odd = true;
      return;
    }
    DumpedBins& sums = open.bin_sums;
    sums.chunks += *count;
    sums.chunks_in_use += *used;
    sums.bytes = sums.bytes + *bytes;
    sums.in_use = sums.in_use + *in_use;
    sums.requested = sums.requested + *requested;
    const std::uint64_t size = *line.number, free_count = *count - *used;
    if (free_count == 0 || size >= kMostBinSize) return;
    ByteInterval free = *bytes - *in_use;
    free.min = std::max(free.min, free_count * size);
    if (open.bins != kBins) free.max = std::min(free.max, free_count * (2 * size - kBinUnit));
    free.max = std::max(free.min, free.max);
    sums.free = sums.free + free;
    // the largest holds its share at least, and at most what the others leave of it
    std::uint64_t most = free.max - (free_count - 1) * size;
    if (open.bins != kBins) most = std::min(most, 2 * size - kBinUnit);
    sums.largest_free = {std::max(size, free.min / free_count), most};
  }

  static void begin_region(Open& open, std::uint64_t size_bytes) {
    DumpedRegion region;
    region.size_bytes = size_bytes;
    region.is_stated = true;
    region.first_chunk = static_cast<std::uint32_t>(open.dump.chunks.size());
    open.dump.regions.push_back(region);
    open.region_bytes += size_bytes;
    open.in_region = true;
  }

  void region(const DumpLine& line) {
    // A map follows its bins.
    const auto may_begin = [](const Open& one) {
      return one.region_is_complete() && (one.bins == kBins || one.bins == 0);
    };
    Open* open = latest_that(may_begin);
    if (open == nullptr) open = latest_that([](const Open& one) { return one.region_is_complete(); });
    if (open == nullptr && is_repeated_) return;
    if (open == nullptr) open = latest();
    if (open == nullptr) open = &begin_dump();
    begin_region(*open, *line.number);
    feed(*open);
  }

  // Of several maps that are being read the one that this chunk continues.
  Open& map_of(std::uint64_t address, std::uint64_t size_bytes) {
    const auto continues = [&](const Open& one) {
      return (one.in_region && one.dump.regions.back().chunk_count != 0 && one.cursor == address) ||
             (one.loose_cursor != 0 && one.loose_cursor == address);
    };
    const auto awaits = [](const Open& one) { return one.in_region && one.dump.regions.back().chunk_count == 0; };
    const auto holds = [&](const Open& one) {
      if (!one.in_region || one.dump.regions.back().chunk_count == 0) return false;
      const DumpedRegion& region = one.dump.regions.back();
      const std::uint64_t begin = one.dump.chunks[region.first_chunk].address;
      return region.is_stated && address >= one.cursor && address + size_bytes <= begin + region.size_bytes;
    };
    Open* open = latest_that(continues);
    if (open == nullptr) open = latest_that(holds);
    if (open == nullptr) open = latest_that(awaits);
    if (open == nullptr) open = latest();
    return open == nullptr ? begin_dump() : *open;
  }

  void chunk(const DumpLine& line) {
    DumpedChunk chunk;
    chunk.address = *line.number;
    chunk.size_bytes = line.size_bytes;
    chunk.in_use = line.in_use;
    Open& open = map_of(chunk.address, chunk.size_bytes);
    PoolDump& dump = open.dump;
    if (dump.chunks.size() + dump.loose.size() >= kMostChunks) {
      ++dump.odd_lines;
      return;
    }
    if (!line.words.empty()) {
      const auto [known, is_new] = open.op_ids.try_emplace(line.words, static_cast<std::uint32_t>(dump.ops.size()));
      if (is_new && dump.ops.size() < kMostOps)
        dump.ops.push_back(line.words);
      else if (is_new)
        known->second = 0;
      chunk.op = known->second;
    }
    const std::uint64_t end = chunk.address + chunk.size_bytes;
    if (is_next_of_region(open, chunk)) {
      dump.chunks.push_back(chunk);
      ++dump.regions.back().chunk_count;
      open.cursor = end;
    } else {
      dump.loose.push_back(chunk);
      open.loose_cursor = end;
    }
    feed(open);
  }

  static bool is_next_of_region(const Open& open, const DumpedChunk& chunk) {
    if (!open.in_region) return false;
    const DumpedRegion& region = open.dump.regions.back();
    if (region.chunk_count == 0) return chunk.size_bytes <= region.size_bytes;
    return chunk.address >= open.cursor &&
           chunk.address + chunk.size_bytes <= open.dump.chunks[region.first_chunk].address + region.size_bytes;
  }

  void sizes(const DumpLine& line) {
    Open* open = latest();
    if (open == nullptr) open = &begin_dump();  // what stood above it is cut off
    const bool is_sound = *line.number <= kMostChunks && line.size_bytes <= kMostSizeBytes / kMostChunks;
    if (is_sound && open->dump.sizes.size() < kMostSizes && !open->dump.in_use_in_all)
      open->dump.sizes.push_back({*line.number, line.size_bytes});
    touch(*open);
  }

  void sum(const DumpLine& line) {
    Open* const open = latest();
    if (open == nullptr) return;
    if (!open->dump.in_use_in_all) open->dump.in_use_in_all = line.sizes[0];
    touch(*open);
  }

  // Of several the one whose regions add up to it.
  void pool(const DumpLine& line) {
    Open* open = latest_that([&](const Open& one) {
      return !one.dump.pool && line.sizes[0] && one.region_bytes >= line.sizes[0]->min &&
             one.region_bytes <= line.sizes[0]->max;
    });
    if (open == nullptr) open = latest_that([](const Open& one) { return !one.dump.pool; });
    if (open == nullptr) open = latest();
    if (open == nullptr) return;
    PoolDump& dump = open->dump;
    const auto put = [](std::optional<ByteInterval>& into, const std::optional<ByteInterval>& bytes) {
      if (bytes && (!into || bytes->max - bytes->min < into->max - into->min)) into = bytes;
    };
    put(dump.pool, line.sizes[0]);
    put(dump.limit, line.sizes[1]);
    put(dump.available, line.sizes[2]);
    put(dump.next_region, line.sizes[3]);
    dump.is_finished = true;
    touch(*open);
  }

  // The last line of a dump, and where the map is hidden the only one behind the header.
  void bar(const DumpLine& line) {
    Open* const open = latest();
    if (open == nullptr) return;
    if (line.number)
      open->dump.bar = PoolBar{*line.number, line.size_bytes};
    else
      open->dump.pool = open->dump.in_use = ByteInterval{};
    open->is_over = true;
    touch(*open);
  }

  void statistics() {
    if (Open* const open = latest()) {
      // Of two that stand in each other nobody knows whose is which.
      for (Open& one : open_) {
        if (&one == open || !one.awaits_statistics || one.writer.tag != writer_.tag) continue;
        one.awaits_statistics = false;
        if (one.dump.allocations != 0) continue;
        one.dump.in_use.reset();
        open->statistics_are_mixed = true;
      }
      open->awaits_statistics = true;
      touch(*open);
    }
  }

  // Behind "Stats:" no line has the logger's prefix, so none names a thread.
  void statistic(const DumpLine& line) {
    const auto found = std::find_if(open_.rbegin(), open_.rend(), [&](const Open& one) {
      return one.awaits_statistics && one.writer.tag == writer_.tag;
    });
    if (found == open_.rend() && line.words != "Limit:") return;
    // statistics may be all that is left of a dump
    Open& open = found == open_.rend() ? begin_dump() : *found;
    open.awaits_statistics = true;
    if (open.statistics_are_mixed) return touch(open);
    PoolDump& dump = open.dump;
    if (line.words == "Limit:" && !dump.limit) dump.limit = line.sizes[0];
    if (line.words == "InUse:") dump.in_use = line.sizes[0];
    if (line.words == "MaxInUse:") dump.peak_in_use = line.sizes[0];
    if (line.words == "LargestFreeBlock:" && line.sizes[0] && line.sizes[0]->max != 0)
      dump.largest_free = line.sizes[0];
    if (line.words == "NumAllocs:" && line.sizes[0]) dump.allocations = line.sizes[0]->min;
    dump.is_finished = open.is_over = true;
    touch(open);
  }

  static constexpr std::size_t kMostOps = 4096, kMostSizes = 100'000;
  static constexpr std::uint64_t kMostSizeBytes = std::uint64_t{1} << 62;

  std::list<Open> open_;
  Open* fed_ = nullptr;  // whose line the last one was
  std::optional<Said> refused_, refused_host_, base_limit_;
  std::string_view line_;  // that is being read
  DumpWriter writer_;
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t not_kept_ = 0;
  bool is_repeated_ = false;
};

}  // namespace

PoolDumps read_pool_dumps(std::string_view text) {
  Reader reader;
  std::string plain;
  std::string_view before;
  for (const Zone& zone : zones_of(text)) {
    std::size_t at = line_begin(text, zone.begin, kLongestDumpLine);
    while (at < zone.end) {
      std::size_t end = find_from(text, "\n", at);
      if (end == std::string_view::npos) end = text.size();
      std::string_view line = text.substr(at, std::min(end - at, kLongestDumpLine));
      if (std::memchr(line.data(), '\x1b', line.size()) != nullptr) line = plain = clean_line(line, kLongestDumpLine);
      if (line.ends_with('\r')) line.remove_suffix(1);
      const std::string_view raw = text.substr(at, std::min(end - at, kLongestDumpLine));
      reader.read(line, at, !raw.empty() && raw == before);
      before = raw;
      at = end + 1;
    }
  }
  return reader.finish();
}

}  // namespace faultline
