#include "view/treemap.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "report/text.h"
#include "view/html.h"

namespace faultline::view {
namespace {

constexpr double kWidth = 1000, kHeight = 340;
constexpr double kLetter = 7.6, kLine = 18;  // of the labels, in the picture's own units

double worst_shape(double sum, double least, double most, double side) {
  return std::max(side * side * most / (sum * sum), sum * sum / (side * side * least));
}

}  // namespace

std::vector<Rectangle> squarified(const std::vector<std::uint64_t>& weights, double width, double height) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<Rectangle> cells;
  if (all <= 0 || width <= 0 || height <= 0) return std::vector<Rectangle>(weights.size());
  Rectangle room{0, 0, width, height};
  const auto area = [&](std::size_t at) { return static_cast<double>(weights[at]) / all * width * height; };
  for (std::size_t begin = 0; begin < weights.size();) {
    const double side = std::min(room.width, room.height);
    double sum = area(begin);
    std::size_t end = begin + 1;
    while (end < weights.size() && weights[end] != 0 && sum > 0 &&
           worst_shape(sum + area(end), area(end), area(begin), side) <=
               worst_shape(sum, area(end - 1), area(begin), side))
      sum += area(end++);
    // One row along the shorter side.
    const double depth = side > 0 ? sum / side : 0;
    double along = 0;
    for (std::size_t at = begin; at < end; ++at) {
      const double length = depth > 0 ? area(at) / depth : 0;
      cells.push_back(room.width >= room.height ? Rectangle{room.x, room.y + along, depth, length}
                                                : Rectangle{room.x + along, room.y, length, depth});
      along += length;
    }
    if (room.width >= room.height) {
      room.x += depth;
      room.width = std::max(0.0, room.width - depth);
    } else {
      room.y += depth;
      room.height = std::max(0.0, room.height - depth);
    }
    begin = end;
  }
  return cells;
}

std::string treemap(const std::string& title, std::vector<TreemapCell> cells) {
  std::stable_sort(cells.begin(), cells.end(),
                   [](const TreemapCell& a, const TreemapCell& b) { return a.bytes > b.bytes; });
  std::vector<std::uint64_t> weights;
  std::uint64_t all = 0;
  for (const TreemapCell& cell : cells) {
    weights.push_back(cell.bytes);
    all += cell.bytes;
  }
  const std::vector<Rectangle> places = squarified(weights, kWidth, kHeight);
  std::string out = fmt::format(
      "<div class=\"treemap-room\"><svg class=\"treemap\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"list\" "
      "aria-label=\"{}\">\n",
      kWidth, kHeight, escaped(title));
  for (std::size_t at = 0; at < cells.size(); ++at) {
    const TreemapCell& cell = cells[at];
    const Rectangle& place = places[at];
    const std::string share =
        fmt::format("{}, {:.1f} %", format_bytes(cell.bytes),
                    all == 0 ? 0.0 : 100.0 * static_cast<double>(cell.bytes) / static_cast<double>(all));
    const std::string told =
        fmt::format("{}: {}{}", escaped(cell.name), share, cell.detail.empty() ? "" : ", " + escaped(cell.detail));
    out += fmt::format(
        "<g class=\"{0}\" role=\"listitem\" aria-label=\"{1}\" data-name=\"{6}\"><title>{1}</title><rect x=\"{2:.2f}\" "
        "y=\"{3:.2f}\" "
        "width=\"{4:.2f}\" height=\"{5:.2f}\"/>",
        escaped(cell.colour), told, place.x, place.y, place.width, place.height, escaped(cell.name));
    const int letters = static_cast<int>((place.width - 12) / kLetter);
    const auto label = [&](double down, const std::string& text, const char* style, bool may_be_cut) {
      if (letters < 5 || place.height < down + 6 || (!may_be_cut && display_width(clean(text, true)) > letters)) return;
      out += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" class=\"{}\">{}</text>", place.x + 6, place.y + down, style,
                         escaped(shorten_middle(clean(text, true), letters, true)));
    };
    label(kLine, cell.name, "name", true);
    label(2 * kLine, share, "size", false);
    if (!cell.detail.empty()) label(3 * kLine, cell.detail, "size", false);
    out += "</g>\n";
  }
  return out + "</svg></div>\n";
}

}  // namespace faultline::view
