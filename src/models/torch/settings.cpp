#include "models/torch/settings.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "fmt/format.h"

namespace faultline {
namespace {

constexpr std::uint64_t kLargestMiB = kUnlimitedBytes / kMiB;
constexpr std::uint64_t kSmallestLargeRequestMiB = 10;

Error bad_value(std::string_view name, std::string_view value, std::string_view accepts) {
  return {fmt::format("'{}' is not a value for {}", value, name), {}, fmt::format("It takes {}.", accepts)};
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) tokens.push_back(std::move(word));
    word.clear();
  };
  for (const char ch : text) {
    if (ch == ',' || ch == ':' || ch == '[' || ch == ']') {
      flush();
      tokens.emplace_back(1, ch);
    } else if (ch != ' ' && ch != '\t' && ch != '\n' && ch != '\r') {
      word += ch;
    }
  }
  flush();
  return tokens;
}

// "4", or a list of "interval in MiB : divisions" whose last entry may be ">:divisions".
Status set_roundup(TorchSettings& settings, const TorchTraits& traits, std::string_view text) {
  constexpr std::string_view kAccepts =
      "a power of two, or a list such as [256:1,512:2,>:4] of powers of two (0 turns an interval off)";
  const Error bad = bad_value("roundup_power2_divisions", text, kAccepts);
  auto& divisions = settings.roundup_divisions;
  const std::vector<std::string> tokens = tokens_of(text);
  if (tokens.empty()) return bad;
  divisions.fill(0);
  if (tokens[0] != "[") {
    const auto value = number<std::uint32_t>(tokens[0]);
    if (tokens.size() != 1 || !value || (*value != 0 && !std::has_single_bit(*value))) return bad;
    divisions.fill(*value);
    return Ok{};
  }
  std::size_t last = 0;
  bool first = true;
  std::size_t at = 1;
  while (at < tokens.size() && tokens[at] != "]") {
    if (at + 2 >= tokens.size()) return bad;
    const std::string& interval = tokens[at];
    const auto value = number<std::uint32_t>(tokens[at + 2]);
    if (tokens[at + 1] != ":" || !value || (*value != 0 && !std::has_single_bit(*value))) return bad;
    if (interval == ">") {
      const std::size_t from = std::min(traits.last_interval_included ? last : last + 1, divisions.size());
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(from), divisions.end(), *value);
    } else {
      const auto boundary = number<std::uint64_t>(interval);
      if (!boundary || !std::has_single_bit(*boundary)) return bad;
      const std::size_t index =
          std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(*boundary)) - 1, divisions.size() - 1);
      if (first) std::fill(divisions.begin(), divisions.begin() + static_cast<std::ptrdiff_t>(index), *value);
      first = false;
      divisions[index] = *value;
      last = index;
    }
    at += 3;
    if (at < tokens.size() && tokens[at] == ",") ++at;
  }
  if (at + 1 != tokens.size()) return bad;
  return Ok{};
}

// The form in which a snapshot carries the values in force: "1:0,2:0,4:8,…".
bool set_roundup_from_snapshot(TorchSettings& settings, std::string_view text) {
  std::array<std::uint32_t, kRoundupIntervals> divisions{};
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) return false;
    const auto boundary = number<std::uint64_t>(item.substr(0, colon));
    const auto value = number<std::uint32_t>(item.substr(colon + 1));
    if (!boundary || !value || !std::has_single_bit(*boundary)) return false;
    const std::size_t index = static_cast<std::size_t>(std::bit_width(*boundary)) - 1;
    if (index < divisions.size()) divisions[index] = *value;
    begin = end + 1;
  }
  settings.roundup_divisions = divisions;
  return true;
}

using Setter = Status (*)(TorchSettings&, const TorchTraits&, std::string_view);
struct Setting {
  std::string_view name;
  Setter set;
};

Status set_expandable(TorchSettings& settings, const TorchTraits&, std::string_view value) {
  if (value != "True" && value != "False") return bad_value("expandable_segments", value, "True or False");
  settings.expandable = value == "True";
  return Ok{};
}

