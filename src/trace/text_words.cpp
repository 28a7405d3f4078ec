#include "trace/text_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/safe_text.h"
#include "trace/validate.h"

namespace faultline {
namespace {

constexpr std::array<std::string_view, kEventKindCount> kVerbs = {
    "alloc",  "free",        "alloc-failed", "map",       "unmap", "host-pin", "host-unpin",
    "copy",   "set",         "launch",       "record",    "wait",  "sync",     "op-begin",
    "op-end", "tensor-note", "step",         "violation", "fault", "estimate"};

struct CapabilityWord {
  Capability bit;
  std::string_view word;
};
constexpr std::array<CapabilityWord, 9> kCapabilities = {{{kAddresses, "addresses"},
                                                          {kStacks, "stacks"},
                                                          {kStreams, "streams"},
                                                          {kAccesses, "accesses"},
                                                          {kTensors, "tensors"},
                                                          {kCompleteFromStart, "complete-from-start"},
                                                          {kEvents, "events"},
                                                          {kTimes, "times"},
                                                          {kSteps, "steps"}}};

constexpr std::array<std::string_view, 3> kSyncTargets = {"stream", "event", "device"};
constexpr std::array<std::string_view, 3> kBlockStates = {"free", "active", "pending"};

template <class Kind, std::size_t count>
std::optional<Kind> kind_named(const std::array<std::string_view, count>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Kind>(found - names.begin()));
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string_view verb_of(EventKind kind) { return kVerbs[static_cast<std::size_t>(kind)]; }

std::optional<EventKind> kind_of(std::string_view verb) { return kind_named<EventKind>(kVerbs, verb); }

std::string_view extra_key(EventKind kind) {
  if (extra_is_tensor(kind)) return "tensor";
  if (extra_is_string(kind)) return "name";
  if (extra_is_call(kind)) return "call";
  if (kind == EventKind::kSync) return "for";
  if (kind == EventKind::kRecord || kind == EventKind::kWait) return "event";
  return "extra";
}

std::optional<SyncTarget> sync_target_of(std::string_view word) { return kind_named<SyncTarget>(kSyncTargets, word); }

std::string_view name_of(SyncTarget target) { return kSyncTargets[static_cast<std::size_t>(target)]; }

std::optional<Capability> capability_of(std::string_view word) {
  for (const CapabilityWord& known : kCapabilities) {
    if (known.word == word) return known.bit;
  }
  return std::nullopt;
}

std::string capability_words(std::uint32_t set) {
  std::string text;
  for (const CapabilityWord& known : kCapabilities) {
    if ((set & known.bit) == 0) continue;
    text += fmt::format(" {}", known.word);
    set &= ~std::uint32_t{known.bit};
  }
  if (set != 0) text += fmt::format(" {:#x}", set);
  return text;
}

std::optional<HeapKind> heap_kind_of(std::string_view word) {
  for (std::uint8_t i = 0; i < kHeapKindCount; ++i) {
    if (name_of(static_cast<HeapKind>(i)) == word) return static_cast<HeapKind>(i);
  }
  return std::nullopt;
}

std::optional<FinalBlock::State> block_state_of(std::string_view word) {
  return kind_named<FinalBlock::State>(kBlockStates, word);
}
std::string_view name_of(FinalBlock::State state) { return kBlockStates[static_cast<std::size_t>(state)]; }

bool is_reserved(std::string_view word) {
  constexpr std::array<std::string_view, 11> kReserved = {"at",        "preexisting", "failed", "captured",
                                                          "requested", "completed",   "small",  "expandable",
                                                          "free",      "active",      "pending"};
  return std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end();
}

bool is_plain(std::string_view name) {
  if (name.empty()) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (!is_letter(name.front()) && name.front() != '/' && name.front() != '.' && name.front() != '<') return false;
  constexpr std::string_view kMarks = "_./:<>()[]*&,~-+$";
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || kMarks.find(c) != std::string_view::npos;
  });
}

// What would act on a terminal, or is no UTF-8, byte by byte: the reader makes the same bytes of it.
std::string quoted(std::string_view name) {
  std::string text = "\"";
  while (!name.empty()) {
    const auto [code, length] = decode_utf8(name);
    const std::string_view character = name.substr(0, length);
    name.remove_prefix(length);
    if (code == '"' || code == '\\') {
      text += '\\';
      text += character;
    } else if (code == '\n') {
      text += "\\n";
    } else if (code == '\t') {
      text += "\\t";
    } else if (is_harmful(code) || (code == kReplacementCharacter && length == 1)) {
      for (const char byte : character) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    } else {
      text += character;
    }
  }
  return text + '"';
}

