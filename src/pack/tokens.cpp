// Tokens: by the letters that their makers begin them with, by their form, and by being what nobody typed.
//
// The prefixes are those that the makers document for their tokens. A token without a prefix is told by its letters: in text that people write, and in
// names of programs (also mangled ones), capitals, small letters and digits stand in groups; in a token drawn at random two neighbours are of
// different kinds more often than not.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/characters.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

struct Prefix {
  std::string_view begin;
  std::size_t least;      // characters behind it
  std::string_view more;  // beside letters and digits
  bool needs_digit = false;
};
constexpr std::string_view kDashed = "_-";
constexpr Prefix kPrefixes[] = {
    // models and what runs them
    {"hf_", 16, ""},
    {"api_org_", 16, ""},
    {"sk-", 16, kDashed, true},
    {"sess-", 20, kDashed, true},
    {"pplx-", 20, ""},
    {"gsk_", 20, ""},
    {"xai-", 30, "", true},
    {"r8_", 30, ""},
    {"nvapi-", 20, kDashed},
    {"wandb_v1_", 16, kDashed},
    {"tgp_v1_", 20, kDashed},
    {"fw_", 20, "", true},
    {"csk-", 20, "", true},
    {"jina_", 20, kDashed, true},
    {"rpa_", 24, "", true},
    {"pcsk_", 20, kDashed},
    {"tvly-", 16, kDashed},
    {"lsv2_", 16, kDashed},
    {"pk-lf-", 16, kDashed},
    {"ABSK", 40, "+/="},
    {"dapi", 32, "-", true},
    {"ak-", 20, "", true},
    {"as-", 20, "", true},
    // where code lives
    {"ghp_", 16, ""},
    {"gho_", 16, ""},
    {"ghu_", 16, ""},
    {"ghs_", 16, ""},
    {"ghr_", 16, ""},
    {"github_pat_", 16, "_"},
    {"glpat-", 16, "_-."},
    {"glrt-", 16, kDashed},
    {"gldt-", 16, kDashed},
    {"glptt-", 16, kDashed},
    {"glsoat-", 16, kDashed},
    {"glcbt-", 16, kDashed},
    {"glimt-", 16, kDashed},
    {"glft-", 16, kDashed},
    {"glagent-", 16, kDashed},
    {"gloas-", 16, kDashed},
    {"GR1348941", 16, kDashed},
    {"ATATT3", 20, "_-="},
    {"ATCTT3", 20, "_-="},
    {"ATBB", 24, "", true},
    {"npm_", 30, ""},
    {"pypi-", 30, kDashed},
    {"rubygems_", 30, ""},
    {"oy2", 43, "", true},
    {"CLOJARS_", 30, ""},
    {"dckr_pat_", 16, kDashed},
    {"dckr_oat_", 16, kDashed},
    {"sntrys_", 16, "_+/="},
    {"sntryu_", 16, ""},
    {"squ_", 30, ""},
    {"sqp_", 30, ""},
    {"sqa_", 30, ""},
    {"sbp_", 30, ""},
    {"AKCp", 30, ""},
    {"cmVmdGtu", 20, ""},
    {"NRAK-", 20, ""},
    {"NRII-", 20, kDashed},
    {"NRJS-", 16, ""},
    {"PMAK-", 20, "-"},
    // clouds
    {"AKIA", 16, ""},
    {"ASIA", 16, ""},
    {"ABIA", 16, ""},
    {"ACCA", 16, ""},
    {"AROA", 16, ""},
    {"AIDA", 16, ""},
    {"AGPA", 16, ""},
    {"FwoGZXIvYXdz", 16, "+/="},
    {"IQoJb3JpZ2lu", 16, "+/="},
    {"AIza", 30, kDashed},
    {"ya29.", 16, "_-."},
    {"GOCSPX-", 16, kDashed},
    {"1//0", 30, kDashed, true},
    {"LTAI", 16, "", true},
    {"AKID", 28, "", true},
    {"AQVN", 30, kDashed, true},
    {"dop_v1_", 30, ""},
    {"doo_v1_", 30, ""},
    {"dor_v1_", 30, ""},
    {"hvs.", 16, kDashed},
    {"hvb.", 16, kDashed},
    {"hvr.", 16, kDashed},
    {"tskey-", 12, kDashed},
    {"pul-", 32, "", true},
    {"pscale_", 24, "_-.", true},
    {"dp.pt.", 20, ""},
    {"dp.st.", 20, "_.-"},
    {"dt0c01.", 20, "."},
    {"HRKU-", 20, kDashed},
    {"vercel_", 20, "", true},
    {"nfp_", 20, "", true},
    {"rnd_", 20, "", true},
    {"eyJrIjoi", 20, "+/=_-"},
    {"glsa_", 20, "_"},
    {"glc_", 20, "+/="},
    {"ops_eyJ", 20, "+/=_-"},
    {"A3-", 26, "-", true},
    {"AGE-SECRET-KEY-1", 20, ""},
    {"SK", 32, "", true},
    // money and mail
    {"sk_live_", 12, ""},
    {"sk_test_", 12, ""},
    {"rk_live_", 12, ""},
    {"rk_test_", 12, ""},
    {"pk_live_", 12, ""},
    {"sk_", 40, "", true},
    {"whsec_", 16, "+/="},
    {"rzp_live_", 12, ""},
    {"rzp_test_", 12, ""},
    {"sq0atp-", 16, kDashed},
    {"sq0csp-", 16, kDashed},
    {"shpat_", 20, ""},
    {"shpss_", 20, ""},
    {"shpca_", 20, ""},
    {"shppa_", 20, ""},
    {"SG.", 30, "_-.", true},
    {"xkeysib-", 30, "-"},
    {"key-", 32, "", true},
    {"re_", 20, "_", true},
    // where people talk and plan
    {"xoxb-", 10, "-"},
    {"xoxp-", 10, "-"},
    {"xoxa-", 10, "-"},
    {"xoxs-", 10, "-"},
    {"xoxe-", 10, "-"},
    {"xoxe.", 10, "-."},
    {"xoxr-", 10, "-"},
    {"xoxo-", 10, "-"},
    {"xapp-", 10, "-"},
    {"hooks.slack.com/", 16, "/_-"},
    {"discord.com/api/webhooks/", 16, "/_-"},
    {"discordapp.com/api/webhooks/", 16, "/_-"},
    {"outlook.office.com/webhook/", 16, "/_-@"},
    {"ntn_", 20, "", true},
    {"secret_", 32, "", true},
    {"figd_", 20, kDashed},
    {"lin_api_", 20, ""},
    {"lin_oauth_", 20, ""},
    {"pat-na1-", 20, "-"},
    {"phc_", 30, ""},
    {"phx_", 30, ""},
    {"EAA", 60, "", true},
    {"amzn.mws.", 20, "-"},
};

