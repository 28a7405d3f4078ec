// A pack: what `faultline pack` made of a recording, for others to read. A zip archive that begins with a note and holds the input that was packed:
//
//   FAULTLINE-PACK.txt   what this is, always the same bytes: an archive that begins with them is a pack
//   taken-out.json       what was taken out, counted by kind, and what was left out
//   folder/…             the folder that was packed, or
//   file/NAME            the one file
//
// It is unpacked into a folder for temporary files, read like what was packed, and that folder goes. Anybody may have made it: names that lead elsewhere
// are refused, and base/zip.h bounds the rest.
#pragma once

#include <span>
#include <string_view>

#include "base/byte_stream.h"
#include "sources/input.h"

namespace faultline {

inline constexpr std::string_view kPackNote = "FAULTLINE-PACK.txt";
inline constexpr std::string_view kPackTakenOut = "taken-out.json";
inline constexpr std::string_view kPackFolder = "folder/", kPackFile = "file/";

// May stand in a pack: below one of the two, of plain characters, leading nowhere else.
bool is_packed_name(std::string_view name);

bool looks_like_pack(std::span<const std::uint8_t> head);
Result<Input> read_pack(ByteStream& stream, const std::string& path);

}  // namespace faultline
