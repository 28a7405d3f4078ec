#include "trace/framework.h"

#include "trace/trace.h"

namespace faultline {

Framework pools_framework(const Trace& trace) {
  const auto named = trace.properties.find(kPoolsFramework);
  return named == trace.properties.end() ? Framework::kNone : framework_named(named->second);
}

}  // namespace faultline
