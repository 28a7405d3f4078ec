// memory/leak: memory that some line keeps, round after round.
#include <algorithm>
#include <set>

#include "base/units.h"
#include "facts/cut_loops.h"
#include "facts/libraries.h"
#include "facts/outside.h"
#include "rules/describe.h"
#include "rules/leak/held_by.h"
#include "rules/leak/left_at_exit.h"
#include "rules/leak/reason.h"
#include "rules/rule.h"

namespace faultline {
namespace {

// Lines of one function that grow together are one leak: what the main line keeps keeps the others alive (an output keeps its graph, the
// graph keeps the input). Where no graph holds them, each line is one.
std::vector<Growth> gather(const Facts& facts, const HeldBy& held_by, std::vector<Growth> growths) {
  const auto by_itself = [&](const Growth& growth) {
    const std::optional<Holding> holding = held_by.of(growth);
    return holding && !holding->by_graph && !holding->holder.empty();
  };
  std::vector<Growth> gathered;  // growths come sorted, most bytes first
  for (Growth& growth : growths) {
    const auto same_function = [&](const Growth& main) {
      if (by_itself(main) || by_itself(growth)) return false;
      const Frame& a = facts.trace.stacks.frame(main.program);
      const Frame& b = facts.trace.stacks.frame(growth.program);
      return a.file == b.file && a.function == b.function && main.rounds == growth.rounds &&
             main.rounds_by == growth.rounds_by && main.let_go_later == growth.let_go_later && !main.in_place &&
             !growth.in_place;
    };
    const auto main = std::find_if(gathered.begin(), gathered.end(), same_function);
    if (main == gathered.end()) {
      gathered.push_back(std::move(growth));
      continue;
    }
    main->kept_bytes += growth.kept_bytes;
    main->kept_count += growth.kept_count;
    main->bytes_per_round += growth.bytes_per_round;
    main->least_bytes += growth.least_bytes;  // both kept at least that of every round
    main->stacks.insert(main->stacks.end(), growth.stacks.begin(), growth.stacks.end());
  }
  return gathered;
}

bool is_under(const Facts& facts, StackId frame, const Location& line) {
  for (; frame.value != 0; frame = facts.trace.stacks.parent(frame)) {
    const Location at = location_of_frame(facts.trace, frame);
    if (at.file == line.file && at.line == line.line) return true;
  }
  return false;
}

// Of what a growth keeps, what was made at a line or by what it calls.
std::uint64_t kept_under(const Facts& facts, const Growth& growth, const Location& line) {
  std::uint64_t count = 0;
  for (const GrowingStack& stack : growth.stacks) count += is_under(facts, stack.stack, line) ? stack.kept_count : 0;
  return count;
}

// What a graph alone keeps: a tensor that is kept without it stays.
std::uint64_t kept_by_graph(const Facts& facts, const Growth& growth, const Holding& holding) {
  const Location line = location_of_frame(facts.trace, growth.program);
  std::uint64_t here = 0;
  for (const GrowingStack& stack : growth.stacks) here += is_under(facts, stack.stack, line) ? stack.kept_bytes : 0;
  const auto own = static_cast<std::uint64_t>(static_cast<double>(here) * holding.own_share);
  return growth.kept_bytes - std::min(growth.kept_bytes, own);
}

// How often the program can go round before the device is full: what the program has taken stays taken, beside it are its context and whatever else is there.
std::int64_t rounds_until_full(const Facts& facts, std::size_t slot, const DeviceUsage& usage,
                               std::uint64_t bytes_per_round) {
  const Device& device = facts.trace.devices[slot];
  const std::optional<Unasked> unasked = unasked_memory(facts.trace, device);
  const std::uint64_t taken =
      usage.end.reserved + usage.end.outside + (unasked ? unasked->bytes : kUsualOutsideBytes / 2);
  return static_cast<std::int64_t>(device.capacity_bytes > taken ? (device.capacity_bytes - taken) / bytes_per_round
                                                                 : 0);
}

// Rounds of which several lines keep something may be a pass that records a graph. Where the program was seen to hold it without one, they are rounds.
bool keeps_values_of_rounds(const HeldBy& held_by, const Growth& growth) {
  if (growth.rounds_by != RoundsBy::kUnknown || !growth.alike || growth.loads) return false;
  const std::optional<Holding> holding = held_by.of(growth);
  return holding && !holding->by_graph && !holding->holder.empty();
}

// A dry run that went on past its failure, on a device that grows, has seen more rounds than fitted; what a line keeps to the end of them is known better
// there than at the failure. What is let go before the end is judged at the failure.
struct Judged {
  std::vector<Growth> growths;
  std::size_t at_failure = 0;  // from here on: at the failure
};

Judged find_growths(const Facts& facts, const HeldBy& held_by, std::size_t slot, bool goes_on) {
  const Trace& trace = facts.trace;
  const DeviceUsage& usage = facts.usage[slot];
  const auto until = [&](std::uint32_t end) {
    std::vector<Growth> growths = find_growth(trace, facts.lifetimes, facts.stacks, facts.steps, facts.categories[slot],
                                              usage.device, end, usage.peak_allocated.allocated);
    for (Growth& growth : growths) {
      if (keeps_values_of_rounds(held_by, growth)) growth.rounds_by = RoundsBy::kAlike;
    }
    return gather(facts, held_by, std::move(growths));
  };
  const auto last = static_cast<std::uint32_t>(trace.events.size() - 1);
  if (!goes_on) return {until(usage.failures.empty() ? last : usage.failures.back().event), 0};
  Judged judged{until(last), 0};
  std::erase_if(judged.growths, [](const Growth& growth) { return growth.rounds_by == RoundsBy::kUnknown; });
  const std::size_t whole = judged.at_failure = judged.growths.size();
  for (Growth& growth : until(usage.failures.back().event)) {
    const auto is_same = [&](const Growth& known) { return known.program == growth.program; };
    if (std::none_of(judged.growths.begin(), judged.growths.begin() + static_cast<std::ptrdiff_t>(whole), is_same))
      judged.growths.push_back(std::move(growth));
  }
  return judged;
}

// What of a growth was there when the device was full, and which round that was in.
struct WhenFull {
  std::uint64_t kept_bytes = 0;
  std::uint64_t round = 0;
};

WhenFull when_full(const Facts& facts, const Growth& growth, std::uint32_t failure) {
  WhenFull full;
  std::uint64_t kept = 0;
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    const auto is_ours = [&](const GrowingStack& one) { return one.stack == birth.stack; };
    if (!life.alive_at(failure) || !facts.uses.is_program(birth.heap) ||
        std::none_of(growth.stacks.begin(), growth.stacks.end(), is_ours))
      return;
    full.kept_bytes += facts.lifetimes.held_bytes(id);
    ++kept;
  });
  const std::vector<std::uint32_t>& ends = facts.steps.ends;
  full.round = growth.rounds_by == RoundsBy::kSteps
                   ? 1 + static_cast<std::uint64_t>(std::lower_bound(ends.begin(), ends.end(), failure) - ends.begin())
                   : 1 + kept * growth.rounds / std::max<std::uint64_t>(1, growth.kept_count);
  return full;
}

