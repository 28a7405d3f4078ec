// What the names of options, variables and members say about what they are given.
//
// A name says it surely (password, api_key, HF_TOKEN), or it may say it: in programs about models `token` and `key` are words of every day, so what such
// a name is given must look like a secret, too.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/characters.h"
#include "pack/scrubber.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

enum class Says { kNothing, kPerhaps, kSurely };

// accessToken, access-token, ACCESS_TOKEN: access_token
std::string normalised(std::string_view name) {
  while (name.starts_with('-')) name.remove_prefix(1);
  std::string words;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (is_upper(c) && i > 0 && is_lower(name[i - 1])) words += '_';
    words += c == '-' || c == '.' ? '_' : is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return words;
}
// password2, api_key_1: without the number
std::string of_secret(std::string_view name) {
  std::string words = normalised(name);
  while (!words.empty() && (is_digit(words.back()) || words.back() == '_')) words.pop_back();
  return words;
}

struct LastWords {
  std::string_view before, last;
};
LastWords last_words(std::string_view words) {
  const std::size_t cut = words.rfind('_');
  if (cut == npos) return {{}, words};
  const std::string_view rest = words.substr(0, cut);
  const std::size_t above = rest.rfind('_');
  return {above == npos ? rest : rest.substr(above + 1), words.substr(cut + 1)};
}

constexpr std::array<std::string_view, 25> kSecretWords = {
    "password",    "passwd",        "passphrase", "passcode",    "passwort",  "kennwort",   "pwd",
    "secret",      "secrets",       "credential", "credentials", "creds",     "apikey",     "authkey",
    "psk",         "authorization", "cookie",     "accesskey",   "secretkey", "privatekey", "passwords",
    "passphrases", "apikeys",       "storepass",  "keypass"};
// Written in one word with what stands before: clientsecret, ACCESSTOKEN.
constexpr std::array<std::string_view, 14> kEnds = {"password",   "passwd",   "passphrase", "passwort",  "accesstoken",
                                                    "authtoken",  "apitoken", "secretkey",  "accesskey", "clientsecret",
                                                    "privatekey", "apikey",   "sessionkey", "sharedkey"};
constexpr std::array<std::string_view, 32> kKeysOf = {
    "api",          "access", "secret",      "private",  "auth",     "account",    "signing",    "encryption",
    "subscription", "shared", "storage",     "deploy",   "license",  "service",    "ssh",        "master",
    "admin",        "app",    "application", "consumer", "client",   "wandb",      "openai",     "anthropic",
    "hf",           "gemini", "cohere",      "mistral",  "deepseek", "openrouter", "decryption", "host"};
constexpr std::array<std::string_view, 29> kTokensOf = {
    "auth",   "access", "api",    "hf",       "hub",      "github",   "gitlab", "bot",    "session", "refresh",
    "bearer", "wandb",  "sas",    "oauth",    "security", "personal", "deploy", "device", "slack",   "discord",
    "pypi",   "npm",    "docker", "registry", "id",       "csrf",     "xsrf",   "kaggle", "login"};
constexpr std::array<std::string_view, 22> kPassesOf = {
    "db",   "user",  "root",  "admin", "smtp",  "mail",  "email", "mysql", "pg",  "postgres", "ftp",
    "http", "proxy", "login", "ssh",   "redis", "mongo", "ldap",  "sudo",  "vpn", "wifi",     "my"};
// Of these the value decides.
constexpr std::array<std::string_view, 16> kPerhaps = {"token",     "key", "pass", "pw",      "auth",      "sig",
                                                       "signature", "sid", "pat",  "session", "sessionid", "code",
                                                       "otp",       "pin", "cred", "salt"};
constexpr std::array<std::string_view, 13> kNoSecretKeys = {"primary", "foreign",   "sort",    "cache",  "dict",
                                                            "map",     "partition", "routing", "public", "pub",
                                                            "index",   "lookup",    "group"};

