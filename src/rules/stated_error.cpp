#include "rules/stated_error.h"

#include <algorithm>
#include <cstdlib>

#include "base/open_unit.h"
#include "base/shell_words.h"
#include "rules/describe.h"
#include "rules/platform.h"
#include "sources/messages/programs.h"

namespace faultline {
namespace {

// Whole words, up to `length` characters.
std::string first_part(std::string words, std::size_t length) {
  if (words.size() > length) words = words.substr(0, words.rfind(' ', length)) + " …";
  while (!words.empty() && (words.back() == '.' || words.back() == ' ')) words.pop_back();
  return words;
}

}  // namespace

StackId stack_of(const Case& subject) {
  return subject.statements().message_only && !subject.trace().events.empty() ? subject.trace().events.back().stack
                                                                              : StackId();
}

Finding begin_stated(const Case& subject, std::string_view rule) {
  // a text may hold maps of other devices too; the message's own event is the last
  const Trace& trace = subject.trace();
  const std::uint16_t device = subject.statements().message_only && !trace.events.empty() ? trace.events.back().device
                               : trace.devices.empty()                                    ? std::uint16_t{0}
                                                                                          : trace.devices.front().index;
  Finding finding = finding_at(subject.facts(), rule, Severity::kError, Confidence::kProved, device, stack_of(subject));
  finding.count = subject.statements().error.count;
  return finding;
}

bool is_of_other(const StatedError& stated) {
  return stated.other_framework != Framework::kNone || stated.framework == Framework::kOther;
}

const TextNotes& notes_of(const Case& subject) {
  static const TextNotes kNothing;
  return subject.statements().message_only ? subject.statements().notes : kNothing;
}

std::uint64_t stated_bytes(ByteInterval bytes) {
  return open_unit_words(bytes.min, bytes.max) ? bytes.min : bytes.middle();
}

void add_stated_bytes(Finding& finding, std::string_view name, ByteInterval bytes) {
  if (!open_unit_words(bytes.min, bytes.max)) return add_evidence(finding, std::string(name), bytes.middle());
  const std::string bare(name.substr(0, name.rfind("_bytes")));
  add_evidence(finding, bare + "_at_least_bytes", bytes.min);
  add_evidence(finding, bare + "_at_most_bytes", bytes.max);
}

void finish_stated(const Case& subject, Finding& finding) {
  const StatedError& stated = subject.statements().error;
  for_platform(platform_of(stated), finding);
  if (stated.benign && finding.severity == Severity::kError) {
    finding.severity = Severity::kWarning;
    finding.message = "The program works around this by itself. " + finding.message;
  }
  const TextNotes& notes = notes_of(subject);
  if (stated.count > 1) {
    add_evidence(finding, "messages", stated.count);
    add_evidence(finding, "different_messages", stated.distinct);
  }
  for (const std::string& before : stated.survived) add_evidence(finding, "survived_before", before);
  for (const std::string& other : notes.also) add_evidence(finding, "also_in_text", other);
  if (stated.lives_on && !stated.benign && finding.severity != Severity::kNote) {
    // A request that failed has failed, whatever became of the server.
    if (!notes.of_request) finding.severity = std::max(finding.severity, Severity::kWarning);
    const std::string went_on = notes.lives_by_words ? "by its log the program likely went on"
                                                     : "the program went on, as the log after it shows";
    finding.message =
        (notes.of_request ? "This request failed; " + went_on + ". "
         : notes.shows_no_exception
             ? "T" + went_on.substr(1) +
                   (notes.lives_by_words ? "" : "; the log does not show whether it had this result") + ". "
         : notes.lives_by_words ? std::string("The program likely survived this, by its log. ")
                                : std::string("The program survived this: its log shows work after it. ")) +
        finding.message;
    add_evidence(finding, "ending",
                 std::string(notes.lives_by_words ? "words behind the message say that the program goes on"
                                                  : "the log goes on behind the message"));
  }
  if (stated.ended_while_handled) {
    finding.message = "The program ended in " + stated.ended_by +
                      (notes.ended_because ? ", raised because of this: " : ", raised while this was being handled: ") +
                      finding.message;
    add_evidence(finding, "ended_by", stated.ended_by);
  } else if (!stated.ended_by.empty()) {
    finding.severity = std::max(finding.severity, Severity::kWarning);
    // After a kernel's fault nothing works on the device: where one was only printed and the program went on, it may have been another process's.
    const bool is_fault = stated.group() == ErrorKind::kFault;
    if (is_fault) finding.confidence = std::max(finding.confidence, Confidence::kLikely);
    finding.message = std::string(is_fault ? "Before the program ended in another error, a line of the text says: "
                                           : "This did not end the program; another error did, later: ") +
                      finding.message;
    add_evidence(finding, "ended_by", stated.ended_by);
  }
  if (!notes.quoted_by.empty()) {
    finding.severity = std::max(finding.severity, Severity::kWarning);
    finding.confidence = std::max(finding.confidence, Confidence::kLikely);
    finding.message =
        "The exception that ended the program only quotes this; whether it happened here is not shown. If it did: " +
        finding.message;
    add_evidence(finding, "quoted_by", notes.quoted_by);
  }
  if (const LogWriter& who = notes.who; !who.name.empty())
    finding.message = (who.is_rank || who.is_task ? "On " : "In ") + who.name + ": " + finding.message;
  // What ended others comes before what was survived.
  std::vector<std::string> others = notes.also;
  others.insert(others.end(), stated.survived.begin(), stated.survived.end());
  for (std::size_t i = 0; i < others.size() && i < 4; ++i)
    finding.message += (i == 0 ? " Also in this text: " : "; ") + first_part(others[i], 200);
  if (others.size() > 4) finding.message += "; and " + std::to_string(others.size() - 4) + " more";
  if (!others.empty() && !finding.message.ends_with("…")) finding.message += ".";
  if (!stated.torch_version.empty())
    add_evidence(finding, "pytorch",
                 (stated.torch_version[0] == '<' ? "at most " + stated.torch_version.substr(2) + ", by its Python"
                                                 : stated.torch_version));
  if (stated.line != 0) add_evidence(finding, "line_in_text", stated.line);
  add_evidence(finding, "writer", stated.tag);
  add_evidence(finding, "text", stated.text);
  finding.fingerprint = fingerprint(finding.rule, finding.location, std::string(name_of(stated.kind)));
}

namespace {

// Of a run, as it was typed; empty: it is not known, or too long to be told.
std::string recorded_command(const Trace& trace) {
  constexpr std::size_t kLongest = 160;
  const auto found = trace.properties.find("run.command");
  return found == trace.properties.end() || found->second.size() > kLongest ? std::string() : found->second;
}

// The file in which the stacks of a recording begin, where they agree on one.
std::string first_file(const Case& subject) {
  const Trace& trace = subject.trace();
  std::string_view file;
  for (std::uint32_t at = 1; at < trace.stacks.size(); ++at) {
    const StackId stack(at);
    if (trace.stacks.parent(stack).value != 0) continue;
    const Frame& frame = trace.stacks.frame(stack);
    const std::string_view name = trace.strings.at(frame.file);
    if (trace.strings.at(frame.function) != "<module>" || !name.ends_with(".py") || is_library_file(std::string(name)))
      continue;
    if (!file.empty() && file != name) return {};
    file = name;
  }
  return std::string(file);
}

// Where no line of <module> is shown: the file of all lines that are nobody's library.
std::string only_file(const std::vector<Location>& places) {
  std::string file;
  for (const Location& place : places) {
    if (!place.file.ends_with(".py") || is_library_file(place.file)) continue;
    if (!file.empty() && file != place.file) return {};
    file = place.file;
  }
  return file;
}

}  // namespace

std::string program_words(const Case& subject) {
  if (std::string command = recorded_command(subject.trace()); !command.empty()) return command;
  std::string file;
  std::vector<Location> places = callers_of(subject.facts(), stack_of(subject), 64);
  places.insert(places.begin(), location_of(subject.facts(), stack_of(subject)));
  const TextNotes& notes = notes_of(subject);
  places.push_back(
      {notes.ended_at.file, static_cast<std::uint32_t>(notes.ended_at.line), notes.ended_at.function, {}, {}});
  const std::string& path = subject.trace().source_path;
  bool is_notebook = path.ends_with(".ipynb");
  for (const Location& place : places) {
    is_notebook |= place.file.starts_with("cell [");
    const bool is_start = place.function == "<module>" || (place.function == "main" && file.empty());
    if (is_start && place.file.ends_with(".py") && !is_library_file(place.file)) file = place.file;
  }
  if (!notes.command.empty() && is_plain_command(notes.command)) return notes.command;
  if (file.empty() && !is_library_file(notes.program)) file = notes.program;
  if (file.empty()) file = first_file(subject);
  if (file.empty()) file = only_file(places);
  file = file.substr(file.find_last_of("/\\") + 1);
  if (!file.empty() && !is_plain_word(file)) file = "PROGRAM.py";
  if (is_notebook && file.empty()) {
    std::string name = path.ends_with(".ipynb") ? path.substr(path.find_last_of("/\\") + 1) : "notebook.ipynb";
    name.resize(name.size() - 6);
    if (!is_plain_word(name)) name = "NOTEBOOK";
    return "python " + name + ".py (made by jupyter nbconvert --to script " + name + ".ipynb)";
  }
  if (notes.launcher.ends_with("pytest"))
    return notes.launcher +
           (places.front().known() && is_plain_word(places.front().file) ? " " + places.front().file : std::string());
  if (!notes.launcher.empty()) return notes.launcher + " … " + (file.empty() ? "train.py" : file);
  if (!file.empty()) return "python " + file;
  const StatedError& stated = subject.statements().error;
  const Program* const program = program_of(stated.program_name());
  const bool is_other = notes.is_of_other_language || (program != nullptr && !program->is_python);
  return is_other && !notes.has_traceback ? "PROGRAM" : "python train.py";
}

bool is_torch_before(const StatedError& stated, unsigned major, unsigned minor) {
  const auto older = [&](unsigned of_major, unsigned of_minor) {
    return of_major < major || (of_major == major && of_minor < minor);
  };
  if (!stated.torch_version.empty()) {
    const std::string version = stated.torch_version.substr(stated.torch_version[0] == '<' ? 2 : 0);
    if (older(static_cast<unsigned>(std::atoi(version.c_str())),
              static_cast<unsigned>(std::atoi(version.c_str() + version.find('.') + 1))))
      return true;
    if (stated.torch_version[0] != '<') return false;
  }
  // 1.4 counts what is reserved where it had counted what is cached; 2.1 writes "GPU 0 has a total capacity of …" where it had been "(GPU 0; 7.79 GiB total capacity; …".
  if (stated.text.find(" cached)") != std::string::npos && older(1, 3)) return true;
  return stated.text.find("total capacity;") != std::string::npos && older(2, 0);
}

std::string device_words(const Case& subject) {
  const StatedError& stated = subject.statements().error;
  const std::string name = platform_of(stated) == Platform::kAscend ? "NPU" : "GPU";
  return stated.device ? name + " " + std::to_string(*stated.device) : "the " + name;
}

}  // namespace faultline
