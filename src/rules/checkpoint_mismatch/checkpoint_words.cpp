#include "rules/checkpoint_mismatch/checkpoint_words.h"

#include <algorithm>

#include "rules/shape_mismatch/words.h"

namespace faultline {
namespace {

constexpr std::size_t kMostNames = 64;

// "fc.weight", "fc.bias" behind the marker; nothing after the list's end.
std::vector<std::string> names_after(std::string_view words, std::string_view marker) {
  std::vector<std::string> names;
  const std::size_t found = words.find(marker);
  if (found == std::string_view::npos) return names;
  words.remove_prefix(found + marker.size());
  while (names.size() < kMostNames) {
    const std::size_t open = words.find_first_not_of(" ,\t\n");
    if (open == std::string_view::npos || words[open] != '"') break;
    const std::size_t close = words.find('"', open + 1);
    if (close == std::string_view::npos) break;  // cut off
    names.emplace_back(words.substr(open + 1, close - open - 1));
    words.remove_prefix(close + 1);
  }
  return names;
}

std::string prefix_between(const std::vector<std::string>& longer, const std::vector<std::string>& shorter) {
  for (const std::string& tail : shorter) {
    for (const std::string& whole : longer) {
      if (whole.size() <= tail.size() || !whole.ends_with(tail)) continue;
      const std::string prefix = whole.substr(0, whole.size() - tail.size());
      if (prefix.ends_with('.')) return prefix;
    }
  }
  return {};
}

}  // namespace

std::string CheckpointWords::extra_prefix() const {
  if (std::string prefix = prefix_between(unexpected, missing); !prefix.empty()) return prefix;
  // What wrappers put in front, where none of the missing names has a like.
  for (const std::string_view known : {"module.", "_orig_mod."}) {
    const auto has = [&](const std::string& name) { return name.starts_with(known); };
    if (!unexpected.empty() && std::all_of(unexpected.begin(), unexpected.end(), has) &&
        std::none_of(missing.begin(), missing.end(), has))
      return std::string(known);
  }
  return {};
}
std::string CheckpointWords::lacking_prefix() const { return prefix_between(missing, unexpected); }

CheckpointWords read_checkpoint_words(std::string_view words) {
  CheckpointWords read;
  constexpr std::string_view kModel = "loading state_dict for ", kOther = "size mismatch for ";
  if (const std::size_t at = words.find(kModel); at != std::string_view::npos) {
    const std::string_view rest = words.substr(at + kModel.size());
    read.model = rest.substr(0, rest.find_first_of(": \n\t"));
  }
  read.missing = names_after(words, "Missing key(s) in state_dict: ");
  read.unexpected = names_after(words, "Unexpected key(s) in state_dict: ");
  for (std::size_t at = words.find(kOther); at != std::string_view::npos && read.others.size() < kMostNames;) {
    const std::size_t next = words.find(kOther, at + 1);
    const std::string_view one =
        words.substr(at + kOther.size(), next == std::string_view::npos ? next : next - at - kOther.size());
    read.others.push_back({std::string(one.substr(0, one.find(": "))), list_after(one, "shape torch.Size("),
                           list_after(one, "current model is torch.Size(")});
    at = next;
  }
  return read;
}

}  // namespace faultline
