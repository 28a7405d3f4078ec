// What a request that failed was for, where the trace tells: the tensor, its operation, and in backward the forward line it belongs to.
#pragma once

#include <cstdint>
#include <string>

#include "facts/facts.h"

namespace faultline {

// "float32[8,1023,50257], a result of aten::_log_softmax_backward_data, for the gradient of train.py:54"; empty when nothing is known.
//
// The failure itself carries no tensor. A source that knows one writes it right behind: as a TensorNote without an allocation, or, where the request was served
// after all (an overcommitted dry run), on the Alloc of the same size, with a TensorNote of the forward line behind that.
std::string describe_request(const Facts& facts, std::uint32_t failure_event);

}  // namespace faultline
