#include "pack/secrets.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/characters.h"
#include "pack/scrubber.h"

namespace faultline::pack {
namespace {

bool is_hexadecimal(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// How far is looked before it is known whether this is a secret: each begin of a word costs no more than that.
constexpr std::size_t kLooked = 1024;

template <class Is>
std::size_t run(std::string_view text, Is is) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is) - text.begin());
}
std::size_t run_of(std::string_view text, std::string_view more) {
  return run(text, [=](char c) { return is_alphanumeric(c) || more.find(c) != npos; });
}
std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return small;
}

struct Prefix {
  std::string_view begin;
  std::size_t least;      // characters behind it
  std::string_view more;  // beside letters and digits
  bool needs_digit = false;
};
constexpr std::array<Prefix, 30> kPrefixes = {
    {{"hf_", 16, ""},         {"api_org_", 16, ""},    {"ghp_", 16, ""},     {"gho_", 16, ""},
     {"ghu_", 16, ""},        {"ghs_", 16, ""},        {"ghr_", 16, ""},     {"github_pat_", 16, "_"},
     {"glpat-", 16, "_-"},    {"sk-", 16, "_-", true}, {"sk_live_", 12, ""}, {"sk_test_", 12, ""},
     {"rk_live_", 12, ""},    {"pk_live_", 12, ""},    {"AKIA", 16, ""},     {"ASIA", 16, ""},
     {"ABIA", 16, ""},        {"AROA", 16, ""},        {"AIza", 30, "_-"},   {"ya29.", 16, "_-."},
     {"xoxb-", 10, "-"},      {"xoxp-", 10, "-"},      {"xoxa-", 10, "-"},   {"xoxs-", 10, "-"},
     {"npm_", 30, ""},        {"pypi-", 30, "_-"},     {"r8_", 30, ""},      {"nvapi-", 20, "_-"},
     {"wandb_v1_", 16, "_-"}, {"dop_v1_", 30, ""}}};

std::size_t prefixed_length(std::string_view text) {
  for (const Prefix& prefix : kPrefixes) {
    if (!text.starts_with(prefix.begin)) continue;
    const std::string_view rest = text.substr(prefix.begin.size());
    const std::string_view body = rest.substr(0, run_of(rest.substr(0, kLooked), prefix.more));
    if (body.size() >= prefix.least && (!prefix.needs_digit || std::any_of(body.begin(), body.end(), is_digit)))
      return prefix.begin.size() + run_of(rest, prefix.more);
  }
  return 0;
}

// Three parts of base64 with points between, the first of which is a JSON object.
std::size_t jwt_length(std::string_view text) {
  if (!text.starts_with("eyJ")) return 0;
  const std::size_t head = run_of(text.substr(0, kLooked), "_-");
  if (head < 10 || head >= text.size() || text[head] != '.') return 0;
  const std::size_t body = run_of(text.substr(head + 1), "_-");
  if (body < 4) return 0;
  std::size_t all = head + 1 + body;
  if (all < text.size() && text[all] == '.') all += 1 + run_of(text.substr(all + 1), "_-");
  return all;
}

// A key of Weights & Biases; a secret key of AWS, which is as long.
std::size_t key_of_forty(std::string_view text) {
  const std::size_t length = run_of(text.substr(0, 64), "+/");
  if (length != 40) return 0;
  const std::string_view key = text.substr(0, length);
  if (length < text.size() && (text[length] == '_' || text[length] == '-' || text[length] == '.')) return 0;
  const bool is_hex = std::all_of(key.begin(), key.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
  const auto count = [&](auto is) { return std::count_if(key.begin(), key.end(), is); };
  const bool is_mixed = count(is_digit) >= 1 && count(is_upper) >= 4 && count(is_lower) >= 4;
  return is_hex || is_mixed ? length : 0;
}

std::size_t ipv4_length(std::string_view text) {
  std::size_t at = 0;
  for (int part = 0; part < 4; ++part) {
    if (part != 0 && (at >= text.size() || text[at++] != '.')) return 0;
    const std::size_t digits = run(text.substr(at), is_digit);
    if (digits == 0 || digits > 3 || std::stoi(std::string(text.substr(at, digits))) > 255) return 0;
    at += digits;
  }
  const bool goes_on = at < text.size() && (is_word_character(text[at]) ||
                                            (text[at] == '.' && at + 1 < text.size() && is_digit(text[at + 1])));
  const std::string_view found = text.substr(0, at);
  return goes_on || found.starts_with("127.") || found == "0.0.0.0" ? 0 : at;
}

// Groups of hexadecimal digits and colons: eight groups, or fewer with "::"; six of two digits are a network card's.
std::size_t ipv6_length(std::string_view text) {
  const std::size_t length = run(text.substr(0, 64), [](char c) { return is_hexadecimal(c) || c == ':'; });
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
  if (longest > 4 || found.back() == ':') return 0;
  const bool is_card = colons == 5 && longest == 2 && shortest == 2 && group == 2;
  const bool is_whole = colons == 7 && shortest > 0;
  const bool is_short =
      found.find("::") != npos && colons >= 3 && colons <= 7 && std::any_of(found.begin(), found.end(), is_digit);
  return is_card || is_whole || is_short ? length : 0;
}

// What stands there is no secret but the lack of one, or an expression of a program that makes it.
bool is_no_secret(std::string_view value, char next) {
  const std::string small = lower(value);
  for (const std::string_view word : {"none", "null", "true", "false", "nil", "undefined", "str", "string"}) {
    if (small == word) return true;
  }
  return value.empty() || next == '(' || next == '[' || value.starts_with("os.environ") || value.starts_with("self.") ||
         value.starts_with("args.") || value.starts_with('<') || value.starts_with('$') || value.starts_with('*');
}

}  // namespace

