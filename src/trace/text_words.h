// The words of the text form: how names are spelled and read, and the defaults that reader and writer must agree on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "trace/trace.h"

namespace faultline {

inline constexpr std::string_view kTextMark = "faultline-trace-text";
inline constexpr std::int64_t kTextTimeStepNs = 1000;

// Words of an event's line that stand for a flag, in the order in which they are written.
inline constexpr std::array<std::pair<std::string_view, EventFlag>, 3> kFlagWords = {
    {{"preexisting", kPreexisting}, {"failed", kFailed}, {"captured", kCaptured}}};

std::string_view verb_of(EventKind kind);  // "alloc-failed"
std::optional<EventKind> kind_of(std::string_view verb);
// The key that an event's extra field is written under: tensor, name, call, event, for, extra.
std::string_view extra_key(EventKind kind);

std::optional<SyncTarget> sync_target_of(std::string_view word);
std::string_view name_of(SyncTarget target);  // "device"

std::optional<Capability> capability_of(std::string_view word);
// "addresses stacks 0x400"
std::string capability_words(std::uint32_t set);

std::optional<HeapKind> heap_kind_of(std::string_view word);
std::optional<FinalBlock::State> block_state_of(std::string_view word);
std::string_view name_of(FinalBlock::State state);  // "free", "active", "pending"

// Words that mean something by themselves in an event and so cannot be a heap's label.
bool is_reserved(std::string_view word);
// Whether a name can stand without quotes.
bool is_plain(std::string_view name);
std::string quoted(std::string_view name);
std::string plain_or_quoted(std::string_view name);

// Decimal, or hexadecimal after 0x; the whole of `text`.
std::optional<std::uint64_t> number_of(std::string_view text);
std::optional<std::int64_t> time_of(std::string_view text);

// An event as it is before its line says anything about it. `made` is the event that made the allocation it names, if there is one.
Event default_event(const Trace& trace, EventKind kind, const Event* made);
// The heap below, where a heap line does not say.
HeapId default_below(const Trace& trace, std::size_t heap);

// Reads one line from left to right.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : line_(line) {}

  // One word of a line of fields: key=value, a bare word, or a quoted text. `quoted` tells "7" from 7.
  struct Field {
    std::string key;
    std::string value;
    bool quoted = false;
    std::string suffix;  // what stands right behind the closing quote
  };

  bool at_end();
  bool take(std::string_view symbol);  // a word that means something here: "=", ">", "at"
  Result<Field> field();               // with key=
  Result<Field> word();                // = is an ordinary character

 private:
  Result<Field> read(bool split_at_equals);
  Result<std::string> read_quoted();

  std::string_view line_;
  std::size_t at_ = 0;
};

}  // namespace faultline