Says what_says(std::string_view name) {
  // the last letters of all that follow, but for numbers
  if (name.size() < 2) return Says::kNothing;
  if (name.size() > 256) name = name.substr(name.size() - 256);
  const std::string words = of_secret(name);
  if (words.empty() || std::string_view("detysnlkwhgpr").find(words.back()) == npos) return Says::kNothing;
  const auto [before, last] = last_words(words);
  if (is_one_of(last, kSecretWords) || words.ends_with("access_key_id") || words.ends_with("secret_key_base") ||
      words == "_auth")
    return Says::kSurely;
  if (std::any_of(kEnds.begin(), kEnds.end(), [word = last](std::string_view end) { return word.ends_with(end); }))
    return Says::kSurely;
  if ((last == "key" || last == "keys") && is_one_of(before, kKeysOf)) return Says::kSurely;
  if ((last == "token" || last == "tokens") && is_one_of(before, kTokensOf)) return Says::kSurely;
  if (last == "word" && before == "pass") return Says::kSurely;
  if ((last == "pass" || last == "pw") && is_one_of(before, kPassesOf)) return Says::kSurely;
  // a variable of the environment; lower-case names of that kind are a tokenizer's
  const bool is_variable =
      std::any_of(name.begin(), name.end(), is_upper) && std::none_of(name.begin(), name.end(), is_lower);
  constexpr std::array<std::string_view, 6> kOfVariables = {"token", "key", "pat", "pass", "pw", "auth"};
  if (is_variable && !before.empty() && is_one_of(last, kOfVariables)) return Says::kSurely;
  constexpr std::array<std::string_view, 4> kNoPasses = {"bypass", "compass", "trespass", "surpass"};
  if (is_variable && last.size() > 4 && last.ends_with("pass") && !is_one_of(last, kNoPasses)) return Says::kSurely;
  if (last == "key" && is_one_of(before, kNoSecretKeys)) return Says::kNothing;
  return is_one_of(last, kPerhaps) ? Says::kPerhaps : Says::kNothing;
}

bool has(std::string_view value, bool (*is)(char)) { return std::any_of(value.begin(), value.end(), is); }

// 12, 0.12s, 3/5, 50%
bool is_quantity(std::string_view value) {
  if (!is_digit(value.front()) && value.front() != '.' && value.front() != '-') return false;
  const std::size_t number =
      run(value, [](char c) { return is_digit(c) || std::string_view(".,/+-:").find(c) != npos; });
  return value.size() - number <= 3 && std::all_of(value.begin() + static_cast<std::ptrdiff_t>(number), value.end(),
                                                   [](char c) { return is_letter(c) || c == '%'; });
}

// tokenizer.eos_token
bool is_attribute(std::string_view value) {
  return value.find('.') != npos &&
         std::all_of(value.begin(), value.end(), [](char c) { return is_lower(c) || c == '_' || c == '.'; });
}

bool may_be_secret(std::string_view last, bool is_option, std::string_view value) {
  const bool is_one = value.find_first_of(" \t\n") == npos;
  if (value.find_first_of("<|[") == 0) return false;  // <pad>, [MASK]
  if (last == "key") {
    const bool is_hex = std::all_of(value.begin(), value.end(), is_hex_digit);
    return (is_hex && value.size() >= 32) || is_mixed_up(value);
  }
  if (last == "token" && is_attribute(value)) return false;
  if (last == "token")  // in texts about language models a bare "token" is a word of the text
    return is_option || (value.size() >= 8 && has(value, is_digit)) || (value.size() >= 12 && is_one);
  if (last == "pass" || last == "pw") {
    constexpr std::array<std::string_view, 16> kNone = {"true", "false", "none", "null",  "yes",  "no",
                                                        "on",   "off",   "ok",   "auto",  "done", "first",
                                                        "last", "next",  "fail", "failed"};
    return is_one && value.size() >= 4 && !is_quantity(value) && value.find('(') == npos &&
           !is_one_of(lower(value), kNone);
  }
  if (last == "auth")
    return value.front() == '"' || value.front() == '\'' || is_mixed_up(value) ||
           (is_one && value.size() >= 16 && has(value, is_digit));
  if (last == "otp" || last == "pin")
    return value.size() >= (last == "pin" ? 4 : 6) && std::all_of(value.begin(), value.end(), is_digit);
  return is_mixed_up(value) || (is_one && value.size() >= 20 && has(value, is_digit) && has(value, is_upper));
}

}  // namespace

