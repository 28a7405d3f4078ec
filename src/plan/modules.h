// Which parts of the model hold the live memory of a device: told from the tensors' names, which are module paths ("GPT.blocks.3.mlp.fc1").
//
// Paths form a tree. Siblings that are numbers are one node, "*", so twelve equal layers are one row. The rows are a cut through that tree: it begins
// with the models themselves, and the largest row is opened into its parts while there is room and it still hides something. The bytes of the rows
// add up to the bytes of all allocations that were looked at; what belongs to no module has rows by category ("(optimizer)").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "facts/facts.h"
#include "plan/plan.h"

namespace faultline {

// By allocation id: the path of the module that each belongs to, as the last note up to an event says; empty: none.
std::vector<std::string_view> module_names(const Facts& facts, std::uint32_t until);

std::vector<PlanModule> modules_at(const Facts& facts, std::size_t device_slot, std::uint32_t event,
                                   std::size_t most_rows = 16);

}  // namespace faultline
