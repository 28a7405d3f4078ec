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

// What the survivors say about who holds them.
struct Reason {
  std::string text;
  std::string advice;
  // results that are collected one by one: a buffer that is not full yet grows like a leak
  bool may_be_filling = false;
};

// As it was seen in the program itself.
Reason reason_for(const Holding& holding) {
  const std::string& holder = holding.holder;
  if (holding.by_graph) {
    return {
        std::string(holding.only_graph ? "No object of the program refers to those that were looked at: an autograd "
                                         "graph holds them"
                                       : "They are kept with their autograd graph, which keeps its activations") +
            (holder.empty() ? "" : ". What is kept with its graph: " + holder),
        "Keep values, not graphs: keep `.detach()` of it (or `.item()` for a loss); forward passes that no backward "
        "pass follows run under `torch.no_grad()`.",
        holding.limit_bytes != 0};
  }
  return {"Held by " + holder +
              (holding.graph_is_freed ? ", on the GPU; of their graph nothing is kept, so `.detach()` saves nothing"
                                      : ", on the GPU and without a graph"),
          "Move what is kept to the host (`.cpu()`), keep only the number you need (`.item()`), or drop it.",
          holding.limit_bytes != 0};
}

// "at this line"; an allocator's own log has no lines, only operations.
std::string made_where(const Location& location, const char* preposition = "at") {
  return location.file.empty() && !location.op.empty() ? "by " + location.op : std::string(preposition) + " this line";
}