constexpr std::array<bool, 256> kBeginsPrefix = [] {
  std::array<bool, 256> begins{};
  for (const Prefix& prefix : kPrefixes) begins[static_cast<unsigned char>(prefix.begin[0])] = true;
  return begins;
}();

// Three parts of base64 with points between, or five where it is encrypted; the first is a JSON object.
std::size_t jwt_length(std::string_view text) {
  if (!text.starts_with("eyJ")) return 0;
  const std::size_t head = run_of(text.substr(0, kLooked), "_-");
  if (head < 10 || head >= text.size() || text[head] != '.') return 0;
  const std::size_t body = run_of(text.substr(head + 1), "_-");
  if (body < 4) return 0;
  std::size_t all = head + 1 + body;
  for (int part = 2; part < 5 && all < text.size() && text[all] == '.'; ++part) {
    const std::size_t more = run_of(text.substr(all + 1), "_-");
    if (more == 0 && part != 2) break;
    all += 1 + more;
  }
  return all;
}

// A bot of Telegram's: its number, and 35 characters.
std::size_t bot_length(std::string_view text) {
  const std::size_t number = run(text.substr(0, 12), is_digit);
  if (number < 8 || number > 10 || text.substr(number, 3) != ":AA") return 0;
  const std::size_t length = run_of(text.substr(number + 1, kLooked), kDashed);
  return length >= 33 && length <= 40 ? number + 1 + length : 0;
}

// Does a word end here, and not a file's name or a longer name?
bool ends_word(std::string_view text, std::size_t length) {
  const char next = length < text.size() ? text[length] : ' ';
  const bool goes_on = length + 1 < text.size() && is_alphanumeric(text[length + 1]);
  return !is_word_character(next) && !((next == '-' || next == '.') && goes_on);
}

