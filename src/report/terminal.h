// The report as a person reads it, on a terminal of 80 columns at three in the morning.
//
// Most important thing first: the findings, worst first, each top-down (rule and one sentence, where, which memory, allocated at, freed at,
// why we believe it, what to try, the page to read); then the account of the device's memory, whose parts add up; a picture of memory over
// time; what could not be judged; and one SUMMARY line, never wrapped, that stands for the whole in a log. A clean report is short.
// Findings with equal fingerprints are shown once, with a count. Text that came from the input is made harmless on its way (report/text.h).
#pragma once

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
  bool verbose = false;  // else one screen: the worst findings, three of each list
};

std::string to_terminal(const Report& report, const TerminalOptions& options);

// The SUMMARY line alone, without its label and what was read.
std::string summary_of(const Report& report);

}  // namespace faultline
