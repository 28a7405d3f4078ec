#include "view/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/safe_text.h"
#include "base/units.h"
#include "models/gpus.h"
#include "models/search.h"
#include "rules/describe.h"

namespace faultline::view {
namespace {

constexpr std::uint64_t kMostSearchedEvents = 1'000'000;  // by the settings that nobody proposes
// From small to large, as people meet them.
constexpr const char* kGpus[] = {"T4", "RTX 4090", "A100-40GB", "A100-80GB", "H200"};

class WhatIfs {
 public:
  WhatIfs(const Judgement& judgement, std::size_t slot, std::uint64_t most_events, Scene& scene)
      : judgement_(judgement),
        facts_(*judgement.facts),
        slot_(slot),
        scene_(scene),
        left_(most_events / std::max<std::size_t>(facts_.trace.events.size(), 1)) {
    const DeviceUsage& usage = facts_.usage[slot];
    // A program that was refused memory might have asked for more; a dry run goes on.
    cut_short_ = !usage.failures.empty() && !(judgement.statements.placed_by_model &&
                                              is_served_after_all(facts_.trace, usage.failures.back().event));
    const Device& device = facts_.trace.devices[slot];
    if (judgement.statements.placed_by_model) {
      const std::uint64_t beside =
          judgement.statements.planned_context_of(device.index).value_or(0) + usage.peak_outside_bytes;
      if (device.capacity_bytes > beside) own_room_ = device.capacity_bytes - beside;
    }
  }

  void run() {
    const DeviceUsage& usage = facts_.usage[slot_];
    std::uint64_t needed = usage.peak_reserved.reserved;
    if (usage.failure_count != 0) {
      // where a release does not know the setting there is no limit to lift
      std::optional<WhatIf> all = attempt("With room for all of it", {{"per_process_memory_fraction", "1.0"}}, kAll);
      if (!all) all = attempt("With room for all of it", {}, kAll);
      if (all && all->fits) {
        needed = all->peak_reserved_bytes;
        keep(std::move(all));
      }
    }
    const std::uint16_t device = usage.device;
    std::vector<SettingChanges> others = sensible_settings(facts_.trace, device);
    for (const SettingChanges& changes : proposed_settings(facts_.trace, device)) {
      const auto same = std::find(others.begin(), others.end(), changes);
      if (same == others.end()) continue;  // it is set already
      others.erase(same);
      keep(attempt(written(changes), changes, own_room_));
    }
    try_gpus(needed);
    const bool is_short = others.size() * facts_.trace.events.size() <= kMostSearchedEvents;
    const bool searches = is_short && left_ >= others.size();
    if (searches) keep_best_of(others);
    tell(others.size(), searches);
  }

 private:
  static constexpr std::uint64_t kAll = std::uint64_t{1} << 62;

  std::optional<WhatIf> attempt(std::string name, SettingChanges changes, std::optional<std::uint64_t> room,
                                std::optional<TargetGpu> gpu = std::nullopt) {
    if (left_ == 0) {
      ++untried_;
      return std::nullopt;
    }
    --left_;  // also where it fails: it takes as long
    const Columns& columns = scene_.columns;
    ReplayCurve curve(columns.first, columns.stretch, columns.count());
    ReplayOptions options;
    options.changes = std::move(changes);
    options.segment_budget_bytes = room;
    options.gpu = gpu;
    options.device = facts_.usage[slot_].device;
    options.curve = &curve;
    const Result<ReplayResult> result = replay(facts_.trace, options);
    if (!result || result->events == 0) return std::nullopt;
    WhatIf made;
    made.name = shown(name, 240);
    made.fits = result->failure_count == 0;
    made.peak_reserved_bytes = result->peak_reserved_bytes;
    made.peak_allocated_bytes = result->peak_allocated_bytes;
    made.room_bytes = room && *room != kAll ? *room : 0;
    if (!result->failures.empty()) made.failure = static_cast<std::uint32_t>(result->failures.front().event);
    made.told = made.fits ? (cut_short_ ? "fits as far as it was recorded" : "fits") : refused_at(made.failure);
    made.reserved = curve.take();
    return made;
  }

  std::string refused_at(std::uint32_t event) const {
    const std::string place =
        event < facts_.trace.events.size() ? short_place(whereabouts(facts_, slot_, event).location) : std::string();
    return place.empty() ? "out of memory" : "out of memory at " + shown(place, 240);
  }

