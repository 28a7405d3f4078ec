// An operation that refused an index before anything ran, as TensorFlow does on the CPU and for slices everywhere: tensor/index-out-of-range.
#pragma once

#include <optional>

#include "facts/facts.h"
#include "rules/finding.h"
#include "rules/shape_mismatch/failed_op.h"

namespace faultline {

std::optional<Finding> index_refused(const FailedOp& failed, const Facts& facts);

}  // namespace faultline
