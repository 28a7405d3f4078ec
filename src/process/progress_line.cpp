#include "process/progress_line.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/safe_text.h"

namespace faultline::process {

namespace fs = std::filesystem;

std::optional<std::pair<std::uint64_t, std::uint64_t>> position_in(const std::string& path) {
  struct stat wanted {};
  if (path.empty() || ::stat(path.c_str(), &wanted) != 0 || !S_ISREG(wanted.st_mode) || wanted.st_size == 0)
    return std::nullopt;
  std::error_code problem;
  // descriptors come and go meanwhile; nothing may be thrown in the thread that draws
  for (fs::directory_iterator entry("/proc/self/fd", problem), end; !problem && entry != end;
       entry.increment(problem)) {
    struct stat seen {};
    if (::stat(entry->path().c_str(), &seen) != 0 || seen.st_ino != wanted.st_ino || seen.st_dev != wanted.st_dev)
      continue;
    std::ifstream about("/proc/self/fdinfo/" + entry->path().filename().string());
    std::string word;
    std::uint64_t position = 0;
    if (about >> word >> position && word == "pos:" && position != 0)
      return std::pair(std::min(position, static_cast<std::uint64_t>(wanted.st_size)),
                       static_cast<std::uint64_t>(wanted.st_size));
  }
  return std::nullopt;
}

std::string fitted(const std::string& text, int columns, bool unicode) {
  const std::string plain = shown(text);
  const std::string_view cut_mark = unicode ? "…" : "...";
  const int mark_columns = unicode ? 1 : 3;
  std::string line;
  int taken = 0;
  std::size_t room_for_mark = 0;
  for (std::size_t at = 0; at < plain.size();) {
    const DecodedCharacter next = decode_utf8(std::string_view(plain).substr(at));
    const int wide = next.code >= 0x1100 ? 2 : 1;  // where it may be wide it is taken to be
    if (taken + wide > columns - 1) return line.substr(0, room_for_mark) + std::string(cut_mark);
    line += unicode || next.code < 0x80 ? plain.substr(at, next.length) : "?";
    taken += unicode ? wide : 1;
    if (taken + mark_columns <= columns - 1) room_for_mark = line.size();
    at += next.length;
  }
  return line;
}

std::string reading(const std::string& path) {
  return "reading " + (path == "-"                         ? std::string("standard input")
                       : fs::path(path).filename().empty() ? path
                                                           : fs::path(path).filename().string());
}

}  // namespace faultline::process
