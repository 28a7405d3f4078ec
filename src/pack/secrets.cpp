#include "pack/secrets.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <tuple>

#include "base/characters.h"
#include "pack/readable_text.h"
#include "pack/scrubber.h"

namespace faultline::pack {
namespace {

// How far is looked before it is known whether this is a secret: each begin of a word costs no more than that.
constexpr std::size_t kLooked = 1024;

template <class Is>
std::size_t run(std::string_view text, Is is) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is) - text.begin());
}
std::size_t run_of(std::string_view text, std::string_view more) {
  return run(text, [=](char c) { return is_alphanumeric(c) || more.find(c) != npos; });
}
struct Prefix {
  std::string_view begin;
  std::size_t least;      // characters behind it
  std::string_view more;  // beside letters and digits
  bool needs_digit = false;
};
constexpr std::array<Prefix, 50> kPrefixes = {{{"hf_", 16, ""},
                                               {"api_org_", 16, ""},
                                               {"ghp_", 16, ""},
                                               {"gho_", 16, ""},
                                               {"ghu_", 16, ""},
                                               {"ghs_", 16, ""},
                                               {"ghr_", 16, ""},
                                               {"github_pat_", 16, "_"},
                                               {"glpat-", 16, "_-"},
                                               {"glrt-", 16, "_-"},
                                               {"gldt-", 16, "_-"},
                                               {"glptt-", 16, "_-"},
                                               {"sk-", 16, "_-", true},
                                               {"sk_live_", 12, ""},
                                               {"sk_test_", 12, ""},
                                               {"rk_live_", 12, ""},
                                               {"pk_live_", 12, ""},
                                               {"whsec_", 16, "+/="},
                                               {"AKIA", 16, ""},
                                               {"ASIA", 16, ""},
                                               {"ABIA", 16, ""},
                                               {"AROA", 16, ""},
                                               {"FwoGZXIvYXdz", 16, "+/="},
                                               {"IQoJb3JpZ2lu", 16, "+/="},
                                               {"AIza", 30, "_-"},
                                               {"ya29.", 16, "_-."},
                                               {"GOCSPX-", 16, "_-"},
                                               {"1//0", 30, "_-", true},
                                               {"xoxb-", 10, "-"},
                                               {"xoxp-", 10, "-"},
                                               {"xoxa-", 10, "-"},
                                               {"xoxs-", 10, "-"},
                                               {"xoxe-", 10, "-"},
                                               {"xoxr-", 10, "-"},
                                               {"xapp-", 10, "-"},
                                               {"hooks.slack.com/", 16, "/_-"},
                                               {"discord.com/api/webhooks/", 16, "/_-"},
                                               {"discordapp.com/api/webhooks/", 16, "/_-"},
                                               {"npm_", 30, ""},
                                               {"pypi-", 30, "_-"},
                                               {"r8_", 30, ""},
                                               {"nvapi-", 20, "_-"},
                                               {"wandb_v1_", 16, "_-"},
                                               {"dop_v1_", 30, ""},
                                               {"dapi", 32, "-", true},
                                               {"shpat_", 20, ""},
                                               {"SG.", 30, "_-.", true},
                                               {"gsk_", 20, ""},
                                               {"xai-", 30, "", true},
                                               {"lin_api_", 20, ""}}};

constexpr std::array<bool, 256> kBeginsPrefix = [] {
  std::array<bool, 256> begins{};
  for (const Prefix& prefix : kPrefixes) begins[static_cast<unsigned char>(prefix.begin[0])] = true;
  return begins;
}();

