// Sources: what Faultline reads, one line each in the registry (registry.cpp).
//
// A source knows files by their first bytes, or folders by what is in them, and reads them into an Input. Order matters in the registry: the most certain
// signature comes first, plain text last; of folders the most particular. docs/architecture.md tells how to add one.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "sources/input.h"

namespace faultline {

struct Source {
  std::string_view kind;  // "torch-snapshot"
  std::string_view what;  // "a PyTorch memory snapshot (pickle or JSON)": in the help and where a file is none of all
  // A file: all three, or none.
  // ".pickle", ".pkl": what is looked at in a folder; a file that the user names may have any name
  std::array<std::string_view, 4> endings = {};
  bool (*recognises)(std::span<const std::uint8_t> head) = nullptr;
  Result<Input> (*read)(ByteStream& stream, const std::string& path) = nullptr;
  // A folder: both, or neither.
  bool (*recognises_folder)(const std::string& folder) = nullptr;
  Result<Input> (*read_folder)(const std::string& folder) = nullptr;
};

std::span<const Source> all_sources();
std::string known_inputs();  // "a Faultline trace, a GPU core dump, …"

}  // namespace faultline
