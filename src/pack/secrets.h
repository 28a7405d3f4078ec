// What a secret looks like. Each function gives the length of what begins the text and is one, 0 where nothing is; the text begins at the begin of a word.
// Where it is not sure, it is a secret.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/characters.h"

namespace faultline::pack {

inline constexpr auto npos = std::string_view::npos;
// How far is looked before it is known whether this is a secret: each begin of a word costs no more than that.
inline constexpr std::size_t kLooked = 1024;

constexpr bool is_alphanumeric(char c) { return is_letter(c) || is_digit(c); }
constexpr bool is_word_character(char c) { return is_alphanumeric(c) || c == '_'; }
constexpr bool is_gap(char c) { return c == ' ' || c == '\t'; }

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
template <class Is>
std::size_t run(std::string_view text, Is is) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is) - text.begin());
}
// Of letters, digits and these.
inline std::size_t run_of(std::string_view text, std::string_view more) {
  return run(text, [=](char c) { return is_alphanumeric(c) || more.find(c) != npos; });
}

std::string lower(std::string_view text);
std::size_t private_key_length(std::string_view text);  // -----BEGIN … PRIVATE KEY----- to its end
std::size_t token_length(std::string_view text);        // hf_…, ghp_…, sk-…, AKIA…, a JWT, what nobody typed
std::size_t token_with_prefix(std::string_view text);   // of these, those that begin with their maker's letters
std::size_t random_length(std::string_view text);       // letters and digits that no word and no name has
std::size_t email_length(std::string_view text);
bool is_version(std::string_view text, std::size_t at);  // four numbers that are no address: cudnn==9.1.0.70
std::size_t address_length(std::string_view text);       // IPv4, IPv6, a network card's; not this machine to itself
// Letters and digits that change often: `abcd1234efgh`, not `layer12` and not `blocks.3.fc1`.
bool is_mixed_up(std::string_view value);

// How far is looked behind a name, and before it in its line.
inline constexpr std::size_t kMostValue = 4 * kLooked, kMostBefore = 256;
bool is_quote(char c);
std::string_view line_before(std::string_view text, std::size_t at);
bool has_word(std::string_view line, std::string_view word);
// What stands there is no secret but the lack of one, or an expression of a program that makes it.
bool is_no_secret(std::string_view value);
bool looks_up(std::string_view function);  // getpass(…), os.getenv(…): what stands in its brackets is no secret
bool is_said_of_secrets(std::string_view word);       // "password is required"
std::size_t up_to_next_name(std::string_view value);  // "X, user=me": the length of X

// "Bearer ", "https://": how much stands before the secret, and the secret itself.
struct Introduced {
  std::size_t before = 0, secret = 0;
  bool is_sure = false;  // whatever the name that stands before says
};
Introduced bearer(std::string_view text);
Introduced url_credentials(std::string_view text);
Introduced login(std::string_view text);  // curl -u NAME:PASSWORD

// ALTER USER u IDENTIFIED BY 'X', wandb login X, requirepass X, mot de passe : X, echo X | sudo -S
Introduced phrased_secret(std::string_view text, std::size_t at);
// The next look at what stands before the place in its line: mysql -pX, docker login -p X.
Introduced typed_secret(std::string_view text, std::size_t at);
// password=…, "api_key": "…", HF_TOKEN=…, --token …, <password>…, ("password", "…"), | password | … |, machine h login u password …
Introduced given_secret(std::string_view text, std::size_t at);

// Cells of a table below a header that names a secret, in order.
struct SecretCell {
  std::size_t at = 0, length = 0;
  std::string name;  // of the column
};
std::vector<SecretCell> secret_cells(std::string_view text);
// Lines of private keys whose title was cut off, to their end, in order.
std::vector<SecretCell> keys_without_begin(std::string_view text);

}  // namespace faultline::pack
