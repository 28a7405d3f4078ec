#include "rules/silent_upcast/widened.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "rules/calling_frame.h"
#include "rules/shapes.h"

namespace faultline {
namespace {

bool is_double(std::string_view dtype) { return dtype == "float64" || dtype == "complex128"; }

// Places that keep or handle float32 forms of half-precision tensors on purpose.
bool keeps_wide_on_purpose(std::string_view file) {
  static constexpr std::array<std::string_view, 9> kPlaces = {
      "torch/optim/", "torch/amp/",     "torch/cuda/amp/", "torch/distributed/", "torch/nn/utils/", "/deepspeed/",
      "/apex/",       "/bitsandbytes/", "/optim"};
  return std::any_of(kPlaces.begin(), kPlaces.end(),
                     [&](std::string_view part) { return file.find(part) != std::string_view::npos; });
}

class Finder {
 public:
  Finder(const Facts& facts, std::size_t slot) : facts_(facts), trace_(facts.trace), slot_(slot) {}

  std::vector<Widened> run() {
    std::vector<Widened> doubles;
    for (const Event& event : trace_.events) {
      if (event.kind != EventKind::kAlloc || event.device != facts_.usage[slot_].device || event.extra == 0) continue;
      if (trace_.heaps[event.heap.index()].kind == HeapKind::kDriver) continue;
      const Tensor& tensor = trace_.tensors.at(TensorId(event.extra));
      const std::string_view dtype = trace_.strings.at(tensor.dtype);
      if (facts_.stacks.has(event.stack, kMovesModule) && is_floating(dtype))
        (is_double(dtype) ? moved_double_bytes_ : moved_other_bytes_) += event.size_bytes;
      if (is_double(dtype)) judge_double(event, tensor, doubles);
      if (dtype == "float32") judge_float(event, tensor);
    }
    // A model in float64 is a wish; a lone float64 buffer among float32 parameters is not.
    const bool float64_model = moved_double_bytes_ != 0 && moved_double_bytes_ >= moved_other_bytes_;
    const bool any_entry =
        std::any_of(doubles.begin(), doubles.end(), [](const Widened& widened) { return widened.is_entry; });
    if (!asked_for_double_ && !float64_model && any_entry) found_.insert(found_.end(), doubles.begin(), doubles.end());
    std::sort(found_.begin(), found_.end(), [](const Widened& a, const Widened& b) { return a.id < b.id; });
    return std::move(found_);
  }

 private:
  void judge_double(const Event& event, const Tensor& tensor, std::vector<Widened>& doubles) {
    const auto operands = parse_operands(trace_.strings.at(tensor.operands));
    const bool more_than_a_number = element_count(tensor.shape).value_or(2) > 1;
    const auto any = [&](bool on_host) {
      return operands && std::any_of(operands->begin(), operands->end(), [&](const Operand& operand) {
               return is_double(operand.dtype) && operand.on_host == on_host;
             });
    };
    const std::uint64_t extra = facts_.lifetimes.held_bytes(event.allocation) / 2;
    if (any(false)) {
      doubles.push_back({event.allocation, Widening::kDouble, false, extra});
    } else if (any(true) && !facts_.stacks.has(event.stack, kLoadsState)) {
      doubles.push_back({event.allocation, Widening::kDouble, true, extra});
    } else if (more_than_a_number && event.stack.value != 0 &&
               !(facts_.stacks.roles(event.stack) & (kInOptimizer | kInBackward))) {
      asked_for_double_ = true;  // a cast, or a function told to make float64
    }
  }

  void judge_float(const Event& event, const Tensor& tensor) {
    constexpr auto kIntended =
        kMovesModule | kConstructs | kLoadsState | kInOptimizer | kInitsOptimizer | kInZeroGrad | kInBackward;
    if (event.stack.value == 0 || (facts_.stacks.roles(event.stack) & kIntended) ||
        facts_.stacks.user(event.stack).value == 0)
      return;
    const std::string_view given = trace_.strings.at(tensor.operands);
    // most have no half-precision operand; bfloat16 ends so too
    if (given.find("float16[") == std::string_view::npos) return;
    const auto operands = parse_operands(given);
    if (!operands || std::none_of(operands->begin(), operands->end(),
                                  [](const Operand& operand) { return is_half(operand.dtype) && !operand.on_host; }))
      return;
    const std::uint64_t held = facts_.lifetimes.held_bytes(event.allocation);
    const std::string_view bare = bare_op(trace_.strings.at(tensor.op));
    const bool in_library = calling_frame(trace_, event.stack) != facts_.stacks.user(event.stack);
    if ((bare == "_to_copy" || bare == "to") && operands->size() == 1) {
      if (in_library && operands->front().shape == tensor.shape && !on_purpose(event.stack))
        found_.push_back({event.allocation, Widening::kCopy, false, held});
    } else if ((is_pairwise(bare) || bare == "where") && widens_by_promotion(tensor.shape, *operands) &&
               !on_purpose(event.stack)) {
      found_.push_back({event.allocation, Widening::kPromotion, false, held / 2});
    }
  }

  // Where a float32 operand is as large as the result, it was wide before: a float32 residual stream under autocast, for one.
  static bool widens_by_promotion(const Shape& result, const std::vector<Operand>& operands) {
    const std::optional<std::uint64_t> count = element_count(result);
    bool half_is_as_large = false, float_is_small = false;
    for (const Operand& operand : operands) {
      if (operand.on_host || operand.shape.empty()) continue;  // numbers do not promote
      const std::optional<std::uint64_t> elements = element_count(operand.shape);
      if (is_half(operand.dtype)) half_is_as_large |= elements == count;
      if (operand.dtype == "float64" || (operand.dtype == "float32" && elements == count)) return false;
      if (operand.dtype == "float32") float_is_small = true;
    }
    return count && half_is_as_large && float_is_small;
  }

  bool on_purpose(StackId stack) {
    const auto [at, fresh] = on_purpose_.try_emplace(stack.value, false);
    if (fresh) {
      for (StackId frame = stack; frame.value != 0 && !at->second; frame = trace_.stacks.parent(frame)) {
        const std::string_view file = trace_.strings.at(trace_.stacks.frame(frame).file);
        at->second = is_library_file(file) && keeps_wide_on_purpose(file);
      }
    }
    return at->second;
  }

  const Facts& facts_;
  const Trace& trace_;
  std::size_t slot_;
  std::vector<Widened> found_;
  bool asked_for_double_ = false;
  std::uint64_t moved_double_bytes_ = 0;
  std::uint64_t moved_other_bytes_ = 0;
  HashMap<std::uint32_t, bool> on_purpose_;
};

}  // namespace

std::vector<Widened> find_widened(const Facts& facts, std::size_t device_slot) {
  return Finder(facts, device_slot).run();
}

}  // namespace faultline
