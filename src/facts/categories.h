// What each allocation is for: parameters, gradients, optimizer state, activations, temporaries and workspaces, or other.
//
// Told from call stacks and lifetimes alone; the program needs no annotations. The evidence is of two kinds: where it was made (a module
// being moved, the optimizer's lazy state, a module's forward, the autograd engine) and how it ended (freed by zero_grad, inside
// backward, inside the same optimizer step). What the evidence does not tell stays `other`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "facts/lifetimes.h"
#include "facts/stack_facts.h"
#include "facts/steps.h"
#include "trace/trace.h"

namespace faultline {

enum class Category : std::uint8_t { kParameters, kGradients, kOptimizer, kActivations, kTemporaries, kOther };
inline constexpr std::size_t kCategoryCount = 6;
std::string_view name_of(Category category);  // the words of the JSON report

using CategoryBytes = std::array<std::uint64_t, kCategoryCount>;

class Categories {
 public:
  // focus: the event at which live memory will be looked at (a failure, else the last event). What is released only after it, while an
  // exception unwinds, counts as not released.
  Categories(const Trace& trace, const Lifetimes& lifetimes, const StackFacts& stacks, const Steps& steps,
             std::uint32_t focus);

  Category of(AllocationId id) const { return categories_[id.index()]; }
  const std::vector<AllocationId>& workspaces() const { return workspaces_; }  // of libraries, sorted
  // True when the event happens while gradients are computed: under backward's Python frames, or on the engine's own threads, which have none.
  bool in_backward(const Event& event) const;

 private:
  Category judge(AllocationId id) const;
  void find_named_parameters();
  void find_workspaces();
  bool is_planned_workspace(const Event& birth) const;
  void follow_siblings();
  bool is_named_parameter(AllocationId id) const;
  bool crosses_step(const Lifetime& life) const;

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  const StackFacts& stacks_;
  const Steps& steps_;
  std::uint32_t focus_;
  bool saw_backward_ = false;
  std::vector<std::uint64_t> parameter_sizes_;  // sorted
  std::vector<AllocationId> named_parameters_;  // which a model or an optimizer of a dry run holds; sorted
  std::vector<AllocationId> workspaces_;        // the libraries' scratch memory; sorted
  std::vector<Category> categories_;
};

}  // namespace faultline