// A number of MiB that is no less than a segment, within what the arithmetic takes.
Status set_beyond_segment(const TorchSettings& settings, const TorchTraits& traits, std::string_view name,
                          std::string_view value, std::string_view or_else, std::uint64_t& bytes) {
  const auto mib = number<std::uint64_t>(value);
  const std::uint64_t least = settings.large_segment_bytes / kMiB + (traits.split_limit_may_equal_segment ? 0 : 1);
  if (!mib || *mib < least) return bad_value(name, value, fmt::format("a number of MiB, {} or more{}", least, or_else));
  bytes = std::min(*mib, kLargestMiB) * kMiB;
  return Ok{};
}

Status set_max_split(TorchSettings& settings, const TorchTraits& traits, std::string_view value) {
  if (value == "unlimited") {
    settings.max_split_bytes = kUnlimitedBytes;
    return Ok{};
  }
  return set_beyond_segment(settings, traits, "max_split_size_mb", value, ", or 'unlimited'", settings.max_split_bytes);
}

Status set_non_split_rounding(TorchSettings& settings, const TorchTraits& traits, std::string_view value) {
  if (!traits.non_split_rounding_setting)
    return Error{"max_non_split_rounding_mb does not exist in the recorded PyTorch", {}, "It came with 2.6."};
  return set_beyond_segment(settings, traits, "max_non_split_rounding_mb", value, "",
                            settings.max_non_split_rounding_bytes);
}

Status set_large_segment(TorchSettings& settings, const TorchTraits& traits, std::string_view value) {
  if (!traits.large_segment_setting)
    return Error{"large_segment_size_mb does not exist in the recorded PyTorch", {}, "It came with 2.11."};
  const auto mib = number<std::uint64_t>(value);
  // PyTorch has no upper limit; a segment beyond 1 TiB cannot be had on any device and would only make the arithmetic overflow.
  if (!mib || *mib <= kSmallestLargeRequestMiB || *mib > kMiB) {
    return bad_value("large_segment_size_mb", value, fmt::format("a number of MiB above {}", kSmallestLargeRequestMiB));
  }
  const bool rounding_follows = settings.max_non_split_rounding_bytes == settings.large_segment_bytes;
  settings.large_segment_bytes = *mib * kMiB;
  if (rounding_follows) settings.max_non_split_rounding_bytes = settings.large_segment_bytes;
  return Ok{};
}

Status set_gc_threshold(TorchSettings& settings, const TorchTraits&, std::string_view value) {
  const auto threshold = number<double>(value);
  if (!threshold || !(*threshold >= 0 && *threshold < 1))
    return bad_value("garbage_collection_threshold", value, "a number from 0 (off) to below 1");
  settings.gc_threshold = *threshold;
  return Ok{};
}

Status set_fraction(TorchSettings& settings, const TorchTraits&, std::string_view value) {
  const auto fraction = number<double>(value);
  if (!fraction || !(*fraction >= 0 && *fraction <= 1))
    return bad_value("per_process_memory_fraction", value, "a number from 0 to 1 (no limit)");
  settings.memory_fraction = *fraction;
  return Ok{};
}

constexpr std::array<Setting, 7> kSettings = {{{"expandable_segments", set_expandable},
                                               {"garbage_collection_threshold", set_gc_threshold},
                                               {"large_segment_size_mb", set_large_segment},
                                               {"max_non_split_rounding_mb", set_non_split_rounding},
                                               {"max_split_size_mb", set_max_split},
                                               {"per_process_memory_fraction", set_fraction},
                                               {"roundup_power2_divisions", set_roundup}}};

// Settings that exist but place no device memory: nothing for a replay to show.
constexpr std::array<std::string_view, 12> kElsewhere = {"backend",
                                                         "graph_capture_record_stream_reuse",
                                                         "pinned_free_catch_all",
                                                         "pinned_max_cached_size_mb",
                                                         "pinned_max_round_threshold_mb",
                                                         "pinned_num_register_threads",
                                                         "pinned_reserve_segment_size_mb",
                                                         "pinned_use_background_threads",
                                                         "pinned_use_cuda_host_register",
                                                         "release_lock_on_cudamalloc",
                                                         "release_lock_on_hipmalloc",
                                                         "throw_on_cudamalloc_oom"};

