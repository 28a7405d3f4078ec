// What speaks for and against each of several kernels that may have caused a fault: what it was given, whether it ran well before, what its kind can do.
//
// Nothing here proves anything. Points put the candidates in order, and each point stands for a sentence that the report shows; a lead of kClearLead over
// the next one is called likely.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "rules/illegal_address/candidates.h"
#include "rules/illegal_address/fault_words.h"
#include "sources/statements.h"

namespace faultline {

struct Suspect {
  Candidate candidate;
  int points = 0;
  std::vector<std::string> speaks_for;      // each continues "it …"
  std::vector<std::string> speaks_against;  // likewise
  bool checks_index = false;
  bool is_library = false;
};

inline constexpr int kClearLead = 3;

// The most suspected first; of equals the last launched.
std::vector<Suspect> weigh(const Facts& facts, const Statements& statements, const Candidates& candidates,
                           FaultKind kind, std::uint32_t report_event);

// The first has a clear lead.
bool has_leader(const std::vector<Suspect>& suspects);

// "it had not run before; against it: …"
std::string reasons(const Suspect& suspect);

}  // namespace faultline
