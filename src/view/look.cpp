#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/assemble.h"
#include "report/finding_text.h"
#include "report/json.h"
#include "view/headline.h"
#include "view/html_page.h"

namespace faultline::view {
namespace {

constexpr std::size_t kMostScenes = 16;

struct FoundMoment {
  std::uint32_t finding = 0;  // its id
  std::uint32_t scene = 0, event = 0;
};

Jump jump_of(const Finding& finding, const std::vector<FoundMoment>& moments) {
  const Location& look = place_to_look(finding);
  Jump jump{kNever, kNever, look.file, look.line};
  const auto at =
      std::find_if(moments.begin(), moments.end(), [&](const FoundMoment& one) { return one.finding == finding.id; });
  if (at != moments.end()) {
    jump.scene = at->scene;
    jump.event = at->event;
  }
  return jump;
}

}  // namespace

Viewed look_at(const Input& input) {
  Viewed viewed;
  std::vector<FoundMoment> moments;
  // Bounds are for all scenes together, and how many there are is known before the first is made.
  std::size_t devices = 0, undrawn = 0;
  for (const InputPart& part : input.parts) devices += part.trace.devices.size();
  const std::size_t share = std::clamp<std::size_t>(devices, 1, kMostScenes);
  viewed.report = make_report(input, [&](const InputPart& part, const Judgement& judgement) {
    for (std::size_t slot = 0; slot < part.trace.devices.size(); ++slot) {
      if (viewed.scenes.size() >= kMostScenes) {
        ++undrawn;
        continue;
      }
      if (!has_scene(judgement, slot)) continue;
      const Scene& scene = viewed.scenes.emplace_back(make_scene(part.name, judgement, slot, share));
      viewed.traces.push_back(&part.trace);
      for (std::size_t at = 0; at < judgement.findings.size(); ++at) {
        if (scene.moments[at] == kNever) continue;
        moments.push_back(
            {judgement.findings[at].id, static_cast<std::uint32_t>(viewed.scenes.size() - 1), scene.moments[at]});
      }
    }
  });
  viewed.program = program_of(viewed.report, input);
  for (const Finding& finding : viewed.report.findings) viewed.jumps.push_back(jump_of(finding, moments));
  if (undrawn != 0)
    viewed.left_out.push_back(
        fmt::format("{} more GPUs are not looked at here: view the file of one process.", format_count(undrawn)));
  return viewed;
}

}  // namespace faultline::view