// getpass("Password: "), os.getenv("HF_TOKEN"), read("secrets.txt"): what stands in the brackets says where the secret is.
bool looks_up(std::string_view function) {
  const std::string small = lower(function);
  constexpr std::array<std::string_view, 19> kLooksUp = {
      "get",    "env",  "read",  "load",   "open", "find",  "fetch", "ask", "input",  "prompt",
      "lookup", "path", "field", "column", "test", "param", "is_",   "has", "require"};
  return std::any_of(kLooksUp.begin(), kLooksUp.end(), [&](std::string_view word) { return small.find(word) != npos; });
}

// "password is required", "secret key to use"
bool is_said_of_secrets(std::string_view word) {
  static constexpr std::array<std::string_view, 36> kWords = {
      "required", "incorrect", "wrong",  "invalid", "missing", "empty",   "correct",  "needed",    "hidden",
      "stored",   "expired",   "valid",  "your",    "have",    "must",    "should",   "will",      "used",
      "from",     "with",      "when",   "that",    "this",    "given",   "provided", "protected", "authentication",
      "changed",  "accepted",  "denied", "failed",  "prompt",  "manager", "based",    "login",     "unset"};
  return std::find(kWords.begin(), kWords.end(), lower(word)) != kWords.end();
}

// Where another one begins: ", user=", "&x=1", "; name:".
std::size_t up_to_next_name(std::string_view value) {
  for (std::size_t at = value.find_first_of(",;&"); at != npos; at = value.find_first_of(",;&", at + 1)) {
    const std::string_view rest = value.substr(at + 1, 64);
    const std::size_t name = run_of(rest, "_-.");
    if (name != 0 && name < rest.size() && (rest[name] == '=' || rest[name] == ':')) return at;
  }
  return value.size();
}

bool Scrubber::names_secret(std::string_view name) { return what_says(name) != Says::kNothing; }
bool Scrubber::surely_names_secret(std::string_view name) { return what_says(name) == Says::kSurely; }

bool Scrubber::is_secret_value(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 5> kNone = {"", "None", "null", "true", "false"};
  if (is_one_of(value, kNone)) return false;
  const std::string words = of_secret(name);
  const std::string_view last = last_words(words).last;
  // PWD, OLDPWD and cwd are folders
  if (last.ends_with("pwd") && (value.front() == '/' || value.front() == '~' || value.substr(1, 2) == ":\\"))
    return false;
  return what_says(name) == Says::kSurely || may_be_secret(last, name.starts_with("--"), value);
}

Kind Scrubber::kind_of_secret(std::string_view name) {
  const std::string words = of_secret(name);
  return words.find("pass") != npos || words.ends_with("pwd") || words.ends_with("pw") ? Kind::kPassword : Kind::kToken;
}

bool Scrubber::is_telling_argument(std::string_view word) {
  static constexpr std::array<std::string_view, 40> kWords = {
      "true",    "false",   "none",     "auto",  "yes",  "no",    "on",   "off",  "cuda",      "cpu",
      "gpu",     "fp16",    "bf16",     "fp32",  "fp8",  "int8",  "int4", "nf4",  "float16",   "bfloat16",
      "float32", "float64", "half",     "amp",   "adam", "adamw", "sgd",  "lion", "adafactor", "adagrad",
      "cosine",  "linear",  "constant", "train", "eval", "test",  "ddp",  "fsdp", "deepspeed", "eager"};
  if (word.empty() || word == "-" || word.starts_with("--")) return true;
  // -m, -lr, -np, -j8; but -pSECRET
  if (word.starts_with('-'))
    return word.size() <= 3 || is_digit(word[1]) || std::all_of(word.begin() + 2, word.end(), is_digit);
  const std::string small = normalised(word);
  if (std::find(kWords.begin(), kWords.end(), small) != kWords.end()) return true;
  // 16, 3e-4, 24GiB, 1x8, 0,1
  return is_digit(word.front()) && word.size() <= 16 && std::all_of(word.begin(), word.end(), [](char c) {
           return is_digit(c) || std::string_view(".,+-eExX_kKmMgGtTiIbB").find(c) != npos;
         });
}

}  // namespace faultline::pack