// "at this line"; an allocator's own log has no lines, only operations.
std::string made_where(const Location& location, const char* preposition = "at") {
  return location.file.empty() && !location.op.empty() ? "by " + location.op : std::string(preposition) + " this line";
}

// A line that keeps what it makes, and nothing that tells a loop from one pass.
Finding kept_without_rounds(const Facts& facts, const HeldBy& held_by, const Growth& growth, std::uint16_t device,
                            bool at_failure) {
  Finding finding = finding_at(facts, rule_name::kLeak, Severity::kNote, Confidence::kHint, device, growth.program);
  finding.location = location_of_frame(facts.trace, growth.program);
  finding.bytes = growth.kept_bytes;
  finding.message = format_count(growth.kept_count) + " tensors made " + made_where(finding.location) + ", " +
                    format_bytes(growth.kept_bytes) +
                    (growth.let_go_later ? " in all, were held when memory ran out and freed later. "
                     : at_failure        ? " in all, were held when memory ran out. "
                                         : " in all, are held at the end. ") +
                    (growth.from_host ? "They are copies of host memory: data that is loaded."
                     : growth.is_over ? "The program then went on to other lines, so what filled them is over; this "
                                        "recording cannot show whether they are still needed."
                     : growth.loads   ? "Each of " + format_count(growth.rounds) +
                                          " rounds loads something from the host and does the same with it: results, "
                                          "or data that is prepared once."
                     : growth.alike ? "The program did the same " + format_count(growth.rounds) +
                                          " times, and other lines keep something of each time, too: rounds of a loop, "
                                          "or one pass that records a graph."
                                    : "This recording cannot tell apart layers of one pass, something that is filled "
                                      "once, and a loop that never frees.");
  finding.evidence = {{"kept_tensors", static_cast<std::int64_t>(growth.kept_count)},
                      {"kept_bytes", static_cast<std::int64_t>(growth.kept_bytes)}};
  if (const std::optional<Holding> holding = held_by.of(growth);
      holding && (holding->by_graph || !holding->holder.empty())) {
    const Reason reason = reason_for(*holding);
    finding.memory = reason.text + ".";
    finding.tries.push_back({reason.advice, std::nullopt, growth.kept_bytes});
  }
  finding.fingerprint = fingerprint(finding.rule, finding.location, "kept");
  return finding;
}