std::string plain_or_quoted(std::string_view name) { return is_plain(name) ? std::string(name) : quoted(name); }

std::optional<std::uint64_t> number_of(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> time_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A default is found among the first heaps: a line may stand for each of sixty thousand.
constexpr std::size_t kHeapsLookedAt = 1024;

Event default_event(const Trace& trace, EventKind kind, const Event* made) {
  Event event;
  event.kind = kind;
  if (ends_allocation(kind) && made != nullptr) {
    event.address = made->address;
    event.size_bytes = made->size_bytes;
    event.stream = made->stream;
    event.device = made->device;
    event.heap = made->heap;
    if (made->has(kAddressKnown)) event.set(kAddressKnown);
    return event;
  }
  if (!happens_in_heap(kind)) return event;
  const HeapKind wanted = kind == EventKind::kHostPin || kind == EventKind::kHostUnpin ? HeapKind::kTorchPinnedHost
                                                                                       : HeapKind::kTorchCaching;
  const auto end = trace.heaps.begin() + static_cast<std::ptrdiff_t>(std::min(trace.heaps.size(), kHeapsLookedAt));
  const auto heap = std::find_if(trace.heaps.begin(), end, [&](const Heap& h) { return h.kind == wanted; });
  if (heap != end) {
    event.heap = HeapId(static_cast<std::uint16_t>(heap - trace.heaps.begin()));
    event.device = heap->device;
  }
  return event;
}

HeapId default_below(const Trace& trace, std::size_t heap) {
  const HeapId self(static_cast<std::uint16_t>(heap));
  if (trace.heaps[heap].kind == HeapKind::kDriver) return self;
  for (std::size_t i = 0; i < std::min(heap, kHeapsLookedAt); ++i) {
    if (trace.heaps[i].kind == HeapKind::kDriver && trace.heaps[i].device == trace.heaps[heap].device)
      return HeapId(static_cast<std::uint16_t>(i));
  }
  return self;
}

bool LineReader::at_end() {
  while (at_ < line_.size() && is_space(line_[at_])) ++at_;
  return at_ == line_.size();
}

bool LineReader::take(std::string_view symbol) {
  if (at_end() || !line_.substr(at_).starts_with(symbol)) return false;
  const std::size_t behind = at_ + symbol.size();
  if (behind < line_.size() && !is_space(line_[behind])) return false;
  at_ = behind;
  return true;
}

Result<LineReader::Field> LineReader::field() { return read(true); }
Result<LineReader::Field> LineReader::word() { return read(false); }

Result<LineReader::Field> LineReader::read(bool split_at_equals) {
  if (at_end()) return Error{"something is missing at the end", {}, {}};
  Field field;
  std::size_t begin = at_;
  if (split_at_equals && line_[at_] != '"') {
    while (at_ < line_.size() && !is_space(line_[at_]) && line_[at_] != '=') ++at_;
    if (at_ < line_.size() && line_[at_] == '=') {
      field.key = line_.substr(begin, at_ - begin);
      if (field.key.empty()) return Error{"a word begins with '='", {}, {}};
      begin = ++at_;
    }
  }
  if (at_ < line_.size() && line_[at_] == '"' && at_ == begin) {
    Result<std::string> text = read_quoted();
    if (!text) return text.error();
    field.value = std::move(*text);
    field.quoted = true;
    begin = at_;
  }
  while (at_ < line_.size() && !is_space(line_[at_])) ++at_;
  (field.quoted ? field.suffix : field.value) = line_.substr(begin, at_ - begin);
  return field;
}

Result<std::string> LineReader::read_quoted() {
  std::string text;
  for (++at_; at_ < line_.size(); ++at_) {
    const char c = line_[at_];
    if (c == '"') {
      ++at_;
      return text;
    }
    if (c != '\\') {
      text += c;
      continue;
    }
    if (++at_ == line_.size()) break;
    const char escaped = line_[at_];
    if (escaped == 'n') {
      text += '\n';
    } else if (escaped == 't') {
      text += '\t';
    } else if (escaped == '"' || escaped == '\\') {
      text += escaped;
    } else if (escaped == 'x' && at_ + 2 < line_.size() && digit_of(line_[at_ + 1]) >= 0 &&
               digit_of(line_[at_ + 2]) >= 0) {
      text += static_cast<char>(digit_of(line_[at_ + 1]) * 16 + digit_of(line_[at_ + 2]));
      at_ += 2;
    } else {
      return Error{fmt::format("'\\{}' is no escape; known are \\\" \\\\ \\n \\t \\xNN", escaped), {}, {}};
    }
  }
  return Error{"a quoted text has no closing quote", {}, {}};
}

}  // namespace faultline
