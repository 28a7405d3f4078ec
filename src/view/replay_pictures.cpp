#include "view/replay_pictures.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "view/html.h"

namespace faultline::view {
namespace {

constexpr double kCurveWidth = 240, kCurveHeight = 80;
constexpr std::size_t kCurvePoints = 160;

// What all pictures of a scene share.
struct Backdrop {
  std::vector<std::uint64_t> recorded;
  double scale = 0;  // of a byte
  std::uint32_t first = 0, events = 1;
};

std::vector<std::uint64_t> thinned(const std::vector<std::uint64_t>& values) {
  const std::size_t count = std::min(values.size(), kCurvePoints);
  std::vector<std::uint64_t> points(count);
  for (std::size_t at = 0; at < values.size(); ++at)
    points[at * count / values.size()] = std::max(points[at * count / values.size()], values[at]);
  return points;
}

// Steps: what is reserved stays until it changes.
std::string steps(const std::vector<std::uint64_t>& points, double scale) {
  std::string path = fmt::format("M0 {:.1f}", kCurveHeight);  // of nothing
  std::uint64_t before = 0;
  for (std::size_t at = 0; at < points.size(); ++at) {
    const double x = kCurveWidth * static_cast<double>(at) / static_cast<double>(points.size());
    const double y = kCurveHeight - static_cast<double>(points[at]) * scale;
    if (at == 0)
      path = fmt::format("M0 {:.1f}", y);
    else if (points[at] != before)
      path += fmt::format("H{:.1f}V{:.1f}", x, y);
    before = points[at];
  }
  return path + fmt::format("H{:.0f}", kCurveWidth);
}

std::string picture(const Backdrop& backdrop, const WhatIf* replay, const std::string& name) {
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{2}\"><path "
      "class=\"was\" d=\"{3}V{1:.0f}H0Z\"/>",
      kCurveWidth, kCurveHeight, name, steps(backdrop.recorded, backdrop.scale));
  if (replay == nullptr) return out + "</svg>";
  if (const double y = kCurveHeight - static_cast<double>(replay->room_bytes) * backdrop.scale;
      replay->room_bytes != 0 && y > 0)
    out += fmt::format(
        "<line class=\"room\" x1=\"0\" x2=\"{:.0f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" "
        "vector-effect=\"non-scaling-stroke\"/>",
        kCurveWidth, y, y);
  out += fmt::format("<path class=\"is\" d=\"{}\" vector-effect=\"non-scaling-stroke\"/>",
                     steps(thinned(replay->reserved), backdrop.scale));
  if (replay->failure != kNever && replay->failure >= backdrop.first)
    out += fmt::format(
        "<line class=\"refused\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1:.0f}\" "
        "vector-effect=\"non-scaling-stroke\"/>",
        kCurveWidth * (replay->failure - backdrop.first + 0.5) / backdrop.events, kCurveHeight);
  return out + "</svg>";
}

// Peaks can be told against each other where nothing was refused.
std::string difference(const WhatIf& replay, std::uint64_t recorded, bool is_comparable) {
  if (!is_comparable || !replay.fits) return {};
  if (replay.peak_reserved_bytes == recorded) return ", as before";
  return replay.peak_reserved_bytes < recorded
             ? fmt::format(", <b class=\"yes\">{} less</b>", format_bytes(recorded - replay.peak_reserved_bytes))
             : fmt::format(", <b class=\"no\">{} more</b>", format_bytes(replay.peak_reserved_bytes - recorded));
}

std::string figure(const std::string& name, const std::string& drawn, const std::string& told, bool is_good,
                   const std::string& figures, const std::string& button) {
  return fmt::format(
      "<figure class=\"replay\"><figcaption><b>{}</b></figcaption>{}<p><span class=\"{}\">{}</span><br>{}</p>{}"
      "</figure>\n",
      escaped(name), drawn, is_good ? "yes" : "no", escaped(told), figures, button);
}

std::string replays_of(const Scene& scene, std::size_t number) {
  const auto most = [](const std::vector<std::uint64_t>& values) {
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  };
  const std::uint64_t recorded = most(scene.columns.reserved);
  std::uint64_t highest = std::max<std::uint64_t>(recorded, 1);
  for (const WhatIf& one : scene.what_ifs) highest = std::max(highest, most(one.reserved));
  const Backdrop backdrop{thinned(scene.columns.reserved), kCurveHeight / (1.05 * static_cast<double>(highest)),
                          scene.columns.first, std::max(scene.columns.events, 1u)};
  const auto figures = [](std::uint64_t reserved, std::uint64_t allocated, const std::string& more) {
    return fmt::format("{} reserved at most{}; {} in use", format_bytes(reserved), more, format_bytes(allocated));
  };
  const auto name_of = [](const std::string& name, const std::string& told, std::uint64_t bytes) {
    return fmt::format("{}: {}, {} reserved at most", escaped(name), escaped(told), format_bytes(bytes));
  };
  std::string out = "<div class=\"replays\">\n";
  const char* name = scene.is_planned ? "As planned" : "As recorded";
  out += figure(name, picture(backdrop, nullptr, name_of(name, scene.recorded_told, recorded)), scene.recorded_told,
                scene.recorded_failures == 0, figures(recorded, scene.peak_bytes, ""), "");
  for (std::size_t at = 0; at < scene.what_ifs.size(); ++at) {
    const WhatIf& one = scene.what_ifs[at];
    const std::string button = fmt::format(
        "<button type=\"button\" class=\"beside\" data-scene=\"{}\" data-replay=\"{}\" aria-pressed=\"false\" "
        "hidden>Draw it above<span class=\"unseen\">: {}</span></button>",
        number, at, escaped(one.name));
    out += figure(one.name, picture(backdrop, &one, name_of(one.name, one.told, one.peak_reserved_bytes)), one.told,
                  one.fits,
                  figures(one.peak_reserved_bytes, one.peak_allocated_bytes,
                          difference(one, recorded, scene.recorded_failures == 0)),
                  button);
  }
  out += "</div>\n";
  for (const std::string& sentence : scene.what_ifs_told) out += "<p class=\"dim\">" + escaped(sentence) + "</p>\n";
  return out;
}

}  // namespace

std::string replay_section(const Viewed& viewed) {
  std::string out;
  for (std::size_t at = 0; at < viewed.scenes.size(); ++at) {
    const Scene& scene = viewed.scenes[at];
    if (scene.what_ifs.empty()) continue;
    if (viewed.scenes.size() > 1)
      out += fmt::format("<h3>{}{}</h3>\n", scene.part.empty() ? "" : escaped(scene.part) + ", ",
                         fmt::format("GPU {}", scene.device));
    out += replays_of(scene, at);
  }
  if (out.empty()) return {};
  return "<section aria-labelledby=\"replays-title\"><h2 id=\"replays-title\">What if: the same requests, "
         "replayed</h2>\n<p class=\"dim\">What is reserved from the driver over time. Grey: as it is. The line: the "
         "replay. Dashed: the room it has. Red: a request that is refused.</p>\n" +
         out + "</section>\n";
}

}  // namespace faultline::view