std::string_view words_for(const Growth& growth) {
  switch (growth.rounds_by) {
    case RoundsBy::kModelCalls: return "calls of the model";
    case RoundsBy::kSizes: return "returns to the line, each with a size of its own";
    case RoundsBy::kMany: return "returns to the line, where nothing else is made or freed in between or after";
    case RoundsBy::kAlike: return "returns to the line, with the same made and freed in between each time";
    case RoundsBy::kLooks: return "looks at what is alive: at each of them more was there";
    case RoundsBy::kUnknown: return "returns to the line";
    default: return growth.round_kind;
  }
}

// A line whose memory grows round by round, and what is known of it.
struct Leak {
  const Facts& facts;
  const Growth& growth;
  std::size_t slot = 0;
  StackId blamed;
  bool has_framework = false;
  bool at_failure = false;
  std::optional<Holding> holding;
  Reason reason;

  const DeviceUsage& usage() const { return facts.usage[slot]; }
  bool ran_out() const { return !usage().failures.empty(); }
  // What is proved is what the page prints: each of the marked rounds kept so much, and the device's use rose by all of it.
  bool is_marked() const {
    return growth.full_rounds != 0 && growth.least_bytes != 0 &&
           growth.rise_bytes >= growth.full_rounds * growth.least_bytes;
  }
  bool is_proved() const {
    const bool plain = !has_framework && growth.kept_count >= growth.rounds && growth.in_every_stretch;
    return (is_marked() || plain) && growth.rounds >= 20 && !growth.let_go_later && !reason.may_be_filling;
  }
  // Who holds it has a limit, and there is room for all of it.
  bool has_room() const {
    if (ran_out() || !holding || holding->limit_bytes == 0) return false;
    const std::uint64_t to_come =
        holding->limit_bytes > growth.kept_bytes ? holding->limit_bytes - growth.kept_bytes : 0;
    return rounds_until_full(facts, slot, usage(), 1) >= static_cast<std::int64_t>(to_come);
  }
  bool may_be_meant() const {
    return growth.let_go_later || growth.rounds_by == RoundsBy::kMany ||
           (has_framework && growth.rounds_by == RoundsBy::kAlike) || growth.rounds_by == RoundsBy::kLooks ||
           (growth.in_place && growth.rounds_by == RoundsBy::kSizes);
  }
  Severity severity() const {
    return has_room() ? Severity::kNote : may_be_meant() ? Severity::kWarning : Severity::kError;
  }
  std::string unit() const {
    return growth.rounds_by == RoundsBy::kSteps ? "step" : growth.rounds_by == RoundsBy::kLooks ? "look" : "round";
  }
};

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// It was seen by whom it is held, in the program itself.
bool is_seen(const Growth& growth, const std::optional<Holding>& holding) {
  return holding && !growth.in_place && (holding->by_graph || !holding->holder.empty());
}

std::string told_by_rounds(const Leak& leak, const Location& location) {
  const Growth& growth = leak.growth;
  const std::string unit = leak.unit();
  const std::string held =
      growth.let_go_later ? "s were held at the end of the last of them and freed later, " : "s are still held, ";
  const std::string pace = !leak.is_marked() ? format_bytes(growth.bytes_per_round) + " a " + unit + " on average"
                           : growth.least_bytes == growth.bytes_per_round
                               ? format_bytes(growth.least_bytes) + " each " + unit
                               : "at least " + format_bytes(growth.least_bytes) + " each " + unit;
  const std::uint64_t here = kept_under(leak.facts, growth, location);
  const bool all_here = here == 0 || here >= growth.kept_count;  // 0: a line that stands for a thread without any
  const bool inside = leak.facts.stacks.has(growth.stacks.front().stack, kInModuleCall);
  return "Memory grows by " + pace + ": " + format_count(growth.kept_count) +
         (leak.has_framework ? " tensors" : " allocations") + (all_here ? "" : ", " + format_count(here) + " of them") +
         " made " + made_where(location, inside ? "under" : "at") + (all_here ? "" : ",") + " in " +
         format_count(growth.rounds) + " " + unit + held + format_bytes(growth.kept_bytes) + " in all.";
}

