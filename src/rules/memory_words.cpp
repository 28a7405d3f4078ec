#include "rules/memory_words.h"

#include <cctype>

#include "base/units.h"
#include "fmt/format.h"
#include "rules/describe.h"
#include "rules/shapes.h"

namespace faultline {
namespace {

std::string kind_words(const Facts& facts, const Event& birth) {
  switch (facts.trace.heaps[birth.heap.index()].kind) {
    case HeapKind::kTorchCaching: return "a tensor of ";
    case HeapKind::kManaged: return "managed memory of ";
    case HeapKind::kImported: return "another process's memory of ";
    case HeapKind::kTorchPinnedHost:
    case HeapKind::kPinnedHost: return "pinned host memory of ";
    case HeapKind::kRegisteredHost: return "registered host memory of ";
    default: return facts.uses.of(birth.heap) == HeapUse::kSegments ? "a segment of " : "an allocation of ";
  }
}

}  // namespace

std::string hex(std::uint64_t address) { return fmt::format("{:#x}", address); }

std::string distance_words(std::uint64_t size_bytes) {
  if (size_bytes < 16 * kKiB) return format_count(size_bytes) + (size_bytes == 1 ? " byte" : " bytes");
  return format_bytes(size_bytes);
}

std::string memory_words(const Facts& facts, AllocationId allocation) {
  const Event& birth = facts.lifetimes.birth(allocation);
  const std::string size = format_bytes(birth.size_bytes);
  if (birth.kind != EventKind::kAlloc || birth.extra == 0) return kind_words(facts, birth) + size;
  const Tensor& tensor = facts.trace.tensors.at(TensorId(birth.extra));
  const std::string shape =
      tensor.dtype.value == 0 ? size : tensor_text(facts.trace.strings.at(tensor.dtype), tensor.shape) + ", " + size;
  if (tensor.name.value != 0) return std::string(facts.trace.strings.at(tensor.name)) + " (" + shape + ")";
  return tensor.dtype.value == 0 ? "a tensor of " + size : "a tensor " + shape;
}

std::string place_words(const Facts& facts, const AddressPlace& place) {
  const auto named = [&] { return memory_words(facts, place.allocation); };
  switch (place.where) {
    case Where::kUnknown: return {};
    case Where::kInside: return "at byte " + format_count(place.distance_bytes) + " of " + named();
    case Where::kPastEnd:
      return (place.distance_bytes == 0 ? "just" : distance_words(place.distance_bytes)) + " past the end of " +
             named();
    case Where::kBeforeStart: return distance_words(place.distance_bytes) + " before the start of " + named();
    case Where::kFreed:
      return "at byte " + format_count(place.distance_bytes) + " of " + named() + " that had been freed";
  }
  return {};
}

void set_memory(const Facts& facts, const AddressPlace& place, std::string_view then, Finding& finding) {
  finding.memory = place_words(facts, place) + std::string(then);
  finding.memory[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(finding.memory[0])));
  tell_memory(facts, place.allocation, place.where == Where::kFreed, finding);
  finding.evidence.push_back(
      {"tensor_bytes", static_cast<std::int64_t>(facts.lifetimes.birth(place.allocation).size_bytes)});
}

}  // namespace faultline
