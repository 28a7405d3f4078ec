#include "report/plan.h"

#include <array>

namespace faultline {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"fits", "fits-tightly", "does-not-fit", "measured", "program-error", "interrupted"};

}  // namespace

std::string_view name_of(Verdict verdict) { return kNames[static_cast<std::size_t>(verdict)]; }

}  // namespace faultline
