#include "report/memory_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/units.h"
#include "report/account_table.h"

namespace faultline {
namespace {

constexpr int kRows = 8;
constexpr int kCellHeights = 8;  // a character cell has eight heights
constexpr int kWidestPlot = 96;
// below this share of the capacity, the picture shows the memory in use, not the empty GPU above it
constexpr double kNearCapacity = 0.6;

struct Column {
  std::uint64_t allocated = 0;
  std::uint64_t reserved = 0;
};

std::vector<Column> columns_of(const std::vector<CurvePoint>& curve, std::size_t count) {
  std::vector<Column> columns(count);
  for (std::size_t at = 0; at < count; ++at) {
    const std::size_t first = at * curve.size() / count;
    const std::size_t last = std::max(first + 1, (at + 1) * curve.size() / count);
    for (std::size_t point = first; point < last; ++point) {
      columns[at].allocated = std::max(columns[at].allocated, curve[point].allocated);
      columns[at].reserved = std::max(columns[at].reserved, curve[point].reserved);
    }
  }
  return columns;
}

// How high `size_bytes` stands, in eighths of a row; what is not zero is at least visible.
int height_of(std::uint64_t size_bytes, std::uint64_t top_bytes) {
  if (size_bytes == 0) return 0;
  const double share = std::min(1.0, static_cast<double>(size_bytes) / static_cast<double>(top_bytes));
  return std::max(1, static_cast<int>(std::lround(share * kRows * kCellHeights)));
}

struct Cell {
  std::string_view glyph = " ";
  Style style = Style::kPlain;
};

Cell cell_of(const Column& column, int row, std::uint64_t top_bytes, bool unicode) {
  static constexpr std::array<std::string_view, 9> kFill = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const auto level = [&](int height) { return std::clamp(height - row * kCellHeights, 0, kCellHeights); };
  const auto ends_here = [&](int height) { return height > row * kCellHeights && height <= (row + 1) * kCellHeights; };
  const int fill = level(height_of(column.allocated, top_bytes));
  const int reserved = height_of(column.reserved, top_bytes);
  if (unicode ? fill > 0 : fill >= kCellHeights / 2 || (fill > 0 && row == 0)) {
    return {unicode ? kFill[static_cast<std::size_t>(fill)] : "#", Style::kAllocated};
  }
  if (ends_here(reserved)) {
    const int at = level(reserved);
    return {!unicode ? "-" : at <= 2 ? "▁" : at <= 5 ? "─" : "▔", Style::kReserved};
  }
  return {};
}

// One row of cells as few pieces of colour as possible.
void print_plot_line(Page& page, const std::string& label, const std::vector<Cell>& cells) {
  std::vector<Piece> pieces = {{label, Style::kDim}};
  for (const Cell& cell : cells) {
    if (pieces.back().style != cell.style) pieces.push_back({"", cell.style});
    pieces.back().text += cell.glyph;
  }
  page.line(pieces);
}

// Under the axis: the peak at its column, and how much was recorded at the end.
void print_below(Page& page, const DeviceReport& device, int label_columns, int plot_columns, int peak_column) {
  const std::string peak_text = fmt::format("{} peak {}", page.glyph("▲", "^"), format_bytes(device.peak_allocated));
  const double span_ns =
      static_cast<double>(device.curve.back().time_ns) - static_cast<double>(device.curve.front().time_ns);
  const std::string end_text = fmt::format("{} events", format_count(device.event_count)) +
                               (span_ns > 0 ? " over " + format_duration(span_ns) : "");
  const int peak_columns = display_width(peak_text), end_columns = display_width(end_text);
  const bool to_left = peak_column + peak_columns > plot_columns;
  const int peak_at = to_left ? std::max(0, peak_column + 1 - peak_columns) : peak_column;
  const std::string shown_peak =
      to_left ? fmt::format("peak {} {}", format_bytes(device.peak_allocated), page.glyph("▲", "^")) : peak_text;
  const std::string margin(static_cast<std::size_t>(label_columns + 2), ' ');
  const std::string before(static_cast<std::size_t>(peak_at), ' ');
  const int end_at = plot_columns - end_columns;
  if (peak_at + peak_columns + 2 <= end_at) {
    const std::string between(static_cast<std::size_t>(end_at - peak_at - peak_columns), ' ');
    page.line({{margin + before}, {shown_peak, Style::kStrong}, {between + end_text, Style::kDim}});
  } else if (end_columns + 2 <= peak_at) {
    page.line({{margin + pad_right(end_text, peak_at), Style::kDim}, {shown_peak, Style::kStrong}});
  } else {
    page.line({{margin + before}, {shown_peak, Style::kStrong}});
    page.line({{margin + pad_left(end_text, plot_columns), Style::kDim}});
  }
}

}  // namespace

void print_memory_picture(Page& page, const DeviceReport& device) {
  std::uint64_t highest = std::max(device.peak_allocated, device.peak_reserved);
  for (const CurvePoint& point : device.curve) highest = std::max({highest, point.allocated, point.reserved});
  if (device.curve.size() < 2 || highest == 0) return;

  const bool capacity_known = device.account.capacity_known && device.account.capacity != 0;
  const auto capacity = static_cast<double>(device.account.capacity);
  const bool show_limit = capacity_known && static_cast<double>(highest) >= kNearCapacity * capacity;
  // a dry run can go on past the end of the device
  const bool beyond = show_limit && device.model.is_source && highest > device.account.capacity;
  const std::uint64_t top_bytes = show_limit ? std::max(highest, device.account.capacity) : highest;
  const int limit_row = beyond ? (height_of(device.account.capacity, top_bytes) - 1) / kCellHeights : kRows;

  const int label_columns = display_width(format_bytes(top_bytes)) + 2;
  const int plot_columns = std::clamp(page.width() - label_columns - 3, 10, kWidestPlot);
  const std::vector<Column> columns = columns_of(device.curve, static_cast<std::size_t>(plot_columns));
  const auto peak = std::max_element(columns.begin(), columns.end(),
                                     [](const Column& a, const Column& b) { return a.allocated < b.allocated; });
  const auto peak_column = static_cast<int>(peak - columns.begin());

  page.blank();
  page.paragraph(0, fmt::format("Memory of {} over time", device_name(page, device)), Style::kStrong);
  const bool wide = page.width() >= 76;
  const std::string limit = show_limit ? "   " + std::string(page.glyph("┄", "=")) : "";
  const std::string limit_text =
      show_limit       ? " capacity"
      : capacity_known ? (wide ? "   (the GPU has " : "   (of ") + format_bytes(device.account.capacity) + ")"
                       : "";
  page.line({{"  " + std::string(page.glyph("█", "#")), Style::kAllocated},
             {wide ? " allocated, in use   " : " allocated   "},
             {std::string(page.glyph("─", "-")), Style::kReserved},
             {wide ? " reserved by the framework" : " reserved"},
             {limit, Style::kLimit},
             {limit_text}});

  if (show_limit && !beyond) {
    const std::vector<Cell> limit_cells(columns.size(), {page.glyph("┄", "="), Style::kLimit});
    print_plot_line(page, fmt::format("{} {}", pad_left(format_bytes(top_bytes), label_columns), page.glyph("┤", "+")),
                    limit_cells);
  }
  for (int row = kRows - 1; row >= 0; --row) {
    const bool names_top = row == kRows - 1 && (!show_limit || beyond);
    const std::string label = row == limit_row ? format_bytes(device.account.capacity)
                              : names_top      ? format_bytes(top_bytes)
                              : row == kRows / 2 - 1 && std::abs(row - limit_row) > 1 ? format_bytes(top_bytes / 2)
                                                                                      : "";
    const std::string_view axis = label.empty() ? page.glyph("│", "|") : page.glyph("┤", "+");
    std::vector<Cell> cells;
    for (const Column& column : columns) {
      cells.push_back(cell_of(column, row, top_bytes, page.unicode()));
      if (row == limit_row && cells.back().style == Style::kPlain) cells.back() = {page.glyph("┄", "="), Style::kLimit};
    }
    print_plot_line(page, fmt::format("{} {}", pad_left(label, label_columns), axis), cells);
  }
  std::string axis;
  for (int at = 0; at < plot_columns; ++at) axis += at == peak_column ? page.glyph("▲", "^") : page.glyph("─", "-");
  page.line({{pad_left("0", label_columns) + " " + std::string(page.glyph("└", "+")) + axis, Style::kDim}});
  print_below(page, device, label_columns, plot_columns, peak_column);
}

}  // namespace faultline
