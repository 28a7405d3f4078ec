// Words that the messages of every framework are told with.
#pragma once

#include <string>

#include "rules/cause.h"
#include "rules/finding.h"
#include "rules/inequality.h"
#include "sources/statements.h"

namespace faultline {

inline std::string size_words(const StatedError& stated) {
  return stated.requested ? shown(*stated.requested) : std::string("memory");
}

inline void conclude(Finding& finding, Confidence confidence, std::string message) {
  finding.confidence = confidence;
  finding.message = std::move(message);
}

}  // namespace faultline
