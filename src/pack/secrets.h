// What a secret looks like. Each function gives the length of what begins the text and is one, 0 where nothing is; the text begins at the begin of a word.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/characters.h"

namespace faultline::pack {

inline constexpr auto npos = std::string_view::npos;
constexpr bool is_alphanumeric(char c) { return is_letter(c) || is_digit(c); }
constexpr bool is_word_character(char c) { return is_alphanumeric(c) || c == '_'; }

std::string lower(std::string_view text);
std::size_t private_key_length(std::string_view text);  // -----BEGIN … PRIVATE KEY----- to its end
std::size_t token_length(std::string_view text);        // hf_…, ghp_…, sk-…, AKIA…, a JWT, 40 hexadecimal digits
std::size_t token_with_prefix(std::string_view text);   // of these, those that begin with their maker's letters
std::size_t email_length(std::string_view text);
std::size_t address_length(std::string_view text);  // IPv4, IPv6, a network card's; not this machine to itself
// "Bearer ", "https://": how much stands before the secret, and the secret itself.
struct Introduced {
  std::size_t before = 0, secret = 0;
};
Introduced bearer(std::string_view text);
Introduced url_credentials(std::string_view text);
Introduced login(std::string_view text);  // curl -u NAME:PASSWORD
// password=…, "api_key": "…", HF_TOKEN=…, --token …
Introduced assigned_secret(std::string_view text);

}  // namespace faultline::pack
