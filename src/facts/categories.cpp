#include "facts/categories.h"

#include <algorithm>

namespace faultline {
namespace {

// What PyTorch takes for cuBLAS through its own allocator, once per thread and stream, and keeps: 1 MiB for cublasLt; for cuBLAS
// 4096 KiB × 2 + 16 KiB × 8, on Hopper 32 MiB.
constexpr std::array<std::uint64_t, 3> kWorkspaceBytes = {1048576, 8519680, 33554432};

constexpr auto kSetupRoles = kMovesModule | kConstructs | kLoadsState;

}  // namespace

std::string_view name_of(Category category) {
  static constexpr std::array<std::string_view, kCategoryCount> kNames = {"parameters",  "gradients",   "optimizer",
                                                                          "activations", "temporaries", "other"};
  return kNames[static_cast<std::size_t>(category)];
}

Categories::Categories(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks, const Steps& steps,
                       std::uint32_t focus)
    : trace_(trace),
      lifetimes_(lifetimes),
      stacks_(stacks),
      steps_(steps),
      focus_(focus),
      categories_(trace.allocation_count + std::size_t{1}, Category::kOther) {
  if (!trace.can(kStacks)) return;
  for (std::size_t stack = 1; stack < trace.stacks.size() && !saw_backward_; ++stack) {
    saw_backward_ = stacks.has(StackId(static_cast<std::uint32_t>(stack)), kInBackward);
  }
  find_named_parameters();
  find_workspaces();
  // Parameters first: their sizes tell gradients from other results of backward.
  for (int pass = 0; pass < 2; ++pass) {
    lifetimes.for_each([&](AllocationId id, const Lifetime&, const Event& birth) {
      const bool parameter_like = (stacks.roles(birth.stack) & kSetupRoles) != 0 || is_named_parameter(id);
      if (trace.heaps[birth.heap.index()].kind == HeapKind::kDriver || parameter_like != (pass == 0)) return;
      categories_[id.index()] = judge(id);
      if (pass == 0 && of(id) == Category::kParameters) parameter_sizes_.push_back(birth.size_bytes);
    });
    std::sort(parameter_sizes_.begin(), parameter_sizes_.end());
  }
  follow_siblings();
}

// A dry run looks at the program's own models and optimizers.
void Categories::find_named_parameters() {
  if (trace_.source_kind != "dry-run") return;
  for (const Event& event : trace_.events) {
    if (event.kind == EventKind::kTensorNote && event.allocation.value != 0 && event.extra != 0 &&
        trace_.strings.at(trace_.tensors.at(TensorId(event.extra)).op) == "parameter")
      named_parameters_.push_back(event.allocation);
  }
  std::sort(named_parameters_.begin(), named_parameters_.end());
}

bool Categories::is_named_parameter(AllocationId id) const {
  return std::binary_search(named_parameters_.begin(), named_parameters_.end(), id);
}

// A dry run says of each allocation what asked for it.
bool Categories::is_planned_workspace(const Event& birth) const {
  if (birth.extra == 0) return false;
  const std::string_view op = trace_.strings.at(trace_.tensors.at(TensorId(birth.extra)).op);
  return op == "cublas" || op == "cublaslt";
}

// A workspace stays, and there is one per thread and stream. A tensor that happens to have its size goes again, at the latest with its step, or
// comes more often.
void Categories::find_workspaces() {
  if (trace_.source_kind == "dry-run") {
    lifetimes_.for_each([&](AllocationId id, const Lifetime&, const Event& birth) {
      if (is_planned_workspace(birth)) workspaces_.push_back(id);
    });
    std::sort(workspaces_.begin(), workspaces_.end());
    return;
  }
  struct Seen {
    std::vector<AllocationId> staying;     // alive at the focus
    std::vector<AllocationId> over_steps;  // and older than a step
    bool any_gone = false;
  };
  std::array<Seen, kWorkspaceBytes.size()> seen;
  lifetimes_.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (trace_.heaps[birth.heap.index()].kind != HeapKind::kTorchCaching ||
        (stacks_.roles(birth.stack) & (kSetupRoles | kInOptimizer)))
      return;
    const auto at = std::find(kWorkspaceBytes.begin(), kWorkspaceBytes.end(), birth.size_bytes);
    if (at == kWorkspaceBytes.end()) return;
    Seen& size = seen[static_cast<std::size_t>(at - kWorkspaceBytes.begin())];
    size.any_gone |= life.released <= focus_;
    if (life.released <= focus_) return;
    size.staying.push_back(id);
    if (crosses_step(life)) size.over_steps.push_back(id);
  });
  for (const Seen& size : seen) {
    const std::vector<AllocationId>& found = size.any_gone ? size.over_steps : size.staying;
    // the program's thread and the engine's
    if (found.size() <= 2 * trace_.streams.size()) workspaces_.insert(workspaces_.end(), found.begin(), found.end());
  }
  std::sort(workspaces_.begin(), workspaces_.end());
}

