#include "base/given_size.h"

#include "base/units.h"

namespace faultline {

bool lacks_unit(std::string_view text) {
  constexpr std::size_t kMostDigits = 6;
  return !text.empty() && text.size() <= kMostDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const std::string given(text);
  if (lacks_unit(text)) return Error{"'" + given + "' has no unit", {}, "Write " + given + "GiB or " + given + "MiB."};
  return parse_bytes(text);
}

}  // namespace faultline
