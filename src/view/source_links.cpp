#include "view/source_links.h"

#include <fmt/format.h>

#include "view/html.h"

namespace faultline::view {
namespace {

constexpr std::size_t kLongestLinked = 1024;

}  // namespace

std::string editor_address(const std::string& file, std::uint32_t line) {
  if (file.size() < 2 || file[0] != '/' || file[1] == '/' || line == 0 || file.size() > kLongestLinked) return {};
  std::string out = "vscode://file";
  for (const char letter : file) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '/' || letter == '.' || letter == '_' ||
                          letter == '-';
    out += is_plain ? std::string(1, letter) : fmt::format("%{:02X}", static_cast<unsigned char>(letter));
  }
  return out + fmt::format(":{}", line);
}

std::string source_links(const std::string& file, std::uint32_t line) {
  if (file.empty() || line == 0 || file.size() > kLongestLinked) return {};
  const std::string place = escaped(fmt::format("{}:{}", file, line));
  std::string out = fmt::format(
      "<button type=\"button\" class=\"copy\" data-place=\"{}\" hidden>Copy<span class=\"unseen\"> "
      "{}</span></button>",
      place, place);
  if (const std::string address = editor_address(file, line); !address.empty())
    out += fmt::format(" <a class=\"open\" href=\"{}\">Open in VS Code<span class=\"unseen\">: {}</span></a>",
                       escaped(address, 8192), place);
  return out;
}

}  // namespace faultline::view
