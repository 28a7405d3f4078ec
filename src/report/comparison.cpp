#include "report/comparison.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/units.h"
#include "facts/libraries.h"
#include "report/comparison_match.h"
#include "rules/describe.h"
#include "rules/registry.h"

namespace faultline {
namespace {

std::uint64_t left_after(std::uint64_t whole, std::uint64_t part) { return whole > part ? whole - part : 0; }
std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

void add_category(HeldLine& line, const std::string& category, std::uint64_t bytes) {
  const auto known = std::find_if(line.categories.begin(), line.categories.end(),
                                  [&](const auto& one) { return one.first == category; });
  if (known == line.categories.end())
    line.categories.emplace_back(category, bytes);
  else
    known->second = capped_sum(known->second, bytes);
}

template <class Items, class Bytes>
void most_first(Items& items, Bytes bytes) {
  std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) { return bytes(a) > bytes(b); });
}

// What the unlisted rows of an account can hold of a line that the other side lists: each of its categories is one row.
std::uint64_t most_unlisted(const PeakAccount& account, const HeldLine* here, const HeldLine& there) {
  if (!account.has_unlisted || there.is_remainder) return 0;
  std::uint64_t most = 0;
  for (const auto& category : there.categories) {
    const bool is_listed = here != nullptr && std::any_of(here->categories.begin(), here->categories.end(),
                                                          [&](const auto& one) { return one.first == category.first; });
    if (!is_listed)
      most = capped_sum(most, account.lines.empty() ? account.unlisted_bytes : account.least_listed_bytes);
  }
  return std::min(most, account.unlisted_bytes);
}

// The category that changed most, and whether it is not alone.
std::pair<std::string, bool> main_category(const HeldLine* before, const HeldLine* after) {
  std::map<std::string, Change> changes;
  if (before != nullptr)
    for (const auto& [name, bytes] : before->categories) changes[name].before = bytes;
  if (after != nullptr)
    for (const auto& [name, bytes] : after->categories) changes[name].after = bytes;
  const auto size = [](const auto& change) { return change.second.growth() + change.second.shrinkage(); };
  const auto most =
      std::max_element(changes.begin(), changes.end(), [&](const auto& a, const auto& b) { return size(a) < size(b); });
  if (most == changes.end()) return {};
  std::uint64_t all = 0;
  for (const auto& change : changes) all = capped_sum(all, size(change));
  return {most->first, (all - size(*most)) > all / 10};
}

LineChange line_change(const HeldLine* before, const HeldLine* after) {
  LineChange change;
  const HeldLine& shown = after != nullptr ? *after : *before;
  change.location = shown.location;
  change.detail = shown.detail;
  std::tie(change.category, change.is_mixed) = main_category(before, after);
  change.bytes = {before != nullptr ? before->bytes : 0, after != nullptr ? after->bytes : 0};
  change.count = {before != nullptr ? before->count : 0, after != nullptr ? after->count : 0};
  return change;
}

std::vector<NamedChange> changes_of(const std::map<std::string, Change>& all) {
  std::vector<NamedChange> changes;
  for (const auto& [name, bytes] : all) {
    if (bytes.differs()) changes.push_back({name, bytes});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const NamedChange& a, const NamedChange& b) { return a.bytes.grew_more_than(b.bytes); });
  return changes;
}

std::vector<NamedChange> category_changes(const PeakAccount& before, const PeakAccount& after) {
  std::map<std::string, Change> all;
  for (const HeldLine& line : before.lines)
    for (const auto& [name, bytes] : line.categories) all[name].before = capped_sum(all[name].before, bytes);
  for (const HeldLine& line : after.lines)
    for (const auto& [name, bytes] : line.categories) all[name].after = capped_sum(all[name].after, bytes);
  if (before.has_unlisted || after.has_unlisted)
    all["of lines that are not listed"] = {before.unlisted_bytes, after.unlisted_bytes};
  return changes_of(all);
}

}  // namespace

std::string words_of(const Change& change) {
  if (!change.differs()) return "the same";
  return change.grew() ? "+" + format_bytes(change.growth()) : "-" + format_bytes(change.shrinkage());
}

std::string_view name_of(LineFate fate) {
  switch (fate) {
    case LineFate::kStays: return "same";
    case LineFate::kMoved: return "moved";
    case LineFate::kNew: return "new";
    case LineFate::kGone: return "gone";
    case LineFate::kUnlistedBefore: return "not listed before";
    case LineFate::kUnlistedAfter: break;
  }
  return "not listed after";
}

std::uint64_t LineChange::most_before() const { return capped_sum(bytes.before, unlisted_before); }
std::uint64_t LineChange::most_after() const { return capped_sum(bytes.after, unlisted_after); }

Change LineChange::sure() const {
  if (bytes.after > most_before()) return {most_before(), bytes.after};
  if (bytes.before > most_after()) return {bytes.before, most_after()};
  return {bytes.after, bytes.after};
}

