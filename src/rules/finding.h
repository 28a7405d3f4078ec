// A finding: what a rule has to say, as data. Rules make findings; reports turn them into something to read; neither knows the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/confidence.h"

namespace faultline {

enum class Severity : std::uint8_t {
  kError,    // it broke, or will
  kWarning,  // it costs memory, or may break
  kNote,     // good to know
};
std::string_view name_of(Severity severity);
std::string_view name_of(Confidence confidence);

struct Location {
  std::string file;  // empty: unknown
  std::uint32_t line = 0;
  std::string function;
  std::string op;
  std::string kernel;
  bool known() const { return !file.empty() || !op.empty() || !kernel.empty(); }
};

// One named number (or word) that supports the finding. Names carry their unit: bytes_per_step, steps, limit_bytes.
struct Evidence {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

// A change worth trying. Only those that a replay confirmed are offered as settings; advice that cannot be replayed says confirmed = nullopt.
struct Try {
  std::string what;
  std::optional<bool> confirmed;
  std::uint64_t saves_bytes = 0;
  bool by_dry_run = false;  // confirmed by running the program again, not by a replay of the recording
};

// One line of a table under a finding: who holds the memory.
struct Holder {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::string category;
  Location location;
  std::string detail;
};

// Something else that belongs to what happened: where a kernel was launched, what it was given, where the program noticed.
struct Related {
  // The role of the line of a library, below the user's own, that made the request.
  static constexpr std::string_view kInside = "inside";

  std::string role;         // "launched", "kernel", "noticed", "argument", "candidate", "operand", "inside"
  std::string what;         // may be empty
  std::uint64_t bytes = 0;  // 0: none
  Location location;
};

struct Finding {
  std::uint32_t id = 0;  // counts the findings of a report, in the order in which they were made; 0: not of a report
  std::string rule;      // of sources/rule_names.h; in a report of another version it may be unknown
  Severity severity = Severity::kWarning;
  Confidence confidence = Confidence::kLikely;
  std::string message;  // one sentence
  // memory/out-of-memory only: exhausted, fragmented, idle-cache, outside-framework, other-process, own-limit
  std::string cause;
  std::uint16_t device = 0;
  std::string process;  // which of several recorded processes: the name of the input's part; empty where there is one
  Location location;
  std::vector<Location> call_path;  // the user's own frames, outermost last; may be empty
  std::string memory;               // which memory, relative to which tensor; may be empty
  Location allocated_at;
  Location freed_at;
  std::uint64_t bytes = 0;
  std::uint64_t count = 1;
  std::vector<Evidence> evidence;
  std::vector<Holder> holders;
  std::string held_when;  // the moment of the holders, where it is not the finding's own: "the fullest moment, …"
  std::vector<Related> related;  // in the order to be read
  std::vector<Try> tries;
  std::string fingerprint;  // stable across runs of the same program: rule + place, no addresses or times

  std::optional<std::int64_t> number(std::string_view evidence_name) const;
};

// A number, or a word where there is one.
void add_evidence(Finding& finding, std::string name, std::uint64_t value);
void add_evidence(Finding& finding, std::string name, std::string word);
// Advice that no replay can check.
void add_try(Finding& finding, std::string what);

struct NotJudged {
  NotJudged() = default;
  NotJudged(std::string_view rule_name, std::string reason, bool of_all = false)
      : rule(rule_name), why(std::move(reason)), always(of_all) {}

  std::string rule;
  std::string why;
  bool always = false;  // of every input of this kind, whatever is in it
};

}  // namespace faultline
