// The scenes as the page's script reads them: one block of bytes, compressed and spelled in base64.
//
//   varint: length of the JSON · JSON: names, counts, tables of words · varints: the columns, allocations, segments, stacks, calls, replays and rests of every scene
//
// Numbers are LEB128; what runs along with its neighbour is written as the difference to it, signs in the lowest bit. Bytes are divided by
// the power of two that all of them have in common, as are addresses. src/view/page/decode.js reads exactly this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "view/scene.h"
#include "view/snippets.h"

namespace faultline::view {

// Where a finding leads: into which scene, to which event, to which line.
struct Jump {
  std::uint32_t scene = kNever;
  std::uint32_t event = kNever;
  std::string file;
  std::uint32_t line = 0;
};

std::string encode(const std::vector<Scene>& scenes, const std::vector<Jump>& jumps, const Snippets& snippets);

std::string compressed(std::string_view bytes);  // raw deflate
std::string base64(std::string_view bytes);

}  // namespace faultline::view
