#include "rules/finding.h"

#include <string_view>

namespace faultline {

std::string_view name_of(Severity severity) {
  return severity == Severity::kError ? "error" : severity == Severity::kWarning ? "warning" : "note";
}

std::string_view name_of(Confidence confidence) {
  return confidence == Confidence::kProved ? "proved" : confidence == Confidence::kLikely ? "likely" : "hint";
}

}  // namespace faultline
