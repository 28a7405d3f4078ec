#include "sources/text_notes.h"

#include <cstdlib>

namespace faultline {

TextNotes read_text_notes(const Trace& trace) {
  const auto word = [&](const std::string& name) {
    const auto found = trace.properties.find("error." + name);
    return found == trace.properties.end() ? std::string() : found->second;
  };
  TextNotes notes;
  notes.quoted_by = word("quoted_by");
  notes.who = word("who");
  notes.launcher = word("launcher");
  notes.command = word("command");
  notes.program = word("program");
  notes.refused = word("refused");
  for (int i = 1; i <= 16; ++i) {
    const std::string name = "job." + std::to_string(i);
    if (std::string pid = word(name + ".pid"); !pid.empty()) notes.job_pids[std::move(pid)] = word(name + ".who");
  }
  notes.gpu = {word("gpu.name"), word("gpu.architecture"), word("gpu.built_for")};
  for (int i = 1; i <= 4; ++i) {
    if (std::string other = word("also." + std::to_string(i)); !other.empty()) notes.also.push_back(std::move(other));
  }
  notes.sets_expandable = word("sets_expandable") == "yes";
  notes.has_traceback = word("has_traceback") == "yes";
  notes.shows_no_exception = word("shows_no_exception") == "yes";
  notes.lives_by_words = word("lives_on") == "words";
  notes.ended_because = word("ended_while") == "caused";
  notes.names_torch = word("names_torch") == "yes";
  notes.is_windows = word("is_windows") == "yes";
  notes.is_of_other_language = word("is_of_other_language") == "yes";
  notes.of_request = word("of_request") == "yes";
  notes.ended_at = {word("ended_at.file"), word("ended_at.function"),
                    static_cast<std::uint32_t>(std::atoi(word("ended_at.line").c_str()))};
  for (int i = 1; i <= 8; ++i) {
    const std::string name = "further." + std::to_string(i) + ".";
    StatedError stated;
    stated.message = kind_named(word(name + "kind"));
    stated.kind = row_of(stated.message).group;
    if (!stated) break;
    stated.text = word(name + "text");
    stated.xid = word(name + "xid");
    stated.process = word(name + "process");
    stated.line = static_cast<std::uint64_t>(std::atoll(word(name + "line").c_str()));
    notes.further.push_back(std::move(stated));
  }
  return notes;
}

}  // namespace faultline
