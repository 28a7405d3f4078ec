#include "report/assemble.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "facts/outside.h"
#include "facts/stack_facts.h"
#include "plan/settle.h"
#include "report/json.h"
#include "report/unseen.h"
#include "rules/describe.h"

namespace faultline {
namespace {

constexpr std::size_t kHoldersTold = 8;
constexpr std::size_t kLinesKept = 256;

std::uint64_t less(std::uint64_t whole, std::uint64_t part) { return whole > part ? whole - part : 0; }

// What neither the program nor the free bytes account for: what other libraries asked for, then what no one asked for.
void split_rest(const Trace& trace, const Facts& facts, std::size_t slot, const UsageMoment& moment, bool free_known,
                std::uint64_t rest, Account& account) {
  if (rest == 0) return;
  const Device& device = trace.devices[slot];
  std::uint64_t left = rest;
  for (const OutsidePart& part : outside_parts(trace, facts.lifetimes, facts.uses, device.index, moment.event)) {
    const std::uint64_t bytes = std::min(left, part.bytes);
    if (bytes != 0) account.outside.emplace_back(part.what, bytes);
    left -= bytes;
  }
  const std::optional<Unasked> unasked = unasked_memory(trace, device);
  const std::uint64_t context = unasked ? std::min(left, unasked->bytes) : 0;
  if (free_known || unasked) {
    const std::uint64_t bytes = free_known ? left : context;
    const bool others_too = bytes > kUsualOutsideBytes;
    if (bytes != 0 && (unasked || !account.outside.empty()))
      account.outside.emplace_back(others_too ? "CUDA context, driver and other processes" : "CUDA context and driver",
                                   bytes);
    left -= bytes;
    account.outside_framework = rest - left;
    // Without a reading at that moment what is left was free: all that was asked for, and all that was not, is known.
    if (!free_known) account.free += left;
    return;
  }
  account.outside_framework = rest - left;
  account.unknown = left;
}

Account account_of(const Trace& trace, const Statements& statements, const Facts& facts, std::size_t slot) {
  const UsageMoment& moment = facts.focus(slot);
  Account account;
  account.moment = !facts.usage[slot].failures.empty() ? "at the failure"
                   : trace.can(kEvents)                ? "at the peak"
                                                       : "when the snapshot was taken";
  const CategoryBytes live = facts.live_by_category(slot, moment.event);
  std::uint64_t live_sum = 0;
  for (std::size_t at = 0; at < kCategoryCount; ++at) {
    account.live.emplace_back(std::string(name_of(static_cast<Category>(at))), live[at]);
    live_sum += live[at];
  }
  account.has_framework = facts.uses.has_framework(trace.devices[slot].index);
  // no cache stands between the program and the driver; pages mapped by hand are no allocations
  if (!account.has_framework) {
    account.live.back().second += less(moment.reserved, live_sum);
    live_sum = std::max(live_sum, moment.reserved);
  }
  account.cached = less(moment.reserved, live_sum);
  const std::uint64_t held = live_sum + account.cached;
  const Event& event = trace.events[moment.event];
  const bool free_known = event.kind == EventKind::kAllocFailed && event.has(kHasDeviceFree);
  account.free = free_known ? event.address : 0;
  account.capacity_known =
      trace.devices[slot].capacity_bytes >= held + account.free && trace.devices[slot].capacity_bytes != 0;
  account.capacity = account.capacity_known ? trace.devices[slot].capacity_bytes : held + account.free;
  std::uint64_t rest = account.capacity - held - account.free;
  // A dry run knows its device whole: what is not PyTorch's is the context it was told of, and the rest is free.
  if (const std::optional<std::uint64_t> context = statements.planned_context_of(trace.devices[slot].index);
      context && account.capacity_known && !free_known) {
    account.outside_framework = std::min(rest, *context);
    account.free = rest - account.outside_framework;
    rest = 0;
  }
  split_rest(trace, facts, slot, moment, free_known, rest, account);
  return account;
}

// A map of a pool of which lines are missing shows neither what was in use nor what was taken.
bool lacks_lines(const Trace& trace, const Statements& statements, std::uint16_t device) {
  return std::any_of(trace.heaps.begin(), trace.heaps.end(), [&](const Heap& heap) {
    const DumpedPool* const pool =
        heap.kind == HeapKind::kBfc && heap.device == device ? statements.pool_of(heap.name) : nullptr;
    return pool != nullptr && pool->is_cut();
  });
}

DeviceReport device_report(const Trace& trace, const Judgement& judgement, std::size_t slot) {
  const Facts& facts = *judgement.facts;
  const DeviceUsage& usage = facts.usage[slot];
  DeviceReport report;
  report.index = usage.device;
  report.name = trace.devices[slot].name;
  report.allowed_bytes = trace.devices[slot].allowed_bytes;
  report.peak_allocated = usage.peak_allocated.allocated;
  report.peak_reserved = usage.peak_reserved.reserved;
  report.peak_event = usage.peak_allocated.event;
  report.event_count = trace.source_event_count();
  if (lacks_lines(trace, judgement.statements, usage.device)) {
    report.peak_allocated = report.peak_reserved = 0;
    return report;
  }
  if (!trace.events.empty()) report.account = account_of(trace, judgement.statements, facts, slot);
  if (usage.peak_allocated.allocated != 0) {
    HolderLists lists = holder_lists_at(facts, slot, usage.peak_allocated.event, kHoldersTold, kLinesKept);
    report.holders = std::move(lists.most);
    report.lines = std::move(lists.more);
  }
  for (const UsageMoment& moment : usage.curve)
    report.curve.push_back({moment.time_ns, moment.allocated, moment.reserved});
  if (const std::optional<ReplayResult>& proof = judgement.proofs[slot]) {
    report.model = {proof->model,
                    proof->placements,
                    proof->exact,
                    proof->segment_events,
                    proof->segment_events_exact,
                    {},
                    judgement.statements.placed_by_model};
  } else if (facts.uses.has_framework(usage.device)) {
    report.model.why_not = judgement.no_proof_because[slot];
  }
  return report;
}

// A message's account is what its numbers say, as they were printed; what no number covers is unknown.
void add_message_device(const Device& described, const StatedError& stated, Report& report) {
  if (!stated.capacity) return;
  DeviceReport device;
  device.index = described.index;
  device.name = described.name;
  device.allowed_bytes = described.allowed_bytes;
  Account& account = device.account;
  account.moment = "at the failure";
  account.capacity = stated.capacity->middle();
  account.capacity_known = true;
  account.unknown = account.capacity;
  // Rounded parts may overshoot the rounded whole by a little; each takes at most what is left.
  const auto take = [&](const std::optional<ByteInterval>& part) {
    const std::uint64_t bytes = part ? std::min(part->middle(), account.unknown) : 0;
    account.unknown -= bytes;
    return bytes;
  };
  account.free = take(stated.free);
  const std::uint64_t live = take(stated.live);
  for (std::size_t at = 0; at < kCategoryCount; ++at) {
    const auto category = static_cast<Category>(at);
    account.live.emplace_back(std::string(name_of(category)), category == Category::kOther ? live : 0);
  }
  account.cached = take(stated.cached && stated.graph_pool ? *stated.cached + *stated.graph_pool : stated.cached);
  account.outside_framework = take(stated.outside());
  if (!stated.processes_ambiguous) account.outside_framework += take(stated.others);
  report.devices.push_back(std::move(device));
}

// Appends the report of a part to the whole. What is not judged of one is not judged of all.
void add_part(Report part, const std::string& name, Report& whole) {
  if (!name.empty()) whole.parts.push_back({name, part.input_path, part.input_events});
  whole.input_events += part.input_events;
  for (const auto& [what, times] : part.lost) whole.lost[what] += times;
  for (Finding& finding : part.findings) {
    finding.process = name;
    whole.findings.push_back(std::move(finding));
  }
  for (DeviceReport& device : part.devices) {
    device.process = name;
    whole.devices.push_back(std::move(device));
  }
  const auto is_told = [&](const NotJudged& item) {
    return std::any_of(whole.not_judged.begin(), whole.not_judged.end(),
                       [&](const NotJudged& told) { return told.rule == item.rule && told.why == item.why; });
  };
  for (NotJudged& item : part.not_judged) {
    if (!is_told(item)) whole.not_judged.push_back(std::move(item));
  }
}

// One failure is in two parts where a process left both its tensors and the words of its exception: the part that knows more than words tells it.
void drop_what_words_repeat(std::vector<Finding>& of_words, const std::vector<Finding>& findings) {
  std::erase_if(of_words, [&](const Finding& finding) {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
      return finding.location.line != 0 && other.rule == finding.rule && other.location.line == finding.location.line &&
             other.location.file == finding.location.file;
    });
  });
}

}  // namespace

