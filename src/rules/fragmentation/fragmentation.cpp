// memory/fragmentation: reserved memory that is free, yet can be neither used nor given back, because a live tensor shares its segment.
#include <algorithm>
#include <map>

#include "base/units.h"
#include "models/search.h"
#include "rules/describe.h"
#include "rules/rule.h"
#include "rules/shortage.h"
#include "sources/rule_names.h"

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

// The free space of a device at the moment that counts, and what it was to serve.
struct Waste {
  Case& subject;
  std::size_t slot = 0;
  const UsageMoment& moment;
  FreeSpace space;
  std::uint64_t request = 0;  // that failed; 0: none did, or its size is not told
  std::optional<Shortage> shortage;

  const DeviceUsage& usage() const { return subject.facts().usage[slot]; }
  bool failed() const { return !usage().failures.empty(); }
  double share() const {
    return static_cast<double>(space.pinned_free_bytes) / static_cast<double>(space.reserved_bytes);
  }
  std::uint64_t capacity() const { return subject.trace().devices[slot].capacity_bytes; }
  std::uint64_t left() const {
    const std::uint64_t taken = moment.reserved + moment.outside;
    return capacity() > taken ? capacity() - taken : 0;
  }
  bool broke_it() const {
    return shortage && space.pinned_free_bytes >= request &&
           std::string_view(cause_of(*shortage).cause()) == "fragmented";
  }
  bool is_harmless() const {
    return !failed() && capacity() != 0 &&
           static_cast<double>(left()) >= kFarFromFull * static_cast<double>(capacity());
  }
  bool is_too_little() const { return failed() && !broke_it() && space.pinned_free_bytes < request; }
};

Waste waste_of(Case& subject, std::size_t slot, const UsageMoment& moment) {
  const Event& event = subject.trace().events[moment.event];
  const DeviceUsage& usage = subject.facts().usage[slot];
  const bool failed = !usage.failures.empty();
  Waste waste{subject, slot, moment, subject.free_space(usage.device, moment.event), failed ? event.size_bytes : 0, {}};
  if (waste.request != 0 && !is_driver_request(subject.trace(), event))
    waste.shortage = shortage_of(subject, slot, moment);
  return waste;
}

// Of two maps that are mixed nothing tells which pool is which, and of one of which lines are missing what lies between its pieces.
bool is_of_unclear_map(const Waste& waste) {
  if (!waste.shortage || !waste.shortage->pool) return false;
  const DumpedPool* const pool = waste.subject.statements().pool_of(waste.shortage->pool->name);
  return pool != nullptr && (pool->is_mixed || pool->unread_bytes != 0 || pool->unplaced.max != 0);
}

bool is_worth_telling(const Waste& waste) {
  const FreeSpace& space = waste.space;
  if (!waste.broke_it() && (space.pinned_free_bytes < kLeastBytes || waste.share() < kLeastShare)) return false;
  if (space.segments.size() != 1) return true;
  // A pool that takes all at once has its free memory in one piece with the rest: it is room, not waste.
  if (waste.is_too_little() && waste.shortage && waste.shortage->pool) return false;
  // What is as good as all free in one piece is not in pieces, however large the request was.
  const Trace& trace = waste.subject.trace();
  const HeapKind heap = trace.heaps[trace.events[waste.moment.event].heap.index()].kind;
  return !(waste.failed() && waste.request == 0 && heap == HeapKind::kBfc &&
           space.segments.front().largest_free_bytes / 99 >= space.segments.front().pinned_free_bytes / 100);
}

Severity severity_of(const Waste& waste) {
  // what the program got over is no error, whatever ended it later
  const StatedError& stated = waste.subject.statements().error;
  const bool got_over = stated.lives_on || (!stated.ended_by.empty() && !stated.ended_while_handled);
  if (waste.broke_it()) return got_over ? Severity::kWarning : Severity::kError;
  return waste.is_harmless() || waste.is_too_little() ? Severity::kNote : Severity::kWarning;
}

// A pool that has taken more than it may take is not as its map says.
bool contradicts_itself(const std::optional<Shortage>& shortage) {
  return shortage && shortage->pool && shortage->pool->limit && shortage->reserved &&
         surely_less(*shortage->pool->limit, *shortage->reserved);
}

