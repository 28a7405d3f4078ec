#include "rules/leak/reason.h"

#include <algorithm>
#include <optional>

#include "fmt/format.h"
#include "rules/describe.h"
#include "trace/framework.h"

namespace faultline {
namespace {

constexpr std::string_view kOrFilling = ", or a buffer that is still filling: its limit is not in the recording";

enum class Pool { kNone, kOfJax, kOfAnother };

Pool pool_of(const Growing& growing) {
  const Trace& trace = growing.facts.trace;
  const std::uint16_t device = growing.facts.lifetimes.birth(growing.growth.stacks.front().oldest).device;
  const auto is_pool = [&](const Heap& heap) { return heap.kind == HeapKind::kBfc && heap.device == device; };
  if (std::none_of(trace.heaps.begin(), trace.heaps.end(), is_pool)) return Pool::kNone;
  return pools_framework(trace) == Framework::kJax ? Pool::kOfJax : Pool::kOfAnother;
}

// An array of JAX's, of which only that it is alive is known.
Reason kept_by_jax() {
  return {
      "What this line makes stays: something appends it to a list, a dict or an attribute. Something that is filled "
      "on purpose, and is not full yet, looks the same; it is a leak if the loop is to go on",
      "If the loop goes on, drop what is no longer needed, keep it on the host (`jax.device_get(x)`), or keep only "
      "the number you need (`float(x)`, which waits for it).",
      true};
}

Reason kept_from_pool(const Growing& growing) {
  return {
      "What the operation makes is kept by the program, round after round: a list or another container, an "
      "attribute, a variable made in the loop, or a function that is traced anew and keeps the constants of "
      "each trace. " +
          std::string(
              !location_of_frame(growing.facts.trace, growing.growth.program).file.empty()
                  ? "Whether it is a buffer that is still filling is not seen"
                  : "The allocator's log does not name the line, nor whether it is a buffer that is still filling"),
      "Look for what gains a tensor each round: keep `.numpy()` or a number of it, or drop it; make "
      "tf.Variable and tf.function once, outside the loop, and give tf.function tensors, not Python numbers.",
      true};
}

// What the model's forward made and survived; nothing: none of it was made there.
std::optional<Reason> kept_from_model(const Growing& growing) {
  const auto& [facts, growth, has_framework, is_only, trains] = growing;
  std::uint64_t inside = 0, inside_count = 0;
  for (const GrowingStack& stack : growth.stacks) {
    if (!facts.stacks.has(stack.stack, kInModuleCall)) continue;
    ++inside;
    inside_count += stack.kept_count;
  }
  if (growth.stacks.size() >= 2 ? inside != 0 : inside_count >= 2 * std::max<std::uint64_t>(1, growth.rounds)) {
    return Reason{
        std::string("Several tensors from inside the model's forward survive: a result that is kept still holds "
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
    return Reason{
        "Of all the model's forward makes in a round, only this tensor survives: an output that is kept, or one that a "
        "forward hook or an attribute stores" +
            std::string(kOrFilling),
        "Let go of it when it is no longer needed (remove the hook, clear the list), keep it on the CPU (`.cpu()`), or "
        "keep only the number you need (`.item()`).",
        true};
  }
  return std::nullopt;
}

// Nothing else is made in a round.
Reason kept_alone() {
  return {
      "Only this is made, and all of it stays: something appends it to a list, a dict or an attribute. Data that is "
      "loaded once looks the same; it is a leak if the loop is to go on",
      "If the loop goes on, drop what is no longer needed, or keep it on the CPU (`.cpu()`)."};
}

// What else a round makes is freed.
Reason kept_of_alike() {
  return {
      "Each round makes the same at the same lines and frees all but this: something appends it to a list, a "
      "dict or an attribute. Something that is filled once (the outputs of a recurrent "
      "cell, data that is prepared) looks the same; it is a leak if the loop is to go on",
      "If the loop goes on, drop what is no longer needed, keep it on the CPU (`.cpu()`), or keep only the number "
      "you need (`.item()`)."};
}

// Made anew and larger each time, without steps.
Reason joined_to_a_cache() {
  return {
      "Each round makes it anew, larger than the one before, and the one before is there until then: more is joined "
      "to it (`torch.cat`), as to a cache of keys and values. It is a leak if nothing ends the loop before the "
      "memory is full",
      "Start anew when it is no longer needed, or make it once as large as it is to become and write into it."};
}

// Likewise, in steps.
Reason joined_to_results() {
  return {
      "Each step makes it anew, larger than the one before, while what else a step makes stays the same: results are "
      "concatenated to those before them (`torch.cat`)",
      "Start anew when they are no longer needed, keep them on the CPU (`.cpu()`), or keep only the numbers you need "
      "(`.item()`)."};
}

Reason kept_by_something(const Growing& growing) {
  const auto& [facts, growth, has_framework, is_only, trains] = growing;
  const bool only =
      is_only && growth.stacks.size() == 1 && growth.kept_count < 2 * std::max<std::uint64_t>(1, growth.rounds);
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

bool computes_gradients(const Facts& facts) {
  if (!facts.steps.ends.empty()) return true;
  for (std::size_t stack = 1; stack < facts.trace.stacks.size(); ++stack) {
    if (facts.stacks.has(StackId(static_cast<std::uint32_t>(stack)), kInBackward)) return true;
  }
  return false;
}

Reason reason_for(const Holding& holding) {
  const std::string& holder = holding.holder;
  if (holding.by_graph) {
    const std::string name = holder.substr(0, holder.find(", "));
    return {
        std::string(holding.only_graph ? "Held by an autograd graph: no variable of the program was found to hold them"
                                       : "Kept with their autograd graph and its activations") +
            (holder.empty()       ? ""
             : holding.only_graph ? ". Kept with its graph: " + holder
                                  : ", by " + holder),
        fmt::format("Keep values, not graphs: put `.detach()` of it{} (or `.item()` of a loss); forward passes that no "
                    "backward pass follows run under `torch.no_grad()`.",
                    name.empty() ? "" : " into " + name),
        holding.limit_bytes != 0};
  }
  return {"Held by " + holder +
              (holding.graph_is_freed ? ", on the GPU; of their graph nothing is kept, so `.detach()` saves nothing"
                                      : ", on the GPU and without a graph"),
          "Move what is kept to the host (`.cpu()`), keep only the number you need (`.item()`), or drop it.",
          holding.limit_bytes != 0};
}

Reason reason_for(const Growing& growing) {
  const Growth& growth = growing.growth;
  const Pool pool = pool_of(growing);
  if (growth.rounds_by == RoundsBy::kLooks || pool == Pool::kOfJax) return kept_by_jax();
  if (pool != Pool::kNone) return kept_from_pool(growing);
  if (!growing.has_framework) {
    return {"What this line allocates is not given back while the program runs",
            "Free it when its round is over, or allocate it once before the loop and use it again."};
  }
  if (std::optional<Reason> reason = kept_from_model(growing)) return *std::move(reason);
  if (growth.rounds_by == RoundsBy::kMany) return kept_alone();
  if (growth.rounds_by == RoundsBy::kAlike) return kept_of_alike();
  if (growth.in_place) return growth.rounds_by == RoundsBy::kSizes ? joined_to_a_cache() : joined_to_results();
  return kept_by_something(growing);
}

}  // namespace faultline