std::size_t prefixed_length(std::string_view text) {
  if (text.empty() || !kBeginsPrefix[static_cast<unsigned char>(text[0])]) return 0;
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
  const char next = length < text.size() ? text[length] : ' ';
  const bool ends = length + 1 >= text.size() || !is_alphanumeric(text[length + 1]);  // a sentence does
  if (next == '_' || (!ends && (next == '-' || next == '.'))) return 0;
  const bool is_hex = std::all_of(key.begin(), key.end(), is_hex_digit);
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

// What stands there is no secret but the lack of one, or an expression of a program that makes it.
bool is_no_secret(std::string_view value) {
  const std::string small = lower(value.substr(0, value.find_first_of(" \t,;=")));
  for (const std::string_view word : {"none", "null", "true", "false", "nil", "undefined", "str", "string"}) {
    if (small == word) return true;
  }
  // getpass(), keys[0], $NAME, ${NAME}, <your token>, ****
  const std::size_t name = run_of(value, "_.");
  const char open = name < value.size() ? value[name] : '\0';
  const bool is_call = name != 0 && (open == '(' || open == '[') && value.find(open == '(' ? ')' : ']') != npos;
  const bool is_variable = value.size() > 1 && value[0] == '$' &&
                           (value[1] == '{' || value[1] == '(' || run(value.substr(1), [](char c) {
                                                                    return is_upper(c) || is_digit(c) || c == '_';
                                                                  }) == value.size() - 1);
  return value.empty() || is_call || is_variable || value.starts_with("os.environ") || value.starts_with("os.getenv") ||
         value.starts_with("self.") || value.starts_with("args.") ||
         (value.starts_with('<') && value.find('>') != npos) || value.find_first_not_of('*') == npos;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return small;
}

std::size_t private_key_length(std::string_view text) {
  if (!text.starts_with("-----BEGIN ")) return 0;
  const std::size_t title = text.substr(0, 80).find("-----", 11);
  if (title == npos || text.substr(0, title).find("PRIVATE KEY") == npos) return 0;
  const std::size_t end = text.find("-----END ", title);
  if (end == npos) return text.size();  // it was cut: what follows is the key
  const std::size_t close = text.find("-----", end + 9);
  return close == npos ? text.size() : close + 5;
}

std::size_t token_with_prefix(std::string_view text) { return prefixed_length(text); }

std::size_t token_length(std::string_view text) {
  if (const std::size_t length = prefixed_length(text); length != 0) return length;
  if (const std::size_t length = jwt_length(text); length != 0) return length;
  return key_of_forty(text);
}

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

Introduced bearer(std::string_view text) {
  constexpr std::string_view kWord = "bearer";
  if (text.size() < kWord.size() + 2 || (text[0] != 'b' && text[0] != 'B') ||
      lower(text.substr(0, kWord.size())) != kWord)
    return {};
  const std::size_t blanks = run(text.substr(kWord.size()), [](char c) { return c == ' ' || c == '\t'; });
  if (blanks == 0) return {};
  const std::size_t before = kWord.size() + blanks;
  const std::size_t length = run_of(text.substr(before), "._~+/=-");
  return length >= 12 ? Introduced{before, length} : Introduced{};
}

Introduced url_credentials(std::string_view text) {
  const std::size_t scheme = run_of(text.substr(0, 32), "+.-");
  if (scheme == 0 || text.substr(scheme, 3) != "://") return {};
  std::string_view rest = text.substr(scheme + 3, 512);
  rest = rest.substr(0, rest.find_first_of(" \t\r\n\"'<>\x02\x03"));
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::size_t at = rest.substr(0, end).rfind('@');
  // a password with a stroke in it; what is a number behind the colon is a port
  const std::size_t colon = rest.substr(0, end).find(':');
  if (at == npos && colon != npos && run(rest.substr(colon + 1, end - colon - 1), is_digit) < end - colon - 1)
    at = rest.find('@');
  return at == npos || at == 0 ? Introduced{} : Introduced{scheme + 3, at};
}

Introduced login(std::string_view text) {
  if (!text.starts_with('-')) return {};
  for (const std::string_view option : {"-u ", "-u", "--user ", "--user=", "--proxy-user ", "--proxy-user="}) {
    if (!text.starts_with(option)) continue;
    std::size_t at = option.size();
    if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;
    const std::string_view rest = text.substr(at, kLooked);
    const std::size_t length = std::min(rest.find_first_of(" \t\r\n\"'\x02\x03"), rest.size());
    const std::string_view value = rest.substr(0, length);
    const std::size_t name = run_of(value, "_-@");
    const bool is_number = std::all_of(value.begin(), value.end(), [](char c) { return is_digit(c) || c == ':'; });
    if (name != 0 && name + 1 < value.size() && value[name] == ':' && !is_number) return {at, length};
  }
  return {};
}

namespace {

// Where another one begins: ", user=", "&x=1", "; name:".
std::size_t up_to_next_name(std::string_view value) {
  for (std::size_t at = value.find_first_of(",;&"); at != npos; at = value.find_first_of(",;&", at + 1)) {
    const std::string_view rest = value.substr(at + 1, 64);
    const std::size_t name = run_of(rest, "_-.");
    if (name != 0 && name < rest.size() && (rest[name] == '=' || rest[name] == ':')) return at;
  }
  return value.size();
}

// On the line below, alone: "Authorization:\n  X".
Introduced on_next_line(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at, kLooked);
  const std::size_t begin = rest.find_first_not_of(" \t\r\n");
  if (begin == npos || std::count(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(begin), '\n') > 2) return {};
  std::size_t end = std::min(rest.find_first_of("\r\n", begin), rest.size());
  while (end > begin && (rest[end - 1] == ' ' || rest[end - 1] == '\t' || rest[end - 1] == ',')) --end;
  const std::string_view line = rest.substr(begin, end - begin);
  const std::size_t name = run_of(line, "_-.");
  const bool is_named = name < line.size() && (line[name] == ':' || (line[name] == '=' && name + 2 < line.size()));
  if (line.size() < 4 || is_named || line.find_first_of(" \t/(){}[]<>") != npos || line.starts_with("---")) return {};
  return is_no_secret(line) ? Introduced{} : Introduced{at + begin, line.size()};
}

}  // namespace