std::string told_by_looks(const Leak& leak) {
  const Growth& growth = leak.growth;
  return "Memory grows: the arrays that are alive were looked at " + format_count(growth.rounds) +
         " times since this line made the first, and " +
         std::string(leak.is_marked() ? "each time at least " + format_bytes(growth.least_bytes) + " more"
                                      : "nearly each time more") +
         " of them were there; at the end " + format_count(growth.kept_count) + ", " + format_bytes(growth.kept_bytes) +
         " in all.";
}

std::string told_in_place(const Leak& leak) {
  const Growth& growth = leak.growth;
  return (growth.kept_count == 1
              ? std::string("The tensor that is made at this line grows by ")
              : "The " + format_count(growth.kept_count) + " tensors that this line makes grow by ") +
         std::string(growth.least_bytes == growth.bytes_per_round ? "" : "at least ") +
         format_bytes(growth.least_bytes) + " each " + leak.unit() + ": after " + format_count(growth.rounds) + " " +
         leak.unit() + (growth.kept_count == 1 ? "s it has " : "s they have ") + format_bytes(growth.kept_bytes) + ".";
}

// Of a program whose memory ran out: the round in which that was, and what was held then.
void tell_when_full(const Leak& leak, Finding& finding) {
  const WhenFull full = when_full(leak.facts, leak.growth, leak.usage().failures.back().event);
  finding.evidence.push_back({"full_at_step", number(full.round)});
  finding.evidence.push_back({"kept_when_full_bytes", number(full.kept_bytes)});
  finding.message += " Memory runs out in " + std::string(leak.growth.rounds_by == RoundsBy::kSteps ? "" : "about ") +
                     leak.unit() + " " + format_count(full.round) +
                     (leak.at_failure ? ", the moment that these numbers are of."
                                      : ", when " + format_bytes(full.kept_bytes) +
                                            " of it are held; the rounds after that were run on a larger GPU.");
}

// Where the rise of the device's use was compared with what each round kept.
void tell_rise(const Leak& leak, Finding& finding) {
  const Growth& growth = leak.growth;
  if (growth.full_rounds == 0) {
    if (!growth.in_place) finding.evidence.push_back({"lowest_use_rose_by_bytes", number(growth.rise_bytes)});
    return;
  }
  finding.evidence.push_back({"steps_after_warm_up", number(growth.full_rounds)});
  finding.evidence.push_back({"least_kept_of_a_step_bytes", number(growth.least_bytes)});
  finding.evidence.push_back({"use_rose_in_them_by_bytes", number(growth.rise_bytes)});
  if (!leak.is_marked()) return;
  finding.evidence.push_back({"shown_by", format_count(growth.full_rounds) + " × " + format_bytes(growth.least_bytes) +
                                              " = " + format_bytes(growth.full_rounds * growth.least_bytes) + " ≤ " +
                                              format_bytes(growth.rise_bytes)});
}

void tell_holders(const Leak& leak, Finding& finding) {
  for (const GrowingStack& stack : leak.growth.stacks) {
    if (finding.holders.size() == 8) break;
    Holder holder;
    holder.bytes = stack.kept_bytes;
    holder.count = stack.kept_count;
    holder.category = name_of(leak.facts.categories[leak.slot].of(stack.oldest));
    holder.location = location_of(leak.facts, stack.stack);
    holder.detail = library_detail(leak.facts, stack.stack);
    finding.holders.push_back(std::move(holder));
  }
}

