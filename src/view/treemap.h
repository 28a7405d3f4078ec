// Rectangles whose areas are in proportion, as square as they can be (Bruls, Huizing, van Wijk: Squarified Treemaps).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace faultline::view {

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
};

// Of each weight, in the order given, which is from the largest down. All together fill width × height.
std::vector<Rectangle> squarified(const std::vector<std::uint64_t>& weights, double width, double height);

struct TreemapCell {
  std::string name;    // "GPT.blocks.*.mlp"
  std::string detail;  // "12 ×, mostly activations"
  std::string colour;  // a class of the style sheet: "activations"
  std::uint64_t bytes = 0;
};
// An SVG picture that needs no script.
std::string treemap(const std::string& title, std::vector<TreemapCell> cells);

}  // namespace faultline::view
