// Blocks of private keys, from their title to their end, whatever their lines begin with and however these are joined.
#include <algorithm>

#include "base/characters.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

constexpr std::size_t kMostKeyBytes = std::size_t{1} << 16;
constexpr std::size_t kLeastKeyLine = 24;

// Behind the dashes and blanks (or what stands for blanks in an address).
std::size_t behind_dashes(std::string_view text) {
  const std::size_t dashes = run(text, [](char c) { return c == '-'; });
  if (dashes < 4) return 0;
  return dashes + run(text.substr(dashes), [](char c) { return c == ' ' || c == '+'; });
}

// A line of a key that was cut: base64, or what such a block has before it ("Proc-Type: 4,ENCRYPTED").
bool is_of_key(std::string_view line) {
  std::size_t longest = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t length = run_of(line.substr(at), "+/=");
    longest = std::max(longest, length);
    at += length + 1;
  }
  return longest >= kLeastKeyLine || line.find("Proc-Type:") != npos || line.find("DEK-Info:") != npos ||
         line.find_first_not_of(" \t\r") == npos;
}

}  // namespace

std::size_t private_key_length(std::string_view text) {
  if (!text.starts_with("----")) return 0;
  const std::size_t begin = behind_dashes(text.substr(0, 64));
  if (begin == 0 || text.substr(begin, 5) != "BEGIN") return 0;
  const std::size_t title = text.substr(0, begin + 96).find("----", begin);
  if (title == npos) return 0;
  const std::string_view words = text.substr(begin, title - begin);
  if (words.find("PRIVATE") == npos || words.find("KEY") == npos) return 0;
  const std::string_view block = text.substr(0, kMostKeyBytes);
  for (std::size_t end = block.find("----", title + 5); end != npos; end = block.find("----", end + 1)) {
    const std::size_t behind = behind_dashes(block.substr(end, 64));
    if (behind != 0 && block.substr(end + behind, 5) == "BEGIN") break;  // the next one
    if (behind == 0 || block.substr(end + behind, 3) != "END") continue;
    const std::size_t close = block.find("----", end + behind);
    return close == npos ? block.size() : close + run(text.substr(close), [](char c) { return c == '-'; });
  }
  // it was cut: the lines that are a key's, and one shorter one behind them
  std::size_t at = std::min(text.find('\n', title), text.size());
  while (at < text.size()) {
    const std::size_t next = std::min(text.find('\n', at + 1), text.size());
    const bool goes_on = is_of_key(text.substr(at + 1, next - at - 1));
    const std::size_t last = run_of(text.substr(at + 1, 128), "+/=");
    if (!goes_on) return last != 0 && at + 1 + last == next ? next : at;
    at = next;
  }
  return text.size();
}

std::vector<SecretCell> keys_without_begin(std::string_view text) {
  constexpr std::string_view kDashes = "-----";
  std::vector<SecretCell> found;
  std::size_t from = 0;  // behind the block before
  for (std::size_t end = text.find("-----END "); end != npos; end = text.find("-----END ", end + 1)) {
    const std::string_view title = text.substr(end, 96);
    const std::size_t close = title.find(kDashes, kDashes.size());
    const std::string_view words = title.substr(0, close);
    if (close == npos || words.find("PRIVATE") == npos || words.find("KEY") == npos) continue;
    std::size_t begin = end;
    while (begin > from && end - begin < kMostKeyBytes) {
      const std::size_t above = begin < 2 ? npos : text.rfind('\n', begin - 2);
      const std::size_t line_at = std::max(above == npos ? 0 : above + 1, from);
      std::string_view line = text.substr(line_at, begin - line_at);
      while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
      const auto rest = std::find_if_not(line.rbegin(), line.rend(),
                                         [](char c) { return is_alphanumeric(c) || c == '+' || c == '/' || c == '='; });
      const auto length = static_cast<std::size_t>(rest - line.rbegin());
      if (line.find(kDashes) != npos || length < (begin == end ? 2 : kLeastKeyLine)) break;  // the last may be short
      begin = line_at;  // with what stands before it: "[rank0]: X"
    }
    if (begin != end) found.push_back({begin, end + close + kDashes.size() - begin, {}});
    from = end;
  }
  return found;
}

}  // namespace faultline::pack
