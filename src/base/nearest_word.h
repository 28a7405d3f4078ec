// Which of some words somebody meant who mistyped one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace faultline {

// How many letters must be put in, left out or changed, or neighbours swapped, to make one word of the other.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> earlier, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({row[j] + 1, last[j + 1] + 1, last[j] + (a[i] != b[j] ? 1 : 0)});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) row[j + 1] = std::min(row[j + 1], earlier[j - 1] + 1);
    }
    earlier = std::exchange(last, row);
  }
  return last.back();
}

// Two letters away at most, and fewer than half of them; empty: none is near.
template <class Words>
std::string nearest_word(std::string_view word, const Words& words) {
  constexpr std::size_t kLongest = 64, kMost = 2;
  std::string nearest;
  std::size_t least = std::min(kMost + 1, (word.size() + 1) / 2);
  if (word.size() > kLongest) return nearest;
  for (const auto& one : words) {
    const std::size_t distance = edit_distance(word, one);
    if (distance >= least) continue;
    least = distance;
    nearest = std::string(one);
  }
  return nearest;
}

}  // namespace faultline
