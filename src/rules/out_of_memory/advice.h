// What to try after an out-of-memory: the same words whether a recording or a message told of it.
#pragma once

#include <optional>
#include <string>

#include "facts/categories.h"
#include "facts/stack_facts.h"
#include "rules/cause.h"
#include "rules/finding.h"
#include "sources/statements.h"

namespace faultline {

struct AdviceContext {
  std::optional<CategoryBytes> live;  // by category, where a recording tells
  const char* when = "";              // of which moment, where it is not the failure: " at the fullest"
  std::uint16_t roles = 0;            // of the request's stack: StackRole bits
  bool never_trains = false;          // the program went on past the failure to its end, and computed no gradients
  bool recomputes = false;            // the program uses checkpointing already
  std::uint64_t float32_parameter_bytes = 0;  // of the live parameters, where a recording tells types
  std::string program = "python train.py";
  const StatedError* message = nullptr;  // where a message is all there is
  bool of_rank = false;                  // one of several ranks wrote it
  bool is_windows = false;               // by the paths of its text
  bool sets_expandable = false;          // its text shows expandable_segments:True being set
  bool of_other_language = false;        // no Python, by its text
  bool tells_limit = false;              // that the limit is to be raised or removed was found by a replay and is told
};
void advise(const CauseVerdict& verdict, const AdviceContext& context, Finding& finding);

}  // namespace faultline
