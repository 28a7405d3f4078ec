#include "view/html.h"

#include "base/safe_text.h"

namespace faultline::view {

std::string escaped(std::string_view text, std::size_t limit) { return escaped_markup(shown(text, limit)); }

std::string escaped_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += escaped_markup(shown(text.substr(0, end), 1 << 16));
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace faultline::view
