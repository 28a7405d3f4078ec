// Messages that are known by their words alone: what each means, whose memory it is about, and what to do.
#pragma once

#include "rules/rule.h"

namespace faultline {

// tensor/shape-mismatch, tensor/dtype-mismatch or tensor/device-mismatch from a text: operands as far as the words tell them, and what would fit.
void describe_operands(const Case& subject, Finding& finding);

}  // namespace faultline