  void keep(std::optional<WhatIf> made) {
    if (made && scene_.what_ifs.size() < kMostWhatIfs) scene_.what_ifs.push_back(std::move(*made));
  }

  // The smallest that has the room, and the one below it, which may do with less.
  void try_gpus(std::uint64_t needed) {
    std::optional<Gpu> below;
    for (const char* name : kGpus) {
      const Result<Gpu> gpu = find_gpu(name);
      if (!gpu) continue;
      const std::uint64_t beside = gpu->context_bytes + facts_.usage[slot_].peak_outside_bytes;
      if (gpu->capacity_bytes <= beside || is_its_own(*gpu)) continue;
      if (gpu->capacity_bytes - beside < needed) {
        below = *gpu;
        continue;
      }
      if (below) try_gpu(*below);
      return try_gpu(*gpu);
    }
    if (below) try_gpu(*below);
  }
  bool is_its_own(const Gpu& gpu) const {
    const auto own = static_cast<double>(scene_.capacity_bytes), other = static_cast<double>(gpu.capacity_bytes);
    return own > 0.95 * other && own < 1.05 * other;
  }
  void try_gpu(const Gpu& gpu) {
    const std::uint64_t beside = gpu.context_bytes + facts_.usage[slot_].peak_outside_bytes;
    keep(attempt(fmt::format("On {}, {}", describe(gpu), format_bytes(gpu.capacity_bytes)), {},
                 gpu.capacity_bytes - beside, TargetGpu{gpu.capacity_bytes, gpu.compute_major}));
  }

  // Of the settings that nobody proposes the one that does most, if it does more than those before it.
  void keep_best_of(const std::vector<SettingChanges>& others) {
    const auto rank = [](const WhatIf& one) { return std::tuple(!one.fits, one.peak_reserved_bytes); };
    std::optional<WhatIf> best;
    for (const SettingChanges& changes : others) {
      std::optional<WhatIf> made = attempt(written(changes), changes, own_room_);
      if (made && (!best || rank(*made) < rank(*best))) best = std::move(made);
    }
    if (best && best->fits && std::all_of(scene_.what_ifs.begin(), scene_.what_ifs.end(), [&](const WhatIf& one) {
          return one.room_bytes != own_room_.value_or(0) || rank(*best) < rank(one);
        }))
      keep(std::move(best));
  }

  void tell(std::size_t others, bool has_searched) {
    const DeviceUsage& usage = facts_.usage[slot_];
    scene_.is_planned = judgement_.statements.placed_by_model;
    scene_.recorded_failures = usage.failure_count;
    if (usage.failure_count == 0)
      scene_.recorded_told = "fits";
    else
      scene_.recorded_told = usage.failures.empty() ? "out of memory" : refused_at(usage.failures.front().event);
    if (cut_short_)
      scene_.what_ifs_told.emplace_back(
          "The program was refused memory in this recording: what it would have requested had it been served is not "
          "known.");
    if (untried_ != 0)
      scene_.what_ifs_told.push_back(
          fmt::format("The recording is long: {} more were not replayed for this page; faultline replay tries any.",
                      format_count(untried_)));
    if (others != 0)
      scene_.what_ifs_told.push_back(fmt::format(
          "{} more settings {}; faultline replay --search lists them all.", format_count(others),
          has_searched ? "were replayed, of which the best is shown if it does more" : "are not replayed here"));
  }

  const Judgement& judgement_;
  const Facts& facts_;
  std::size_t slot_;
  Scene& scene_;
  std::uint64_t left_;  // replays
  std::uint64_t untried_ = 0;
  bool cut_short_ = false;
  std::optional<std::uint64_t> own_room_;  // of a plan; a recording's own is in it
};

// A lost beginning costs a few placements; a model that is wrong about the allocator misses many.
bool is_repeated_exactly(const ReplayResult& proof) {
  return proof.placements != 0 && proof.exact * 100 >= proof.placements * 99;
}

}  // namespace

void add_what_ifs(const Judgement& judgement, std::size_t device_slot, std::uint64_t most_events, Scene& scene) {
  const auto& proof = judgement.proofs[device_slot];
  if (!judgement.statements.placed_by_model && !(proof && is_repeated_exactly(*proof))) return;
  WhatIfs(judgement, device_slot, most_events, scene).run();
}

}  // namespace faultline::view
