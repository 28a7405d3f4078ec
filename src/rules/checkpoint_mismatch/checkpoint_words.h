// What load_state_dict says when a checkpoint does not fit its model: "Error(s) in loading state_dict for Net: Missing key(s) …".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/shapes.h"

namespace faultline {

struct OtherShape {
  std::string name;
  std::optional<Shape> saved, current;
};

struct CheckpointWords {
  std::string model;                    // the class; may be empty
  std::vector<std::string> missing;     // the model has them, the checkpoint has not
  std::vector<std::string> unexpected;  // the other way round
  std::vector<OtherShape> others;
  bool any() const { return !missing.empty() || !unexpected.empty() || !others.empty(); }
  // What the checkpoint's names have in front (or lack) beside the model's: "module."; empty: nothing that explains a name.
  std::string extra_prefix() const;
  std::string lacking_prefix() const;
};

CheckpointWords read_checkpoint_words(std::string_view words);

}  // namespace faultline