Introduced assigned_secret(std::string_view text) {
  const std::size_t dashes = run(text.substr(0, 2), [](char c) { return c == '-'; });
  const std::size_t name = run_of(text.substr(dashes, 128), "_-.");
  if (name == 0) return {};
  const auto is_quote = [](char c) { return c == '"' || c == '\'' || c == kEscapedDouble || c == kEscapedSingle; };
  const auto blanks_at = [&](std::size_t at) {
    return run(text.substr(std::min(at, text.size()), kLooked), [](char c) { return c == ' ' || c == '\t'; });
  };
  std::size_t at = dashes + name;
  if (at < text.size() && is_quote(text[at])) ++at;  // of a key that is quoted
  if (at < text.size() && text[at] == ']') ++at;     // environ["X"]
  const std::size_t blanks = blanks_at(at);
  std::size_t sign = at + blanks < text.size() && (text[at + blanks] == '=' || text[at + blanks] == ':') ? 1 : 0;
  const bool assigns = sign != 0;
  if (!assigns && (dashes == 0 || blanks == 0)) return {};
  if (!Scrubber::names_secret(text.substr(0, dashes + name))) return {};
  if (assigns && (text.substr(at + blanks, 2) == ":=" || text.substr(at + blanks, 2) == "=>")) sign = 2;
  at += blanks + sign;
  if (assigns && text.substr(at).starts_with('=')) return {};  // a comparison
  const std::size_t more = blanks_at(at);
  at += more;
  if (at >= text.size()) return {};
  if (text[at] == '(') {  // a text over several lines
    const std::size_t quote = text.substr(0, at + 256).find_first_not_of(" \t\r\n(", at);
    if (quote != npos && is_quote(text[quote])) at = quote;
  }
  if (text[at] == '\n' || text[at] == '\r') return assigns ? on_next_line(text, at) : Introduced{};
  text = text.substr(0, at + 4 * kLooked);
  if (text[at] == 'b' && at + 1 < text.size() && is_quote(text[at + 1])) ++at;
  if (is_quote(text[at])) {
    const std::size_t close = text.find(text[at], at + 1);
    const std::size_t line = text.find('\n', at);
    if (close == npos || close > line) return {at + 1, std::min(line, text.size()) - at - 1};
    return is_no_secret(text.substr(at + 1, close - at - 1)) ? Introduced{} : Introduced{at + 1, close - at - 1};
  }
  if (!assigns && text[at] == '-') return {};  // the next option
  const std::string small = lower(text.substr(dashes, name));
  const bool is_header = small.ends_with("authorization") || small.ends_with("cookie");
  // what a person says of a password goes to the line's end
  const bool is_phrase = assigns && more != 0 && small.find("pass") != npos;
  std::string_view value = text.substr(at);
  value = value.substr(0, value.find_first_of(is_header || is_phrase ? "\r\n\"\x02" : " \t\r\n\"'\x02\x03"));
  if (!is_header) value = value.substr(0, up_to_next_name(value));
  if (is_no_secret(value)) return {};
  while (!value.empty() && std::string_view(",;)]}> \t").find(value.back()) != npos) value.remove_suffix(1);
  return value.empty() || is_no_secret(value) ? Introduced{} : Introduced{at, value.size()};
}

}  // namespace faultline::pack
