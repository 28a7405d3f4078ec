// Which line of one report is which of another: see report/comparison.h for what counts as the same.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "report/comparison.h"

namespace faultline {

// file, function, operation, kernel, line; what has no place is told apart by why.
using LineKey = std::tuple<std::string, std::string, std::string, std::string, std::uint32_t>;
LineKey key_of(const Location& location, const std::string& detail);

struct LineMatches {
  std::vector<std::pair<std::size_t, std::size_t>> same;  // places in the lists: before, after
  std::vector<std::size_t> only_before, only_after;
};
LineMatches match_lines(const std::vector<HeldLine>& before, const std::vector<HeldLine>& after,
                        const FilePairs& files);

std::set<std::string> files_of(const Report& report);
FilePairs pair_files(const std::set<std::string>& before, const std::set<std::string>& after);

// Fills the findings that are new, gone and kept.
void match_findings(const Report& before, const Report& after, Comparison& result);

}  // namespace faultline
