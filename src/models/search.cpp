#include "models/search.h"

#include <algorithm>

#include "models/model.h"

namespace faultline {
namespace {

const Model* model_of(const Trace& trace, std::uint16_t device) {
  const std::span<const Model* const> models = all_models();
  const auto found =
      std::find_if(models.begin(), models.end(), [&](const Model* model) { return model->knows(trace, device); });
  return found == models.end() ? nullptr : *found;
}

}  // namespace

std::vector<SettingChanges> sensible_settings(const Trace& trace, std::uint16_t device) {
  const Model* model = model_of(trace, device);
  return model == nullptr ? std::vector<SettingChanges>() : model->worth_trying(trace, device);
}

std::vector<SettingChanges> proposed_settings(const Trace& trace, std::uint16_t device) {
  const Model* model = model_of(trace, device);
  return model == nullptr ? std::vector<SettingChanges>() : model->worth_proposing(trace, device);
}

std::string instruction(const Trace& trace, std::uint16_t device, const SettingChanges& changes) {
  const Model* model = model_of(trace, device);
  return model == nullptr ? std::string() : model->instruction(changes);
}

std::string written(const SettingChanges& changes) {
  std::string text;
  for (const auto& [name, value] : changes) text += (text.empty() ? "" : ",") + name + ":" + value;
  return text;
}

}  // namespace faultline
