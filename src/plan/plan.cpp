#include "plan/plan.h"

#include <algorithm>
#include <array>

#include "base/units.h"

namespace faultline {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Verdict::kInterrupted) + 1> kNames = {
    "fits", "fits-tightly", "fits-until", "does-not-fit", "measured", "not-planned", "program-error", "interrupted"};

constexpr std::array<std::string_view, static_cast<std::size_t>(StoppedBy::kSeconds) + 1> kStops = {
    "", "steps", "alike", "loop", "seconds"};

constexpr double kTightShare = 0.05;  // of the capacity

}  // namespace

bool is_tight(const PlanGpu& gpu, std::uint64_t needed_bytes) {
  const std::uint64_t spare = gpu.capacity_bytes > needed_bytes ? gpu.capacity_bytes - needed_bytes : 0;
  const bool sure = gpu.context_source == to_string(FigureSource::kMeasured);
  return static_cast<double>(spare) < kTightShare * static_cast<double>(gpu.capacity_bytes) ||
         (!sure && spare < gpu.context_bytes / 2);
}

std::string_view name_of(Verdict verdict) { return kNames[static_cast<std::size_t>(verdict)]; }

std::string_view name_of(StoppedBy by) { return kStops[static_cast<std::size_t>(by)]; }

std::string_view name_of(NoteKind kind) {
  constexpr std::array<std::string_view, 5> kKinds = {"instead", "mode", "skipped", "kernel", "value"};
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string_view name_of(ChangeKind kind) { return kind == ChangeKind::kSetting ? "setting" : "program"; }

PlanGpu plan_gpu(const Gpu& gpu) {
  const std::string name = gpu.name.empty() ? describe(gpu) : std::string(gpu.full_name);
  return {name, gpu.capacity_bytes, std::string(to_string(gpu.capacity_source)), gpu.context_bytes,
          std::string(to_string(gpu.context_source))};
}

std::string beside_verdict(const Plan& plan) {
  std::vector<std::string> said;
  std::string text;
  for (const PlanNote& note : plan.notes) {
    if (note.verdict.empty() || std::find(said.begin(), said.end(), note.verdict) != said.end()) continue;
    said.push_back(note.verdict);
    text += ", " + note.verdict;
  }
  return text;
}

std::vector<Try> tries_of(const Plan& plan) {
  std::vector<Try> tries;
  for (const PlanChange& change : plan.tried.changes) {
    const std::uint64_t saved_bytes = plan.saved_bytes(change);
    if (saved_bytes == 0) continue;
    const std::string what = change.what + (change.detail.empty() ? "" : " (" + change.detail + ")");
    // Confirmed is what makes it fit; what only helps is said without that mark.
    if (change.fits)
      tries.push_back({what + "; it then fits.", true, saved_bytes, true});
    else
      tries.push_back({what + "; by a dry run it saves " + format_bytes(saved_bytes) + ", which is not enough alone.",
                       std::nullopt, 0, true});
  }
  if (plan.tried.vary && plan.tried.vary->largest_fitting != 0 &&
      plan.tried.vary->largest_fitting < plan.tried.vary->current) {
    tries.push_back(
        {"Use " + plan.tried.vary->name + " = " + std::to_string(plan.tried.vary->largest_fitting) + "; it then fits.",
         true, 0, true});
  }
  return tries;
}

}  // namespace faultline
