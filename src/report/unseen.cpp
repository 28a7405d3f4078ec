#include "report/unseen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "base/units.h"
#include "facts/stack_facts.h"
#include "trace/file_format.h"
#include "trace/keeper.h"
#include "trace/recorded_part.h"

namespace faultline {

std::string signal_words(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("signal {} (SIG{})", signal, name) : fmt::format("signal {}", signal);
}

namespace {

constexpr std::size_t kMostText = 160;
constexpr std::size_t kMostNames = 4;

// "was killed by signal 11 (SIGSEGV)"; empty: well, or nobody knows.
std::string how_it_ended(const Ending& ending) {
  if (ending.command_signal != 0) return "was killed by " + signal_words(ending.command_signal);
  const std::int64_t status = ending.command_status.value_or(0);
  std::string how = status == 0 ? std::string() : "ended with status " + std::to_string(status);
  if (!ending.exception_type.empty()) {
    std::string words =
        ending.exception_type + (ending.exception_message.empty()
                                     ? ""
                                     : ": " + ending.exception_message.substr(0, ending.exception_message.find('\n')));
    if (words.size() > kMostText) words = words.substr(0, kMostText) + "…";
    how = (how.empty() ? "met an exception that nobody caught" : how + ", by an exception that nobody caught") + " (" +
          words + ")";
  } else if (status > 128 && status <= 128 + 64) {
    how += ", which a shell gives for a program that " + signal_words(static_cast<int>(status - 128)) + " ended";
  }
  return how;
}

// The last call that the driver refused, and from which line; empty: none was.
std::string last_refusal(const Trace& trace) {
  const auto refused = std::find_if(trace.events.rbegin(), trace.events.rend(), [](const Event& event) {
    return event.kind == EventKind::kOpEnd && event.has(kFailed);
  });
  if (refused == trace.events.rend()) return {};
  std::string words(trace.strings.at(StringId(refused->extra)));
  if (words.find(": CUDA_ERROR") == std::string::npos) return {};
  const StackId line = StackFacts(trace).line(refused->stack);
  if (line.value != 0) {
    const Frame& frame = trace.stacks.frame(line);
    const std::string_view file = trace.strings.at(frame.file);
    words += fmt::format(", at {}:{}", file.substr(file.rfind('/') + 1), frame.line);
  }
  return words;
}

// Where a recording ends: "the last of its 4,711 events is at train.py:12"; empty: none has a line.
std::string last_place(const Trace& trace) {
  constexpr std::size_t kLookedAt = 10'000;
  const StackFacts stacks(trace);
  std::size_t looked_at = 0;
  for (auto event = trace.events.rbegin(); event != trace.events.rend() && looked_at++ < kLookedAt; ++event) {
    const StackId line = stacks.line(event->stack);
    if (line.value == 0) continue;
    const Frame& frame = trace.stacks.frame(line);
    const std::string_view file = trace.strings.at(frame.file);
    return fmt::format("; the last of its {} events with a line is at {}:{}", format_count(trace.events.size()),
                       file.substr(file.rfind('/') + 1), frame.line);
  }
  return {};
}

// Whether the driver refused all that was recorded: how many calls, and the first; 0: it did not.
std::pair<std::uint64_t, std::string> all_refused(const Trace& trace) {
  std::pair<std::uint64_t, std::string> refused;
  for (const Event& event : trace.events) {
    const std::string_view words = event.kind == EventKind::kOpEnd && event.has(kFailed)
                                       ? trace.strings.at(StringId(event.extra))
                                       : std::string_view();
    if (words.find(": CUDA_ERROR") == std::string_view::npos) return {};
    if (refused.first++ == 0) refused.second = words;
  }
  return refused;
}

// A process of the program that ended badly while the command as a whole did not: how; empty: well, or nobody knows.
std::string how_process_ended(const Ending& ending) {
  Ending own = ending;
  own.command_status = ending.status;
  return ending.command_status.value_or(0) == 0 && ending.command_signal == 0 ? how_it_ended(own) : std::string();
}

// Events or files that are not there, of the counters that a trace's reader keeps.
struct Loss {
  std::string_view counter, one, several;
};
constexpr std::array<Loss, 7> kLosses = {
    {{kLostCutChunks, "piece is cut off", "pieces are cut off"},
     {kLostDamagedChunks, "piece is damaged", "pieces are damaged"},
     {kLostMissingEvents, "event is missing", "events are missing"},
     {kLostUnusableEvents, "event makes no sense", "events make no sense"},
     {kLostWriterStopped, "thread stopped writing", "threads stopped writing"},
     {kLostDroppedRecords, "record was dropped", "records were dropped"},
     {kLostUnkept, "byte could not be written to disk", "bytes could not be written to disk"}}};
// What is odd without being missing.
constexpr std::array<Loss, 5> kOddities = {
    {{kLostUnfinishedWriters, "thread did not say that it was done", "threads did not say that they were done"},
     {kLostUnknownRecords, "record of an unknown kind was passed over", "records of an unknown kind were passed over"},
     {kLostBadDefinitions, "definition makes no sense", "definitions make no sense"},
     {kLostUnknownReferences, "event names something that is not there", "events name something that is not there"},
     {kLostFinalState, "final state is not complete", "final states are not complete"}}};
// What cannot be so: of what else it says nothing is certain either.
constexpr std::array<std::string_view, 3> kContradictions = {"frees of memory that was not allocated",
                                                             "blocks placed over others in use",
                                                             "segments taken twice at one address"};
// "frees of memory that …" of one of them: "free of memory that …".
std::string one_of(std::string counter) {
  std::size_t end = counter.find(' ');
  if (end != std::string::npos && end > 0 && counter[end - 1] != 's') end = counter.find(' ', end + 1);
  if (end == std::string::npos || counter[end - 1] != 's') return counter;
  if (counter.substr(0, end).ends_with("ies")) return counter.replace(end - 3, 3, "y");
  return counter.erase(end - 1, 1);
}
const Loss* loss_of(std::string_view counter) {
  const auto at =
      std::find_if(kLosses.begin(), kLosses.end(), [&](const Loss& loss) { return loss.counter == counter; });
  return at != kLosses.end() ? &*at : nullptr;
}
bool means_loss(std::string_view counter) {
  return counter.find("could not be read") != std::string_view::npos || loss_of(counter) != nullptr;
}

void add_losses(const std::map<std::string, std::uint64_t>& lost, std::map<std::string, std::uint64_t>& losses) {
  for (const auto& [name, count] : lost) {
    if (count != 0 && means_loss(name)) losses[name] += count;
  }
}

// The calls that a virtual GPU does not have, and how often they were made.
std::map<std::string, std::uint64_t> refused_by_virtual(const Trace& trace) {
  std::map<std::string, std::uint64_t> refused;
  const auto gpu = trace.properties.find("run.gpu");
  if (gpu == trace.properties.end() || !gpu->second.starts_with("virtual")) return refused;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kOpEnd || !event.has(kFailed)) continue;
    const std::string_view words = trace.strings.at(StringId(event.extra));
    if (words.ends_with(": CUDA_ERROR_NOT_SUPPORTED")) ++refused[std::string(words.substr(0, words.find(':')))];
  }
  return refused;
}