bool PeakAccount::has_lines() const {
  return std::any_of(lines.begin(), lines.end(), [](const HeldLine& line) { return line.location.known(); });
}

PeakAccount peak_account(const DeviceReport& device) {
  PeakAccount account;
  account.allocated = device.peak_allocated;
  account.reserved = device.peak_reserved;
  std::uint64_t told = 0;
  std::map<LineKey, std::size_t> known;
  for (const Holder& holder : device.lines.empty() ? device.holders : device.lines) {
    told = capped_sum(told, holder.bytes);
    if (holder.category == kUnlistedLines) {
      account.unlisted_bytes = capped_sum(account.unlisted_bytes, holder.bytes);
      account.has_unlisted = true;
      continue;
    }
    const auto [at, is_new] = known.try_emplace(key_of(holder.location, holder.detail), account.lines.size());
    if (is_new) account.lines.push_back({holder.location, holder.detail, 0, 0, {}});
    account.least_listed_bytes =
        account.lines.size() == 1 && is_new ? holder.bytes : std::min(account.least_listed_bytes, holder.bytes);
    HeldLine& line = account.lines[at->second];
    line.bytes = capped_sum(line.bytes, holder.bytes);
    line.count = capped_sum(line.count, holder.count);
    add_category(line, holder.category, holder.bytes);
  }
  if (const std::uint64_t rest = left_after(account.allocated, told); rest != 0 && !account.lines.empty())
    account.lines.push_back({{}, "pages mapped by the program itself", rest, 0, {{"other", rest}}, true});
  for (HeldLine& line : account.lines) most_first(line.categories, [](const auto& one) { return one.second; });
  most_first(account.lines, [](const HeldLine& line) { return line.bytes; });
  return account;
}

PeakChange compare_peaks(const PeakAccount& before, const PeakAccount& after, const FilePairs& files) {
  PeakChange change;
  change.allocated = {before.allocated, after.allocated};
  change.reserved = {before.reserved, after.reserved};
  change.unlisted = {before.unlisted_bytes, after.unlisted_bytes};
  const bool is_one_sided = before.allocated == 0 || after.allocated == 0;
  const auto is_empty = [](const PeakAccount& account) { return account.lines.empty() && !account.has_unlisted; };
  if (!(is_one_sided && is_empty(before) && is_empty(after))) change.categories = category_changes(before, after);
  if ((!before.has_lines() && before.allocated != 0) || (!after.has_lines() && after.allocated != 0)) return change;

  const LineMatches matches = match_lines(before.lines, after.lines, files);
  const auto add = [&](LineChange line) {
    if (line.bytes.differs() || !line.is_exact())
      change.lines.push_back(std::move(line));
    else
      ++change.equal_lines;
  };
  for (const auto& [from, to] : matches.same) {
    LineChange line = line_change(&before.lines[from], &after.lines[to]);
    line.unlisted_before = most_unlisted(before, &before.lines[from], after.lines[to]);
    line.unlisted_after = most_unlisted(after, &after.lines[to], before.lines[from]);
    line.line_before = before.lines[from].location.line;
    if (line.line_before != line.location.line) line.fate = LineFate::kMoved;
    add(std::move(line));
  }
  for (const std::size_t at : matches.only_after) {
    LineChange line = line_change(nullptr, &after.lines[at]);
    line.unlisted_before = most_unlisted(before, nullptr, after.lines[at]);
    line.fate = line.unlisted_before != 0 ? LineFate::kUnlistedBefore : LineFate::kNew;
    add(std::move(line));
  }
  for (const std::size_t at : matches.only_before) {
    LineChange line = line_change(&before.lines[at], nullptr);
    line.unlisted_after = most_unlisted(after, nullptr, before.lines[at]);
    line.fate = line.unlisted_after != 0 ? LineFate::kUnlistedAfter : LineFate::kGone;
    add(std::move(line));
  }
  std::stable_sort(change.lines.begin(), change.lines.end(), [](const LineChange& a, const LineChange& b) {
    const Change one = a.sure(), other = b.sure();
    if (one.grew_more_than(other) != other.grew_more_than(one)) return one.grew_more_than(other);
    return a.bytes.grew_more_than(b.bytes);
  });
  return change;
}

