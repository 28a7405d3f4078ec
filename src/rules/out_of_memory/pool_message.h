// Messages of TensorFlow and JAX that memory ran out: of their pools, of the driver's refusal, of CUDA's own pool, of XLA's compiled programs.
#pragma once

#include "rules/rule.h"

namespace faultline {

void judge_tensorflow(Case& subject, Finding& finding);
void judge_jax(Case& subject, Finding& finding);

}  // namespace faultline
