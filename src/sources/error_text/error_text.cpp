#include "sources/error_text/error_text.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "sources/error_text/anchors.h"
#include "sources/error_text/ending.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"
#include "sources/error_text/other_errors.h"
#include "sources/error_text/peak_buffers.h"
#include "sources/error_text/pool_dump.h"
#include "sources/error_text/standing.h"
#include "sources/error_text/surroundings.h"
#include "sources/error_text/traceback.h"

namespace faultline {
namespace {

// places that are read in full; a log with more messages is counted as cut
constexpr std::uint64_t kMostReadings = 5000;

struct Chosen {
  ErrorMessage message;
  std::size_t begin = 0;  // where it stands in the text
  std::size_t again = 0;  // and where the same words stand for the last time
};

constexpr std::size_t kMostCandidates = 256;
constexpr std::size_t kMostWriters = 16;  // whose endings are looked at where one of them has survived

struct Survey {
  std::vector<Chosen> all;      // in order, each wording once; at most kMostCandidates
  std::optional<Chosen> first;  // the first message that explains itself
  std::optional<Chosen> first_weak;
  std::optional<Chosen> assertion;     // the first line a kernel printed before it stopped
  std::optional<Chosen> assert_error;  // the error that such a line led to
  std::uint64_t assertion_lines = 0;
  std::uint64_t readings = 0;
  std::uint64_t not_read = 0;
  std::string quoted;  // the first message that stands only in source text or in a sentence about it
  std::map<std::string, std::uint64_t> counts;  // messages by kind
  std::map<std::string, HashSet<std::string>> texts;
  std::map<std::string, std::size_t> last;  // where each writer's last message stands
};

// Of a kernel: the process does nothing more on the device.
bool ends_cuda(std::string_view kind) {
  return kind == "illegal-address" || kind == "misaligned-address" || kind == "device-assert" ||
         kind == "launch-failure" || kind == "illegal-instruction" || kind == "ecc-error";
}

Survey survey(std::string_view text, const AnchorHits& found) {
  Survey survey;
  const AnchorHit* last = nullptr;  // of the latest message: several anchors can lie in one
  std::string last_kind;
  for (const AnchorHit& hit : found.hits) {
    if (hit.anchor == Anchor::kAssertLine && survey.assertion) {
      const std::size_t begin = hit.begin > 120 ? hit.begin - 120 : 0;
      if (text.substr(begin, hit.begin - begin).find("thread: [") != std::string_view::npos) ++survey.assertion_lines;
      continue;
    }
    if (survey.readings == kMostReadings) {
      ++survey.not_read;
      continue;
    }
    ++survey.readings;
    auto message = read_message(text, hit);
    if (!message) continue;
    const Standing standing = standing_of(text, hit.begin);
    if (standing == Standing::kSource) {
      if (survey.quoted.empty()) survey.quoted = message->text;
      continue;
    }
    if (standing == Standing::kQuoted && hit.anchor != Anchor::kKnown) message->words["quoted"] = "yes";
    const bool is_assertion = message->words.count("assert.expression") != 0;
    survey.last[message->tag] = hit.begin;
    if (is_assertion) ++survey.assertion_lines;
    // One failure told twice: in one line, or by TensorFlow's allocator and then by the operation that wanted the memory.
    const bool told =
        last != nullptr && message->kind == last_kind &&
        ((hit.anchor == Anchor::kTfOom && last->anchor == Anchor::kBfcOom) ||
         text.substr(last->end, hit.begin - std::min(hit.begin, last->end)).find('\n') == std::string_view::npos);
    const bool again = told || (last != nullptr && message->kind == last_kind &&
                                hit.begin < last->end + (hit.anchor == last->anchor ? 0 : 400));
    if (!again && !is_assertion && !message->weak) {
      ++survey.counts[message->kind];
      survey.texts[message->kind].insert(message->tag + message->text);
    }
    last = &hit;
    last_kind = message->kind;
    const auto is_same = [&](const Chosen& other) {
      return other.message.kind == message->kind && other.message.text == message->text &&
             other.message.tag == message->tag;
    };
    if (!is_assertion && (!message->weak || ends_cuda(message->kind) || message->kind == "host-killed")) {
      const auto known = std::find_if(survey.all.begin(), survey.all.end(), is_same);
      if (known != survey.all.end())
        known->again = hit.begin;
      else if (survey.all.size() < kMostCandidates)
        survey.all.push_back({*message, hit.begin, hit.begin});
    }
    std::optional<Chosen>& place = message->weak ? survey.first_weak : survey.first;
    if (is_assertion && !survey.assertion) survey.assertion = Chosen{*message, hit.begin, hit.begin};
    if (!is_assertion && message->kind == "device-assert" && !survey.assert_error)
      survey.assert_error = Chosen{*message, hit.begin, hit.begin};
    // Work that is cleaned up (45, 43), or what would bring the device back (154), is a consequence: another line of the kernel's log tells of what.
    const auto is_consequence = [](const ErrorMessage& of) {
      const auto xid = of.words.find("xid");
      return xid != of.words.end() && (xid->second == "45" || xid->second == "43" || xid->second == "154");
    };
    if (place && message->kind == "xid" && is_consequence(place->message) && !is_consequence(*message)) place.reset();
    if (!place) place = Chosen{std::move(*message), hit.begin, hit.begin};
  }
  return survey;
}

// A message that is no exception's own, with an unrelated traceback behind it: printed, and gone on from. What C++ prints before it throws is told by the exception that follows.
bool is_only_printed(std::string_view text, const Chosen& chosen, std::size_t to) {
  if (!chosen.message.framework.empty() && chosen.message.framework != "pytorch") return false;
  return is_followed_by_other(text, chosen.begin, to, chosen.message.tag) &&
         traceback_at(text, chosen.begin, chosen.message.tag).empty();
}

// Steps over what was survived, from the first message on.
Chosen what_ended(std::string_view text, const Survey& seen, std::vector<Chosen>& survived) {
  Chosen chosen = seen.first ? *seen.first : *seen.first_weak;
  for (const Chosen& later : seen.all) {
    // Nothing more is allocated after it: a request that an allocator refuses in numbers, with a traceback of its own, is another program's.
    const std::size_t near = std::max(chosen.begin, later.begin - std::min(later.begin, std::size_t{1} << 20));
    const bool other_program =
        ends_cuda(chosen.message.kind) && later.message.framework == "pytorch" &&
        later.message.numbers.count("requested") != 0 && later.begin > chosen.begin &&
        text.substr(near, later.begin - near).find("\nTraceback (most recent call last)") != std::string_view::npos &&
        !later.message.words.count("quoted");
    if (ends_cuda(chosen.message.kind) && !(other_program && later.message.tag == chosen.message.tag)) continue;
    const bool other_writer =
        !chosen.message.tag.empty() && !later.message.tag.empty() && chosen.message.tag != later.message.tag;
    if (later.begin <= chosen.begin || other_writer || later.message.text == chosen.message.text) continue;
    if (!ends_cuda(chosen.message.kind) && !goes_on(text, chosen.begin, later.begin, chosen.message.tag) &&
        !is_only_printed(text, chosen, later.begin))
      continue;
    // What has failed is often killed afterwards, by whoever started it: only at work could it be killed for another reason.
    if (later.message.kind == "host-killed" &&
        !lives_on(text.substr(0, line_begin(text, later.begin, 4096)), chosen.begin, chosen.message.tag))
      continue;
    // What a person tells of several tries is no log: the same again needs a traceback of its own.
    if (later.message.kind == chosen.message.kind &&
        text.substr(chosen.begin, later.begin - chosen.begin).find("Traceback (most recent call last)") ==
            std::string_view::npos)
      continue;
    // TensorFlow's allocator tells first, the operation that wanted the memory second: one failure.
    const bool same_failure = chosen.message.framework == "tensorflow" && later.message.framework == "tensorflow" &&
                              later.message.kind == chosen.message.kind && chosen.message.words.count("benign") == 0;
    if (!same_failure) survived.push_back(std::move(chosen));
    chosen = later;
  }
  return chosen;
}

// Whether its writer's program works on behind the last message.
bool is_survived(std::string_view text, const Survey& seen, const Chosen& chosen) {
  const auto last = seen.last.find(chosen.message.tag);
  return !ends_cuda(chosen.message.kind) &&
         lives_on(text, std::max(chosen.begin, last == seen.last.end() ? 0 : last->second), chosen.message.tag);
}

// What one writer survived may have ended another.
bool survives(std::string_view text, const Survey& seen, Chosen& chosen, std::vector<Chosen>& survived) {
  if (!is_survived(text, seen, chosen)) return false;
  std::size_t looked_at = 0;
  const auto is_fatal = [&](const Chosen& other) {
    return other.message.tag != chosen.message.tag && !other.message.tag.empty() && ++looked_at <= kMostWriters &&
           !is_survived(text, seen, other);
  };
  const auto fatal = std::find_if(seen.all.begin(), seen.all.end(), is_fatal);
  if (fatal == seen.all.end()) return true;
  survived.push_back(std::move(chosen));
  chosen = *fatal;
  return false;
}

// The same error told again with more words: what they add.
void add_from_others(const Survey& seen, Chosen& chosen) {
  for (const Chosen& other : seen.all) {
    if (other.message.kind != chosen.message.kind || other.message.tag != chosen.message.tag ||
        !other.message.text.starts_with(chosen.message.text))
      continue;
    chosen.again = std::max(chosen.again, other.again);
    for (const auto& [name, bytes] : other.message.numbers) chosen.message.numbers.try_emplace(name, bytes);
    for (const auto& [name, word] : other.message.words) chosen.message.words.try_emplace(name, word);
  }
}

StackId add_stack(Trace& trace, const std::vector<TracebackFrame>& outermost_first) {
  StackId stack;
  for (const TracebackFrame& frame : outermost_first) {
    const Frame interned{trace.strings.intern(frame.function), trace.strings.intern(frame.file), frame.line};
    stack = trace.stacks.push(stack, trace.stacks.intern_frame(interned));
  }
  return stack;
}

std::uint64_t line_number(std::string_view text, std::size_t at) {
  return 1 + static_cast<std::uint64_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

const ByteInterval* number(const ErrorMessage& message, const char* name) {
  const auto found = message.numbers.find(name);
  return found == message.numbers.end() ? nullptr : &found->second;
}

void add_event(Trace& trace, const ErrorMessage& message, StackId stack) {
  Event event;
  event.device = message.device.value_or(0);
  event.stack = stack;
  if (message.is_allocation()) {
    event.kind = EventKind::kAllocFailed;
    if (const ByteInterval* requested = number(message, "requested")) event.size_bytes = requested->middle();
    if (const ByteInterval* free = number(message, "free")) {
      event.set(kHasDeviceFree);
      event.address = free->middle();
    }
  } else {
    event.kind = EventKind::kFault;
    if (message.address != 0) {
      event.set(kAddressKnown);
      event.address = message.address;
    }
  }
  trace.events.push_back(event);

  Device device;
  device.index = event.device;
  if (const ByteInterval* capacity = number(message, "capacity")) device.capacity_bytes = capacity->middle();
  if (const ByteInterval* allowed = number(message, "allowed")) device.allowed_bytes = allowed->middle();
  trace.devices.push_back(device);
}

void add_properties(Trace& trace, const ErrorMessage& message) {
  auto& properties = trace.properties;
  properties["error.kind"] = message.kind;
  properties["error.text"] = message.text;
  if (!message.framework.empty()) properties["error.framework"] = message.framework;
  if (!message.tag.empty()) properties["error.tag"] = message.tag;
  if (message.device) properties["error.device"] = std::to_string(*message.device);
  if (message.address != 0) properties["error.address"] = std::to_string(message.address);
  for (const auto& [name, bytes] : message.numbers) {
    properties["error." + name + "_bytes.min"] = std::to_string(bytes.min);
    properties["error." + name + "_bytes.max"] = std::to_string(bytes.max);
  }
  for (const auto& [name, word] : message.words) properties["error." + name] = word;
}

bool is_installed(const TracebackFrame& frame) { return frame.file.find("-packages") != std::string::npos; }

// What starts programs: its own lines are nobody's.
bool is_launcher(const TracebackFrame& frame) {
  static constexpr std::array<std::string_view, 9> kNames = {"/bin/torchrun", "/bin/accelerate", "/bin/deepspeed",
                                                             "/bin/vllm",     "/bin/ray",        "/bin/composer",
                                                             "/bin/litgpt",   "/bin/tune",       "accelerate.exe"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return frame.file.find(name) != std::string::npos; });
}

// The traceback that ends in the message, or in the same message told again, where the first has none.
std::vector<TracebackFrame> traceback_of(std::string_view text, std::size_t at, std::size_t again,
                                         const std::string& tag) {
  std::vector<TracebackFrame> frames = traceback_at(text, at, tag);
  if (again <= at || !std::all_of(frames.begin(), frames.end(), is_installed)) return frames;
  std::vector<TracebackFrame> later = traceback_at(text, again, tag);
  return std::all_of(later.begin(), later.end(), is_installed) ? frames : later;
}

// How it ended behind the message: in another exception, or not at all.
void add_ending(std::string_view text, const Chosen& chosen, bool lives, Trace& trace) {
  const std::size_t head = text.rfind("Traceback (most recent call last)");
  const bool printed = is_only_printed(text, chosen, head == std::string_view::npos ? 0 : head + 1);
  if (ends_cuda(chosen.message.kind) && !printed) return;
  const std::string other = last_exception(text, chosen.begin, chosen.message.tag);
  const bool is_same = other.empty() || other.find(chosen.message.text.substr(0, 40)) != std::string::npos;
  if (!is_same && (printed || goes_on(text, chosen.begin, head, chosen.message.tag))) {
    if (!lives_on(text, head, chosen.message.tag)) {
      trace.properties["error.ended_by"] = other;
      if (is_handled_at_end(text, chosen.begin)) trace.properties["error.ended_while"] = "handled";
      return;
    }
    lives = true;
  }
  if (lives) trace.properties["error.lives_on"] = "yes";
}

std::string place_words(std::string_view text, const Chosen& message) {
  const std::vector<TracebackFrame> above = traceback_at(text, message.begin, message.message.tag);
  const auto own =
      std::find_if(above.rbegin(), above.rend(), [](const TracebackFrame& frame) { return !is_installed(frame); });
  return "line " + std::to_string(line_number(text, message.begin)) +
         (own == above.rend() ? "" : ", " + own->file + ":" + std::to_string(own->line)) + ": " +
         trimmed(message.message.text, 160);
}

// Errors of other kinds in the same text. What follows an error that ends all work with CUDA is its consequence, unless a traceback of a program of its own tells of it.
void add_others(std::string_view text, const Survey& seen, const Chosen& chosen, const std::vector<Chosen>& survived,
                Trace& trace) {
  std::vector<Chosen> others = seen.all;
  if (seen.first_weak && seen.first_weak->message.kind == "xid") others.push_back(*seen.first_weak);
  std::vector<std::string> kinds = {chosen.message.kind};
  for (const Chosen& before : survived) kinds.push_back(before.message.kind);
  std::size_t told = 0;
  for (const Chosen& other : others) {
    if (told == 4) break;
    if (std::find(kinds.begin(), kinds.end(), other.message.kind) != kinds.end()) continue;
    if (ends_cuda(chosen.message.kind) && (other.begin > chosen.begin || ends_cuda(other.message.kind))) continue;
    if (other.message.weak && other.message.kind != "xid") continue;
    kinds.push_back(other.message.kind);
    trace.properties["error.also." + std::to_string(++told)] = place_words(text, other);
  }
}

constexpr std::size_t kHeadBytes = std::size_t{256} << 10, kAroundBytes = std::size_t{1} << 20;

// What the text tells beside the message. Of a long log: of its beginning, and of what stands around the message.
void add_surroundings(std::string_view text, const Chosen& chosen, Trace& trace) {
  std::string part;
  std::string_view near = text;
  if (text.size() > 4 * kAroundBytes) {
    const std::size_t from = chosen.begin > kAroundBytes ? chosen.begin - kAroundBytes : 0;
    part = std::string(text.substr(0, kHeadBytes)) + std::string(text.substr(from, 2 * kAroundBytes));
    near = part;
  }
  if (const std::string version = torch_version(near); !version.empty())
    trace.properties["error.torch_version"] = version;
  if (const std::string other = other_framework(near); !other.empty())
    trace.properties["error.other_framework"] = other;
  if (sets_expandable_segments(near)) trace.properties["error.sets_expandable"] = "yes";
  if (near.find("Traceback (most recent call last)") != std::string_view::npos)
    trace.properties["error.has_traceback"] = "yes";
  if (chosen.message.framework == "tensorflow" || chosen.message.framework == "jax") {
    if (const std::string pool = pool_dump(text); !pool.empty() && chosen.message.is_allocation())
      trace.properties["error.pool"] = pool;
  }
  if (chosen.message.framework != "jax") return;
  std::size_t number = 0;
  for (const PeakBuffer& buffer : peak_buffers(text, 5)) {
    const std::string name = "error.buffer." + std::to_string(++number);
    trace.properties[name + "_bytes.min"] = std::to_string(buffer.bytes.min);
    trace.properties[name + "_bytes.max"] = std::to_string(buffer.bytes.max);
    const std::string maker = buffer.operation == "parameter" ? std::string(", given to the program")
                              : buffer.operation.empty()      ? std::string()
                                                              : (buffer.shape.empty() ? "" : " of ") + buffer.operation;
    trace.properties[name + ".what"] = buffer.shape + maker;
    if (!buffer.place.empty()) trace.properties[name + ".place"] = buffer.place;
  }
}

// A traceback inside a string of JSON: its line ends and quotes are escaped.
constexpr std::string_view kEscapedFrame = "\\n  File \\\"";

std::string unescaped(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char next = text[at] == '\\' && at + 1 < text.size() ? text[at + 1] : '\0';
    if (next == 'n' || next == '"') {
      plain += next == 'n' ? '\n' : '"';
      ++at;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

Result<Trace> read_plain(std::string_view text, std::string path) {
  const AnchorHits found = find_anchors(text);
  Survey seen = survey(text, found);
  if (!seen.first && !seen.first_weak) {
    const std::string other = last_exception(text, 0, {});
    if (const OtherError* known = other_error(text))
      return Error{"no GPU memory error was found in this text: " + std::string(known->what) +
                       (other.empty() ? "" : " (" + other + ")"),
                   {},
                   std::string(known->next)};
    if (!seen.quoted.empty()) {
      return Error{
          "no GPU memory error was found in this text: \"" + trimmed(seen.quoted, 100) +
              "\" stands in it only as a quotation, in source text or in a sentence" +
              (other.empty() ? "" : "; its last traceback ends in " + other),
          {},
          "If a program failed with it, paste the program's own output, with the message at the beginning of a line."};
    }
    return Error{other.empty() ? "no GPU memory error was found in this text"
                               : "this text holds a Python traceback that ends in " + other +
                                     ": no GPU memory error was found in it",
                 {},
                 "Looked for: out of memory (PyTorch, CUDA, HIP, JAX, TensorFlow, NCCL, cuBLAS, cuDNN), illegal memory "
                 "access, misaligned address, "
                 "device-side assert, launch failure, host memory, operands that do not go together, devices that "
                 "cannot be used." +
                     std::string(other.empty() ? " Paste the message itself, or the whole log." : "")};
  }
  std::vector<Chosen> survived;
  Chosen chosen = what_ended(text, seen, survived);
  const bool lives = survives(text, seen, chosen, survived);
  add_from_others(seen, chosen);
  ErrorMessage& message = chosen.message;
  // A kernel's own line may stand above the error or, from another stream of output, below it.
  if (message.kind == "device-assert" && seen.assertion) {
    for (const auto& [name, word] : seen.assertion->message.words) message.words.try_emplace(name, word);
    message.words["assert.lines"] = std::to_string(seen.assertion_lines);
  }

  Trace trace;
  trace.source_kind = "error-text";
  trace.source_path = std::move(path);
  trace.source_events = 1;
  trace.streams.emplace_back();
  trace.heaps.push_back({HeapKind::kDriver, message.device.value_or(0), HeapId(0), 0, 0, "driver"});

  // Where a kernel's line came first, the traceback belongs to the error that followed it.
  std::size_t stack_at = chosen.begin, stack_again = chosen.again;
  if (message.kind == "device-assert" && seen.assert_error) {
    stack_at = stack_again = seen.assert_error->begin;
    if (message.tag.empty()) message.tag = seen.assert_error->message.tag;
    for (const auto& [name, word] : seen.assert_error->message.words) message.words.try_emplace(name, word);
  }
  std::vector<TracebackFrame> frames = traceback_of(text, stack_at, stack_again, message.tag);
  std::erase_if(frames, is_launcher);
  if (message.words.count("quoted") != 0) {
    const std::size_t line = line_begin(text, chosen.begin, 4096);
    const std::string_view whole = text.substr(line, line_end(text, chosen.begin, 4096) - line);
    trace.properties["error.quoted_by"] =
        trimmed(clean_line(whole.substr(split_prefix(whole).length), 400), 120) +
        (frames.empty() ? "" : ", " + frames.back().file + ":" + std::to_string(frames.back().line));
    frames.clear();  // where the quoting exception was raised is not where memory ran out
  }
  // The runtime says the same of memory of the host that it cannot pin.
  const auto pins = [](const TracebackFrame& frame) {
    return frame.function == "pin_memory" || frame.file.ends_with("/pin_memory.py");
  };
  if (message.kind == "out-of-memory" && message.framework.empty() && std::any_of(frames.begin(), frames.end(), pins))
    message.kind = "host-pinned";
  // the launcher's own
  if (message.kind == "host-killed" && std::all_of(frames.begin(), frames.end(), is_installed)) frames.clear();
  const StackId stack = add_stack(trace, frames);
  if (stack != StackId()) trace.capabilities |= kStacks;
  add_event(trace, message, stack);
  add_properties(trace, message);
  trace.properties["error.line"] = std::to_string(line_number(text, chosen.begin));
  trace.properties["error.count"] = std::to_string(std::max<std::uint64_t>(seen.counts[message.kind], 1));
  trace.properties["error.distinct"] = std::to_string(std::max<std::size_t>(seen.texts[message.kind].size(), 1));
  std::size_t told = 0;
  for (const Chosen& before : survived) {
    if (told == 8) break;
    trace.properties["error.survived." + std::to_string(++told)] = place_words(text, before);
  }
  add_others(text, seen, chosen, survived, trace);
  add_ending(text, chosen, lives, trace);
  add_surroundings(text, chosen, trace);
  trace.count("error messages not looked at", found.not_kept + seen.not_read);
  return trace;
}

}  // namespace

Result<Trace> read_error_text(std::string_view text, std::string path) {
  if (text.find(kEscapedFrame) == std::string_view::npos) return read_plain(text, std::move(path));
  Result<Trace> trace = read_plain(unescaped(text), std::move(path));
  if (trace) trace->properties["error.line"] = "0";  // lines of the text as it was are not counted through
  return trace;
}

}  // namespace faultline
