// Zip archives, as far as a pack needs them: what every system opens without further tools.
//
// The writer makes one in memory, each entry stored or deflated, whichever is smaller. The reader takes hostile bytes: it goes by the directory at the end,
// looks at nothing outside of the archive, unpacks one entry at a time and never more than the entry claims, and all claims together stay within
// most_unpacked_bytes(). It knows no links, no encryption, no archive of several disks or of more than 4 GiB: such are refused with a sentence.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace faultline {

class ZipWriter {
 public:
  // The Error: it would grow beyond what the format holds.
  Status add(std::string_view name, std::string_view content, std::time_t changed = 0);
  // The whole archive; nothing may be added after.
  std::string finish();

 private:
  std::string archive_, directory_;
  std::uint16_t entries_ = 0;
};

inline constexpr std::size_t kMostZipEntries = 8192;

// Calls take(name, content) for every file in it, in its order; names are as they stand there, folders are left out. Ends with the first Error.
using TakeZipEntry = std::function<Status(const std::string& name, const std::string& content)>;
Status read_zip(std::span<const std::uint8_t> archive, const TakeZipEntry& take);

}  // namespace faultline
