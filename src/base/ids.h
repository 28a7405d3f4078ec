// Distinct integer types for distinct things, so that a stack cannot be passed where a stream is meant.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace faultline {

template <class Tag, class Rep = std::uint32_t>
struct Id {
  Rep value = 0;

  constexpr Id() = default;
  constexpr explicit Id(Rep v) : value(v) {}
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace faultline

template <class Tag, class Rep>
struct std::hash<faultline::Id<Tag, Rep>> {
  std::size_t operator()(faultline::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
