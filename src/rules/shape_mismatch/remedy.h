// What would fit: changes of an operation's operands that the algebra of fit.h proves to be accepted. No proof, no remedy.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"
#include "rules/shape_mismatch/failed_op.h"

namespace faultline {

// Each is one sentence, the likeliest first; at most a few.
std::vector<std::string> shape_remedies(const FailedOp& failed, const Facts& facts);
std::vector<std::string> dtype_remedies(const FailedOp& failed, const Facts& facts);
std::vector<std::string> device_remedies(const FailedOp& failed, const Facts& facts);

// By family; each in the file that its name says.
std::vector<std::string> product_remedies(const FailedOp& failed, const Facts& facts);
std::vector<std::string> pairwise_remedies(const FailedOp& failed);
std::vector<std::string> same_shape_remedies(const FailedOp& failed);
std::vector<std::string> cat_remedies(const FailedOp& failed);
std::vector<std::string> stack_remedies(const FailedOp& failed);
std::vector<std::string> view_remedies(const FailedOp& failed);
std::vector<std::string> convolution_remedies(const FailedOp& failed);
std::vector<std::string> norm_remedies(const FailedOp& failed);
std::vector<std::string> class_loss_remedies(const FailedOp& failed);

// "operand 2 (float32[5,15])"; where it is known as what it was given and what the program calls it: "mat2 (`fc.weight`, float32[5,15])".
std::string operand_text(const FailedOp& failed, std::size_t index);
std::string call_text(std::string_view method, const std::vector<std::size_t>& dims);  // "permute(0, 3, 1, 2)"
// Does the stack pass through a file that ends so?
bool passes_through(const Trace& trace, StackId stack, std::string_view file_ending);

}  // namespace faultline