void tell_waste(const Waste& waste, Finding& finding) {
  const FreeSpace& space = waste.space;
  std::uint64_t pinned_segments = 0, largest_pinned = 0;
  for (const SegmentPicture& segment : space.segments) {
    if (segment.pinned_free_bytes == 0) continue;
    ++pinned_segments;
    largest_pinned = std::max(largest_pinned, segment.largest_free_bytes);
  }
  finding.bytes = space.pinned_free_bytes;
  finding.message =
      format_bytes(space.pinned_free_bytes) + " of " + format_bytes(space.reserved_bytes) + " reserved " +
      (waste.failed() ? "at the failure" : "at the peak") +
      " was free but could neither serve a larger request nor go back to the device: live tensors share their " +
      format_count(pinned_segments) + (pinned_segments == 1 ? " segment." : " segments.");
  if (waste.is_harmless())
    finding.message += " It did no harm: " + format_bytes(waste.left()) + " of the device's " +
                       format_bytes(waste.capacity()) + " were not taken.";
  if (waste.is_too_little())
    finding.message += " All of it together is less than the " + format_bytes(waste.request) + " that were requested.";
  finding.evidence = {{"pinned_free_bytes", static_cast<std::int64_t>(space.pinned_free_bytes)},
                      {"reserved_bytes", static_cast<std::int64_t>(space.reserved_bytes)},
                      {"live_bytes", static_cast<std::int64_t>(space.live_bytes)},
                      {"pinned_segments", static_cast<std::int64_t>(pinned_segments)},
                      {"largest_free_piece_bytes", static_cast<std::int64_t>(largest_pinned)},
                      {"pinned_share", waste.share()}};
  if (waste.capacity() == 0 || waste.failed()) return;
  add_evidence(finding, "device_capacity_bytes", waste.capacity());
  add_evidence(finding, "device_left_bytes", waste.left());
}

void tell_pins(const Facts& facts, const std::vector<Pins>& pins, Finding& finding) {
  const Pins& most = pins.front();
  finding.memory = format_count(most.blocks) + (most.blocks == 1 ? " live tensor " : " live tensors ") +
                   (finding.location.known() ? "made at this line" : "whose line was not recorded") + " (" +
                   format_bytes(most.live_bytes) + ") pin " + format_bytes(most.pinned_bytes) + " of free space in " +
                   format_count(most.segments) + (most.segments == 1 ? " segment." : " segments.");
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
}

// The setting that reserves least for the same requests, where that gives back a good part of the waste.
void try_settings(const Waste& waste, Finding& finding) {
  Case& subject = waste.subject;
  const DeviceUsage& usage = waste.usage();
  // Where a request failed, in the room that was there: a setting that does not serve it helps nobody.
  const std::optional<Shortage>& shortage = waste.shortage;
  const std::optional<std::uint64_t> room =
      shortage && !shortage->pool ? std::optional(segment_room(*shortage, usage, waste.moment)) : std::nullopt;
  const ReplayResult* best = nullptr;
  std::string best_setting;
  for (const SettingChanges& changes : proposed_settings(subject.trace(), usage.device)) {
    const ReplayResult* answer = subject.what_if(waste.slot, changes, room);
    if (answer == nullptr || answer->failure_count != 0 ||
        (best != nullptr && answer->peak_reserved_bytes >= best->peak_reserved_bytes))
      continue;
    best = answer;
    best_setting = instruction(subject.trace(), usage.device, changes);
  }
  const std::uint64_t reserved = usage.peak_reserved.reserved;
  if (best == nullptr || best->peak_reserved_bytes + waste.space.pinned_free_bytes / 4 > reserved) return;
  finding.tries.push_back({best_setting + ": the same requests reserve " + format_bytes(best->peak_reserved_bytes) +
                               " instead of " + format_bytes(reserved) +
                               (waste.failed() ? ", as far as they were recorded." : "."),
                           true, reserved - best->peak_reserved_bytes});
}

}  // namespace

void judge_fragmentation(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  const Facts& facts = subject.facts();
  for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
    const DeviceUsage& usage = facts.usage[slot];
    const UsageMoment& moment = usage.failures.empty() ? usage.peak_reserved : usage.failures.back();
    if (moment.reserved == 0) continue;
    const Waste waste = waste_of(subject, slot, moment);
    if (is_of_unclear_map(waste)) {
      not_judged.push_back(
          {std::string(rule_name::kFragmentation), "lines of the pool's map are missing, or lie between another's"});
      continue;
    }
    if (!is_worth_telling(waste)) continue;
    const std::vector<Pins> pins = pins_by_line(facts, waste.space);
    if (pins.empty()) continue;
    Finding finding = finding_at(facts, rule_name::kFragmentation, severity_of(waste),
                                 contradicts_itself(waste.shortage) ? Confidence::kHint : Confidence::kProved,
                                 usage.device, pins.front().stack);
    tell_waste(waste, finding);
    tell_pins(facts, pins, finding);
    if (subject.model_is_trusted(slot)) try_settings(waste, finding);
    add_try(finding, "Make the long-lived tensors" +
                         (finding.location.known() ? " of " + short_place(finding.location) : std::string()) +
                         " before the short-lived ones around them, so that they share segments with each other.");
    finding.fingerprint = fingerprint(finding.rule, finding.location);
    findings.push_back(std::move(finding));
  }
}

}  // namespace faultline
