#include "rules/finding.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace faultline {

std::string_view name_of(Severity severity) {
  return severity == Severity::kError ? "error" : severity == Severity::kWarning ? "warning" : "note";
}

std::string_view name_of(Confidence confidence) {
  return confidence == Confidence::kProved ? "proved" : confidence == Confidence::kLikely ? "likely" : "hint";
}

std::optional<std::int64_t> Finding::number(std::string_view evidence_name) const {
  for (const Evidence& item : evidence) {
    const auto* value = std::get_if<std::int64_t>(&item.value);
    if (item.name == evidence_name && value != nullptr) return *value;
  }
  return std::nullopt;
}

void add_evidence(Finding& finding, std::string name, std::uint64_t value) {
  constexpr auto kTop = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  finding.evidence.push_back({std::move(name), static_cast<std::int64_t>(std::min(value, kTop))});
}

void add_evidence(Finding& finding, std::string name, std::string word) {
  if (!word.empty()) finding.evidence.push_back({std::move(name), std::move(word)});
}

void add_try(Finding& finding, std::string what) { finding.tries.push_back({std::move(what), std::nullopt, 0}); }

}  // namespace faultline
