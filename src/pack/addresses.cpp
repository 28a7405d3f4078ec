// Who and where somebody is: addresses of mail, of the net, of network cards.
#include <algorithm>
#include <string>
#include <tuple>

#include "base/characters.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

std::size_t ipv4_length(std::string_view text) {
  std::size_t at = 0;
  for (int part = 0; part < 4; ++part) {
    if (part != 0 && (at >= text.size() || text[at++] != '.')) return 0;
    const std::size_t digits = run(text.substr(at), is_digit);
    if (digits == 0 || digits > 3 || std::stoi(std::string(text.substr(at, digits))) > 255) return 0;
    at += digits;
  }
  const bool goes_on = at < text.size() && (is_alphanumeric(text[at]) ||
                                            (text[at] == '.' && at + 1 < text.size() && is_digit(text[at + 1])));
  const std::string_view found = text.substr(0, at);
  return goes_on || found.starts_with("127.") || found == "0.0.0.0" ? 0 : at;
}

// Groups of hexadecimal digits and colons: eight groups, or fewer with "::"; six of two digits are a network card's.
std::size_t ipv6_length(std::string_view text) {
  std::size_t length = run(text.substr(0, 64), [](char c) { return is_hex_digit(c) || c == ':'; });
  if (length < text.size() && text[length] == '.') {  // ::ffff:10.0.0.7
    const std::size_t colon = text.substr(0, length).rfind(':');
    if (colon == npos || text.substr(0, length).find("::") == npos) return 0;
    const std::size_t last = ipv4_length(text.substr(colon + 1));
    return last == 0 ? 0 : colon + 1 + last;
  }
  const bool is_prefix = length >= 6 && text.substr(length - 2, 3) == "::/";  // 2001:db8::/48
  if (length < 6 || (length < text.size() && is_word_character(text[length]))) return 0;
  const std::string_view found = text.substr(0, length);
  std::size_t colons = 0, group = 0, longest = 0, shortest = 4;
  for (const char c : found) {
    if (c == ':') {
      ++colons;
      shortest = std::min(shortest, group);
      group = 0;
    } else {
      longest = std::max(longest, ++group);
    }
  }
  if (longest > 4 || (found.back() == ':' && !is_prefix)) return 0;
  if (is_prefix && colons >= 3) return length;
  const bool is_card = colons == 5 && longest == 2 && shortest == 2 && group == 2;
  const bool is_whole = colons == 7 && shortest > 0;
  const bool is_short =
      found.find("::") != npos && colons >= 3 && colons <= 7 && std::any_of(found.begin(), found.end(), is_digit);
  return is_card || is_whole || is_short ? length : 0;
}

// A network card's, as Windows and as switches write it: AA-BB-CC-DD-EE-FF, aabb.ccdd.eeff.
std::size_t card_length(std::string_view text) {
  for (const auto& [group, groups, between] : {std::tuple{2U, 6U, '-'}, std::tuple{4U, 3U, '.'}}) {
    const std::size_t length = group * groups + groups - 1;
    if (text.size() < length || (text.size() > length && (is_alphanumeric(text[length]) || text[length] == between)))
      continue;
    bool is_card = true, has_letter = false;
    for (std::size_t i = 0; is_card && i < length; ++i) {
      is_card = i % (group + 1) == group ? text[i] == between : is_hex_digit(text[i]);
      has_letter = has_letter || is_letter(text[i]);
    }
    if (is_card && has_letter) return length;
  }
  return 0;
}

}  // namespace

std::size_t email_length(std::string_view text) {
  const std::size_t local = run_of(text.substr(0, 128), "._%+-");
  if (local == 0 || local >= text.size() || text[local] != '@') return 0;
  const std::string_view rest = text.substr(local + 1, 256);
  const auto is_name = [](char c) { return is_alphanumeric(c) || static_cast<unsigned char>(c) >= 0x80; };
  std::size_t domain = run(rest, [&](char c) { return is_name(c) || c == '.' || c == '-'; });
  while (domain > 0 && !is_name(rest[domain - 1])) --domain;
  const std::string_view name = rest.substr(0, domain);
  const std::size_t point = name.rfind('.');
  if (point == npos || point == 0) return 0;
  const std::string_view top = name.substr(point + 1);
  const bool is_top =
      top.size() >= 2 &&
      (top.starts_with("xn--") || std::none_of(top.begin(), top.end(), [](char c) { return is_digit(c) || c == '-'; }));
  return is_top ? local + 1 + domain : 0;
}

std::size_t address_length(std::string_view text) {
  if (!text.empty() && is_digit(text[0])) {
    if (const std::size_t length = ipv4_length(text); length != 0) return length;
  }
  // how clouds name machines: by their address
  if (text.starts_with("ip-")) {
    const std::size_t length = 3 + run(text.substr(3), [](char c) { return is_digit(c) || c == '-'; });
    const std::string_view numbers = text.substr(3, length - 3);
    if (std::count(numbers.begin(), numbers.end(), '-') == 3 && is_digit(numbers.back())) return length;
  }
  if (const std::size_t length = card_length(text); length != 0) return length;
  return ipv6_length(text);
}

// Four numbers behind == or a dash are a version, unless a package's name cannot stand there.
bool is_version(std::string_view text, std::size_t at) {
  if (at == 0) return false;
  if (at > 1 && text.substr(at - 2, 2) == "==") return true;
  if (text[at - 1] != '-' && text[at - 1] != '_') return false;
  const std::string_view number = text.substr(at, 4);
  const bool is_likely = number.starts_with("10.") || (number.find('.') == 3 && number[0] == '1');
  constexpr std::string_view kInNames = "-_.";
  std::size_t begin = at;
  while (begin > 0 && at - begin < 64 && (is_alphanumeric(text[begin - 1]) || kInNames.find(text[begin - 1]) != npos))
    --begin;
  const std::string name = lower(text.substr(begin, at - begin));
  return !is_likely || name.find("nvidia") != npos || name.find("cu1") != npos || name.find("cuda") != npos ||
         name.find("lib") != npos || name.find("curand") != npos;
}

}  // namespace faultline::pack
