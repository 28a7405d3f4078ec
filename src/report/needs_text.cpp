#include "report/needs_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "trace/framework.h"

namespace faultline {

// "20.90 GiB to 22.00 GiB" where a part is estimated and that shows.
std::string needed_text(const Plan& plan) {
  if (plan.need.most_bytes == 0) return format_bytes(plan.need.bytes);
  const std::string least = format_bytes(plan.need.least_bytes), most = format_bytes(plan.need.most_bytes);
  return least == most ? format_bytes(plan.need.bytes) : least + " to " + most;
}

// What makes an interval of it.
std::string estimate_text(const Plan& plan) {
  if (plan.need.most_bytes == 0 || format_bytes(plan.need.least_bytes) == format_bytes(plan.need.most_bytes)) return {};
  std::string what;
  for (const PlanEstimate& estimate : plan.need.estimates)
    what +=
        fmt::format("{}{} ({} request{}, up to {})", what.empty() ? "" : "; ", estimate.what,
                    format_count(estimate.count), estimate.count == 1 ? "" : "s", format_bytes(estimate.largest_bytes));
  return " Estimated between a least and a most: " + what + ".";
}

std::string missing_text(const Plan& plan) {
  const bool is_open = plan.need.least_bytes != 0 && plan.need.least_bytes < plan.most_needed();
  const std::uint64_t capacity_bytes = plan.gpu->capacity_bytes;
  const bool is_sure = is_open && plan.need.least_bytes > capacity_bytes;
  return (is_sure || !plan.is_known_in_all() ? "at least " : "") +
         format_bytes(is_sure ? plan.need.least_bytes - capacity_bytes : plan.missing_bytes());
}

// PyTorch keeps what it took for reuse; where that is more than it needs, both are said, so that the sum at the peak is explained.
std::string taken_text(const Plan& plan) {
  const bool shrinks =
      plan.need.bytes < plan.need.taken_bytes && format_bytes(plan.need.bytes) != format_bytes(plan.need.taken_bytes);
  return shrinks ? fmt::format(" Where there is room it takes {}.", format_bytes(plan.need.taken_bytes)) : "";
}

// With just what was taken at the fullest the pieces would not lie as they do.
std::string more_than_taken_text(const Plan& plan) {
  if (plan.need.bytes <= plan.need.taken_bytes || format_bytes(plan.need.bytes) == format_bytes(plan.need.taken_bytes))
    return {};
  return fmt::format(
      " That is {} more than it takes at the fullest: on a GPU of just that size so much is lost in gaps between "
      "tensors.",
      format_bytes(plan.need.bytes - plan.need.taken_bytes));
}

// Sizes that depend on values which a dry run does not compute are taken as large as they can be.
std::string most_text(const Plan& plan) {
  const bool any = std::any_of(plan.notes.begin(), plan.notes.end(), [](const PlanNote& note) { return note.most; });
  return any ? " Where sizes depend on values it counts the most there can be, so it may need less: --real computes "
               "them."
             : "";
}

// JAX leaves a quarter of a GPU alone; TensorFlow's reserve counts as context.
std::string pool_text(const Plan& plan) {
  constexpr double kUsualShare = 0.75;
  constexpr std::uint64_t kSmall = 64 * kMiB;
  if (plan.pool.framework.empty()) return {};
  std::string text;
  if (plan.pool.framework == file_name_of(Framework::kJax) && plan.pool.share < 1)
    text = fmt::format(" {} of it are JAX's pool, which may take {:.0f} % of a GPU{}.", format_bytes(plan.pool.bytes),
                       100 * plan.pool.share,
                       plan.pool.share == kUsualShare ? " (XLA_CLIENT_MEM_FRACTION)" : ", as is set");
  std::uint64_t live_bytes = 0;
  for (const auto& [category, size_bytes] : plan.peak.live) live_bytes += size_bytes;
  if (plan.pool.bytes > live_bytes + kSmall && 20 * (plan.pool.bytes - live_bytes) > plan.pool.bytes)
    text += fmt::format(
        " At most {} is in use at one time; the pool needs {} more because what is free in it lies in pieces that "
        "are too small for what is asked, or is the rest of chunks that it does not split.",
        format_bytes(live_bytes), format_bytes(plan.pool.bytes - live_bytes));
  return text;
}

std::string unit_text(const Plan& plan) {
  return plan.growth.unit == "step" && plan.pool.framework.empty() ? "optimizer step" : plan.growth.unit;
}

}  // namespace faultline
