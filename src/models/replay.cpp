#include "models/replay.h"

#include <algorithm>
#include <array>

#include "base/nearest_word.h"
#include "fmt/format.h"
#include "models/bfc/bfc_model.h"
#include "models/model.h"
#include "models/torch/torch_model.h"

namespace faultline {
namespace {

constexpr std::array<const Model*, 2> kModels = {&kTorchModel, &kBfcModel};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n\r") - first + 1);
}

bool known_name(std::string_view name) {
  return std::any_of(kModels.begin(), kModels.end(), [&](const Model* model) {
    const auto& names = model->setting_names();
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

Error unknown_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Model* model : kModels)
    names.insert(names.end(), model->setting_names().begin(), model->setting_names().end());
  const std::string nearest = nearest_word(name, names);
  return {fmt::format("'{}' is not a setting that a replay can change{}", name,
                      nearest.empty() ? "" : "; the nearest is " + nearest),
          {},
          fmt::format("Known: {}.", fmt::join(names, ", "))};
}

}  // namespace

std::span<const Model* const> all_models() { return kModels; }

Result<ReplayResult> replay(const Trace& trace, const ReplayOptions& options) {
  for (const Model* model : kModels) {
    if (model->knows(trace, options.device)) return model->replay(trace, options);
  }
  return Error{fmt::format("no model knows the allocator behind device {}", options.device),
               {},
               "A replay needs a trace of PyTorch's caching allocator, or of TensorFlow's or JAX's."};
}

Result<SettingChanges> parse_setting_changes(std::string_view text) {
  SettingChanges changes;
  std::size_t begin = 0;
  while (begin < text.size()) {
    // A comma inside brackets belongs to a list value.
    std::size_t end = begin;
    for (int depth = 0; end < text.size() && (text[end] != ',' || depth > 0); ++end)
      depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
    const std::string_view item = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    if (item.empty()) continue;
    const std::size_t sign = item.find_first_of("=:");
    if (sign == std::string_view::npos) {
      return Error{
          fmt::format("'{}' has no value", item), {}, "Write name=value, for example expandable_segments=True."};
    }
    const std::string_view name = trimmed(item.substr(0, sign));
    if (!known_name(name)) return unknown_name(name);
    changes.emplace_back(name, trimmed(item.substr(sign + 1)));
  }
  return changes;
}

}  // namespace faultline