Report make_report(const Trace& trace, const Judgement& judgement) {
  Report report;
  report.input_kind = trace.source_kind;
  report.input_path = trace.source_path;
  report.input_events = trace.source_event_count();
  report.lost = trace.lost;
  report.findings = judgement.findings;
  report.not_judged = judgement.not_judged;
  for (std::size_t slot = 0; slot < trace.devices.size(); ++slot) {
    if (judgement.statements.message_only && !trace.can(kAddresses))
      add_message_device(trace.devices[slot], judgement.statements.error, report);
    else
      report.devices.push_back(device_report(trace, judgement, slot));
  }
  return report;
}

Report make_report(const Input& input, const VisitPart& visit) {
  if (std::optional<Report> written = input.report.empty() ? std::nullopt : report_of(input.report)) return *written;
  Report whole;
  whole.input_kind = input.kind;
  whole.input_path = input.path;
  whole.lost = input.lost;
  whole.notes = input.notes;
  whole.left_out = input.left_out;
  std::vector<Finding> of_words;  // of parts that are words alone
  std::uint32_t told = 0;
  for (const InputPart& part : input.parts) {
    Judgement judgement = judge(part.trace, part.statements);
    for (Finding& finding : judgement.findings) finding.id += told;
    told += static_cast<std::uint32_t>(judgement.findings.size());
    const std::size_t before = whole.findings.size();
    add_part(make_report(part.trace, judgement), input.parts.size() > 1 ? part.name : std::string(), whole);
    if (judgement.statements.message_only) {
      const auto begin = whole.findings.begin() + static_cast<std::ptrdiff_t>(before);
      std::move(begin, whole.findings.end(), std::back_inserter(of_words));
      whole.findings.erase(begin, whole.findings.end());
    }
    if (visit) visit(part, judgement);
  }
  drop_what_words_repeat(of_words, whole.findings);
  std::move(of_words.begin(), of_words.end(), std::back_inserter(whole.findings));
  std::stable_sort(whole.findings.begin(), whole.findings.end(), comes_before);
  const bool is_explained = std::any_of(whole.findings.begin(), whole.findings.end(),
                                        [](const Finding& finding) { return finding.severity == Severity::kError; });
  whole.unseen = unseen_of(input, is_explained);
  if (std::optional<Plan> plan = input.plan.empty() ? std::nullopt : plan_of(input.plan))
    attach_plan(whole, std::move(*plan));
  return whole;
}

void attach_plan(Report& report, Plan plan) {
  const auto of_plan = std::find_if(report.devices.begin(), report.devices.end(),
                                    [&](const DeviceReport& device) { return device.index == plan.device; });
  const DeviceReport* const device = of_plan != report.devices.end() ? &*of_plan
                                     : report.devices.empty()        ? nullptr
                                                                     : &report.devices.front();
  settle_findings(plan, device != nullptr ? device->holders : std::vector<Holder>(), report.findings,
                  report.not_judged);
  report.plan = std::move(plan);
}

}  // namespace faultline
