// What a text states, as properties of a trace (error.<name>): the border between types and files, both ways.
#pragma once

#include <map>
#include <string>

#include "sources/stated_error.h"
#include "sources/text_notes.h"

namespace faultline {

using Properties = std::map<std::string, std::string>;

void write_statements(const StatedError& stated, const TextNotes& notes, Properties& properties);
// Nothing stated, where the properties are not of a text.
StatedError read_stated_error(const Properties& properties);
TextNotes read_text_notes(const Properties& properties);
// Reads both, lets them be changed, and writes them again.
template <typename Change>
void restate(Properties& properties, Change change) {
  StatedError stated = read_stated_error(properties);
  TextNotes notes = read_text_notes(properties);
  change(stated, notes);
  std::erase_if(properties, [](const auto& property) { return property.first.starts_with("error."); });
  write_statements(stated, notes, properties);
}

}  // namespace faultline
