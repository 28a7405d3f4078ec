// The environment that Faultline was started with.
#pragma once

#include <cstdlib>
#include <string>

namespace faultline {

// Empty where it is not set.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace faultline
