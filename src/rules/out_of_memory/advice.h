// What to try after an out-of-memory: the same words whether a recording or a message told of it.
#pragma once

#include <optional>
#include <string>

#include "facts/categories.h"
#include "rules/finding.h"
#include "rules/out_of_memory/cause.h"
#include "sources/statements.h"

namespace faultline {

struct AdviceContext {
  std::optional<CategoryBytes> live;    // by category, where a recording tells
  bool makes_optimizer_state = false;
  std::string program = "python train.py";
  const StatedError* message = nullptr;  // where a message is all there is
};
void advise(const CauseVerdict& verdict, const AdviceContext& context, Finding& finding);

}  // namespace faultline
