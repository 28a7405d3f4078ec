#include "models/gpus.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

#include "base/characters.h"
#include "base/given_size.h"
#include "base/nearest_word.h"
#include "fmt/format.h"

namespace faultline {
namespace {

constexpr std::size_t kMostSuggestions = 3;

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Calls `found` for every word of a list with spaces between.
template <class Found>
void for_each_word(std::string_view words, const Found& found) {
  while (!words.empty()) {
    const std::size_t space = words.find(' ');
    if (space != 0) found(words.substr(0, space));
    words.remove_prefix(space == std::string_view::npos ? words.size() : space + 1);
  }
}

bool contains_word(std::string_view words, std::string_view word) {
  bool contained = false;
  for_each_word(words, [&](std::string_view candidate) { contained = contained || candidate == word; });
  return contained;
}

// The names nearest to the word: those that begin with it, else those the fewest edits away, where that is at most a third of the word.
std::vector<std::string_view> close_names(const std::string& word) {
  std::vector<std::string_view> names;
  std::size_t nearest = std::max<std::size_t>(1, word.size() / 3);
  for (const GpuEntry& entry : gpu_catalogue()) {
    std::size_t distance = word.size();
    const auto compare = [&](std::string_view known) {
      distance =
          std::min(distance, word.size() >= 3 && known.starts_with(word) ? std::size_t{0} : edit_distance(word, known));
    };
    for_each_word(entry.words, compare);
    for_each_word(entry.loose_words, compare);
    if (distance > nearest) continue;
    if (distance < nearest) names.clear();
    nearest = distance;
    if (names.size() < kMostSuggestions) names.push_back(entry.gpu.name);
  }
  return names;
}

// The name of several of one kind, where somebody wrote "T4x2"; empty: it is no such thing.
std::string name_of_several(std::string_view text, std::string& count) {
  const std::size_t digits = text.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == text.size() || digits == 0) return {};
  if (text[digits] != 'x' && text[digits] != 'X' && text[digits] != '*') return {};
  count = text.substr(digits + 1);
  return std::string(trim(text.substr(0, digits)));
}

Error unknown(std::string_view text, const std::string& word) {
  std::string sentence = "'" + std::string(text.substr(0, 60)) + "' is no GPU that Faultline knows";
  std::string count;
  if (const std::string name = name_of_several(text, count); !name.empty() && find_gpu(name))
    return {sentence + "; several are " + count + "x" + name, {}, {}};
  // two digits are near to many names, and meant as none of them
  const bool is_name = word.size() >= 3 || word.find_first_not_of("0123456789") != std::string::npos;
  const std::vector<std::string_view> names =
      word.size() > 40 || !is_name ? std::vector<std::string_view>{} : close_names(word);
  for (std::size_t at = 0; at < names.size(); ++at) {
    sentence += at == 0 ? " (close to it: " : ", ";
    sentence += names[at];
  }
  if (!names.empty()) sentence += ")";
  const bool may_be_size = word.size() <= 3 && lacks_unit(text);
  return {sentence + (may_be_size     ? "; a size has its unit with it: " + std::string(text) + "GiB"
                      : names.empty() ? "; faultline gpus lists them, and a size such as 24GiB works too"
                                      : "; a size such as 24GiB works too"),
          {},
          {}};
}

Gpu device_of_size(std::uint64_t size_bytes) {
  Gpu gpu;
  gpu.capacity_bytes = size_bytes;
  gpu.context_bytes = kContextWhenUnknown;
  gpu.compute_major = 8;
  gpu.sm_count = 108;
  gpu.max_threads_per_sm = 2048;
  gpu.l2_bytes = 40 * kMiB;
  gpu.max_shared_bytes_per_block = 163 * kKiB;
  return gpu;
}

}  // namespace

std::string_view to_string(FigureSource source) {
  static constexpr std::array<std::string_view, 4> kNames = {"measured", "published", "estimated", "assumed"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string gpu_word(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte) != 0) letters += static_cast<char>(std::tolower(byte));
  }
  std::string_view rest = letters;
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view brand : {"nvidia", "tesla", "geforce", "quadro", "rtx"}) {
      if (rest.starts_with(brand)) {
        rest.remove_prefix(brand.size());
        again = true;
      }
    }
  }
  if (rest.ends_with("gpu")) rest.remove_suffix(3);
  std::string word;
  while (!rest.empty()) {
    const bool after_digit = !word.empty() && is_digit(word.back());
    if (after_digit && rest.starts_with("gib")) {
      rest.remove_prefix(3);
    } else if (after_digit && rest.starts_with("gb")) {
      rest.remove_prefix(2);
    } else {
      word += rest.front();
      rest.remove_prefix(1);
    }
  }
  return word;
}

Result<Gpu> find_gpu(std::string_view text) {
  const std::string word = gpu_word(text);
  // A size first, where a unit is written: "40GB" and "4090" would both be words of digits.
  const bool has_unit = !text.empty() && !is_digit(text.back());
  if (has_unit) {
    if (Result<std::uint64_t> size = parse_bytes(text); size && *size != 0) return device_of_size(*size);
  }
  for (const GpuEntry& entry : gpu_catalogue()) {
    if (contains_word(entry.words, word)) return entry.gpu;
    if (contains_word(entry.loose_words, word)) {
      Gpu gpu = entry.gpu;
      gpu.note = entry.loose_note;
      return gpu;
    }
  }
  if (!lacks_unit(word)) {  // "3050" is a card that is not known rather than three kilobytes
    if (Result<std::uint64_t> size = parse_bytes(text); size && *size != 0) return device_of_size(*size);
  }
  return unknown(text, word);
}

Result<std::vector<Gpu>> find_gpus(std::string_view text) {
  std::vector<Gpu> gpus;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = trim(text.substr(begin, end - begin));
    begin = end + 1;
    const std::string_view whole = item;
    std::uint64_t count = 1;
    const std::size_t digits = std::min(item.find_first_not_of("0123456789"), item.size());
    std::string_view rest = trim(item.substr(digits));
    if (digits > 0 && digits <= 4 && (rest.starts_with('x') || rest.starts_with('X') || rest.starts_with('*'))) {
      std::from_chars(item.data(), item.data() + digits, count);
      item = trim(rest.substr(1));
    }
    Result<Gpu> gpu = find_gpu(item);
    if (!gpu) {  // "4090x2" are two of a name that is all digits
      std::string times;
      const std::string name = name_of_several(whole, times);
      return !name.empty() && find_gpu(name) ? find_gpu(whole).error() : gpu.error();
    }
    if (count == 0 || gpus.size() + count > kMostGpus)
      return Error{fmt::format("{} GPUs in one program are {}; 1 to {} can be planned", gpus.size() + count,
                               count == 0 ? "too few" : "too many", kMostGpus),
                   {},
                   {}};
    gpus.insert(gpus.end(), static_cast<std::size_t>(count), *gpu);
  }
  return gpus;
}

std::string describe(const Gpu& gpu) {
  if (!gpu.full_name.empty()) return std::string(gpu.full_name);
  return "a device of " + format_bytes(gpu.capacity_bytes);
}

}  // namespace faultline
