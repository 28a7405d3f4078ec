#include "sources/error_text/error_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/shell_words.h"
#include "sources/bfc_dump/dump_trace.h"
#include "sources/bounds.h"
#include "sources/error_text/async_pool.h"
#include "sources/error_text/ending.h"
#include "sources/error_text/guess.h"
#include "sources/error_text/lines_beside.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"
#include "sources/error_text/other_errors.h"
#include "sources/error_text/other_failures.h"
#include "sources/error_text/peak_buffers.h"
#include "sources/error_text/places.h"
#include "sources/error_text/plain_text.h"
#include "sources/error_text/quotation.h"
#include "sources/error_text/surroundings.h"
#include "sources/error_text/survey.h"
#include "sources/error_text/text_limits.h"
#include "sources/error_text/text_pools.h"
#include "sources/error_text/traceback.h"
#include "sources/error_text/works_on.h"
#include "sources/stated_fields.h"

namespace faultline {
namespace {

constexpr std::size_t kMostWriters = 16;  // whose endings are looked at where one of them has survived

// A message that is no exception's own, with an unrelated traceback behind it: printed, and gone on from. What C++ prints before it throws is told by the exception that follows.
bool is_only_printed(std::string_view text, const Chosen& chosen, std::size_t to) {
  if (chosen.message.framework != Framework::kNone && chosen.message.framework != Framework::kPyTorch) return false;
  return is_followed_by_other(text, chosen.begin, to, chosen.message.tag) &&
         traceback_at(text, chosen.begin, chosen.message.tag).empty();
}

// Nothing more is allocated after an error that ends all work with CUDA: a request that an allocator refuses in numbers, with a traceback of its own, is another program's.
// The traceback of the error itself, below the line that its kernel printed, is none, nor is one that was raised while the error was handled.
bool is_of_other_program(std::string_view text, const Survey& seen, const Chosen& chosen, const Chosen& later) {
  if (later.message.framework != Framework::kPyTorch || !later.message.requested || later.begin <= chosen.begin ||
      later.message.quoted)
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
                              later.message.kind == chosen.message.kind && !chosen.message.benign;
    if (!same_failure) survived.push_back(std::move(chosen));
    chosen = later;
  }
  return chosen;
}

// Whether its writer's program works on behind the last message.
WorksOn life_of(std::string_view text, const Survey& seen, const Chosen& chosen) {
  if (ends_cuda(chosen.message.kind)) return WorksOn::kNo;
  const auto last = seen.last.find(chosen.message.tag);
  return works_on(text, std::max(chosen.begin, last == seen.last.end() ? 0 : last->second), chosen.message.tag);
}

// What one writer survived may have ended another.
WorksOn survives(std::string_view text, const Survey& seen, Chosen& chosen, std::vector<Chosen>& survived) {
  const WorksOn life = life_of(text, seen, chosen);
  if (life == WorksOn::kNo) return life;
  std::size_t looked_at = 0;
  const auto is_fatal = [&](const Chosen& other) {
    return other.message.tag != chosen.message.tag && !other.message.tag.empty() && ++looked_at <= kMostWriters &&
           life_of(text, seen, other) == WorksOn::kNo;
  };
  const auto fatal = std::find_if(seen.all.begin(), seen.all.end(), is_fatal);
  if (fatal == seen.all.end()) return life;
  survived.push_back(std::move(chosen));
  chosen = *fatal;
  return WorksOn::kNo;
}

// The same error told again with more words: what they add.
void add_from_others(const Survey& seen, Chosen& chosen) {
  for (const Chosen& other : seen.all) {
    if (other.message.kind != chosen.message.kind || other.message.tag != chosen.message.tag ||
        !other.message.text.starts_with(chosen.message.text))
      continue;
    chosen.again = std::max(chosen.again, other.again);
    fill_in(chosen.message, other.message);
    chosen.message.quoted |= other.message.quoted;
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

void add_event(Trace& trace, const ErrorMessage& message, StackId stack, const PoolPlace& place) {
  Event event;
  event.device = place.device;
  event.heap = place.heap;
  event.stack = stack;
  if (message.is_allocation()) {
    event.kind = EventKind::kAllocFailed;
    if (message.requested) event.size_bytes = message.requested->middle();
    if (message.free) {
      event.set(kHasDeviceFree);
      event.address = message.free->middle();
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
  if (message.capacity) device.capacity_bytes = message.capacity->middle();
  if (message.allowed) device.allowed_bytes = message.allowed->middle();
}

// The line of the exception that ended the program.
void add_ended_at(const TracebackFrame& at, TextNotes& notes) {
  if (!at.file.empty()) notes.ended_at = {at.file, at.function, at.line};
}

// How it ended behind the message: in another exception, or not at all.
void add_ending(std::string_view text, Chosen& chosen, WorksOn life, TextNotes& notes) {
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
    const WorksOn behind = works_on(text, head, chosen.message.tag);
    if (behind == WorksOn::kNo) {
      chosen.message.ended_by = other.words();
      add_ended_at(other.at, notes);
      chosen.message.ended_while_handled = link != Link::kNone;
      notes.ended_because = link == Link::kCause;
      return;
    }
    life = std::max(life, behind);
  }
  if (life == WorksOn::kNo) return;
  chosen.message.lives_on = true;
  notes.lives_by_words = life != WorksOn::kByShape;
  notes.of_request = is_of_request(text, chosen.begin);
}

bool is_kernel_log(const Survey& seen, const Chosen& message) {
  return std::any_of(seen.kernel_log.begin(), seen.kernel_log.end(),
                     [&](const Chosen& line) { return line.message.kind == message.message.kind; });
}

// Where the kernel's log is what there is, each of its lines tells of something of its own: they are explained one by one.
void add_further(std::string_view text, const Survey& seen, const Chosen& chosen, TextNotes& notes) {
  if (!is_kernel_log(seen, chosen)) return;
  // Who was looked for and who was ended are one event of the killer's.
  const auto is_host = [](const Chosen& line) { return is_of_host(row_of(line.message.kind)); };
  bool host_told = is_host(chosen);
  for (const Chosen& line : seen.kernel_log) {
    const bool is_same = line.message.kind == chosen.message.kind && line.message.xid == chosen.message.xid;
    if (is_same || is_consequence(line.message) || (is_host(line) && std::exchange(host_told, true))) continue;
    notes.further.push_back(line.message);
    notes.further.back().line = line_number(text, line.begin);
  }
}

// What the text tells beside the message. Of a long text: of its beginning, and of what stands around the message.
void add_surroundings(std::string_view text, Chosen& chosen, TextNotes& notes) {
  const auto [part, at_in_part] = neighbourhood(text, chosen.begin);
  const std::string_view near = part.empty() ? text : part;
  ErrorMessage& message = chosen.message;
  message.torch_version = torch_version(near);
  const std::string other = other_framework(near);
  message.other_framework = framework_named(other);
  if (message.other_framework == Framework::kOther) message.other_program = other;
  notes.names_torch = names_torch(near);
  notes.is_windows = is_windows(near);
  notes.is_of_other_language = is_of_other_language(near);
  const bool of_pytest = text.substr(line_begin(text, chosen.begin, 4096)).starts_with("E  ");
  notes.launcher = of_pytest ? "python -m pytest" : launcher_of(near);
  notes.program = program_file(near);
  notes.command = command_of(near, at_in_part);
  if (message.kind == MessageKind::kNoKernelImage) {
    const UnknownGpu gpu = unknown_gpu(near);
    notes.gpu = {gpu.name, gpu.architecture, gpu.built_for};
  }
  notes.sets_expandable = sets_expandable_segments(near);
  notes.has_traceback = near.find("Traceback (most recent call last)") != std::string_view::npos;
  notes.shows_no_exception = !notes.has_traceback && is_of_pool(message) &&
                             message.framework != Framework::kTensorFlow && shows_no_exception(near);
  if (message.framework != Framework::kJax) return;
  const std::vector<PeakBuffer> buffers = peak_buffers(text, 5);
  if (!buffers.empty()) message.buffers.clear();
  for (const PeakBuffer& buffer : buffers) {
    const std::string maker = buffer.operation == "parameter" ? std::string(", given to the program")
                              : buffer.operation.empty()      ? std::string()
                                                              : (buffer.shape.empty() ? "" : " of ") + buffer.operation;
    message.buffers.push_back({buffer.bytes, buffer.shape + maker, buffer.place});
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
  const Framework framework = chosen.message.framework;
  if (framework == Framework::kJax || framework == Framework::kTensorFlow)
    trace.properties[kPoolsFramework] = file_name_of(framework);
  const std::vector<PoolPlace> places = add_pools(trace, dumps);
  for (std::size_t at = 0; at + taken.has_own < dumps.size(); ++at) {
    if (dumps[at].asked || dumps[at].rounded) add_failed_request(trace, dumps[at], places[at], StackId());
  }
  return taken.has_own ? places.back() : beside_pools();
}

// What the text holds where it is none of our errors.
Error no_error_in(std::string_view text, const Survey& seen) {
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

// What stands in for a message where the text has none that is known: a pool's map, a guess, a harmless line.
void find_stand_in(std::string_view text, const TextPools& pools, Survey& seen) {
  if (!seen.first && !seen.first_weak && (seen.first = pools.stand_in(text))) seen.all.push_back(*seen.first);
  if (seen.first || seen.first_weak || !seen.quoted.empty() || other_error(text) != nullptr) return;
  seen.first_weak = guess_of(text);
  // Not where another error ended the program.
  if (!seen.first_weak && last_exception(text, 0, {}).empty()) seen.first_weak = seen.harmless;
}

// The traceback of the message, as far as it shows where memory ran out.
std::vector<TracebackFrame> frames_of_message(std::string_view text, const Survey& seen, Chosen& chosen,
                                              TextNotes& notes) {
  ErrorMessage& message = chosen.message;
  // Where a kernel's line came first, the traceback belongs to the error that followed it.
  std::size_t stack_at = chosen.begin, stack_again = chosen.again;
  if (message.kind == MessageKind::kDeviceAssert && seen.assert_error) {
    stack_at = stack_again = seen.assert_error->begin;
    if (message.tag.empty()) message.tag = seen.assert_error->message.tag;
    fill_in(message, seen.assert_error->message);
    message.quoted |= seen.assert_error->message.quoted;
  }
  std::vector<TracebackFrame> frames = frames_of(text, chosen, stack_at, stack_again);
  // A worker's end is told by the queue's own lines first, and at the program's line by what follows from it.
  constexpr std::string_view kWorker = "DataLoader worker (pid";
  if (const std::size_t later = find_last(text, kWorker);
      (message.kind == MessageKind::kHostWorker || message.kind == MessageKind::kHostBus) &&
      later != std::string_view::npos && later > stack_at && std::all_of(frames.begin(), frames.end(), is_installed))
    frames = frames_of(text, chosen, later, later);
  if (message.quoted) {
    const std::size_t line = line_begin(text, chosen.begin, 4096);
    const std::string_view whole = text.substr(line, line_end(text, chosen.begin, 4096) - line);
    notes.quoted_by = trimmed(clean_line(whole.substr(split_prefix(whole).length), 400), 120) +
                      (frames.empty() ? "" : ", " + frames.back().file + ":" + std::to_string(frames.back().line));
    if (!frames.empty()) add_ended_at(frames.back(), notes);
    frames.clear();  // where the quoting exception was raised is not where memory ran out
  }
  // The runtime says the same of memory of the host that it cannot pin.
  const auto pins = [](const TracebackFrame& frame) {
    return frame.function == "pin_memory" || frame.file.ends_with("/pin_memory.py");
  };
  if (message.kind == MessageKind::kOutOfMemory &&
      ((message.framework == Framework::kNone && std::any_of(frames.begin(), frames.end(), pins)) ||
       names_pinned_call(text, chosen.begin)))
    message.kind = MessageKind::kHostPinned;
  // Nobody is told of this signal: a traceback beside it is another error's, or the launcher's own.
  if (message.kind == MessageKind::kHostKilled) frames.clear();
  return frames;
}

// How often the message is told, what else there is, and how it all ended.
void add_counts_and_ending(std::string_view text, Survey& seen, const std::vector<Chosen>& survived, WorksOn life,
                           Chosen& chosen, TextNotes& notes) {
  ErrorMessage& message = chosen.message;
  message.line = line_number(text, chosen.begin);
  const OtherFailures others = other_failures(text, seen, chosen, survived);
  message.count = std::max<std::uint64_t>(others.times != 0 ? others.times : seen.counts[message.kind], 1);
  message.distinct = std::max<std::size_t>(seen.texts[message.kind].size(), 1);
  constexpr std::size_t kMostSurvived = 8;
  for (const Chosen& before : survived) {
    if (message.survived.size() < kMostSurvived) message.survived.push_back(place_words(text, before));
  }
  notes.also = others.told;
  notes.who = writer_of(text, message.tag);
  add_further(text, seen, chosen, notes);
  add_ending(text, chosen, life, notes);
}

Result<Trace> read_plain(std::string_view text, std::string path) {
  const AnchorHits found = find_anchors(text);
  Survey seen = survey(text, found);
  TextPools pools(text);
  pools.adopt(seen);
  find_stand_in(text, pools, seen);
  if (!seen.first && !seen.first_weak) return no_error_in(text, seen);
  std::vector<Chosen> survived;
  Chosen chosen = what_ended(text, seen, survived);
  const WorksOn life = survives(text, seen, chosen, survived);
  add_from_others(seen, chosen);
  settle_kind(text, seen, chosen);
  ErrorMessage& message = chosen.message;
  // A kernel's own line may stand above the error or, from another stream of output, below it.
  if (message.kind == MessageKind::kDeviceAssert && seen.assertion) {
    fill_in(message, seen.assertion->message);
    message.assertion.lines = seen.assertion_lines;
  }

  Trace trace;
  trace.source_kind = "error-text";
  trace.source_path = std::move(path);
  trace.source_events = 1;
  trace.streams.emplace_back();
  const PoolPlace place = add_pools_of(text, chosen, pools, trace);
  if (is_of_pool(message)) add_async_pool(text, chosen.begin, message);
  TextNotes notes;
  const StackId stack = add_stack(trace, frames_of_message(text, seen, chosen, notes));
  if (stack != StackId()) trace.capabilities |= kStacks;
  // A program may ask for anything; what a device has, and what is held of it, has a limit.
  trace.count("sizes in the message that no device has", drop_numbers_above(message, kMostDeviceBytes));
  add_lines_beside(text, seen, chosen, notes);
  add_event(trace, message, stack, place);
  add_counts_and_ending(text, seen, survived, life, chosen, notes);
  add_surroundings(text, chosen, notes);
  write_statements(message, notes, trace.properties);
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
  // lines of the text as it was are not counted through
  if (trace) restate(trace->properties, [](StatedError& stated, TextNotes&) { stated.line = 0; });
  return trace;
}

}  // namespace faultline
