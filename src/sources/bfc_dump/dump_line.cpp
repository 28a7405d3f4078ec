#include "sources/bfc_dump/dump_line.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>

#include "base/characters.h"
#include "sources/bfc_dump/pool_dump.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/printed_bytes.h"

namespace faultline {
namespace {

using Kind = DumpLine::Kind;
constexpr std::size_t kNone = std::string_view::npos;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;

std::optional<std::uint64_t> number_in(std::string_view words, int base = 10) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(words.data(), words.data() + words.size(), number, base);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

// "268435456", "256.00MiB", "0B".
std::optional<ByteInterval> size_at(std::string_view words) {
  words.remove_prefix(std::min(words.find_first_not_of(" \t"), words.size()));
  if (words.empty() || !is_digit(words[0])) return std::nullopt;
  if (const auto size = parse_printed_size(words, 0, SizeStyle::kXla)) return size->bytes;
  const std::size_t end = words.find_first_not_of("0123456789");
  if (end != kNone && words[end] == '.') return std::nullopt;
  const auto number = number_in(words);
  return number ? std::optional(ByteInterval::exactly(*number)) : std::nullopt;
}

std::optional<ByteInterval> size_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  return at == kNone ? std::nullopt : size_at(line.substr(at + label.size()));
}

// "8.2KiB in use in bin": the size in front of the words.
std::optional<ByteInterval> size_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == kNone) return std::nullopt;
  std::size_t begin = at;
  while (begin > 0 && line[begin - 1] != ' ') --begin;
  return size_at(line.substr(begin, at - begin));
}

std::string_view trimmed_words(std::string_view words) {
  while (!words.empty() && (words.back() == ' ' || words.back() == '.')) words.remove_suffix(1);
  words.remove_prefix(std::min(words.find_first_not_of(' '), words.size()));
  return words.substr(0, kLongestPoolName);
}

// "InUse at 7f20 of size 1024 tag kLower allocation_annotation xla.execute{executable=jit_f} next 5", "Chunk at 0x7f94 of size 1", "InUse at 81C5 next 1151 of size 2048".
DumpLine chunk_line(std::string_view line, std::size_t size_at) {
  DumpLine read;
  const std::size_t at = line.substr(0, size_at).rfind(" at ");
  if (at == kNone) return read;
  std::string_view before = line.substr(0, at);
  while (before.ends_with(' ')) before.remove_suffix(1);
  const bool is_free = before.ends_with("Free");
  if (!is_free && !before.ends_with("InUse") && !before.ends_with("Chunk")) return read;
  std::string_view address = line.substr(at + 4, size_at - at - 4);
  if (address.starts_with("0x")) address.remove_prefix(2);
  const std::size_t digits = std::min(address.find(' '), address.size());
  if (digits == 0 || digits > 16 ||
      !std::all_of(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(digits), is_hex_digit))
    return read;
  const auto begin = number_in(address.substr(0, digits), 16);
  std::string_view rest = line.substr(size_at + 9);
  const auto size = number_in(rest);
  if (!begin || !size || *size == 0 || *size > kMostBytes || *begin > ~std::uint64_t{0} - *size) return read;
  rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  for (const std::string_view label : {" allocation_annotation ", " by op "}) {
    std::size_t words = rest.find(label);
    if (words == kNone) continue;
    std::string_view name = rest.substr(words + label.size());
    for (const std::string_view end : {" action_count ", " freed_at_count ", " next "})
      name = name.substr(0, name.rfind(end));
    read.words = trimmed_words(name);
    break;
  }
  read.kind = Kind::kChunk;
  read.in_use = !is_free;
  read.number = begin;
  read.size_bytes = *size;
  return read;
}

