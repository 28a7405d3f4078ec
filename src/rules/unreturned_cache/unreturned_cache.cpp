// memory/unreturned-cache: whole segments that were used early, lie idle since, and are still taken from the device.
//
// The program itself loses nothing (PyTorch returns them before it would fail), but other processes and other libraries do. What lies free in the private pools of CUDA graphs is
// told apart: it is what their replays work in, nobody else is served from it, and no call returns it while they live.
#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/units.h"
#include "rules/describe.h"
#include "rules/rule.h"

namespace faultline {
namespace {

constexpr std::uint64_t kLeastBytes = 512 * kMiB;
constexpr double kLeastShare = 0.25;
constexpr std::uint32_t kLeastLaterAllocations = 100;  // fewer say nothing about what the program still needs
constexpr std::uint64_t kLeastPoolBytes = 64 * kMiB;
constexpr double kLeastPoolShare = 0.02;

bool is_in_private_pool(const Trace& trace, const FinalSegment& segment) {
  return segment.heap.index() < trace.heaps.size() && trace.heaps[segment.heap.index()].is_private();
}

// Of the state that the input ends with.
void note_private_pools(const Trace& trace, std::uint16_t device, std::vector<Finding>& findings) {
  std::uint64_t reserved = 0, in_pools = 0, idle = 0;
  std::set<HeapId> pools;
  for (const FinalSegment& segment : trace.final_segments) {
    if (segment.device != device) continue;
    reserved += segment.size_bytes;
    if (!is_in_private_pool(trace, segment)) continue;
    pools.insert(segment.heap);
    in_pools += segment.size_bytes;
    std::uint64_t used = 0;
    for (std::uint32_t at = 0; at < segment.block_count; ++at) {
      const FinalBlock& block = trace.final_blocks[segment.first_block + at];
      if (block.state != FinalBlock::State::kFree) used += block.size_bytes;
    }
    idle += segment.size_bytes - std::min(used, segment.size_bytes);
  }
  if (idle < kLeastPoolBytes || static_cast<double>(idle) < kLeastPoolShare * static_cast<double>(reserved)) return;
  Finding finding;
  finding.rule = rule_name::kUnreturnedCache;
  finding.severity = Severity::kNote;
  finding.confidence = Confidence::kProved;
  finding.device = device;
  finding.bytes = idle;
  finding.message =
      format_bytes(idle) + " of the " + format_bytes(reserved) + " that PyTorch holds is free in " +
      (pools.size() == 1 ? std::string("a private pool") : format_count(pools.size()) + " private pools") +
      " (of CUDA graphs, or of torch.cuda.MemPool): only their own graphs and tensors are served from " +
      "there, and torch.cuda.empty_cache() cannot return it while they live.";
  finding.memory =
      "To the allocator it is free; a graph that is replayed works in it, so it is not waste while the graph is used.";
  add_evidence(finding, "idle_bytes", idle);
  add_evidence(finding, "private_pool_bytes", in_pools);
  add_evidence(finding, "private_pools", pools.size());
  add_evidence(finding, "reserved_bytes", reserved);
  add_try(
      finding,
      "If it is needed elsewhere: let graphs share one pool (torch.cuda.graph(..., pool=...)), capture fewer sizes "
      "(fewer shapes under torch.compile(mode=\"reduce-overhead\")), and delete graphs that are no longer replayed, "
      "then torch.cuda.empty_cache().");
  finding.fingerprint = fingerprint(finding.rule, finding.location, "private-pools");
  findings.push_back(std::move(finding));
}

}  // namespace

void judge_unreturned_cache(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  for (const Device& device : trace.devices) note_private_pools(trace, device.index, findings);
  if (!trace.can(kEvents)) {
    not_judged.push_back({rule_name::kUnreturnedCache,
                          "it needs " + describe_capabilities(kEvents) + ", which this input does not have"});
    return;
  }
  HashSet<std::uint64_t> private_segments;
  for (const FinalSegment& segment : trace.final_segments) {
    if (is_in_private_pool(trace, segment)) private_segments.insert(segment.address);
  }
  for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
    const DeviceUsage& usage = facts.usage[slot];
    if (usage.end.reserved < kLeastBytes || !facts.uses.has_framework(usage.device)) continue;
    // TensorFlow and JAX keep what they have taken until the process ends: that is how they are made.
    if (std::any_of(trace.heaps.begin(), trace.heaps.end(),
                    [&](const Heap& heap) { return heap.device == usage.device && heap.kind == HeapKind::kBfc; }))
      continue;
    const auto last = static_cast<std::uint32_t>(trace.events.size() - 1);
    const FreeSpace space = subject.free_space(usage.device, last);
    // Idle means: not one allocation in it during the later half of the recording. What was there before it began takes no part of its time.
    const std::uint32_t half = trace.preexisting_count + (last - std::min(last, trace.preexisting_count)) / 2;
    std::vector<bool> touched(space.segments.size());
    std::vector<StackId> last_use(space.segments.size());
    std::uint32_t later_allocations = 0;
    for (std::uint32_t index = 0; index <= last; ++index) {
      const Event& event = trace.events[index];
      if (event.kind != EventKind::kAlloc || event.device != usage.device) continue;
      const bool block = facts.uses.is_program(event.heap);
      const auto after = std::upper_bound(
          space.segments.begin(), space.segments.end(), event.address,
          [](std::uint64_t address, const SegmentPicture& segment) { return address < segment.address; });
      later_allocations += block && index > half;
      if (after == space.segments.begin()) continue;
      const auto at = static_cast<std::size_t>(after - space.segments.begin()) - 1;
      if (event.address - space.segments[at].address >= space.segments[at].size_bytes) continue;
      if (block) last_use[at] = event.stack;
      if (index > half) touched[at] = true;
    }
    if (later_allocations < kLeastLaterAllocations) continue;
    std::uint64_t idle = 0, count = 0, largest = 0;
    StackId user;
    for (std::size_t at = 0; at < space.segments.size(); ++at) {
      const SegmentPicture& segment = space.segments[at];
      if (segment.live_count != 0 || touched[at] || segment.expandable || private_segments.contains(segment.address))
        continue;
      idle += segment.size_bytes;
      ++count;
      if (segment.size_bytes > largest) {
        largest = segment.size_bytes;
        user = last_use[at];
      }
    }
    const double share = static_cast<double>(idle) / static_cast<double>(usage.end.reserved);
    if (idle < kLeastBytes || share < kLeastShare) continue;
    Finding finding =
        finding_at(facts, rule_name::kUnreturnedCache, Severity::kNote, Confidence::kProved, usage.device, user);
    finding.bytes = idle;
    finding.message = format_bytes(idle) + " of the " + format_bytes(usage.end.reserved) +
                      " that PyTorch holds at the end have not been used during the later half of "
                      "the recording; this program can use them again, other processes and libraries cannot.";
    finding.memory = finding.location.known() ? "Last used by tensors made at this line."
                                              : "The recording does not reach back to the tensors that used them.";
    finding.evidence = {{"idle_bytes", static_cast<std::int64_t>(idle)},
                        {"idle_segments", static_cast<std::int64_t>(count)},
                        {"reserved_bytes", static_cast<std::int64_t>(usage.end.reserved)},
                        {"idle_share", share},
                        {"allocations_meanwhile", static_cast<std::int64_t>(later_allocations)}};
    finding.tries.push_back(
        {"If something else needs the memory, call torch.cuda.empty_cache() once, after the phase that needed it. "
         "Inside a loop it only costs time.",
         std::nullopt, idle});
    finding.fingerprint = fingerprint(finding.rule, finding.location);
    findings.push_back(std::move(finding));
  }
}

}  // namespace faultline
