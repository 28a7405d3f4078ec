#include "view/html.h"

#include "base/safe_text.h"

namespace faultline::view {
namespace {

void add_escaped(std::string_view text, std::string& out) {
  for (const char letter : text) {
    switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += letter;
    }
  }
}

}  // namespace

std::string escaped(std::string_view text, std::size_t limit) {
  std::string out;
  add_escaped(shown(text, limit), out);
  return out;
}

std::string escaped_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    add_escaped(shown(text.substr(0, end), 1 << 16), out);
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace faultline::view
