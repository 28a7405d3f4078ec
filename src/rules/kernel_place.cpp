#include "rules/kernel_place.h"

#include "facts/kernel_name.h"
#include "fmt/format.h"
#include "rules/describe.h"

namespace faultline {
namespace {

std::string extent_text(const Extent3& extent, const Extent3& of) {
  const std::string text = fmt::format("({}, {}, {})", extent[0], extent[1], extent[2]);
  return of == Extent3{} ? text : text + fmt::format(" of ({}, {}, {})", of[0], of[1], of[2]);
}

}  // namespace

std::string kernel_words(const Trace& trace, StringId kernel) {
  return kernel.value == 0 ? std::string("A kernel") : "Kernel " + kernel_name(trace.strings.at(kernel));
}

void set_launch_line(const Facts& facts, StackId launched, Finding& finding) {
  const std::string kernel = finding.location.kernel;
  finding.location = location_of(facts, launched);
  finding.location.kernel = kernel;
  finding.call_path = callers_of(facts, launched);
}

void add_place(const Facts& facts, const KernelPlace& place, StackId launched, Finding& finding) {
  const auto text = [&](StringId id) { return facts.trace.strings.at(id); };
  Location source;
  source.file = text(place.file);
  source.line = place.line;
  source.function = kernel_name(text(place.function.value != 0 ? place.function : place.kernel));
  const Location launch = location_of(facts, launched);
  if (!source.file.empty() && (!is_library_file(source.file) || !launch.known())) {
    source.kernel = finding.location.kernel == source.function ? std::string() : finding.location.kernel;
    finding.location = source;
    if (launch.known()) finding.related.push_back({"launched", {}, 0, launch});
    for (const Location& caller : callers_of(facts, launched)) finding.related.push_back({"launched", {}, 0, caller});
  } else {
    set_launch_line(facts, launched, finding);
    if (!source.file.empty()) finding.related.push_back({"kernel", {}, 0, source});
  }
}

void add_thread_of(const KernelPlace& place, Finding& finding) {
  if (!place.has_thread) return;
  finding.evidence.push_back({"block", extent_text(place.block_index, place.grid)});
  finding.evidence.push_back({"thread", extent_text(place.thread_index, place.block)});
}

}  // namespace faultline
