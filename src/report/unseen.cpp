#include "report/unseen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "base/units.h"
#include "trace/file_format.h"
#include "trace/keeper.h"
#include "trace/recorded_part.h"

namespace faultline {
namespace {

constexpr std::size_t kMostText = 160;
constexpr std::size_t kMostNames = 4;

std::string signal_words(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("signal {} (SIG{})", signal, name) : fmt::format("signal {}", signal);
}

// "was ended by signal 11 (SIGSEGV)"; empty: well, or nobody knows.
std::string how_it_ended(const Ending& ending) {
  if (ending.command_signal != 0) return "was ended by " + signal_words(ending.command_signal);
  const std::int64_t status = ending.command_status.value_or(0);
  std::string how = status == 0 ? std::string() : "ended with status " + std::to_string(status);
  if (!ending.exception_type.empty()) {
    std::string words = ending.exception_type + (ending.exception_message.empty() ? "" : ": " + ending.exception_message.substr(0, ending.exception_message.find('\n')));
    if (words.size() > kMostText) words = words.substr(0, kMostText) + "…";
    how = (how.empty() ? "met an exception that nobody caught" : how + ", by an exception that nobody caught") + " (" + words + ")";
  } else if (status > 128 && status <= 128 + 64) {
    how += ", which a shell gives for a program that " + signal_words(static_cast<int>(status - 128)) + " ended";
  }
  return how;
}

// Events or files that are not there, of the counters that a trace's reader keeps.
bool means_loss(std::string_view counter) {
  static constexpr std::array<std::string_view, 7> kLosses = {kLostCutChunks, kLostDamagedChunks, kLostMissingEvents, kLostUnusableEvents, kLostWriterStopped, kLostDroppedRecords, kLostUnkept};
  return counter.find("could not be read") != std::string_view::npos || std::find(kLosses.begin(), kLosses.end(), counter) != kLosses.end();
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
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", name, times == 1 ? "once" : format_count(times) + " times");
  }
  const bool is_runtime = refused.contains("cuGetExportTable");
  const char* const why = is_runtime ? "Programs on the CUDA runtime do not run on it: that needs NVIDIA's private tables" : "It runs no kernels, and lacks what docs/virtual-gpu.md lists";
  return fmt::format("The virtual GPU refused calls that it cannot do: {}. {}. What the program would have done with them was not seen: run it without --gpu where there is a GPU; for PyTorch faultline plan needs none.", names, why);
}

}  // namespace

std::vector<std::string> unseen_of(const Input& input, bool is_explained) {
  std::vector<std::string> unseen;
  const Ending& first = input.parts.front().statements.ending;
  const std::string how = how_it_ended(first);
  if (!how.empty() && !is_explained) unseen.push_back("The program " + how + "; nothing that was recorded of its GPU memory explains it.");
  std::map<std::string, std::uint64_t> losses, refused;
  add_losses(input.lost, losses);
  for (const InputPart& part : input.parts) {
    const std::string who = part.name.empty() ? "the process" : part.name;
    for (const auto& [name, times] : refused_by_virtual(part.trace)) refused[name] += times;
    const RecordedPart recorded = recorded_part(part.trace);
    if (recorded.all) add_losses(part.trace.lost, losses);  // else it is said already that some is missing
    if (!recorded.all) unseen.push_back(fmt::format("Recording of {} ended before it did, {}; what came after was not seen.", who, recorded.because));
    else if (!recorded.all_calls) unseen.push_back(fmt::format("Launches, copies and waits of {} are not recorded from a moment on, {}.", who, recorded.because));
    const bool is_replaced = std::any_of(input.parts.begin(), input.parts.end(), [&](const InputPart& other) { return !part.name.empty() && other.name.starts_with(part.name + "-"); });
    if (!part.statements.is_recorded || part.statements.ending.exited || !recorded.all || is_replaced) continue;
    if (!first.command_status) unseen.push_back(fmt::format("How {} ended was not seen: its recording stops without an end.", who));
    else if (how.empty()) unseen.push_back(fmt::format("{} ended without exit(), by _exit(), a signal or another program in its place; what it held then was not judged.", who));
  }
  if (!losses.empty()) {
    std::string names;
    for (const auto& [name, count] : losses) names += fmt::format("{}{} {}", names.empty() ? "" : ", ", format_count(count), name);
    unseen.push_back("Not all of the recording could be read: " + names + ".");
  }
  if (!refused.empty()) unseen.push_back(virtual_words(refused));
  for (std::string& sentence : unseen) sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
  return unseen;
}

}  // namespace faultline
