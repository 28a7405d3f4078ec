#include "facts/categories.h"

#include <algorithm>

namespace faultline {
namespace {

// What PyTorch takes for cuBLAS through its own allocator, once per handle and stream: 4096 KiB × 2 + 16 KiB × 8 by default, 32 MiB on Hopper.
constexpr std::array<std::uint64_t, 2> kCublasWorkspaceBytes = {8519680, 33554432};

bool is_workspace_size(std::uint64_t size_bytes) {
  return std::find(kCublasWorkspaceBytes.begin(), kCublasWorkspaceBytes.end(), size_bytes) != kCublasWorkspaceBytes.end();
}

}  // namespace

std::string_view name_of(Category category) {
  static constexpr std::array<std::string_view, kCategoryCount> kNames = {"parameters", "gradients", "optimizer", "activations", "temporaries", "other"};
  return kNames[static_cast<std::size_t>(category)];
}

Categories::Categories(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks, const Steps& steps, std::uint32_t focus)
    : trace_(trace), lifetimes_(lifetimes), stacks_(stacks), steps_(steps), focus_(focus), categories_(trace.allocation_count + std::size_t{1}, Category::kOther) {
  if (!trace.can(kStacks)) return;
  for (std::size_t stack = 1; stack < trace.stacks.size() && !saw_backward_; ++stack) {
    saw_backward_ = stacks.has(StackId(static_cast<std::uint32_t>(stack)), kInBackward);
  }
  // Parameters first: their sizes tell gradients from other results of backward.
  const auto parameter_roles = kMovesModule | kConstructs | kLoadsState;
  for (int pass = 0; pass < 2; ++pass) {
    for (std::uint32_t index = 1; index <= trace.allocation_count; ++index) {
      const AllocationId id(index);
      if (lifetimes.of(id).born == kNever) continue;
      const Event& birth = lifetimes.birth(id);
      if (trace.heaps[birth.heap.index()].kind == HeapKind::kDriver) continue;
      const bool parameter_like = (stacks.roles(birth.stack) & parameter_roles) != 0;
      if (parameter_like != (pass == 0)) continue;
      categories_[index] = judge(id);
      if (pass == 0 && categories_[index] == Category::kParameters) parameter_sizes_.push_back(birth.size_bytes);
    }
    std::sort(parameter_sizes_.begin(), parameter_sizes_.end());
  }
  follow_siblings();
}

// What is still alive has no end to be judged by. If its line made others whose ends are known, it is what they were.
void Categories::follow_siblings() {
  std::vector<std::array<std::uint32_t, kCategoryCount>> votes(trace_.stacks.size());
  const auto ended = [&](const Lifetime& life) { return life.released != kNever && life.released <= focus_; };
  for (int pass = 0; pass < 2; ++pass) {
    for (std::uint32_t index = 1; index <= trace_.allocation_count; ++index) {
      const Lifetime& life = lifetimes_.of(AllocationId(index));
      if (life.born == kNever) continue;
      const StackId stack = lifetimes_.birth(AllocationId(index)).stack;
      if (stack.value == 0) continue;
      auto& counts = votes[stack.index()];
      if (pass == 0) {
        counts[static_cast<std::size_t>(categories_[index])] += ended(life);
      } else if (!ended(life) && categories_[index] == Category::kOther && !crosses_step(life)) {
        const auto most = std::max_element(counts.begin(), counts.end());
        if (*most != 0) categories_[index] = static_cast<Category>(most - counts.begin());
      }
    }
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

  if (released && (end_roles & kInZeroGrad)) return Category::kGradients;
  if (birth.stack.value == 0 && birth.has(kPreexisting)) return Category::kOther;
  if (in_backward(birth)) {
    if (roles & kRecomputes) return Category::kActivations;
    const bool parameter_sized = std::binary_search(parameter_sizes_.begin(), parameter_sizes_.end(), birth.size_bytes);
    if (crosses_step(life) || (!released && parameter_sized)) return Category::kGradients;
    return Category::kTemporaries;
  }
  if (roles & kInOptimizer) {
    if (roles & kInitsOptimizer) return Category::kOptimizer;
    return lasts && !(end_roles & kInOptimizer) ? Category::kOptimizer : Category::kTemporaries;
  }
  if (roles & (kMovesModule | kConstructs | kLoadsState)) {
    const bool in_forward = roles & kInModuleCall;
    if (!in_forward) return lasts || life.released - life.born > trace_.events.size() / 4 ? Category::kParameters : Category::kTemporaries;
  }
  if (!released && is_workspace_size(birth.size_bytes) && crosses_step(life)) return Category::kTemporaries;
  if (ends_in_backward) return Category::kActivations;
  if (roles & kInModuleCall) {
    if (released) return Category::kTemporaries;
    return crosses_step(life) ? Category::kOther : Category::kActivations;
  }
  return Category::kOther;
}

}  // namespace faultline