std::string virtual_words(const std::map<std::string, std::uint64_t>& refused) {
  std::string names;
  std::size_t told = 0;
  for (const auto& [name, times] : refused) {
    if (told++ == kMostNames) {
      names += fmt::format(" and {} more", refused.size() - kMostNames);
      break;
    }
    names +=
        fmt::format("{}{} ({})", names.empty() ? "" : ", ", name, times == 1 ? "once" : format_count(times) + " times");
  }
  const bool is_runtime = refused.contains("cuGetExportTable");
  const char* const why = is_runtime
                              ? "Programs on the CUDA runtime do not run on it: that needs NVIDIA's private tables"
                              : "It runs no kernels, and lacks what docs/virtual-gpu.md lists";
  return fmt::format(
      "The virtual GPU refused calls that it cannot do: {}. {}. What the program would have done with them was not "
      "seen: run it without --gpu where there is a GPU; for PyTorch faultline plan needs none.",
      names, why);
}

// Processes of the run that were seen to use the driver past the recorder.
void add_unrecorded(const Trace& trace, std::vector<std::string>& unseen) {
  constexpr std::string_view kUnrecorded = "run.unrecorded.";
  for (auto at = trace.properties.lower_bound(std::string(kUnrecorded));
       at != trace.properties.end() && at->first.starts_with(kUnrecorded); ++at) {
    unseen.push_back(fmt::format(
        "Process {} ({}) of the program used the CUDA driver and was not recorded: it does not have the recorder, as "
        "after a start with a cleared environment (env -i, sudo, a container); nothing is known of its GPU memory.",
        at->first.substr(kUnrecorded.size()), at->second));
  }
}

}  // namespace