DumpLine size_line(std::string_view line, std::size_t at) {
  DumpLine read;
  const std::string_view before = line.substr(0, at);
  const auto size = number_in(line.substr(at + 9));
  if (before.ends_with("Next region")) {
    if (!size || *size == 0 || *size > kMostBytes) return read;
    read.kind = Kind::kRegion;
    read.number = size;
    return read;
  }
  if (!before.ends_with(" Chunks") || line.find(" totalling ", at) == kNone) return chunk_line(line, at);
  const std::string_view count = before.substr(0, before.size() - 7);
  std::size_t begin = count.size();
  while (begin > 0 && is_digit(count[begin - 1])) --begin;
  const auto chunks = number_in(count.substr(begin));
  if (!chunks || !size) return read;
  read.kind = Kind::kSizes;
  read.number = chunks;
  read.size_bytes = *size;
  return read;
}

DumpLine header_line(std::string_view line, std::size_t at) {
  constexpr std::string_view kWords = "an out of memory trying to allocate ";
  DumpLine read;
  if (line.find("not a failure", at) != kNone) return read;
  read.sizes[0] = size_at(line.substr(at + kWords.size()));
  if (!read.sizes[0]) return read;
  read.kind = Kind::kHeader;
  read.is_afterwards = line.find("See logs for memory state", at) != kNone;
  if (const std::size_t name = line.substr(0, at).rfind("Allocator ("); name != kNone)
    read.words = trimmed_words(line.substr(name + 11, line.find(')', name) - name - 11));
  if (const std::size_t rounded = line.find("(rounded to ", at); rounded != kNone)
    read.number = number_in(line.substr(rounded + 12));
  const std::size_t by = line.find("requested by op", at);
  read.form = read.is_afterwards ? 2016 : !read.number ? 2018 : by == kNone ? 2019 : 2021;
  if (by != kNone && line.size() > by + 16) {
    std::string_view op = line.substr(by + 16);
    for (const std::string_view next : {"If the cause", "If this is", ". Current alloc"})
      op = op.substr(0, op.find(next));
    read.more_words = trimmed_words(op);
  }
  return read;
}

// The pool's own totals, in the words of three forms.
DumpLine pool_line(std::string_view line) {
  DumpLine read;
  const auto any_of = [&](std::initializer_list<std::string_view> labels) -> std::optional<ByteInterval> {
    for (const std::string_view label : labels) {
      if (const auto size = size_after(line, label)) return size;
    }
    return std::nullopt;
  };
  read.sizes = {
      any_of({"total_region_allocated_bytes_: ", "Total bytes in pool: ", "Total size in pool: ", "pool size "}),
      any_of({"memory_limit_: ", "pool limit "}),
      any_of({"available bytes: ", "available size: ", "unallocated bytes ", "unallocated size "}),
      any_of({"curr_region_allocation_bytes_: "})};
  if (read.sizes[0] || read.sizes[1]) read.kind = Kind::kPool;
  return read;
}

// One character for each hundredth of what the pool has taken: "_" where no chunk in use touches it.
DumpLine bar_line(std::string_view line) {
  constexpr std::size_t kLength = 100;
  DumpLine read;
  while (line.ends_with(' ')) line.remove_suffix(1);
  if (line.size() < kLength || (line.size() > kLength && line[line.size() - kLength - 1] != ' ')) return read;
  line.remove_prefix(line.size() - kLength);
  if (line.find_first_not_of("*x_") != kNone) return read;
  std::uint64_t free = 0, row = 0;
  for (const char c : line) {
    row = c == '_' ? row + 1 : 0;
    free += c == '_';
    read.size_bytes = std::max(read.size_bytes, row);
  }
  read.kind = Kind::kBar;
  read.number = free;
  return read;
}