struct Makeup {
  std::size_t capitals = 0, small = 0, digits = 0, numbers = 0, changes = 0,
              size = 0;  // a number is of digits side by side
};
Makeup makeup_of(std::string_view text) {
  Makeup made;
  int last = 0;
  for (const char c : text) {
    const int kind = is_upper(c) ? 1 : is_lower(c) ? 2 : is_digit(c) ? 3 : 0;
    if (kind == 0) continue;
    made.capitals += kind == 1;
    made.small += kind == 2;
    made.digits += kind == 3;
    made.numbers += kind == 3 && last != 3;
    made.changes += made.size != 0 && kind != last;
    ++made.size;
    last = kind;
  }
  return made;
}

// A key of Weights & Biases, a digest used as a key; a secret key of AWS.
std::size_t key_of_forty(std::string_view text) {
  const std::size_t length = run_of(text.substr(0, 64), "+/");
  if (length != 40 || !ends_word(text, length)) return 0;
  const std::string_view key = text.substr(0, length);
  const Makeup made = makeup_of(key);
  const bool is_hex = std::all_of(key.begin(), key.end(), is_hex_digit);
  return is_hex || (made.digits >= 1 && made.capitals >= 4 && made.small >= 4) ? length : 0;
}

constexpr std::size_t kLeastHex = 32, kLeastRandom = 20, kMostRandom = 512;

std::size_t hex_length(std::string_view text) {
  const std::size_t length = run(text, is_hex_digit);
  if (length < kLeastHex || !ends_word(text, length)) return 0;
  const Makeup made = makeup_of(text.substr(0, length));
  return made.digits >= 4 && made.size - made.digits >= 4 ? length : 0;
}

bool is_random(std::string_view word) {
  const Makeup made = makeup_of(word);
  if (made.size < kLeastRandom || made.numbers < 2 || made.capitals < 3 || made.small < 3) return false;
  std::array<bool, 256> seen{};
  std::size_t different = 0;
  for (const char c : word) different += !std::exchange(seen[static_cast<unsigned char>(c)], true);
  return made.changes * 100 >= (made.size - 1) * 42 && different >= std::min<std::size_t>(made.size / 2, 16);
}

}  // namespace

std::size_t token_with_prefix(std::string_view text) {
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

std::size_t random_length(std::string_view text) {
  if (text.starts_with("_Z") || text.starts_with("_R")) return 0;  // names as linkers write them
  const std::string_view whole = text.substr(0, run_of(text.substr(0, kMostRandom), "_-+/="));
  const std::string_view first = whole.substr(0, run_of(whole, "+"));
  const std::size_t between = whole.size() - makeup_of(whole).size;
  // it may go on behind what was looked at
  if (between * 12 <= whole.size() && is_random(whole)) return run_of(text, "_-+/=");
  return is_random(first) ? run_of(text, "+") : 0;
}

std::size_t token_length(std::string_view text) {
  if (const std::size_t length = token_with_prefix(text); length != 0) return length;
  if (const std::size_t length = jwt_length(text); length != 0) return length;
  if (const std::size_t length = bot_length(text); length != 0) return length;
  if (const std::size_t length = key_of_forty(text); length != 0) return length;
  if (const std::size_t length = hex_length(text); length != 0) return length;
  return random_length(text);
}

bool is_mixed_up(std::string_view value) {
  constexpr std::size_t kLeast = 8;
  if (value.size() < kLeast) return false;
  if (random_length(value) == value.size() || hex_length(value) == value.size()) return true;
  // what people call their things: parts of letters, of digits, of letters and then digits
  std::size_t most = 0;
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t length = run_of(value.substr(at), "");
    const std::string_view part = value.substr(at, length);
    std::size_t changes = 0;
    for (std::size_t i = 1; i < part.size(); ++i) changes += is_digit(part[i]) != is_digit(part[i - 1]);
    most = std::max(most, changes);
    at += length + 1;
  }
  const bool is_one = value.find_first_of(" \t\r\n:()[]{}<>|,;\"'") == npos;
  return is_one && (most >= 3 || (most == 2 && value.size() >= 12));
}

}  // namespace faultline::pack