std::string loss_words(const std::string& counter, std::uint64_t count) {
  const Loss* loss = loss_of(counter);
  const auto odd =
      std::find_if(kOddities.begin(), kOddities.end(), [&](const Loss& one) { return one.counter == counter; });
  if (loss == nullptr && odd != kOddities.end()) loss = &*odd;
  if (loss == nullptr) return format_count(count) + " " + (count == 1 ? one_of(counter) : counter);
  return format_count(count) + " " + std::string(count == 1 ? loss->one : loss->several);
}

std::vector<std::string> unseen_of(const Input& input, bool is_explained) {
  std::vector<std::string> unseen;
  Ending first = input.parts.front().statements.ending;
  std::string how = how_it_ended(first), refusal;
  const auto has_exception = [](const InputPart& part) { return !part.statements.ending.exception_type.empty(); };
  if (const auto part = std::find_if(input.parts.begin(), input.parts.end(), has_exception);
      !how.empty() && part != input.parts.end()) {
    first.exception_type = part->statements.ending.exception_type;
    first.exception_message = part->statements.ending.exception_message;
    how = how_it_ended(first);
  }
  // the command went well; what its processes did is told of each
  if (first.command_status.value_or(0) == 0 && first.command_signal == 0) how.clear();
  for (const InputPart& part : input.parts) {
    if (refusal.empty()) refusal = last_refusal(part.trace);
  }
  if (!how.empty() && !is_explained) {
    unseen.push_back(refusal.empty()
                         ? "The program " + how + "; nothing that was recorded of its GPU memory explains it."
                         : "The program " + how +
                               "; no finding explains it. The last call that the driver refused was " + refusal + ".");
  } else if (first.command_signal != 0) {
    unseen.push_back("The program " + how + "; what it would have done after that was not seen.");
  }
  add_unrecorded(input.parts.front().trace, unseen);
  std::map<std::string, std::uint64_t> losses, refused;
  std::string why_lost, contradictions;
  add_losses(input.lost, losses);
  for (const InputPart& part : input.parts) {
    const std::string who = part.name.empty() ? "the process" : part.name;
    for (const auto& [name, times] : refused_by_virtual(part.trace)) refused[name] += times;
    if (const auto [calls, call] = all_refused(part.trace); calls != 0) {
      unseen.push_back(
          fmt::format("The driver refused every call that was recorded of {} ({}), first {}: it did nothing on a GPU.",
                      who, format_count(calls), call));
    }
    for (const std::string_view name : kContradictions) {
      const auto found = part.trace.lost.find(std::string(name));
      if (found != part.trace.lost.end() && found->second != 0)
        contradictions += (contradictions.empty() ? "" : ", ") + loss_words(found->first, found->second);
    }
    const RecordedPart recorded = recorded_part(part.trace);
    if (const std::string own = how_process_ended(part.statements.ending); !own.empty() && !is_explained)
      unseen.push_back(fmt::format("{} {}; nothing that was recorded of its GPU memory explains it.", who, own));
    if (recorded.all) add_losses(part.trace.lost, losses);  // else it is said already that some is missing
    if (recorded.all && recorded.all_calls && why_lost.empty()) why_lost = recorded.because;
    if (!recorded.all)
      unseen.push_back(fmt::format("Recording of {} ended before it did, {}{}; what came after was not seen.", who,
                                   recorded.because, last_place(part.trace)));
    else if (!recorded.all_calls)
      unseen.push_back(fmt::format("Launches, copies and waits of {} are not recorded from a moment on, {}.", who,
                                   recorded.because));
    const bool is_replaced = std::any_of(input.parts.begin(), input.parts.end(), [&](const InputPart& other) {
      return !part.name.empty() && other.name.starts_with(part.name + "-");
    });
    if (!part.statements.is_recorded || part.statements.ending.exited || !recorded.all || is_replaced) continue;
    if (!first.command_status)
      unseen.push_back(
          fmt::format("How {} ended was not seen: its recording stops without an end{}.", who, last_place(part.trace)));
    else if (how.empty())
      unseen.push_back(
          fmt::format("{} ended without exit(), by _exit(), a signal or another program in its place, or the end of "
                      "its recording is lost; what it held then was not judged.",
                      who));
  }
  if (!losses.empty()) {
    std::string names;
    for (const auto& [name, count] : losses) names += (names.empty() ? "" : ", ") + loss_words(name, count);
    unseen.push_back("Not all of the recording could be read: " + names +
                     (why_lost.empty() ? "." : "; " + why_lost + "."));
  }
  if (!contradictions.empty())
    unseen.push_back("The recording contradicts itself: " + contradictions + "; what it shows of memory can be wrong.");
  if (!refused.empty()) unseen.push_back(virtual_words(refused));
  for (std::string& sentence : unseen)
    sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
  return unseen;
}

}  // namespace faultline