DumpLine bin_line(std::string_view line) {
  DumpLine read;
  const std::size_t at = line.find("Bin (");
  if (at == kNone) return read;
  read.number = number_in(line.substr(at + 5));
  if (!read.number) return read;
  read.kind = Kind::kBin;
  const auto count_after = [&](std::string_view label) -> std::optional<std::uint64_t> {
    const std::size_t found = line.find(label, at);
    return found == kNone ? std::nullopt : number_in(line.substr(found + label.size()));
  };
  read.counts = {count_after("Total Chunks: "), count_after("Chunks in use: ")};
  read.sizes[0] = size_before(line, " in use in bin");
  read.sizes[1] = size_before(line, " client-requested in use in bin");
  read.sizes[2] = size_before(line, " allocated for chunks");
  return read;
}

// "Limit:   268435456" of the statistics; they have no prefix of the logger's, but may have another's.
DumpLine statistic_line(std::string_view line) {
  DumpLine read;
  for (const std::string_view label :
       {"Limit:", "MaxInUse:", "InUse:", "NumAllocs:", "MaxAllocSize:", "Reserved:", "LargestFreeBlock:"}) {
    const std::size_t at = line.find(label);
    if (at == kNone || (at != 0 && is_letter(line[at - 1]))) continue;
    read.sizes[0] = size_at(line.substr(at + label.size()));
    if (!read.sizes[0]) return read;
    read.kind = Kind::kStatistic;
    read.words = label;
    return read;
  }
  return read;
}

}  // namespace

bool is_size_line(std::string_view text, std::size_t at) {
  const std::size_t begin = at > 80 ? at - 80 : 0;
  const std::string_view before = text.substr(begin, at - begin);
  if (before.ends_with("Next region") || before.ends_with(" Chunks")) return true;
  if (before.empty() || !is_hex_digit(before.back())) return false;
  const std::size_t mark = before.rfind(" at ");
  return mark != kNone && (before.substr(0, mark).ends_with("InUse") || before.substr(0, mark).ends_with("Free") ||
                           before.substr(0, mark).ends_with("Free ") || before.substr(0, mark).ends_with("Chunk"));
}

DumpLine read_dump_line(std::string_view line) {
  if (const std::size_t at = line.find(" of size "); at != kNone) {
    DumpLine read = size_line(line, at);
    // words of an annotation may hold them as well
    return read.kind == Kind::kNone && line.find(" of size ", at + 1) != kNone ? DumpLine() : read;
  }
  const auto has = [&](std::string_view words) { return line.find(words) != kNone; };
  DumpLine read;
  if (has("Total Chunks:")) return bin_line(line);
  if (const std::size_t at = line.find("an out of memory trying to allocate "); at != kNone)
    return header_line(line, at);
  if (const std::size_t at = line.find("BFCAllocator dump for "); at != kNone) {
    read.kind = Kind::kName;
    read.words = trimmed_words(line.substr(at + 22));
    return read;
  }
  if (has("memory_limit_: ") || has("Allocator memory summary: ")) return pool_line(line);
  if (const std::size_t at = line.find("failed to alloc "); at != kNone && has(" bytes on host")) {
    read.sizes[0] = size_at(line.substr(at + 16));
    if (read.sizes[0]) read.kind = Kind::kRefusedHost;
    return read;
  }
  for (const std::string_view words : {"failed to allocate ", "Failed to allocate device memory of "}) {
    const std::size_t at = line.find(words);
    if (at == kNone || (words[0] == 'f' && !has("from device"))) continue;
    const std::size_t open = line.find('(', at);
    read.sizes[0] = size_at(line.substr(at + words.size()));
    if (const auto exact = open == kNone ? std::nullopt : number_in(line.substr(open + 1)))
      read.sizes[0] = ByteInterval::exactly(*exact);
    if (read.sizes[0]) read.kind = Kind::kRefused;
    return read;
  }
  if (const std::size_t at = line.find("exceeds the base limit ("); at != kNone) {
    const auto limit = number_in(line.substr(at + 24));
    if (!limit || *limit == 0 || *limit > kMostBytes) return read;
    read.kind = Kind::kBaseLimit;
    read.sizes[0] = ByteInterval::exactly(*limit);
    return read;
  }
  if (has("<allocator contains no memory>")) {
    read.kind = Kind::kBar;
    return read;
  }
  if (read.sizes[0] = size_after(line, "Sum Total of in-use chunks: "); read.sizes[0]) {
    read.kind = Kind::kSum;
    return read;
  }
  if (DumpLine bar = bar_line(line); bar.kind == Kind::kBar) return bar;
  if (has("Stats:")) {
    read.kind = Kind::kStatistics;
    return read;
  }
  return line.size() < 400 ? statistic_line(line) : read;
}

