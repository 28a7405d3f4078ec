#include "sources/pool_names.h"

#include <charconv>

namespace faultline {

std::optional<std::uint16_t> gpu_of(std::string_view pool) {
  constexpr std::uint16_t kMostGpus = 4096;
  constexpr std::string_view kBegin = "GPU_", kEnd = "_bfc";
  if (!pool.starts_with(kBegin) || !pool.ends_with(kEnd) || pool.size() <= kBegin.size() + kEnd.size())
    return std::nullopt;
  std::string_view number = pool.substr(kBegin.size(), pool.size() - kBegin.size() - kEnd.size());
  if (const std::size_t last = number.rfind('_'); last != std::string_view::npos) number.remove_prefix(last + 1);
  std::uint16_t index = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (error != std::errc{} || end != number.data() + number.size() || index >= kMostGpus) return std::nullopt;
  return index;
}

}  // namespace faultline
