// The report as a person reads it, on a terminal of 80 columns at three in the morning.
//
// Most important thing first: the findings, worst first, each top-down (rule and one sentence, where, which memory, allocated at, freed at,
// why we believe it, what to try, the page to read); then the account of the device's memory, whose parts add up; a picture of memory over
// time; what could not be judged; and one SUMMARY line, never wrapped, that stands for the whole in a log. A clean report is short.
// Three lengths: brief (what happened, the line, the cause, the best thing to do, in about a dozen lines), a screen, and everything.
// Findings with equal fingerprints are shown once, with a count. Text that came from the input is made harmless on its way (report/text.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "report/report.h"

namespace faultline {

struct TerminalOptions {
  bool colour = false;
  int width = 80;        // columns; text is kept between 48 and 120
  bool unicode = true;   // false: ASCII only
  std::string home;      // shown as ~
  std::string cwd;       // paths below it are shown relative to it
  std::string docs;      // where "docs/rules/…" lies; empty: not known
  bool brief = false;    // of each finding what a person needs first
  bool verbose = false;  // everything; without either one screen: the worst findings, three of each list
  std::function<std::string(const std::string& file, std::uint32_t line)>
      source;  // that line's text, where it can be read
};

std::string to_terminal(const Report& report, const TerminalOptions& options);

// The SUMMARY line alone, without its label and what was read.
std::string summary_of(const Report& report);

}  // namespace faultline