// Message and numbers.
void tell_growth(const Leak& leak, Finding& finding) {
  const Growth& growth = leak.growth;
  finding.evidence = {{"bytes_per_step", number(growth.bytes_per_round)},
                      {"steps", number(growth.rounds)},
                      {leak.has_framework ? "kept_tensors" : "kept_allocations", number(growth.kept_count)},
                      {"kept_bytes", number(growth.kept_bytes)}};
  finding.message = growth.in_place                        ? told_in_place(leak)
                    : growth.rounds_by == RoundsBy::kLooks ? told_by_looks(leak)
                                                           : told_by_rounds(leak, finding.location);
  if (growth.in_place && growth.rounds_by == RoundsBy::kSizes) {  // the old and the new of one are there at one time
    const std::uint64_t more = growth.bytes_per_round + growth.bytes_per_round / growth.kept_count;
    finding.evidence.push_back({"needed_more_per_step_bytes", number(more)});
  }
  if (leak.ran_out() && !growth.in_place) tell_when_full(leak, finding);
  if (leak.holding && leak.holding->limit_bytes != 0) {
    finding.message += " What holds them has a limit: full it takes about " + format_bytes(leak.holding->limit_bytes) +
                       (leak.has_room() ? ", for which there is room." : ".");
    finding.evidence.push_back({"limit_bytes", number(leak.holding->limit_bytes)});
  }
  finding.evidence.push_back({"steps_counted_by", std::string(words_for(growth))});
  if (growth.round_kind == kRoundsOfCutLoop) finding.evidence.push_back({kCutLoopRounds, number(growth.rounds)});
  tell_rise(leak, finding);
  if (leak.facts.trace.devices[leak.slot].capacity_bytes != 0 && growth.bytes_per_round != 0 && !leak.ran_out() &&
      !growth.let_go_later) {
    finding.evidence.push_back(
        {"steps_until_full", rounds_until_full(leak.facts, leak.slot, leak.usage(), growth.bytes_per_round)});
  }
}

Finding kept_by_rounds(const Leak& leak) {
  const Growth& growth = leak.growth;
  const GrowingStack& main = growth.stacks.front();
  Finding finding =
      finding_at(leak.facts, rule_name::kLeak, leak.severity(),
                 leak.is_proved() ? Confidence::kProved : Confidence::kLikely, leak.usage().device, leak.blamed);
  finding.location =
      leak.blamed.value != 0 ? location_of_frame(leak.facts.trace, leak.blamed) : location_of(leak.facts, main.stack);
  finding.bytes = growth.kept_bytes;
  tell_growth(leak, finding);
  finding.memory = leak.reason.text + ".";
  finding.allocated_at = location_of(leak.facts, main.stack);
  tell_holders(leak, finding);
  const bool by_graph_alone = is_seen(growth, leak.holding) && leak.holding->by_graph;
  const std::uint64_t saved = by_graph_alone ? kept_by_graph(leak.facts, growth, *leak.holding) : growth.kept_bytes;
  if (!leak.has_room() || by_graph_alone) finding.tries.push_back({leak.reason.advice, std::nullopt, saved});
  finding.fingerprint = fingerprint(finding.rule, finding.location);
  return finding;
}

}  // namespace

void judge_leak(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  if (!has_history(subject.trace(), rule_name::kLeak, not_judged) || trace.events.empty()) return;
  std::set<FrameId> told;  // lines that are found to grow
  const KeptMemory kept(facts);
  const HeldBy held_by(trace);
  for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
    const DeviceUsage& usage = facts.usage[slot];
    const bool has_framework = facts.uses.has_framework(usage.device);
    const bool goes_on = subject.statements().placed_by_model && !usage.failures.empty() &&
                         is_served_after_all(trace, usage.failures.back().event);
    const Judged judged = find_growths(facts, held_by, slot, goes_on);
    for (std::size_t at = 0; at < judged.growths.size(); ++at) {
      const Growth& growth = judged.growths[at];
      const StackId first = growth.stacks.front().stack;
      if (!has_framework && (keeps_for_itself(library_of(trace, first)) || !kept.grows(first))) continue;
      const StackId blamed = has_framework ? growth.program : kept.line_of(first);
      told.insert(trace.stacks.frame_id(blamed));
      if (has_framework && growth.rounds_by == RoundsBy::kUnknown) {
        if (growth.program.value != 0 && growth.kept_bytes * 10 >= usage.peak_allocated.allocated)
          findings.push_back(kept_without_rounds(facts, held_by, growth, usage.device, !usage.failures.empty()));
        continue;
      }
      std::optional<Holding> holding = held_by.of(growth);
      Reason reason = is_seen(growth, holding)
                          ? reason_for(*holding)
                          : reason_for(Growing{facts, growth, has_framework, judged.growths.size() == 1,
                                               computes_gradients(facts)});
      findings.push_back(kept_by_rounds({facts, growth, slot, blamed, has_framework, at >= judged.at_failure,
                                         std::move(holding), std::move(reason)}));
    }
  }
  judge_left_at_exit(facts, subject.statements().ending, kept, told, findings);
}

}  // namespace faultline