// What is still alive has no end to be judged by. If its line made others whose ends are known, it is what they were: what is kept over a step only where others that were kept so
// ended in a backward (what a generator gave, while the discriminator's optimizer stepped).
void Categories::follow_siblings() {
  using Votes = std::vector<std::array<std::uint32_t, kCategoryCount>>;
  Votes within(trace_.stacks.size()), across(trace_.stacks.size());
  const auto ended = [&](const Lifetime& life) { return life.released != kNever && life.released <= focus_; };
  for (int pass = 0; pass < 2; ++pass) {
    lifetimes_.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
      if (birth.stack.value == 0) return;
      const bool crosses = crosses_step(life);
      auto& counts = (crosses ? across : within)[birth.stack.index()];
      if (pass == 0) {
        counts[static_cast<std::size_t>(of(id))] += ended(life);
      } else if (!ended(life) && of(id) == Category::kOther) {
        const auto most = std::max_element(counts.begin(), counts.end());
        const auto category = static_cast<Category>(most - counts.begin());
        if (*most != 0 && (!crosses || category == Category::kActivations)) categories_[id.index()] = category;
      }
    });
  }
}

bool Categories::in_backward(const Event& event) const {
  return stacks_.has(event.stack, kInBackward) || (event.stack.value == 0 && saw_backward_ && !event.has(kPreexisting));
}

bool Categories::crosses_step(const Lifetime& life) const {
  const auto next = std::lower_bound(steps_.ends.begin(), steps_.ends.end(), life.born);
  return next != steps_.ends.end() && *next < std::min(life.released, focus_);
}

Category Categories::judge(AllocationId id) const {
  const Lifetime& life = lifetimes_.of(id);
  const Event& birth = lifetimes_.birth(id);
  const std::uint16_t roles = stacks_.roles(birth.stack);
  const bool released = life.released != kNever && life.released <= focus_;
  const std::uint16_t end_roles = released ? stacks_.roles(trace_.events[life.released].stack) : std::uint16_t{0};
  const bool ends_in_backward = released && in_backward(trace_.events[life.released]);
  const bool lasts = !released || crosses_step(life);

  if (is_named_parameter(id)) return Category::kParameters;
  if (released && (end_roles & kInZeroGrad)) return Category::kGradients;
  if (birth.stack.value == 0 && birth.has(kPreexisting)) return Category::kOther;
  const bool parameter_sized = std::binary_search(parameter_sizes_.begin(), parameter_sizes_.end(), birth.size_bytes);
  if ((!parameter_sized || trace_.source_kind == "dry-run") &&
      std::binary_search(workspaces_.begin(), workspaces_.end(), id))
    return Category::kTemporaries;
  if (in_backward(birth)) {
    if (roles & kRecomputes) return Category::kActivations;
    if (crosses_step(life) || (!released && parameter_sized)) return Category::kGradients;
    return Category::kTemporaries;
  }
  if (roles & kInOptimizer) {
    if (roles & kInitsOptimizer) return Category::kOptimizer;
    return lasts && !(end_roles & kInOptimizer) ? Category::kOptimizer : Category::kTemporaries;
  }
  if (roles & kSetupRoles) {
    const bool in_forward = roles & kInModuleCall;
    if (!in_forward)
      return lasts || life.released - life.born > trace_.events.size() / 4 ? Category::kParameters
                                                                           : Category::kTemporaries;
  }
  if (ends_in_backward) return Category::kActivations;
  if (roles & kInModuleCall) {
    if (released) return Category::kTemporaries;
    return crosses_step(life) ? Category::kOther : Category::kActivations;
  }
  return Category::kOther;
}

}  // namespace faultline
