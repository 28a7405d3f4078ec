#include "sources/error_text/error_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/shell_words.h"
#include "sources/bfc_dump/dump_trace.h"
#include "sources/bounds.h"
#include "sources/error_text/afterlife.h"
#include "sources/error_text/async_pool.h"
#include "sources/error_text/ending.h"
#include "sources/error_text/guess.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"
#include "sources/error_text/other_errors.h"
#include "sources/error_text/others.h"
#include "sources/error_text/peak_buffers.h"
#include "sources/error_text/places.h"
#include "sources/error_text/plain_text.h"
#include "sources/error_text/standing.h"
#include "sources/error_text/surroundings.h"
#include "sources/error_text/survey.h"
#include "sources/error_text/text_limits.h"
#include "sources/error_text/text_pools.h"
#include "sources/error_text/told_beside.h"
#include "sources/error_text/traceback.h"

namespace faultline {
namespace {

constexpr std::size_t kMostWriters = 16;  // whose endings are looked at where one of them has survived

// A message that is no exception's own, with an unrelated traceback behind it: printed, and gone on from. What C++ prints before it throws is told by the exception that follows.
bool is_only_printed(std::string_view text, const Chosen& chosen, std::size_t to) {
  if (!chosen.message.framework.empty() && chosen.message.framework != "pytorch") return false;
  return is_followed_by_other(text, chosen.begin, to, chosen.message.tag) &&
         traceback_at(text, chosen.begin, chosen.message.tag).empty();
}

// Nothing more is allocated after an error that ends all work with CUDA: a request that an allocator refuses in numbers, with a traceback of its own, is another program's.
// The traceback of the error itself, below the line that its kernel printed, is none, nor is one that was raised while the error was handled.
bool is_of_other_program(std::string_view text, const Survey& seen, const Chosen& chosen, const Chosen& later) {
  if (later.message.framework != "pytorch" || later.message.numbers.count("requested") == 0 ||
      later.begin <= chosen.begin || later.message.words.count("quoted") != 0)
    return false;
  std::size_t from = std::max(chosen.begin, later.begin - std::min(later.begin, kLookAheadBytes));
  for (const Chosen& same : seen.all) {
    if (!ends_cuda(same.message.kind) || same.message.tag != chosen.message.tag) continue;
    for (const std::size_t at : {same.begin, same.again}) from = at < later.begin ? std::max(from, at) : from;
  }
  const std::string_view between = text.substr(from, later.begin - from);
  return between.find("\nTraceback (most recent call last)") != std::string_view::npos &&
         between.find("During handling of the above exception") == std::string_view::npos &&
         between.find("The above exception was the direct cause") == std::string_view::npos;
}

// Steps over what was survived, from the first message on.
Chosen what_ended(std::string_view text, const Survey& seen, std::vector<Chosen>& survived) {
  Chosen chosen = seen.first ? *seen.first : *seen.first_weak;
  for (const Chosen& later : seen.all) {
    const bool other_program = ends_cuda(chosen.message.kind) && is_of_other_program(text, seen, chosen, later);
    if (ends_cuda(chosen.message.kind) && !(other_program && later.message.tag == chosen.message.tag)) continue;
    const bool other_writer =
        !chosen.message.tag.empty() && !later.message.tag.empty() && chosen.message.tag != later.message.tag;
    if (later.begin <= chosen.begin || other_writer || later.message.text == chosen.message.text) continue;
    if (!ends_cuda(chosen.message.kind) && !goes_on(text, chosen.begin, later.begin, chosen.message.tag) &&
        !is_only_printed(text, chosen, later.begin))
      continue;
    // What has failed is often killed afterwards, by whoever started it: only at work could it be killed for another reason.
    if (later.message.kind == MessageKind::kHostKilled &&
        !lives_on(text.substr(0, line_begin(text, later.begin, 4096)), chosen.begin, chosen.message.tag))
      continue;
    // What a person tells of several tries is no log: the same again needs a traceback of its own.
    if (later.message.kind == chosen.message.kind &&
        text.substr(chosen.begin, later.begin - chosen.begin).find("Traceback (most recent call last)") ==
            std::string_view::npos)
      continue;
    // TensorFlow's allocator tells first, the operation that wanted the memory second: one failure.
    const bool same_failure = is_of_pool(chosen.message) && is_of_pool(later.message) &&
                              later.message.kind == chosen.message.kind && chosen.message.words.count("benign") == 0;
    if (!same_failure) survived.push_back(std::move(chosen));
    chosen = later;
  }
  return chosen;
}

// Whether its writer's program works on behind the last message.
Afterlife life_of(std::string_view text, const Survey& seen, const Chosen& chosen) {
  if (ends_cuda(chosen.message.kind)) return Afterlife::kNone;
  const auto last = seen.last.find(chosen.message.tag);
  return afterlife(text, std::max(chosen.begin, last == seen.last.end() ? 0 : last->second), chosen.message.tag);
}

// What one writer survived may have ended another.
Afterlife survives(std::string_view text, const Survey& seen, Chosen& chosen, std::vector<Chosen>& survived) {
  const Afterlife life = life_of(text, seen, chosen);
  if (life == Afterlife::kNone) return life;
  std::size_t looked_at = 0;
  const auto is_fatal = [&](const Chosen& other) {
    return other.message.tag != chosen.message.tag && !other.message.tag.empty() && ++looked_at <= kMostWriters &&
           life_of(text, seen, other) == Afterlife::kNone;
  };
  const auto fatal = std::find_if(seen.all.begin(), seen.all.end(), is_fatal);
  if (fatal == seen.all.end()) return life;
  survived.push_back(std::move(chosen));
  chosen = *fatal;
  return Afterlife::kNone;
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

const ByteInterval* number(const ErrorMessage& message, const char* name) {
  const auto found = message.numbers.find(name);
  return found == message.numbers.end() ? nullptr : &found->second;
}

// A program may ask for anything; what a device has, and what is held of it, has a limit.
void drop_absurd_sizes(Trace& trace, ErrorMessage& message) {
  trace.count("sizes in the message that no device has", std::erase_if(message.numbers, [](const auto& named) {
                return named.first != "requested" && named.second.min > kMostDeviceBytes;
              }));
}

void add_event(Trace& trace, const ErrorMessage& message, StackId stack, const PoolPlace& place) {
  Event event;
  event.device = place.device;
  event.heap = place.heap;
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

  const auto known = std::find_if(trace.devices.begin(), trace.devices.end(),
                                  [&](const Device& device) { return device.index == event.device; });
  Device& device = known == trace.devices.end() ? trace.devices.emplace_back() : *known;
  device.index = event.device;
  if (const ByteInterval* capacity = number(message, "capacity")) device.capacity_bytes = capacity->middle();
  if (const ByteInterval* allowed = number(message, "allowed")) device.allowed_bytes = allowed->middle();
}

void add_properties(Trace& trace, const ErrorMessage& message) {
  auto& properties = trace.properties;
  properties["error.kind"] = name_of(message.kind);
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

// The line of the exception that ended the program.
void add_ended_at(const TracebackFrame& at, Trace& trace) {
  if (at.file.empty()) return;
  trace.properties["error.ended_at.file"] = at.file;
  trace.properties["error.ended_at.line"] = std::to_string(at.line);
  trace.properties["error.ended_at.function"] = at.function;
}

// How it ended behind the message: in another exception, or not at all.
void add_ending(std::string_view text, const Chosen& chosen, Afterlife life, Trace& trace) {
  const std::size_t head = find_last(text, kTracebackHead);
  const bool printed = is_only_printed(text, chosen, head == std::string_view::npos ? 0 : head + 1);
  const LastException other = last_exception(text, chosen.begin, chosen.message.tag);
  const std::size_t disguise = disguise_of(text, chosen);
  const bool is_same = other.empty() || other.said.find(chosen.message.text.substr(0, 30)) != std::string::npos ||
                       (disguise != std::string_view::npos && disguise > head) ||
                       tells_same(chosen.message, other.said);
  const Link link = link_to_end(text, chosen.begin, chosen.message.tag);
  if (ends_cuda(chosen.message.kind) && !printed && (is_same || link == Link::kNone || may_tell_of_gpu(other.said)))
    return;
  if (!is_same && (printed || link != Link::kNone || goes_on(text, chosen.begin, head, chosen.message.tag))) {
    const Afterlife behind = afterlife(text, head, chosen.message.tag);
    if (behind == Afterlife::kNone) {
      trace.properties["error.ended_by"] = other.words();
      add_ended_at(other.at, trace);
      if (link != Link::kNone) trace.properties["error.ended_while"] = link == Link::kCause ? "caused" : "handled";
      return;
    }
    life = std::max(life, behind);
  }
  if (life == Afterlife::kNone) return;
  trace.properties["error.lives_on"] = life == Afterlife::kByShape ? "shape" : "words";
  if (is_of_request(text, chosen.begin)) trace.properties["error.of_request"] = "yes";
}

bool is_kernel_log(const Survey& seen, const Chosen& message) {
  return std::any_of(seen.kernel_log.begin(), seen.kernel_log.end(),
                     [&](const Chosen& line) { return line.message.kind == message.message.kind; });
}

// Where the kernel's log is what there is, each of its lines tells of something of its own: they are explained one by one.
void add_further(std::string_view text, const Survey& seen, const Chosen& chosen, Trace& trace) {
  if (!is_kernel_log(seen, chosen)) return;
  std::size_t told = 0;
  const auto word = [](const ErrorMessage& message, const char* name) {
    const auto found = message.words.find(name);
    return found == message.words.end() ? std::string() : found->second;
  };
  // Who was looked for and who was ended are one event of the killer's.
  const auto is_host = [](const Chosen& line) { return is_of_host(row_of(line.message.kind)); };
  bool host_told = is_host(chosen);
  for (const Chosen& line : seen.kernel_log) {
    const bool is_same =
        line.message.kind == chosen.message.kind && word(line.message, "xid") == word(chosen.message, "xid");
    if (is_same || is_consequence(line.message) || (is_host(line) && std::exchange(host_told, true))) continue;
    const std::string name = "error.further." + std::to_string(++told) + ".";
    trace.properties[name + "kind"] = name_of(line.message.kind);
    trace.properties[name + "text"] = line.message.text;
    trace.properties[name + "line"] = std::to_string(line_number(text, line.begin));
    for (const char* what : {"xid", "process"}) {
      if (std::string said = word(line.message, what); !said.empty()) trace.properties[name + what] = std::move(said);
    }
  }
}

// What the text tells beside the message. Of a long log: of its beginning, and of what stands around the message.
void add_surroundings(std::string_view text, const Chosen& chosen, Trace& trace) {
  const auto [part, at_in_part] = neighbourhood(text, chosen.begin);
  const std::string_view near = part.empty() ? text : part;
  if (const std::string version = torch_version(near); !version.empty())
    trace.properties["error.torch_version"] = version;
  if (const std::string other = other_framework(near); !other.empty())
    trace.properties["error.other_framework"] = other;
  if (names_torch(near)) trace.properties["error.names_torch"] = "yes";
  if (is_windows(near)) trace.properties["error.is_windows"] = "yes";
  if (is_of_other_language(near)) trace.properties["error.is_of_other_language"] = "yes";
  const bool of_pytest = text.substr(line_begin(text, chosen.begin, 4096)).starts_with("E  ");
  if (const std::string launcher = of_pytest ? "python -m pytest" : launcher_of(near); !launcher.empty())
    trace.properties["error.launcher"] = launcher;
  if (const std::string program = program_file(near); !program.empty()) trace.properties["error.program"] = program;
  if (const std::string command = command_of(near, at_in_part); !command.empty())
    trace.properties["error.command"] = command;
  if (chosen.message.kind == MessageKind::kNoKernelImage) {
    const UnknownGpu gpu = unknown_gpu(near);
    trace.properties["error.gpu.name"] = gpu.name;
    trace.properties["error.gpu.architecture"] = gpu.architecture;
    trace.properties["error.gpu.built_for"] = gpu.built_for;
  }
  if (sets_expandable_segments(near)) trace.properties["error.sets_expandable"] = "yes";
  if (near.find("Traceback (most recent call last)") != std::string_view::npos)
    trace.properties["error.has_traceback"] = "yes";
  else if (is_of_pool(chosen.message) && chosen.message.framework != "tensorflow" && shows_no_exception(near))
    trace.properties["error.shows_no_exception"] = "yes";
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
    } else if (text.substr(at, 4) == "\\r\\n") {
      ++at;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

// What stands behind "python" in the command that the text shows, else the file that its tracebacks begin in; words where there is neither.
std::string python_arguments(std::string_view text) {
  const std::string command = command_of(text), file = program_file(text);
  const std::size_t blank = command.find(' ');
  if (command.starts_with("python") && blank != std::string::npos && is_plain_command(command))
    return command.substr(blank + 1);
  const std::string name = file.substr(file.find_last_of("/\\") + 1);
  return is_plain_word(name) ? name : "PROGRAM.py";
}

// The state of the pools that the message is about, and where in them the request failed.
PoolPlace add_pools_of(std::string_view text, Chosen& chosen, TextPools& pools, Trace& trace) {
  const TakenPools taken = pools.take(text, chosen.message, chosen.begin);
  const std::vector<PoolDump>& dumps = taken.pools;
  trace.count("maps of pools that are not looked at: of other moments, processes or errors", pools.not_taken());
  const auto beside_pools = [&] {
    const HeapId heap(static_cast<std::uint16_t>(trace.heaps.size()));
    trace.heaps.push_back({HeapKind::kDriver, chosen.message.device.value_or(0), heap, 0, 0, "driver"});
    return PoolPlace{heap, chosen.message.device.value_or(0)};
  };
  if (dumps.empty()) return beside_pools();
  const std::string& framework = chosen.message.framework;
  if (framework == "jax" || framework == "tensorflow") trace.properties["bfc.framework"] = framework;
  const std::vector<PoolPlace> places = add_pools(trace, dumps);
  for (std::size_t at = 0; at + taken.has_own < dumps.size(); ++at) {
    if (dumps[at].asked || dumps[at].rounded) add_failed_request(trace, dumps[at], places[at], StackId());
  }
  return taken.has_own ? places.back() : beside_pools();
}

Result<Trace> read_plain(std::string_view text, std::string path) {
  const AnchorHits found = find_anchors(text);
  Survey seen = survey(text, found);
  TextPools pools(text);
  pools.adopt(seen);
  if (!seen.first && !seen.first_weak && (seen.first = pools.stand_in(text))) seen.all.push_back(*seen.first);
  if (!seen.first && !seen.first_weak && seen.quoted.empty() && other_error(text) == nullptr)
    seen.first_weak = guess_of(text);
  // Not where another error ended the program.
  if (!seen.first && !seen.first_weak && seen.quoted.empty() && last_exception(text, 0, {}).empty() &&
      other_error(text) == nullptr)
    seen.first_weak = seen.harmless;
  if (!seen.first && !seen.first_weak) {
    const std::string other = last_exception(text, 0, {}).words();
    if (const OtherError* known = other_error(text)) {
      std::string next(known->next);
      if (const std::size_t place = next.find(kProgram); place != std::string::npos)
        next.replace(place, kProgram.size(), python_arguments(text));
      return Error{"no GPU memory error was found in this text: " + std::string(known->what) +
                       (other.empty() ? "" : " (" + other + ")"),
                   {},
                   std::move(next)};
    }
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
                 "device-side assert, launch failure, host memory, operands that do not match, devices that "
                 "cannot be used." +
                     std::string(other.empty() ? " Paste the message itself, or the whole log." : "")};
  }
  std::vector<Chosen> survived;
  Chosen chosen = what_ended(text, seen, survived);
  const Afterlife life = survives(text, seen, chosen, survived);
  add_from_others(seen, chosen);
  settle_kind(text, seen, chosen);
  ErrorMessage& message = chosen.message;
  // A kernel's own line may stand above the error or, from another stream of output, below it.
  if (message.kind == MessageKind::kDeviceAssert && seen.assertion) {
    for (const auto& [name, word] : seen.assertion->message.words) message.words.try_emplace(name, word);
    message.words["assert.lines"] = std::to_string(seen.assertion_lines);
  }

  Trace trace;
  trace.source_kind = "error-text";
  trace.source_path = std::move(path);
  trace.source_events = 1;
  trace.streams.emplace_back();
  const PoolPlace place = add_pools_of(text, chosen, pools, trace);
  if (is_of_pool(message)) add_async_pool(text, chosen.begin, message, trace);

  // Where a kernel's line came first, the traceback belongs to the error that followed it.
  std::size_t stack_at = chosen.begin, stack_again = chosen.again;
  if (message.kind == MessageKind::kDeviceAssert && seen.assert_error) {
    stack_at = stack_again = seen.assert_error->begin;
    if (message.tag.empty()) message.tag = seen.assert_error->message.tag;
    for (const auto& [name, word] : seen.assert_error->message.words) message.words.try_emplace(name, word);
  }
  std::vector<TracebackFrame> frames = frames_of(text, chosen, stack_at, stack_again);
  // A worker's end is told by the queue's own lines first, and at the program's line by what follows from it.
  constexpr std::string_view kWorker = "DataLoader worker (pid";
  if (const std::size_t later = find_last(text, kWorker);
      (message.kind == MessageKind::kHostWorker || message.kind == MessageKind::kHostBus) &&
      later != std::string_view::npos && later > stack_at && std::all_of(frames.begin(), frames.end(), is_installed))
    frames = frames_of(text, chosen, later, later);
  if (message.words.count("quoted") != 0) {
    const std::size_t line = line_begin(text, chosen.begin, 4096);
    const std::string_view whole = text.substr(line, line_end(text, chosen.begin, 4096) - line);
    trace.properties["error.quoted_by"] =
        trimmed(clean_line(whole.substr(split_prefix(whole).length), 400), 120) +
        (frames.empty() ? "" : ", " + frames.back().file + ":" + std::to_string(frames.back().line));
    if (!frames.empty()) add_ended_at(frames.back(), trace);
    frames.clear();  // where the quoting exception was raised is not where memory ran out
  }
  // The runtime says the same of memory of the host that it cannot pin.
  const auto pins = [](const TracebackFrame& frame) {
    return frame.function == "pin_memory" || frame.file.ends_with("/pin_memory.py");
  };
  if (message.kind == MessageKind::kOutOfMemory &&
      ((message.framework.empty() && std::any_of(frames.begin(), frames.end(), pins)) ||
       names_pinned_call(text, chosen.begin)))
    message.kind = MessageKind::kHostPinned;
  // Nobody is told of this signal: a traceback beside it is another error's, or the launcher's own.
  if (message.kind == MessageKind::kHostKilled) frames.clear();
  const StackId stack = add_stack(trace, frames);
  if (stack != StackId()) trace.capabilities |= kStacks;
  drop_absurd_sizes(trace, message);
  add_told_beside(text, seen, chosen, trace);
  add_event(trace, message, stack, place);
  add_properties(trace, message);
  trace.properties["error.line"] = std::to_string(line_number(text, chosen.begin));
  const Others others = others_beside(text, seen, chosen, survived);
  trace.properties["error.count"] =
      std::to_string(std::max<std::uint64_t>(others.times != 0 ? others.times : seen.counts[message.kind], 1));
  trace.properties["error.distinct"] = std::to_string(std::max<std::size_t>(seen.texts[message.kind].size(), 1));
  std::size_t told = 0;
  for (const Chosen& before : survived) {
    if (told == 8) break;
    trace.properties["error.survived." + std::to_string(++told)] = place_words(text, before);
  }
  for (std::size_t i = 0; i < others.told.size(); ++i)
    trace.properties["error.also." + std::to_string(i + 1)] = others.told[i];
  if (const std::string who = writer_words(text, message.tag); !who.empty()) trace.properties["error.who"] = who;
  add_further(text, seen, chosen, trace);
  add_ending(text, chosen, life, trace);
  add_surroundings(text, chosen, trace);
  trace.count("lines with error messages that were not looked at", found.not_kept + seen.not_read);
  return trace;
}

}  // namespace

Result<Trace> read_error_text(LongText read, std::string path) {
  if (needs_plain_form(read.text)) read.text = plain_text(read.text);  // only one of the two is kept
  Result<Trace> trace = read_error_text(std::string_view(read.text), std::move(path));
  if (trace) trace->count("bytes in the middle of the text that were not read", read.left_out);
  return trace;
}

Result<Trace> read_error_text(std::string_view text, std::string path) {
  std::string plain;
  if (needs_plain_form(text)) text = plain = plain_text(text);
  if (text.find(kEscapedFrame) == std::string_view::npos) return read_plain(text, std::move(path));
  Result<Trace> trace = read_plain(unescaped(text), std::move(path));
  if (trace) trace->properties["error.line"] = "0";  // lines of the text as it was are not counted through
  return trace;
}

}  // namespace faultline