namespace {

// Of each GPU the process that held most of it: several processes on one GPU have each a peak of their own.
std::map<std::uint16_t, const DeviceReport*> fullest_by_gpu(const Report& report) {
  std::map<std::uint16_t, const DeviceReport*> fullest;
  for (const DeviceReport& device : report.devices) {
    if (device.peak_allocated == 0 && device.peak_reserved == 0) continue;
    const DeviceReport*& most = fullest[device.index];
    if (most == nullptr || device.peak_allocated > most->peak_allocated) most = &device;
  }
  return fullest;
}

// `side`: "Before", "After".
void note_side(const Report& report, const std::string& side, std::vector<std::string>& notes) {
  std::map<std::uint16_t, int> processes;
  bool has_lines = false;
  for (const DeviceReport& device : report.devices) {
    processes[device.index] += device.peak_allocated != 0 || device.peak_reserved != 0;
    has_lines |= peak_account(device).has_lines();
  }
  if (std::any_of(processes.begin(), processes.end(), [](const auto& one) { return one.second > 1; }))
    notes.push_back(side + ": several processes used one GPU, and the one that held most of it is compared.");
  if (!has_lines)
    notes.push_back(side +
                    ": it was recorded without call stacks, so its memory is not known by line, and no line is "
                    "compared.");
  if (std::any_of(report.findings.begin(), report.findings.end(), ran_out_of_memory))
    notes.push_back(side + ": the program ran out of memory. That peak is what it had by then; it needed more.");
  if (report.plan && report.plan->ends_early())
    notes.push_back(side + ": the program was stopped " + report.plan->run.stopped +
                    ", and what comes later was not seen.");
}

void compare_devices(const Report& before, const Report& after, Comparison& result) {
  auto old_ones = fullest_by_gpu(before), new_ones = fullest_by_gpu(after);
  const auto add = [&](const DeviceReport* old_one, const DeviceReport* new_one) {
    const DeviceReport none;
    const DeviceReport& from = old_one != nullptr ? *old_one : none;
    const DeviceReport& to = new_one != nullptr ? *new_one : none;
    PeakChange change = compare_peaks(peak_account(from), peak_account(to), result.files);
    change.device_before = old_one != nullptr ? from.index : to.index;
    change.device_after = new_one != nullptr ? to.index : from.index;
    change.process_before = from.process;
    change.process_after = to.process;
    change.only_before = new_one == nullptr;
    change.only_after = old_one == nullptr;
    if (old_one != nullptr && new_one != nullptr && from.account.has_framework != to.account.has_framework)
      result.notes.push_back(
          "The one counts what a framework's allocator handed out, the other what the program took from the driver: "
          "their peaks are not of the same thing.");
    result.peaks.push_back(std::move(change));
  };
  if (old_ones.size() == 1 && new_ones.size() == 1) {
    add(old_ones.begin()->second, new_ones.begin()->second);
    return;
  }
  for (const auto& [index, device] : old_ones) {
    const auto same = new_ones.find(index);
    add(device, same == new_ones.end() ? nullptr : same->second);
  }
  for (const auto& [index, device] : new_ones) {
    if (!old_ones.contains(index)) add(nullptr, device);
  }
}

void compare_needs(const Plan& before, const Plan& after, Comparison& result) {
  if (before.need.bytes != 0 && after.need.bytes != 0) result.needed = Change{before.need.bytes, after.need.bytes};
  if (!before.peak.modules.empty() && !after.peak.modules.empty()) {
    std::map<std::string, Change> all;
    for (const PlanModule& module : before.peak.modules)
      all[module.path].before = capped_sum(all[module.path].before, module.bytes);
    for (const PlanModule& module : after.peak.modules)
      all[module.path].after = capped_sum(all[module.path].after, module.bytes);
    result.modules = changes_of(all);
  }
  if (before.run.steps != after.run.steps)
    result.notes.push_back("The one plan saw " + format_count(before.run.steps) + " optimizer steps, the other " +
                           format_count(after.run.steps) + ".");
}

}  // namespace

bool Comparison::peak_grew() const {
  return std::any_of(peaks.begin(), peaks.end(),
                     [](const PeakChange& peak) { return peak.allocated.grew() || peak.reserved.grew(); });
}

bool Comparison::grew() const {
  return peak_grew() || (needed && needed->grew()) ||
         std::any_of(new_findings.begin(), new_findings.end(),
                     [](const Finding& finding) { return finding.severity != Severity::kNote; });
}

bool has_peak(const Report& report) { return !fullest_by_gpu(report).empty(); }

Comparison compare(const Report& before, const Report& after) {
  Comparison result;
  result.files = pair_files(files_of(before), files_of(after));
  for (const auto& [from, to] : result.files) {
    if (installed_part(from).empty())
      result.notes.push_back("By its name " + to + " is taken for what was " + from + " before.");
  }
  compare_devices(before, after, result);
  match_findings(before, after, result);
  note_side(before, "Before", result.notes);
  note_side(after, "After", result.notes);
  if (before.plan && after.plan) compare_needs(*before.plan, *after.plan, result);
  return result;
}

std::vector<PlanLineChange> grown_lines(const Report& base, const Report& report, std::uint64_t device) {
  constexpr std::size_t kLinesTold = 8;
  std::vector<PlanLineChange> lines;
  const Comparison change = compare(base, report);
  for (const PeakChange& peak : change.peaks) {
    if (peak.device_after != device && change.peaks.size() > 1) continue;
    for (const LineChange& line : peak.lines) {
      // of what the base does not list it is known what it held at the most
      if (const Change sure = line.sure(); sure.grew() && lines.size() < kLinesTold)
        lines.push_back({line.location, line.category_words(), sure.before, sure.after, line.count.after});
    }
  }
  return lines;
}

}  // namespace faultline