std::int64_t LineTime::seconds_from(const LineTime& other) const {
  constexpr std::int64_t kDay = 86400;
  const std::int64_t apart = std::abs(second - other.second);
  if (has_day && other.has_day) return std::abs((day - other.day) * kDay + second - other.second);
  return std::min(apart, std::abs(kDay - apart));
}

std::optional<LineTime> time_of_line(std::string_view line) {
  line = line.substr(0, 120);
  const auto digits = [&](std::size_t at, std::size_t count) -> std::optional<std::int64_t> {
    if (at + count > line.size()) return std::nullopt;
    std::int64_t number = 0;
    for (std::size_t i = at; i < at + count; ++i) {
      if (!is_digit(line[i])) return std::nullopt;
      number = number * 10 + (line[i] - '0');
    }
    return number;
  };
  for (std::size_t at = line.find(':'); at != kNone; at = line.find(':', at + 1)) {
    if (at < 2) continue;
    const auto hour = digits(at - 2, 2), minute = digits(at + 1, 2), second = digits(at + 4, 2);
    if (!hour || !minute || !second || line[at + 3] != ':' || *hour > 23 || *minute > 59) continue;
    LineTime time;
    // absl writes "00:00:1794822347.641919", the seconds of an epoch
    std::size_t end = at + 4;
    std::int64_t epoch = 0;
    while (end < line.size() && end < at + 16 && is_digit(line[end])) epoch = epoch * 10 + (line[end++] - '0');
    time.second = *hour * 3600 + *minute * 60 + epoch;
    const std::size_t begin = at - 2;
    if (begin >= 11 && digits(begin - 11, 4) && digits(begin - 6, 2) && digits(begin - 3, 2)) {
      using namespace std::chrono;
      const year_month_day date{year(static_cast<int>(*digits(begin - 11, 4))),
                                month(static_cast<unsigned>(*digits(begin - 6, 2))),
                                std::chrono::day(static_cast<unsigned>(*digits(begin - 3, 2)))};
      time.has_day = date.ok();
      if (date.ok()) time.day = sys_days(date).time_since_epoch().count();
    }
    return time;
  }
  return std::nullopt;
}

DumpWriter writer_of(std::string_view line) {
  DumpWriter writer{split_prefix(line).tag, {}};
  // "I0000 00:00:1794822347.641919   13205 bfc_allocator.cc:1049] ": the third word is the thread.
  const std::string_view head = line.substr(0, 200);
  for (std::size_t at = 0; at + 20 < head.size(); ++at) {
    // an address may have "…E0010 next 5" in it
    const bool begins = (head[at] == 'I' || head[at] == 'W' || head[at] == 'E') && is_digit(head[at + 1]) &&
                        is_digit(head[at + 4]) && head[at + 5] == ' ' && is_digit(head[at + 6]) &&
                        head[at + 8] == ':' && (at == 0 || !(is_letter(head[at - 1]) || is_digit(head[at - 1])));
    if (!begins) continue;
    const std::size_t thread = head.find_first_not_of(' ', std::min(head.find(' ', at + 6), head.size()));
    if (thread == kNone) break;
    std::size_t end = thread;
    while (end < head.size() && is_digit(head[end])) ++end;
    writer.thread = head.substr(thread, end - thread);
    break;
  }
  return writer;
}

}  // namespace faultline
