#include "sources/error_text/told_beside.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/units.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/others.h"
#include "sources/error_text/text_limits.h"

namespace faultline {
namespace {

constexpr std::size_t kMostJobPids = 16, kMostJobLines = 256;
constexpr std::uint64_t kPoolUnit = 256;  // a pool rounds what it is asked for up to it

// TensorFlow's allocator tells the bytes, and the operation that wanted them the shape: one failure, where the bytes agree.
void add_tensor(const Survey& seen, ErrorMessage& message) {
  const auto asked = message.numbers.find("requested");
  if (asked == message.numbers.end() || message.words.count("tensor.shape") != 0) return;
  for (const Chosen& other : seen.all) {
    const auto bytes = other.message.numbers.find("requested");
    if (other.message.kind != message.kind || bytes == other.message.numbers.end() ||
        other.message.words.count("tensor.shape") == 0)
      continue;
    const ByteInterval rounded{bytes->second.min, bytes->second.max + kPoolUnit - 1};
    if (surely_less(rounded, asked->second) || surely_less(asked->second, rounded)) continue;
    for (const char* name : {"tensor.shape", "tensor.type"}) {
      if (const auto word = other.message.words.find(name); word != other.message.words.end())
        message.words.try_emplace(name, word->second);
    }
    return;
  }
}

// "[[{{node model/dense/MatMul}}]]", "[[node MatMul (defined at …)]]", "requested by op model/dense/MatMul"
void add_operation(std::string_view text, std::size_t at, ErrorMessage& message) {
  constexpr std::size_t kReach = 4096;
  const std::string_view near = text.substr(at, kReach);
  for (const std::string_view mark : {"[[{{node ", "[[node ", "requested by op "}) {
    const std::size_t found = near.find(mark);
    if (found == std::string_view::npos) continue;
    const std::string_view rest = near.substr(found + mark.size());
    const std::string_view name = rest.substr(0, rest.find_first_of(" }]\n\r"));
    if (name.empty() || name.size() > 200) continue;
    message.words["op"] = std::string(name);
    return;
  }
}

// "local_rank: 3 (pid: 91)", "Sending process 90 closing signal SIGTERM": the job's own.
void add_job(std::string_view text, Trace& trace) {
  constexpr std::string_view kRank = "local_rank: ", kPid = " (pid: ", kSending = "Sending process ";
  std::set<std::string> told;
  const auto add = [&](std::uint64_t pid, const std::string& who) {
    if (told.size() >= kMostJobPids || !told.insert(std::to_string(pid)).second) return;
    const std::string name = "error.job." + std::to_string(told.size());
    trace.properties[name + ".pid"] = std::to_string(pid);
    trace.properties[name + ".who"] = who;
  };
  std::size_t looks = 0;
  for (std::size_t at = text.find(kRank); at != std::string_view::npos && ++looks < kMostJobLines;
       at = text.find(kRank, at + 1)) {
    const auto rank = number_at(text, at + kRank.size());
    const auto pid = number_after(text.substr(at, kRank.size() + 64), kPid);
    if (rank && pid) add(*pid, "local rank " + std::to_string(*rank));
  }
  looks = 0;
  for (std::size_t at = text.find(kSending); at != std::string_view::npos && ++looks < kMostJobLines;
       at = text.find(kSending, at + 1)) {
    const auto pid = number_at(text, at + kSending.size());
    if (pid && text.substr(at, 80).find(" closing signal") != std::string_view::npos) add(*pid, "a rank");
  }
}

}  // namespace

void add_told_beside(std::string_view text, const Survey& seen, Chosen& chosen, Trace& trace) {
  ErrorMessage& message = chosen.message;
  if (message.framework == "tensorflow" && message.kind == "out-of-memory") {
    add_tensor(seen, message);
    add_operation(text, line_begin(text, chosen.begin, kLongestLine), message);
  }
  const std::string& kind = message.kind;
  if ((kind.ends_with("-init") || kind == "cudnn-internal") && seen.first_weak &&
      seen.first_weak->begin < chosen.begin && seen.first_weak->message.framework != "pytorch" &&
      seen.first_weak->message.is_allocation()) {
    const auto bytes = seen.first_weak->message.numbers.find("requested");
    if (bytes != seen.first_weak->message.numbers.end())
      trace.properties["error.refused"] = format_bytes(bytes->second.middle()) + " (line " +
                                          std::to_string(line_number(text, seen.first_weak->begin)) + ")";
  }
  if (message.words.count("process.1.pid") != 0) add_job(text, trace);
}

}  // namespace faultline
