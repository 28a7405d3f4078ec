// The names that a trace has so far, each with its id; with a limit, because a program may make up new ones for as long as it runs.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/event.h"

namespace faultline::capture {

class Names {
 public:
  std::optional<StringId> find(std::string_view text) const {
    if (text.empty()) return StringId{};
    const auto at = ids_.find(text);
    return at == ids_.end() ? std::nullopt : std::optional(StringId(at->second));
  }
  // Nothing: there are too many.
  std::optional<StringId> add(std::string_view text) {
    if (texts_.size() >= kMost || bytes_ + text.size() > kMostBytes) return std::nullopt;
    const std::string& kept = texts_.emplace_back(text);
    bytes_ += text.size();
    const auto id = static_cast<std::uint32_t>(texts_.size());  // 0 is the empty name
    ids_.emplace(kept, id);
    return StringId(id);
  }

 private:
  static constexpr std::size_t kMost = 1 << 18;
  static constexpr std::size_t kMostBytes = 32 * 1024 * 1024;
  std::deque<std::string> texts_;  // a deque: the map's keys point into it
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::size_t bytes_ = 0;
};

}  // namespace faultline::capture
