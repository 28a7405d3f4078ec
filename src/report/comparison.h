// Two reports compared: what grew, by line, by category and by module, at the peak of each.
//
// How it is used, for example by a verb that has a report of its own and the JSON of an earlier one:
//
//   const Comparison change = compare(*report_of(base_json), report);
//   if (change.grew()) … change.peaks[0].allocated.growth(), change.peaks[0].lines (the one that grew most first), change.new_findings …
//
// The unit of comparison is a device at the moment when it held most: what its lines held then, which adds up to that peak. A line is its file, its line and its
// function. A file that only one side has is the file of the same name that only the other side has, where there is one such on each side. Where a function's
// lines have all moved by the same number, or one line of it is all that differs and holds memory of the same kind, it is the same line moved; nothing else is
// guessed. A report lists so many rows, of a line and a category each, and no more: a line, or a category of it, that stands on one side only may be among the
// unlisted of the other. It is then not called new or gone, and of its change only what is sure is counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/report.h"

namespace faultline {

struct Change {
  std::uint64_t before = 0, after = 0;
  bool grew() const { return after > before; }
  bool differs() const { return after != before; }
  std::uint64_t growth() const { return after > before ? after - before : 0; }
  std::uint64_t shrinkage() const { return before > after ? before - after : 0; }
  // Most growth first, most shrinkage last.
  bool grew_more_than(const Change& other) const {
    return growth() != other.growth() ? growth() > other.growth() : shrinkage() < other.shrinkage();
  }
};
std::string words_of(const Change& change);  // "+1.50 GiB", "-2.00 MiB", "the same"

struct NamedChange {
  std::string name;
  Change bytes;
};

// What one line holds at the peak.
struct HeldLine {
  Location location;
  std::string detail;  // where no line is known, why; else the library's function behind it
  std::uint64_t bytes = 0, count = 0;
  std::vector<std::pair<std::string, std::uint64_t>> categories;  // most bytes first
  bool is_remainder = false;  // no row of the report: what its rows leave of the peak
};

struct PeakAccount {
  std::uint64_t allocated = 0, reserved = 0;
  std::vector<HeldLine> lines;  // most bytes first; they and what is not listed add up to allocated
  std::uint64_t unlisted_bytes = 0;
  bool has_unlisted = false;
  std::uint64_t least_listed_bytes = 0;  // of the report's rows: none that is not listed is larger
  bool has_lines() const;                // at least one place is known
};
PeakAccount peak_account(const DeviceReport& device);

enum class LineFate : std::uint8_t {
  kStays,
  kMoved,           // line_before says from where
  kNew,             // before, nothing was held by it
  kGone,            // after, nothing is
  kUnlistedBefore,  // before, it held at most unlisted_before, which may be nothing
  kUnlistedAfter,
};
std::string_view name_of(LineFate fate);  // "same", "moved", "new", "gone", "not listed before", "not listed after"

struct LineChange {
  Location location;  // as after; of one that is gone as before
  std::uint32_t line_before = 0;
  std::string category, detail;  // the category that changed most
  bool is_mixed = false;         // others changed too, by a tenth of all or more
  std::string category_words() const { return is_mixed ? category + " and more" : category; }
  Change bytes, count;  // as listed
  LineFate fate = LineFate::kStays;
  // What it may have held beside that: the categories that only the other side lists.
  std::uint64_t unlisted_before = 0, unlisted_after = 0;
  bool is_exact() const { return unlisted_before == 0 && unlisted_after == 0; }
  std::uint64_t most_before() const;
  std::uint64_t most_after() const;
  Change sure() const;  // the least that it changed by; the same on both sides where nothing is sure
};

struct PeakChange {
  std::uint16_t device_before = 0, device_after = 0;
  std::string process_before, process_after;
  bool only_before = false, only_after = false;  // the other side has no such GPU
  Change allocated, reserved;
  std::vector<LineChange>
      lines;                    // those that differ, the one that grew most first; empty where either side has no lines
  std::size_t equal_lines = 0;  // those that do not
  Change unlisted;              // all lines that are not listed, together
  std::vector<NamedChange> categories;  // likewise those that differ
};
// Which file of one side is which of the other, where their paths differ: before → after.
using FilePairs = std::vector<std::pair<std::string, std::string>>;
PeakChange compare_peaks(const PeakAccount& before, const PeakAccount& after, const FilePairs& files = {});

struct FindingChange {
  Finding finding;  // as after
  Change bytes;
};

struct Comparison {
  std::vector<PeakChange> peaks;     // one per GPU
  std::optional<Change> needed;      // of two plans: the smallest GPU
  std::vector<NamedChange> modules;  // of two plans, at the peak: those that differ, by what grew most
  std::vector<Finding> new_findings, gone_findings;
  std::vector<FindingChange> kept_findings;
  FilePairs files;                 // that were taken for the same by their name
  std::vector<std::string> notes;  // what cannot be compared, or is not alike, in sentences

  bool peak_grew() const;
  // A peak did, or there is a new error or warning. Lines alone do not: what one line holds more, another may hold less.
  bool grew() const;
};
// Both must hold memory that was measured (has_peak).
Comparison compare(const Report& before, const Report& after);
bool has_peak(const Report& report);
// The lines that hold more at the peak of this GPU than they did in an earlier plan.
std::vector<PlanLineChange> grown_lines(const Report& base, const Report& report, std::uint64_t device);

}  // namespace faultline
