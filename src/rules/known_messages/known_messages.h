// Messages that are known by their words alone: what each means, whose memory it is about, and what to do.
#pragma once

#include <string_view>

#include "rules/rule.h"

namespace faultline {

// tensor/shape-mismatch, tensor/dtype-mismatch or tensor/device-mismatch from a text: operands as far as the words tell them, and what would fit.
void describe_operands(const Case& subject, Finding& finding);

// The same of what JAX, TensorFlow, Keras and NumPy say. False: the words are not known.
bool describe_framework_shapes(std::string_view words, Finding& finding);

}  // namespace faultline
