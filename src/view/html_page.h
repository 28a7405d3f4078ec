// The page: one HTML file that needs nothing else, made of a report and of the scenes of its recording.
//
// What is said stands in it as HTML, readable without a script; what is drawn is drawn by the script from the payload. The page allows itself nothing but its own
// script and style (Content-Security-Policy), names no other address, and writes whatever came from the input as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "report/terminal.h"
#include "sources/input.h"
#include "view/payload.h"
#include "view/scene.h"

namespace faultline::view {

struct Viewed {
  Report report;
  std::string program;  // "train.py"; empty: not known
  std::vector<Scene> scenes;
  std::vector<const Trace*> traces;   // of each scene, in the input, which must still be there
  std::vector<Jump> jumps;            // of each finding of the report
  std::vector<std::string> left_out;  // what is not drawn, in sentences
};
Viewed look_at(const Input& input);

struct PageOptions {
  bool with_source = true;  // source lines of files that can be read
  TerminalOptions text;     // paths as for the terminal
};
// At most kMostPageBytes: where it would be more, the scenes are made smaller, and the page tells what it holds.
inline constexpr std::size_t kMostPageBytes = 3'000'000;
std::string make_page(Viewed viewed, const PageOptions& options);

}  // namespace faultline::view