// A line that keeps what it makes, and nothing that tells a loop from one pass.
Finding kept_without_rounds(const Facts& facts, const HeldBy& held_by, const Growth& growth, std::uint16_t device,
                            bool at_failure) {
  Finding finding = finding_at(facts, "memory/leak", Severity::kNote, Confidence::kHint, device, growth.program);
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

constexpr std::string_view kOrFilling = ", or a buffer that is still filling: its limit is not in the recording";

// A loop that computes gradients cannot do without them.
bool trains(const Facts& facts) {
  if (!facts.steps.ends.empty()) return true;
  for (std::size_t stack = 1; stack < facts.trace.stacks.size(); ++stack) {
    if (facts.stacks.has(StackId(static_cast<std::uint32_t>(stack)), kInBackward)) return true;
  }
  return false;
}

Reason reason_for(const Facts& facts, const Growth& growth, bool has_framework, bool alone, bool trains) {
  const std::uint16_t device = facts.lifetimes.birth(growth.stacks.front().oldest).device;
  const auto is_pool = [&](const Heap& heap) { return heap.kind == HeapKind::kBfc && heap.device == device; };
  const auto framework = facts.trace.properties.find("bfc.framework");
  const bool is_jax = framework != facts.trace.properties.end() && framework->second == "jax";
  const bool has_pool = std::any_of(facts.trace.heaps.begin(), facts.trace.heaps.end(), is_pool);
  if (growth.rounds_by == RoundsBy::kLooks || (has_pool && is_jax)) {
    return {
        "What this line makes stays: something appends it to a list, a dict or an attribute. Something that is filled "
        "on purpose, and is not full yet, looks the same; it is a leak if the loop is to go on",
        "If the loop goes on, drop what is no longer needed, keep it on the host (`jax.device_get(x)`), or keep only "
        "the number you need (`float(x)`, which waits for it).",
        true};
  }
  if (has_pool) {
    return {
        "What the operation makes is kept by the program, round after round: a list or another container, an "
        "attribute, a variable made in the loop, or a function that is traced anew and keeps the constants of "
        "each trace. " +
            std::string(
                !location_of_frame(facts.trace, growth.program).file.empty()
                    ? "Whether it is a buffer that is still filling is not seen"
                    : "The allocator's log does not name the line, nor whether it is a buffer that is still filling"),
        "Look for what gains a tensor each round: keep `.numpy()` or a number of it, or drop it; make "
        "tf.Variable and tf.function once, outside the loop, and give tf.function tensors, not Python numbers.",
        true};
  }
  if (!has_framework) {
    return {"What this line allocates is not given back while the program runs",
            "Free it when its round is over, or allocate it once before the loop and use it again."};
  }
  std::uint64_t inside = 0, inside_count = 0;
  for (const GrowingStack& stack : growth.stacks) {
    if (!facts.stacks.has(stack.stack, kInModuleCall)) continue;
    ++inside;
    inside_count += stack.kept_count;
  }
  if (growth.stacks.size() >= 2 ? inside != 0 : inside_count >= 2 * std::max<std::uint64_t>(1, growth.rounds)) {
    return {std::string("Several tensors from inside the model's forward survive: a result that is kept still holds "
                        "its autograd graph, and the graph its activations, or the model's own code "
                        "(an attribute, a hook) stores them") +
                (growth.full_rounds == 0 ? ". No backward pass is between the rounds: if all of them are one pass (a "
                                           "decoder that is unrolled), this is what its backward needs, not a leak"
                                         : ""),
            std::string("Keep values, not graphs: append `out.detach()` (or `.item()` for a loss)") +
                (trains ? "" : ", or run the loop under `torch.no_grad()`") +
                "; if a module or a hook stores them, clear that."};
  }
  if (inside != 0) {
    return {
        "Of all the model's forward makes in a round, only this tensor survives: an output that is kept, or one that a "
        "forward hook or an attribute stores" +
            std::string(kOrFilling),
        "Let go of it when it is no longer needed (remove the hook, clear the list), keep it on the CPU (`.cpu()`), or "
        "keep only the number you need (`.item()`).",
        true};
  }
  if (growth.rounds_by == RoundsBy::kMany) {
    return {
        "Only this is made, and all of it stays: something appends it to a list, a dict or an attribute. Data that is "
        "loaded once looks the same; it is a leak if the loop is to go on",
        "If the loop goes on, drop what is no longer needed, or keep it on the CPU (`.cpu()`)."};
  }
  if (growth.rounds_by == RoundsBy::kAlike) {
    return {
        "Each round makes the same at the same lines and frees all but this: something appends it to a list, a "
        "dict or an attribute. Something that is filled once (the outputs of a recurrent "
        "cell, data that is prepared) looks the same; it is a leak if the loop is to go on",
        "If the loop goes on, drop what is no longer needed, keep it on the CPU (`.cpu()`), or keep only the number "
        "you need (`.item()`)."};
  }
  if (growth.in_place && growth.rounds_by == RoundsBy::kSizes) {
    return {
        "Each round makes it anew, larger than the one before, and the one before is there until then: more is joined "
        "to it (`torch.cat`), as to a cache of keys and values. It is a leak if nothing ends the loop before the "
        "memory is full",
        "Start anew when it is no longer needed, or make it once as large as it is to become and write into it."};
  }
  if (growth.in_place) {
    return {
        "Each step makes it anew, larger than the one before, while what else a step makes stays the same: results are "
        "concatenated to those before them (`torch.cat`)",
        "Start anew when they are no longer needed, keep them on the CPU (`.cpu()`), or keep only the numbers you need "
        "(`.item()`)."};
  }
  const bool only =
      alone && growth.stacks.size() == 1 && growth.kept_count < 2 * std::max<std::uint64_t>(1, growth.rounds);
  const std::string_view or_graph =
      trains ? ", or a small result that is kept (a mean, a loss) keeps it through its autograd graph" : "";
  return {std::string(only ? "Nothing else of this size survives a round, only this tensor: something appends it"
                           : "What this line makes stays: something appends it") +
              " to a list, a dict or an attribute that never lets go" + std::string(or_graph) + std::string(kOrFilling),
          std::string("Drop it when it is no longer needed, keep it on the CPU (`.cpu()`), or keep only the number you "
                      "need (`.item()`)") +
              (trains ? "; what is computed from it is kept as `.detach()`." : "."),
          true};
}

}  // namespace

