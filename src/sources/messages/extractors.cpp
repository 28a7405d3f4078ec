#include "sources/messages/extractors.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/characters.h"
#include "sources/error_text/log_lines.h"

namespace faultline {
namespace {

std::string_view line_of(const ErrorPassage& passage) {
  return std::string_view(passage.lower).substr(0, passage.first_line_length);
}

bool says(const ErrorPassage& passage, std::string_view words) {
  return line_of(passage).find(words) != std::string_view::npos;
}

// RMM says so of the device's memory, in the same line.
bool is_of_device(const ErrorPassage& passage) {
  static constexpr std::array<std::string_view, 5> kDevice = {"out_of_memory", "cuda", "cumem", "hipmalloc",
                                                              "hiperror"};
  return has_any(line_of(passage), kDevice);
}

// The size between two places of the words in front of the message.
void read_size(const std::string& words, std::size_t from, std::size_t until, SizeStyle style,
               std::optional<ByteInterval>& number) {
  if (from == std::string::npos) return;
  if (const auto bytes = size_between(words, from, until, style)) number = bytes;
}

}  // namespace

// "Killed" alone, or as a shell tells it: "run.sh: line 3: 4711 Killed python train.py".
bool is_killed_line(const ErrorPassage& passage) {
  const std::string line = passage.first_line(200);
  if (!line.starts_with("Killed")) return false;
  const bool behind_progress = passage.before.find("%|") != std::string::npos && passage.before.ends_with("]");
  if (passage.before.empty() || behind_progress) return line == "Killed";
  const std::size_t at = passage.before.find("line ");
  return at != std::string::npos &&
         passage.before.find_last_of("0123456789") + 1 >= passage.before.find_last_not_of(' ') + 1;
}

bool is_for_an_array(const ErrorPassage& passage) { return says(passage, "for an array"); }

bool is_bad_alloc_of_host(const ErrorPassage& passage) {
  constexpr std::size_t kLength = std::string_view("std::bad_alloc").size();
  const std::string_view line = line_of(passage);
  return !is_of_device(passage) &&
         (line.size() <= kLength || std::string_view("'\"`:.)").find(line[kLength]) != std::string_view::npos);
}

bool is_memory_error_of_host(const ErrorPassage& passage) {
  constexpr std::size_t kLength = std::string_view("memoryerror").size();
  const std::string_view line = line_of(passage);
  return !is_of_device(passage) && passage.before.empty() && (line.size() <= kLength || line[kLength] == ':');
}

// What stands behind the reason where a cluster tells it, "Reason: OOMKilled", "OOMKilled: true", and not where somebody writes about it.
bool is_state_of_container(const ErrorPassage& passage) {
  std::string_view rest = line_of(passage).substr(std::string_view("oomkilled").size());
  if (rest.starts_with('"') || rest.starts_with('\'')) rest.remove_prefix(1);
  if (rest.starts_with(", ")) rest.remove_prefix(1);
  if (rest.starts_with(' ') || rest.starts_with(',')) rest.remove_prefix(1);
  if (rest.empty() || rest == "}" || rest == "," || is_digit(rest.front())) return true;
  static constexpr std::array<std::string_view, 8> kNext = {
      ": true", ":true", "(exit", "exit code:", "\"", "}", ",", "- exit code"};
  return std::any_of(kNext.begin(), kNext.end(), [&](std::string_view next) { return rest.starts_with(next); });
}

// The number that stands for the signal ends its line; a sentence about it goes on.
bool ends_its_line(const ErrorPassage& passage) {
  const std::string_view line = line_of(passage);
  return line.find("137") + 3 >= line.find_last_not_of(" .)") + 1;
}

bool is_code_two(const ErrorPassage& passage) {
  const std::size_t end = passage.lower.find("0x2") + 3;
  return end >= passage.lower.size() || !is_hex_digit(passage.lower[end]);
}

bool is_without_numbers(const ErrorPassage& passage) {
  return !says(passage, "would exceed allowed") && passage.first_line_length <= 40;
}

bool names_cudnn(const ErrorPassage& passage) { return passage.before.find("untime CuDNN") != std::string::npos; }

bool tells_of_worker_end(const ErrorPassage& passage) {
  static constexpr std::array<std::string_view, 4> kEnds = {"bus error", "shared memory", "signal: killed",
                                                            "exited unexpectedly"};
  return has_any(line_of(passage), kEnds);
}

// "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python, …"
namespace {
std::optional<std::uint64_t> xid_number(const ErrorPassage& passage) {
  constexpr std::uint64_t kLargest = 9999;
  const std::size_t close = passage.lower.find("): ");
  const auto number = close == std::string::npos || close > 60 ? std::nullopt : number_at(passage.lower, close + 3);
  return number && *number <= kLargest ? number : std::nullopt;
}
}  // namespace

bool has_xid_number(const ErrorPassage& passage) { return xid_number(passage).has_value(); }

// "Input 0 of layer \"dense\" is incompatible with the layer: expected axis -1 …"
bool is_of_input(const ErrorPassage& passage) { return passage.before.find("nput ") != std::string::npos; }
bool is_of_input_of_layer(const ErrorPassage& passage) {
  return is_of_input(passage) && passage.before.find("of layer") != std::string::npos;
}

void read_xid(const ErrorPassage& passage, ErrorMessage& message) {
  const std::string_view line = line_of(passage);
  message.xid = xid_number(passage);
  const auto pid = number_after(line, "pid=");
  const std::size_t name = line.find("name=");
  if (!pid) return;
  message.process =
      std::to_string(*pid) +
      (name == std::string_view::npos
           ? ""
           : " (" + passage.words.substr(name + 5, passage.words.find_first_of(", \n", name) - name - 5) + ")");
}

// load_state_dict lists what does not fit line by line.
void read_whole_list(const ErrorPassage& passage, ErrorMessage& message) {
  message.text = trimmed(passage.words, 2000);
}

void read_worker_end(const ErrorPassage& passage, ErrorMessage& message) {
  if (!says(passage, "bus error") && !says(passage, "shared memory")) return;
  message.kind = MessageKind::kHostBus;
  message.weak = false;
}

void read_length(const ErrorPassage& passage, ErrorMessage& message) {
  for (const std::string_view label : {"estimated maximum model length is ", "stored in kv cache ("}) {
    if (const auto tokens = number_after(passage.lower, label, 700)) message.tokens = tokens;
  }
}

// "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory (5.23 GiB)"
void read_length_and_cache(const ErrorPassage& passage, ErrorMessage& message) {
  constexpr std::size_t kLength = std::string_view("which is larger than the available kv cache memory").size();
  read_length(passage, message);
  read_size(passage.before, passage.before.rfind('('), passage.before.size(), SizeStyle::kTorch, message.requested);
  read_size(passage.lower, kLength, kLength + 20, SizeStyle::kTorch, message.free);
}

// "Free memory on device (13.21/23.65 GiB) on startup is less than desired GPU memory utilization (0.9, 21.28 GiB)"
void read_serving_start(const ErrorPassage& passage, ErrorMessage& message) {
  const std::size_t open = passage.before.rfind('('), slash = passage.before.find('/', open),
                    close = passage.before.find(')', slash);
  if (open < slash && slash < close && close != std::string::npos) {
    const std::string free = passage.before.substr(open + 1, slash - open - 1),
                      whole = passage.before.substr(slash + 1, close - slash - 1);
    const std::string unit = whole.substr(std::min(whole.find(' '), whole.size()));
    read_size(free + unit, 0, free.size() + unit.size(), SizeStyle::kTorch, message.free);
    read_size(whole, 0, whole.size(), SizeStyle::kTorch, message.capacity);
  }
  if (const std::size_t comma = passage.lower.find(", "); comma < passage.first_line_length)
    read_size(passage.lower, comma, comma + 20, SizeStyle::kTorch, message.requested);
}

// "ptxas error : Entry function 'k' uses too much shared data (0x12000 bytes, 0xc000 max)"
void read_shared_data(const ErrorPassage& passage, ErrorMessage& message) {
  const std::string_view line = line_of(passage);
  const auto read_hexadecimal = [&](std::string_view behind, std::optional<ByteInterval>& number) {
    const std::size_t at = line.find(behind);
    std::uint64_t value = 0;
    if (at != std::string_view::npos &&
        std::from_chars(line.data() + at + behind.size(), line.data() + line.size(), value, 16).ec == std::errc())
      number = ByteInterval::exactly(value);
  };
  read_hexadecimal("(0x", message.requested);
  read_hexadecimal(", 0x", message.limit);
}

// "Can't reduce memory use below 20.52GiB (… bytes) by rematerialization; only reduced to 71.53GiB (… bytes)"
void read_rematerialization(const ErrorPassage& passage, ErrorMessage& message) {
  constexpr std::size_t kLength = std::string_view("by rematerialization; only reduced to").size();
  const std::size_t below = passage.before.rfind("below ");
  read_size(passage.lower, kLength, kLength + 20, SizeStyle::kXla, message.requested);
  read_size(passage.before, below, below + 20, SizeStyle::kXla, message.allowed);
}

void read_first_size(const ErrorPassage& passage, ErrorMessage& message) {
  read_size(passage.lower, 0, passage.first_line_length, SizeStyle::kTorch, message.requested);
}

}  // namespace faultline
