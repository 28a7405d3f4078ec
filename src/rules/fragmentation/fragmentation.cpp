// memory/fragmentation: reserved memory that is free, yet can be neither used nor given back, because a live tensor shares its segment.
#include <algorithm>
#include <map>

#include "base/units.h"
#include "models/search.h"
#include "rules/describe.h"
#include "rules/rule.h"
#include "rules/shortage.h"

namespace faultline {
namespace {

// Below these the waste is the price of caching. Where a request failed for it, any waste that would have served it counts.
constexpr std::uint64_t kLeastBytes = 512 * kMiB;
constexpr double kLeastShare = 0.25;
// With this much of the device left the waste cannot hurt.
constexpr double kFarFromFull = 0.25;

struct Pins {
  std::uint64_t pinned_bytes = 0;  // free bytes in the segments this line's blocks hold
  std::uint64_t live_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t segments = 0;
  StackId stack;
};

// Which lines' blocks pin how much: a segment's free bytes are shared out evenly among the blocks in it.
std::vector<Pins> pins_by_line(const Facts& facts, const FreeSpace& space) {
  std::map<FrameId, Pins> by_line;
  for (const SegmentPicture& segment : space.segments) {
    if (segment.pinned_free_bytes == 0) continue;
    std::map<FrameId, std::uint64_t> here;
    for (std::uint32_t at = segment.first_live; at < segment.first_live + segment.live_count; ++at) {
      const LiveBlock& block = space.live[at];
      const StackId stack = facts.lifetimes.birth(block.id).stack;
      const FrameId line = facts.trace.stacks.frame_id(facts.stacks.line(stack));
      Pins& pins = by_line[line];
      pins.live_bytes += block.held_bytes;
      pins.stack = stack;
      ++pins.blocks;
      ++here[line];
    }
    for (const auto& [frame, blocks] : here) {
      by_line[frame].pinned_bytes += segment.pinned_free_bytes * blocks / segment.live_count;
      ++by_line[frame].segments;
    }
  }
  std::vector<Pins> pins;
  for (const auto& [frame, line] : by_line) pins.push_back(line);
  std::sort(pins.begin(), pins.end(), [](const Pins& a, const Pins& b) { return a.pinned_bytes > b.pinned_bytes; });
  return pins;
}

}  // namespace

void judge_fragmentation(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const Facts& facts = subject.facts();
  for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
    const DeviceUsage& usage = facts.usage[slot];
    const bool failed = !usage.failures.empty();
    const UsageMoment& moment = failed ? usage.failures.back() : usage.peak_reserved;
    if (moment.reserved == 0) continue;
    const FreeSpace space = subject.free_space(usage.device, moment.event);
    const double share = static_cast<double>(space.pinned_free_bytes) / static_cast<double>(space.reserved_bytes);
    const std::uint64_t request = failed ? subject.trace().events[moment.event].size_bytes : 0;
    std::optional<Shortage> shortage;
    if (failed && request != 0 && !is_driver_request(subject.trace(), subject.trace().events[moment.event]))
      shortage = shortage_of(subject, slot, moment);
    const bool broke_it =
        shortage && space.pinned_free_bytes >= request && std::string_view(cause_of(*shortage).cause()) == "fragmented";
    const std::uint64_t capacity = subject.trace().devices[slot].capacity_bytes,
                        taken = moment.reserved + moment.outside;
    const std::uint64_t left = capacity > taken ? capacity - taken : 0;
    const bool harmless =
        !failed && capacity != 0 && static_cast<double>(left) >= kFarFromFull * static_cast<double>(capacity);
    const bool too_little = failed && !broke_it && space.pinned_free_bytes < request;
    if (!broke_it && (space.pinned_free_bytes < kLeastBytes || share < kLeastShare)) continue;
    // A pool that takes all at once has its free memory in one piece with the rest: it is room, not waste.
    if (too_little && shortage && shortage->pool && space.segments.size() == 1) continue;

    // Of two maps that are mixed nothing tells which pool is which.
    if (shortage && shortage->pool) {
      const DumpedPool* const pool = subject.statements().pool_of(shortage->pool->name);
      if (pool != nullptr && pool->is_mixed) continue;
    }
    // What is as good as all free in one piece is not in pieces, however large the request was.
    const HeapKind heap = subject.trace().heaps[subject.trace().events[moment.event].heap.index()].kind;
    if (failed && request == 0 && heap == HeapKind::kBfc && space.segments.size() == 1 &&
        space.segments.front().largest_free_bytes / 99 >= space.segments.front().pinned_free_bytes / 100)
      continue;

    const std::vector<Pins> pins = pins_by_line(facts, space);
    if (pins.empty()) continue;
    std::uint64_t pinned_segments = 0, largest_pinned = 0;
    for (const SegmentPicture& segment : space.segments) {
      if (segment.pinned_free_bytes == 0) continue;
      ++pinned_segments;
      largest_pinned = std::max(largest_pinned, segment.largest_free_bytes);
    }
    // what the program got over is no error, whatever ended it later
    const StatedError& stated = subject.statements().error;
    // a pool that has taken more than it may take is not as its map says
    const bool contradicts = shortage && shortage->pool && shortage->pool->limit && shortage->reserved &&
                             surely_less(*shortage->pool->limit, *shortage->reserved);
    const bool got_over = stated.lives_on || (!stated.ended_by.empty() && !stated.ended_while_handled);
    Finding finding =
        finding_at(facts, "memory/fragmentation",
                   broke_it && !got_over                   ? Severity::kError
                   : !broke_it && (harmless || too_little) ? Severity::kNote
                                                           : Severity::kWarning,
                   contradicts ? Confidence::kHint : Confidence::kProved, usage.device, pins.front().stack);
    finding.bytes = space.pinned_free_bytes;
    finding.message =
        format_bytes(space.pinned_free_bytes) + " of " + format_bytes(space.reserved_bytes) + " reserved " +
        (failed ? "at the failure" : "at the peak") +
        " was free but could neither serve a larger request nor go back to the device: live tensors share their " +
        format_count(pinned_segments) + (pinned_segments == 1 ? " segment." : " segments.");
    if (harmless)
      finding.message +=
          " It did no harm: " + format_bytes(left) + " of the device's " + format_bytes(capacity) + " were not taken.";
    if (too_little)
      finding.message += " All of it together is less than the " + format_bytes(request) + " that were requested.";
    const bool line_known = finding.location.known();
    finding.memory = format_count(pins.front().blocks) +
                     (pins.front().blocks == 1 ? " live tensor " : " live tensors ") +
                     (line_known ? "made at this line" : "whose line was not recorded") + " (" +
                     format_bytes(pins.front().live_bytes) + ") pin " + format_bytes(pins.front().pinned_bytes) +
                     " of free space in " + format_count(pins.front().segments) +
                     (pins.front().segments == 1 ? " segment." : " segments.");
    finding.evidence = {{"pinned_free_bytes", static_cast<std::int64_t>(space.pinned_free_bytes)},
                        {"reserved_bytes", static_cast<std::int64_t>(space.reserved_bytes)},
                        {"live_bytes", static_cast<std::int64_t>(space.live_bytes)},
                        {"pinned_segments", static_cast<std::int64_t>(pinned_segments)},
                        {"largest_free_piece_bytes", static_cast<std::int64_t>(largest_pinned)},
                        {"pinned_share", share}};
    if (capacity != 0 && !failed) {
      add_evidence(finding, "device_capacity_bytes", capacity);
      add_evidence(finding, "device_left_bytes", left);
    }
    for (std::size_t at = 0; at < pins.size() && at < 6; ++at) {
      Holder holder;
      holder.bytes = pins[at].pinned_bytes;
      holder.count = pins[at].blocks;
      holder.category = "pinned free";
      holder.location = location_of(facts, pins[at].stack);
      holder.detail = "by " + format_bytes(pins[at].live_bytes) + " of live tensors in " +
                      format_count(pins[at].segments) + " segments";
      finding.holders.push_back(std::move(holder));
    }
    if (subject.model_is_trusted(slot)) {
      // Where a request failed, in the room that was there: a setting that does not serve it helps nobody.
      const std::optional<std::uint64_t> room =
          shortage && !shortage->pool ? std::optional(segment_room(*shortage, usage, moment)) : std::nullopt;
      const ReplayResult* best = nullptr;
      std::string best_setting;
      for (const SettingChanges& changes : proposed_settings(subject.trace(), usage.device)) {
        const ReplayResult* answer = subject.what_if(slot, changes, room);
        if (answer == nullptr || answer->failure_count != 0 ||
            (best != nullptr && answer->peak_reserved_bytes >= best->peak_reserved_bytes))
          continue;
        best = answer;
        best_setting = instruction(subject.trace(), usage.device, changes);
      }
      // Worth a line only if it gives back a good part of the waste.
      if (best != nullptr && best->peak_reserved_bytes + space.pinned_free_bytes / 4 <= usage.peak_reserved.reserved) {
        finding.tries.push_back(
            {best_setting + ": the same requests reserve " + format_bytes(best->peak_reserved_bytes) + " instead of " +
                 format_bytes(usage.peak_reserved.reserved) + (failed ? ", as far as they were recorded." : "."),
             true, usage.peak_reserved.reserved - best->peak_reserved_bytes});
      }
    }
    add_try(finding, "Make the long-lived tensors" +
                         (line_known ? " of " + short_place(finding.location) : std::string()) +
                         " before the short-lived ones around them, so that they share segments with each other.");
    finding.fingerprint = fingerprint(finding.rule, finding.location);
    findings.push_back(std::move(finding));
  }
}

}  // namespace faultline
