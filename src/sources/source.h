// Sources: what Faultline reads, one line each in the registry (registry.cpp).
//
// A source knows files by their first bytes, or folders by what is in them, and reads them into an Input. Order matters in the registry: the most certain
// signature comes first, plain text last. A new kind of input is a folder here, a line there, a fuzz target, and a sample in conformance_test.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sources/input.h"

namespace faultline {

struct Source {
  std::string_view kind;  // "torch-snapshot"
  std::string_view what;  // "a PyTorch memory snapshot (pickle or JSON)"
  // A file: both, or neither.
  bool (*recognises)(std::span<const std::uint8_t> head) = nullptr;
  Result<Input> (*read)(ByteStream& stream, const std::string& path) = nullptr;
  // A folder: likewise.
  bool (*recognises_folder)(const std::string& folder) = nullptr;
  Result<Input> (*read_folder)(const std::string& folder) = nullptr;
};

std::span<const Source> all_sources();

}  // namespace faultline