const Setting* setting_of(std::string_view name) {
  const auto at = std::find_if(kSettings.begin(), kSettings.end(), [&](const Setting& s) { return s.name == name; });
  return at == kSettings.end() ? nullptr : &*at;
}

const std::string* property(const std::map<std::string, std::string>& properties, const char* name) {
  const auto at = properties.find(name);
  return at == properties.end() ? nullptr : &at->second;
}

// Whole MiB print as such; anything else (only a snapshot's own numbers can be so) as bytes would not be accepted back, so it is rounded down.
std::string mib_text(std::uint64_t size_bytes) { return std::to_string(size_bytes / kMiB); }

}  // namespace

Result<TorchVersion> parse_torch_version(std::string_view text) {
  const Error bad{fmt::format("'{}' is not a PyTorch version", text), {}, "Write for example 2.9."};
  TorchVersion version;
  const char* end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.major);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return bad;
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc{}) return bad;
  return version;
}

TorchTraits TorchTraits::of(TorchVersion version) {
  TorchTraits traits;
  traits.one_division_keeps_size = version < TorchVersion{2, 4};
  traits.last_interval_included = version < TorchVersion{2, 10};
  traits.non_split_rounding_setting = version >= TorchVersion{2, 6};
  traits.large_segment_setting = version >= TorchVersion{2, 11};
  traits.expandable_private_pools = version >= TorchVersion{2, 5};
  traits.expandable_splits_everywhere = version < TorchVersion{2, 10};
  traits.split_limit_may_equal_segment = version >= TorchVersion{2, 10};
  return traits;
}

std::string TorchSettings::text() const {
  std::vector<std::string> parts;
  if (expandable) parts.emplace_back("expandable_segments:True");
  if (gc_threshold > 0) parts.push_back(fmt::format("garbage_collection_threshold:{}", gc_threshold));
  if (large_segment_bytes != kTorchLargeSegment)
    parts.push_back("large_segment_size_mb:" + mib_text(large_segment_bytes));
  if (max_non_split_rounding_bytes != large_segment_bytes)
    parts.push_back("max_non_split_rounding_mb:" + mib_text(max_non_split_rounding_bytes));
  if (max_split_bytes != kUnlimitedBytes) parts.push_back("max_split_size_mb:" + mib_text(max_split_bytes));
  if (memory_fraction < 1) parts.push_back(fmt::format("per_process_memory_fraction:{}", memory_fraction));
  if (std::any_of(roundup_divisions.begin(), roundup_divisions.end(), [](std::uint32_t d) { return d != 0; })) {
    if (std::count(roundup_divisions.begin(), roundup_divisions.end(), roundup_divisions[0]) ==
        static_cast<std::ptrdiff_t>(kRoundupIntervals)) {
      parts.push_back(fmt::format("roundup_power2_divisions:{}", roundup_divisions[0]));
    } else {
      std::string list;
      for (std::size_t index = 0; index < kRoundupIntervals; ++index) {
        list += fmt::format("{}{}:{}", index == 0 ? "" : ",", 1ull << index, roundup_divisions[index]);
      }
      parts.push_back("roundup_power2_divisions:[" + list + "]");
    }
  }
  if (parts.empty()) return "default";
  return fmt::format("{}", fmt::join(parts, ","));
}

