#include "report/comparison_match.h"

#include <algorithm>
#include <map>
#include <optional>

#include "facts/libraries.h"
#include "report/finding_text.h"

namespace faultline {
namespace {

// A function of a file, in which lines may have moved.
using FunctionKey = std::tuple<std::string, std::string, std::string, std::string>;

std::string file_after(const std::string& file, const FilePairs& files) {
  const auto pair = std::find_if(files.begin(), files.end(), [&](const auto& one) { return one.first == file; });
  return pair == files.end() ? file : pair->second;
}

bool holds_alike(const HeldLine& a, const HeldLine& b) {
  const auto names = [](const HeldLine& line) {
    std::set<std::string> all;
    for (const auto& [name, bytes] : line.categories) all.insert(name);
    return all;
  };
  return names(a) == names(b);
}

// Lines of one function, as places in the two lists, by line.
struct Function {
  std::vector<std::size_t> before, after;
};

// By how much all lines of a function have moved, where they have: the same number of lines, each as far, and memory of the same kinds.
std::optional<std::int64_t> common_shift(const Function& function, const std::vector<HeldLine>& before,
                                         const std::vector<HeldLine>& after) {
  if (function.before.empty() || function.before.size() != function.after.size()) return std::nullopt;
  std::optional<std::int64_t> shift;
  for (std::size_t at = 0; at < function.before.size(); ++at) {
    const HeldLine& from = before[function.before[at]];
    const HeldLine& to = after[function.after[at]];
    const std::int64_t moved = std::int64_t{to.location.line} - std::int64_t{from.location.line};
    if (!holds_alike(from, to) || moved != shift.value_or(moved)) return std::nullopt;
    shift = moved;
  }
  return shift;
}

void match_function(const Function& function, bool may_move, const std::vector<HeldLine>& before,
                    const std::vector<HeldLine>& after, LineMatches& matches) {
  if (may_move && common_shift(function, before, after)) {
    for (std::size_t at = 0; at < function.before.size(); ++at)
      matches.same.emplace_back(function.before[at], function.after[at]);
    return;
  }
  std::vector<std::size_t> gone, come = function.after;
  for (const std::size_t from : function.before) {
    const auto same = std::find_if(come.begin(), come.end(), [&](std::size_t to) {
      return after[to].location.line == before[from].location.line;
    });
    if (same == come.end()) {
      gone.push_back(from);
      continue;
    }
    matches.same.emplace_back(from, *same);
    come.erase(same);
  }
  if (may_move && gone.size() == 1 && come.size() == 1 && holds_alike(before[gone.front()], after[come.front()]) &&
      before[gone.front()].detail == after[come.front()].detail) {
    matches.same.emplace_back(gone.front(), come.front());
    return;
  }
  matches.only_before.insert(matches.only_before.end(), gone.begin(), gone.end());
  matches.only_after.insert(matches.only_after.end(), come.begin(), come.end());
}

std::string_view name_of_file(std::string_view path) { return path.substr(path.find_last_of("/\\") + 1); }

}  // namespace

LineKey key_of(const Location& location, const std::string& detail) {
  return {location.file, location.known() ? location.function : detail, location.op, location.kernel, location.line};
}

LineMatches match_lines(const std::vector<HeldLine>& before, const std::vector<HeldLine>& after,
                        const FilePairs& files) {
  std::map<FunctionKey, Function> functions;
  const auto function_of = [&](const HeldLine& line, bool is_before) -> Function& {
    const auto [file, function, op, kernel, number] = key_of(line.location, line.detail);
    return functions[{is_before ? file_after(file, files) : file, function, op, kernel}];
  };
  for (std::size_t at = 0; at < before.size(); ++at) function_of(before[at], true).before.push_back(at);
  for (std::size_t at = 0; at < after.size(); ++at) function_of(after[at], false).after.push_back(at);
  LineMatches matches;
  for (auto& [key, function] : functions) {
    const auto sort = [](std::vector<std::size_t>& places, const std::vector<HeldLine>& lines) {
      std::stable_sort(places.begin(), places.end(),
                       [&](std::size_t a, std::size_t b) { return lines[a].location.line < lines[b].location.line; });
    };
    sort(function.before, before);
    sort(function.after, after);
    const auto& [file, name, op, kernel] = key;
    match_function(function, !file.empty() && !name.empty(), before, after, matches);
  }
  return matches;
}

std::set<std::string> files_of(const Report& report) {
  std::set<std::string> files;
  const auto add = [&](const Location& location) {
    if (!location.file.empty()) files.insert(location.file);
  };
  for (const DeviceReport& device : report.devices) {
    for (const Holder& holder : device.holders) add(holder.location);
    for (const Holder& holder : device.lines) add(holder.location);
  }
  for (const Finding& finding : report.findings) add(place_to_look(finding));
  return files;
}

FilePairs pair_files(const std::set<std::string>& before, const std::set<std::string>& after) {
  // What was installed is known by its place below site-packages, everything else by its name.
  using Name = std::pair<bool, std::string>;
  const auto named = [](const std::set<std::string>& files, const std::set<std::string>& others) {
    std::map<Name, std::vector<std::string>> names;
    for (const std::string& file : files) {
      if (others.contains(file)) continue;
      const std::string_view installed = installed_part(file);
      names[{!installed.empty(), std::string(installed.empty() ? name_of_file(file) : installed)}].push_back(file);
    }
    return names;
  };
  const auto old_names = named(before, after), new_names = named(after, before);
  FilePairs pairs;
  for (const auto& [name, files] : old_names) {
    const auto same = new_names.find(name);
    if (same != new_names.end() && files.size() == 1 && same->second.size() == 1)
      pairs.emplace_back(files.front(), same->second.front());
  }
  return pairs;
}

void match_findings(const Report& before, const Report& after, Comparison& result) {
  std::vector<FindingGroup> gone = group_findings(before.findings), come = group_findings(after.findings);
  const auto keep = [&](std::size_t from, std::size_t to) {
    result.kept_findings.push_back({come[to].first(), {gone[from].size_bytes(), come[to].size_bytes()}});
    gone.erase(gone.begin() + static_cast<std::ptrdiff_t>(from));
    come.erase(come.begin() + static_cast<std::ptrdiff_t>(to));
  };
  for (std::size_t from = 0; from < gone.size();) {
    const std::string& print = gone[from].first().fingerprint;
    const auto same = std::find_if(come.begin(), come.end(), [&](const FindingGroup& group) {
      return !print.empty() && group.first().fingerprint == print && group.first().rule == gone[from].first().rule;
    });
    same == come.end() ? void(++from) : keep(from, static_cast<std::size_t>(same - come.begin()));
  }
  // A line that has moved gives another fingerprint: the one finding of a rule in a function is the same.
  const auto place_of = [](const Finding& finding, const FilePairs& files) {
    const Location& place = place_to_look(finding);
    return std::tuple(finding.rule, file_after(place.file, files), place.function);
  };
  std::map<std::tuple<std::string, std::string, std::string>, std::pair<int, int>> times;
  for (const FindingGroup& group : gone) ++times[place_of(group.first(), result.files)].first;
  for (const FindingGroup& group : come) ++times[place_of(group.first(), {})].second;
  for (std::size_t from = 0; from < gone.size();) {
    const auto place = place_of(gone[from].first(), result.files);
    const auto same = std::find_if(come.begin(), come.end(),
                                   [&](const FindingGroup& group) { return place_of(group.first(), {}) == place; });
    times[place] != std::pair(1, 1) ? void(++from) : keep(from, static_cast<std::size_t>(same - come.begin()));
  }
  for (const FindingGroup& group : gone) result.gone_findings.push_back(group.first());
  for (const FindingGroup& group : come) result.new_findings.push_back(group.first());
}

}  // namespace faultline
