// From facts to sentences: what this machine can do, what not, why, and what to do about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/machine.h"

namespace faultline::doctor {

enum class Mark : std::uint8_t { kOk, kPartly, kNo };
std::string_view name_of(Mark mark);  // "ok", "partly", "no"

struct Ability {
  std::string name;  // "plan", "driver"
  Mark mark = Mark::kOk;
  std::string says;      // a sentence, without its full stop
  std::string advice;    // what to do about it; empty: nothing to do
  bool is_main = false;  // a job that needs no GPU: doctor's exit status is about these
};

std::vector<Ability> judge_machine(const Machine& machine);
bool main_jobs_work(const std::vector<Ability>& abilities);

}  // namespace faultline::doctor
