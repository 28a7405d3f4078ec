// All rules, a row each (registry.cpp): what a rule needs to judge, and what holds of its findings. A report may name rules that are not known here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rules/finding.h"

namespace faultline {

class Case;

// What a rule is: a function of this kind in the rule's own folder, which registry.cpp names.
using RuleFunction = void(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged);

// What a rule is about. Where findings of some rules are treated otherwise than those of others, this is asked.
enum class Topic : std::uint8_t {
  kOther,
  kEnding,     // what ended the program, and is not judged: read before all else
  kAccess,     // memory that a kernel must not touch
  kCall,       // calls of the driver
  kTensors,    // what an operation was given, or made
  kExhausted,  // the GPU's memory was full, or a piece of it was too small
  kMachine,    // the machine's own memory
  kGrowth,     // what is kept, round after round
  kWaste,      // memory that is held and of no use
  kSettings,   // of PyTorch's allocator
  kLimit,      // what somebody allowed a plan (plan/limits.h): no trace is judged by it
};

struct Rule {
  std::string_view name;  // of sources/rule_names.h
  Topic topic = Topic::kOther;
  std::uint32_t needs = 0;        // Capability bits; a trace without them is "not judged"
  RuleFunction* judge = nullptr;  // null: a rule that stands before it in the registry judges this one as well
  bool reads_calls = false;       // launches, copies, waits: what was recorded without them is "not judged"
  bool reads_messages = false;    // a message is enough, whatever else it needs
  bool reads_driver = false;      // what the driver's boundary or the GPU tells: an allocator's history has none of it
  bool reads_accesses = false;    // each access of a kernel
  bool of_one_result = false;     // each finding is about one result, which is as large as it says
  bool depends_on_room = false;   // of what happened on a larger GPU nothing follows for this one
  // What cannot be judged of some inputs, and is told where it could matter; empty: it has nothing to do with them.
  std::string_view beyond_messages = {};  // what a message of the same group cannot show
  std::string_view beyond_dry_runs = {};  // where not all that reads_driver is beyond them
  std::string_view at_the_end = {};       // what is seen when the process ends
  std::string_view holders = "held by";   // what its holders are
};

// In the order in which findings of one severity are read.
std::span<const Rule> all_rules();
// A row with nothing set where it is not known.
const Rule& rule_named(std::string_view name);
inline Topic topic_of(const Finding& finding) { return rule_named(finding.rule).topic; }
// The first part of its name.
inline std::string_view group_of(std::string_view rule) { return rule.substr(0, rule.find('/')); }

// The program ended, or would, for want of the GPU's memory.
inline bool ran_out_of_memory(const Finding& finding) {
  return finding.severity == Severity::kError && topic_of(finding) == Topic::kExhausted;
}

}  // namespace faultline