std::size_t private_key_length(std::string_view text) {
  if (!text.starts_with("-----BEGIN ")) return 0;
  const std::size_t title = text.find("-----", 11);
  if (title == npos || title > 64 || text.substr(0, title).find("PRIVATE KEY") == npos) return 0;
  const std::size_t end = text.find("-----END ", title);
  if (end == npos) return text.size();  // it was cut: what follows is the key
  const std::size_t close = text.find("-----", end + 9);
  return close == npos ? text.size() : close + 5;
}

std::size_t token_length(std::string_view text) {
  if (const std::size_t length = prefixed_length(text); length != 0) return length;
  if (const std::size_t length = jwt_length(text); length != 0) return length;
  return key_of_forty(text);
}

std::size_t email_length(std::string_view text) {
  const std::size_t local = run_of(text.substr(0, 128), "._%+-");
  if (local == 0 || local >= text.size() || text[local] != '@') return 0;
  const std::string_view rest = text.substr(local + 1, 256);
  std::size_t domain = run_of(rest, ".-");
  while (domain > 0 && !is_alphanumeric(rest[domain - 1])) --domain;
  const std::string_view name = rest.substr(0, domain);
  const std::size_t point = name.rfind('.');
  if (point == npos || point == 0) return 0;
  const std::string_view top = name.substr(point + 1);
  const bool is_top = top.size() >= 2 && std::all_of(top.begin(), top.end(), is_letter);
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
  return ipv6_length(text);
}

Introduced bearer(std::string_view text) {
  constexpr std::string_view kWord = "bearer";
  if (text.size() < kWord.size() + 2 || lower(text.substr(0, kWord.size())) != kWord) return {};
  const std::size_t blanks = run(text.substr(kWord.size()), [](char c) { return c == ' ' || c == '\t'; });
  if (blanks == 0) return {};
  const std::size_t before = kWord.size() + blanks;
  const std::size_t length = run_of(text.substr(before), "._~+/=-");
  return length >= 12 ? Introduced{before, length} : Introduced{};
}

Introduced url_credentials(std::string_view text) {
  const std::size_t scheme = run_of(text.substr(0, 32), "+.-");
  if (scheme == 0 || text.substr(scheme, 3) != "://") return {};
  const std::string_view rest = text.substr(scheme + 3, 512);
  const std::size_t end = rest.find_first_of("/ \t\r\n\"'<>?#");
  const std::size_t at = rest.substr(0, end).rfind('@');
  return at == npos || at == 0 ? Introduced{} : Introduced{scheme + 3, at};
}

Introduced assigned_secret(std::string_view text) {
  const std::size_t dashes = std::min<std::size_t>(run(text, [](char c) { return c == '-'; }), 2);
  const std::size_t name = run_of(text.substr(dashes, 128), "_-.");
  if (name == 0 || !Scrubber::names_secret(text.substr(0, dashes + name))) return {};
  std::size_t at = dashes + name;
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;  // of a key that is quoted
  const std::size_t blanks = run(text.substr(at), [](char c) { return c == ' ' || c == '\t'; });
  const bool assigns = at + blanks < text.size() && (text[at + blanks] == '=' || text[at + blanks] == ':');
  if (!assigns && (dashes == 0 || blanks == 0)) return {};
  at += blanks + (assigns ? 1 : 0);
  if (assigns && text.substr(at).starts_with('=')) return {};  // a comparison
  at += run(text.substr(at), [](char c) { return c == ' ' || c == '\t'; });
  if (at >= text.size() || text[at] == '\n') return {};
  text = text.substr(0, at + kLooked);
  if (text[at] == '"' || text[at] == '\'') {
    const std::size_t close = text.find(text[at], at + 1);
    const std::size_t line = text.find('\n', at);
    if (close == npos || close > line) return {at + 1, std::min(line, text.size()) - at - 1};
    return is_no_secret(text.substr(at + 1, close - at - 1), 0) ? Introduced{} : Introduced{at + 1, close - at - 1};
  }
  const bool is_header =
      lower(text.substr(0, name)).ends_with("authorization") || lower(text.substr(0, name)).ends_with("cookie");
  const std::size_t length =
      is_header
          ? std::min(text.find_first_of("\r\n\"'", at), text.size()) - at
          : run(text.substr(at), [](char c) { return std::string_view(" \t\r\n\"',;&()[]{}<>").find(c) == npos; });
  const char next = at + length < text.size() ? text[at + length] : '\0';
  if (!assigns && text[at] == '-') return {};  // the next option
  return length == 0 || is_no_secret(text.substr(at, length), next) ? Introduced{} : Introduced{at, length};
}

}  // namespace faultline::pack
