// The phases of a dry run, from the marks that it leaves (python/faultline/plan/torch/program/phases.py): each with its fullest moment and the line of it.
#pragma once

#include <cstddef>

#include "facts/facts.h"
#include "plan/plan.h"

namespace faultline {

// trains: a program that never computes a gradient neither trains nor evaluates what it trains: it infers.
void describe_phases(const Facts& facts, std::size_t device_slot, bool trains, Plan& plan);

}  // namespace faultline
