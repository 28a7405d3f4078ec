#include "plan/dry_run.h"

#include <algorithm>
#include <tuple>

#include "base/units.h"

namespace faultline {
namespace {

constexpr std::uint64_t kEndlessBytes = kTiB;

}  // namespace

bool is_out_of_memory(const PlanException& exception) {
  return exception.type == "OutOfMemoryError" || exception.type == "ResourceExhaustedError" ||
         exception.message.starts_with("RESOURCE_EXHAUSTED");
}

bool ProcessSummary::does(const std::string& what) const {
  return std::find(uses.begin(), uses.end(), what) != uses.end();
}

bool ProcessSummary::was_edited(const std::string& remedy) const {
  return std::find(edited_remedies.begin(), edited_remedies.end(), remedy) != edited_remedies.end();
}

const Offer* ProcessSummary::of_number(OfferedNumber number) const {
  const auto found = std::find_if(number_offers.begin(), number_offers.end(),
                                  [&](const Offer& offer) { return offer.number == number; });
  return found == number_offers.end() ? nullptr : &*found;
}

void settle_ends(DryRunResult& run) {
  for (ProcessSummary& process : run.processes) {
    if (run.status != 0 && run.status < 128 && process.last_was_out_of_memory && process.stopped.empty() &&
        !process.exception)
      process.ended_out_of_memory = true;
  }
  most_needing_first(run.processes);
}

void most_needing_first(std::vector<ProcessSummary>& processes) {
  const auto rank = [](const ProcessSummary& s) {
    return std::tuple(s.died_of_memory(), s.failures != 0, s.peak_reserved, !s.ended_in_order, s.operations);
  };
  std::stable_sort(processes.begin(), processes.end(),
                   [&](const ProcessSummary& a, const ProcessSummary& b) { return rank(a) > rank(b); });
}

std::vector<ShownGpu> shown_gpus(const std::vector<Gpu>& named) {
  if (named.empty()) return {{*find_gpu(std::to_string(kEndlessBytes)), "GPU of any size"}};
  std::vector<ShownGpu> shown;
  for (const Gpu& gpu : named)
    shown.push_back(
        {gpu, gpu.name.empty() ? "GPU of " + format_bytes(gpu.capacity_bytes) : std::string(gpu.full_name)});
  return shown;
}

}  // namespace faultline
