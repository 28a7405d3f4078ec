#include "sources/text_notes.h"

namespace faultline {

TextNotes read_text_notes(const Trace& trace) {
  const auto word = [&](const std::string& name) {
    const auto found = trace.properties.find("error." + name);
    return found == trace.properties.end() ? std::string() : found->second;
  };
  TextNotes notes;
  notes.quoted_by = word("quoted_by");
  for (int i = 1; i <= 4; ++i) {
    if (std::string other = word("also." + std::to_string(i)); !other.empty()) notes.also.push_back(std::move(other));
  }
  notes.sets_expandable = word("sets_expandable") == "yes";
  notes.has_traceback = word("has_traceback") == "yes";
  return notes;
}

}  // namespace faultline