Result<TorchSettings> parse_torch_settings(std::string_view text, const TorchTraits& traits,
                                           std::vector<std::string>* ignored) {
  TorchSettings settings;
  const std::vector<std::string> tokens = tokens_of(text);
  SettingChanges pairs;
  for (std::size_t at = 0; at < tokens.size();) {
    if (tokens[at] == ",") {
      ++at;
      continue;
    }
    std::string name = tokens[at], value;
    if (at + 2 >= tokens.size() || tokens[at + 1] != ":") {
      return Error{fmt::format("'{}' has no value in the allocator settings", name),
                   {},
                   "Settings are written name:value,name:value."};
    }
    at += 2;
    if (tokens[at] == "[") {
      while (at < tokens.size() && tokens[at] != "]") value += tokens[at++];
      if (at == tokens.size())
        return Error{fmt::format("the list of '{}' is not closed in the allocator settings", name), {}, {}};
    }
    value += tokens[at++];
    pairs.emplace_back(std::move(name), std::move(value));
  }
  // The other sizes are checked against the segment size, so PyTorch reads it first; so do we.
  std::stable_partition(pairs.begin(), pairs.end(),
                        [](const auto& pair) { return pair.first == "large_segment_size_mb"; });
  for (const auto& [name, value] : pairs) {
    if (const Setting* setting = setting_of(name)) {
      if (Status status = setting->set(settings, traits, value); !status) return status.error();
    } else if (name == "backend") {
      settings.native = value == "native";
    } else if (ignored != nullptr) {
      ignored->push_back(name);
    }
  }
  return settings;
}

Result<RecordedTorchSettings> recorded_torch_settings(const std::map<std::string, std::string>& properties) {
  RecordedTorchSettings recorded;
  recorded.version = kNewestTorch;
  recorded.oldest = {2, 0};
  if (const std::string* text = property(properties, "torch.min_version")) {
    const auto version = parse_torch_version(*text);
    if (version) recorded.oldest = *version;
    if (version && *version > recorded.version) recorded.version = *version;
  }
  if (const std::string* text = property(properties, "torch.max_version")) {
    if (const auto version = parse_torch_version(*text)) recorded.version = *version;
  }
  recorded.traits = TorchTraits::of(recorded.version);
  TorchSettings& settings = recorded.settings;
  if (const std::string* text = property(properties, "torch.alloc_conf")) {
    // The recorded program accepted this text, so whatever its release was, the newest limits may be too strict or too lax: be lax.
    TorchTraits lax = recorded.traits;
    lax.non_split_rounding_setting = lax.large_segment_setting = lax.split_limit_may_equal_segment = true;
    auto parsed = parse_torch_settings(*text, lax);
    if (!parsed) return parsed.error();
    settings = *parsed;
  }
  if (const std::string* text = property(properties, "torch.max_split_size")) {
    const auto value = number<std::int64_t>(*text);
    if (value) settings.max_split_bytes = *value < 0 ? kUnlimitedBytes : static_cast<std::uint64_t>(*value);
  }
  if (const std::string* text = property(properties, "torch.garbage_collection_threshold")) {
    const auto value = number<double>(*text);
    if (value && *value >= 0 && *value < 1) settings.gc_threshold = *value;
  }
  if (const std::string* text = property(properties, "torch.expandable_segments"))
    settings.expandable = *text == "True";
  if (const std::string* text = property(properties, "torch.roundup_power2_divisions"))
    set_roundup_from_snapshot(settings, *text);
  return recorded;
}

Status apply_changes(TorchSettings& settings, const TorchTraits& traits, const SettingChanges& changes) {
  for (const auto& [name, value] : changes) {
    if (const Setting* setting = setting_of(name)) {
      if (Status status = setting->set(settings, traits, value); !status) return status;
      continue;
    }
    if (std::find(kElsewhere.begin(), kElsewhere.end(), name) != kElsewhere.end()) {
      return Error{
          fmt::format("{} does not change where device memory is placed, so a replay cannot show its effect", name),
          {},
          {}};
    }
    return Error{fmt::format("'{}' is not a setting of PyTorch's allocator", name),
                 {},
                 fmt::format("Known: {}.", fmt::join(torch_setting_names(), ", "))};
  }
  return Ok{};
}

const std::vector<std::string_view>& torch_setting_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const Setting& setting : kSettings) list.push_back(setting.name);
    return list;
  }();
  return names;
}

}  // namespace faultline