void judge_leak(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  if (!has_history(subject.trace(), "memory/leak", not_judged) || trace.events.empty()) return;
  std::set<FrameId> told;  // lines that are found to grow
  const KeptMemory kept(facts);
  const HeldBy held_by(trace);
  for (std::size_t slot = 0; slot < facts.usage.size(); ++slot) {
    const DeviceUsage& usage = facts.usage[slot];
    const bool has_framework = facts.uses.has_framework(usage.device);
    const bool goes_on = subject.statements().placed_by_model && !usage.failures.empty() &&
                         is_served_after_all(trace, usage.failures.back().event);
    const Judged judged = find_growths(facts, held_by, slot, goes_on);
    const std::vector<Growth>& growths = judged.growths;
    for (const Growth& growth : growths) {
      const bool at_failure = static_cast<std::size_t>(&growth - growths.data()) >= judged.at_failure;
      const StackId blamed = has_framework ? growth.program : kept.line_of(growth.stacks.front().stack);
      if (!has_framework && (keeps_for_itself(library_of(trace, growth.stacks.front().stack)) ||
                             !kept.grows(growth.stacks.front().stack)))
        continue;
      told.insert(trace.stacks.frame_id(blamed));
      if (has_framework && growth.rounds_by == RoundsBy::kUnknown) {
        if (growth.program.value != 0 && growth.kept_bytes * 10 >= usage.peak_allocated.allocated)
          findings.push_back(kept_without_rounds(facts, held_by, growth, usage.device, !usage.failures.empty()));
        continue;
      }
      // What is proved is what the page prints: each of the marked rounds kept so much, and the device's use rose by all of it.
      const bool marked = growth.full_rounds != 0 && growth.least_bytes != 0 &&
                          growth.rise_bytes >= growth.full_rounds * growth.least_bytes;
      const bool plain = !has_framework && growth.kept_count >= growth.rounds && growth.in_every_stretch;
      const std::optional<Holding> holding = held_by.of(growth);
      const bool is_seen = holding && !growth.in_place && (holding->by_graph || !holding->holder.empty());
      const Reason reason =
          is_seen ? reason_for(*holding) : reason_for(facts, growth, has_framework, growths.size() == 1, trains(facts));
      const std::uint64_t still_to_come =
          holding && holding->limit_bytes > growth.kept_bytes ? holding->limit_bytes - growth.kept_bytes : 0;
      const bool has_room = usage.failures.empty() && holding && holding->limit_bytes != 0 &&
                            rounds_until_full(facts, slot, usage, 1) >= static_cast<std::int64_t>(still_to_come);
      const bool proved = (marked || plain) && growth.rounds >= 20 && !growth.let_go_later && !reason.may_be_filling;
      const bool may_be_meant = growth.let_go_later || growth.rounds_by == RoundsBy::kMany ||
                                (has_framework && growth.rounds_by == RoundsBy::kAlike) ||
                                growth.rounds_by == RoundsBy::kLooks ||
                                (growth.in_place && growth.rounds_by == RoundsBy::kSizes);
      Finding finding = finding_at(facts, "memory/leak",
                                   has_room       ? Severity::kNote
                                   : may_be_meant ? Severity::kWarning
                                                  : Severity::kError,
                                   proved ? Confidence::kProved : Confidence::kLikely, usage.device, blamed);
      const GrowingStack& main = growth.stacks.front();
      const bool inside = facts.stacks.has(main.stack, kInModuleCall);
      finding.location = blamed.value != 0 ? location_of_frame(trace, blamed) : location_of(facts, main.stack);
      finding.bytes = growth.kept_bytes;
      const std::string unit = growth.rounds_by == RoundsBy::kSteps   ? "step"
                               : growth.rounds_by == RoundsBy::kLooks ? "look"
                                                                      : "round";
      const std::string held =
          growth.let_go_later ? "s were held at the end of the last of them and freed later, " : "s are still held, ";
      const std::string pace = !marked ? format_bytes(growth.bytes_per_round) + " a " + unit + " on average"
                               : growth.least_bytes == growth.bytes_per_round
                                   ? format_bytes(growth.least_bytes) + " each " + unit
                                   : "at least " + format_bytes(growth.least_bytes) + " each " + unit;
      const std::uint64_t here = kept_under(facts, growth, finding.location);
      const bool all_here = here == 0 || here >= growth.kept_count;  // 0: a line that stands for a thread without any
      finding.message = "Memory grows by " + pace + ": " + format_count(growth.kept_count) +
                        (has_framework ? " tensors" : " allocations") +
                        (all_here ? "" : ", " + format_count(here) + " of them") + " made " +
                        made_where(finding.location, inside ? "under" : "at") + (all_here ? "" : ",") + " in " +
                        format_count(growth.rounds) + " " + unit + held + format_bytes(growth.kept_bytes) + " in all.";
      if (growth.rounds_by == RoundsBy::kLooks) {
        finding.message = "Memory grows: the arrays that are alive were looked at " + format_count(growth.rounds) +
                          " times since this line made the first, and " +
                          std::string(marked ? "each time at least " + format_bytes(growth.least_bytes) + " more"
                                             : "nearly each time more") +
                          " of them were there; at the end " + format_count(growth.kept_count) + ", " +
                          format_bytes(growth.kept_bytes) + " in all.";
      }
      if (growth.in_place) {
        finding.message =
            (growth.kept_count == 1
                 ? std::string("The tensor that is made at this line grows by ")
                 : "The " + format_count(growth.kept_count) + " tensors that this line makes grow by ") +
            std::string(growth.least_bytes == growth.bytes_per_round ? "" : "at least ") +
            format_bytes(growth.least_bytes) + " each " + unit + ": after " + format_count(growth.rounds) + " " + unit +
            (growth.kept_count == 1 ? "s it has " : "s they have ") + format_bytes(growth.kept_bytes) + ".";
        if (growth.rounds_by == RoundsBy::kSizes) {  // the old and the new of one are there at one time
          const std::uint64_t more = growth.bytes_per_round + growth.bytes_per_round / growth.kept_count;
          finding.evidence.push_back({"needed_more_per_step_bytes", static_cast<std::int64_t>(more)});
        }
      }
      if (!usage.failures.empty() && !growth.in_place) {
        const WhenFull full = when_full(facts, growth, usage.failures.back().event);
        finding.evidence.push_back({"full_at_step", static_cast<std::int64_t>(full.round)});
        finding.evidence.push_back({"kept_when_full_bytes", static_cast<std::int64_t>(full.kept_bytes)});
        finding.message += " Memory runs out in " + std::string(growth.rounds_by == RoundsBy::kSteps ? "" : "about ") +
                           unit + " " + format_count(full.round) +
                           (at_failure ? ", the moment that these numbers are of."
                                       : ", when " + format_bytes(full.kept_bytes) +
                                             " of it are held; the rounds after that were run on a larger GPU.");
      }
      if (holding && holding->limit_bytes != 0) {
        finding.message += " What holds them has a limit: full it takes about " + format_bytes(holding->limit_bytes) +
                           (has_room ? ", for which there is room." : ".");
        finding.evidence.push_back({"limit_bytes", static_cast<std::int64_t>(holding->limit_bytes)});
      }
      finding.memory = reason.text + ".";
      finding.allocated_at = location_of(facts, main.stack);
      finding.evidence.insert(
          finding.evidence.begin(),
          {{"bytes_per_step", static_cast<std::int64_t>(growth.bytes_per_round)},
           {"steps", static_cast<std::int64_t>(growth.rounds)},
           {has_framework ? "kept_tensors" : "kept_allocations", static_cast<std::int64_t>(growth.kept_count)},
           {"kept_bytes", static_cast<std::int64_t>(growth.kept_bytes)}});
      finding.evidence.push_back({"steps_counted_by", std::string(words_for(growth))});
      if (growth.round_kind == kRoundsOfCutLoop)
        finding.evidence.push_back({kCutLoopRounds, static_cast<std::int64_t>(growth.rounds)});
      if (growth.full_rounds == 0) {
        if (!growth.in_place)
          finding.evidence.push_back({"lowest_use_rose_by_bytes", static_cast<std::int64_t>(growth.rise_bytes)});
      } else {
        finding.evidence.push_back({"steps_after_warm_up", static_cast<std::int64_t>(growth.full_rounds)});
        finding.evidence.push_back({"least_kept_of_a_step_bytes", static_cast<std::int64_t>(growth.least_bytes)});
        finding.evidence.push_back({"use_rose_in_them_by_bytes", static_cast<std::int64_t>(growth.rise_bytes)});
        if (marked) {
          finding.evidence.push_back({"shown_by", format_count(growth.full_rounds) + " × " +
                                                      format_bytes(growth.least_bytes) + " = " +
                                                      format_bytes(growth.full_rounds * growth.least_bytes) + " ≤ " +
                                                      format_bytes(growth.rise_bytes)});
        }
      }
      if (trace.devices[slot].capacity_bytes != 0 && growth.bytes_per_round != 0 && usage.failures.empty() &&
          !growth.let_go_later) {
        finding.evidence.push_back({"steps_until_full", rounds_until_full(facts, slot, usage, growth.bytes_per_round)});
      }
      for (const GrowingStack& stack : growth.stacks) {
        if (finding.holders.size() == 8) break;
        Holder holder;
        holder.bytes = stack.kept_bytes;
        holder.count = stack.kept_count;
        holder.category = name_of(facts.categories[slot].of(stack.oldest));
        holder.location = location_of(facts, stack.stack);
        holder.detail = library_detail(facts, stack.stack);
        finding.holders.push_back(std::move(holder));
      }
      const bool graph_alone = is_seen && holding->by_graph;
      const std::uint64_t saved = graph_alone ? kept_by_graph(facts, growth, *holding) : growth.kept_bytes;
      if (!has_room || graph_alone) finding.tries.push_back({reason.advice, std::nullopt, saved});
      finding.fingerprint = fingerprint(finding.rule, finding.location);
      findings.push_back(std::move(finding));
    }
  }
  judge_left_at_exit(facts, subject.statements().ending, kept, told, findings);
}

}  // namespace faultline
