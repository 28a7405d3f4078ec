// What the names of options, variables and members say about what they are given.
#include <algorithm>
#include <array>

#include "base/characters.h"
#include "pack/scrubber.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

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

}  // namespace

bool Scrubber::names_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 33> kNames = {
      "password",      "passwd",       "passphrase",  "secret",         "api_key",       "apikey",       "access_key",
      "secret_key",    "private_key",  "auth_key",    "authkey",        "access_key_id", "account_key",  "credentials",
      "authorization", "cookie",       "auth_token",  "access_token",   "api_token",     "hf_token",     "hub_token",
      "github_token",  "gitlab_token", "bot_token",   "session_token",  "refresh_token", "bearer_token", "wandb_token",
      "client_secret", "sas_token",    "signing_key", "encryption_key", "use_auth_token"};
  // the last letters of all that follow
  if (name.size() < 3 || std::string_view("detysnDETYSN").find(name.back()) == npos) return false;
  if (name.size() > 256) name = name.substr(name.size() - 256);
  const std::string words = normalised(name);
  for (const std::string_view end : {"password", "passwd", "passphrase", "_pwd", "_passwort"}) {
    if (words.ends_with(end)) return true;
  }
  if (words == "token" || words == "key" || std::find(kNames.begin(), kNames.end(), words) != kNames.end()) return true;
  if (std::any_of(kNames.begin(), kNames.end(), [&](std::string_view known) {
        return words.size() > known.size() && words.ends_with(known) && words[words.size() - known.size() - 1] == '_';
      }))
    return true;
  // in one word: clientsecret, ACCESSTOKEN
  static constexpr std::array<std::string_view, 8> kTogether = {
      "accesstoken", "authtoken", "apitoken", "secretkey", "accesskey", "clientsecret", "privatekey", "apikey"};
  if (std::any_of(kTogether.begin(), kTogether.end(), [&](std::string_view known) { return words.ends_with(known); }))
    return true;
  // a variable of the environment; lower-case names of that kind are a tokenizer's
  const bool is_variable =
      std::any_of(name.begin(), name.end(), is_upper) && std::none_of(name.begin(), name.end(), is_lower);
  return is_variable && (words.ends_with("_token") || words.ends_with("_key") || words.ends_with("_pat") ||
                         words.ends_with("_secret") || words.ends_with("_pass"));
}

bool Scrubber::is_secret_value(std::string_view name, std::string_view value) {
  if (value.empty() || value == "None" || value == "null" || value == "true" || value == "false") return false;
  const std::string words = normalised(name);
  // a bare "key" is a secret's where it gets 32 hexadecimal digits, as Kaggle's does
  if (words == "key") return value.size() >= 32 && value.find_first_not_of("0123456789abcdefABCDEF") == npos;
  // in texts about language models a bare "token" is a word of the text
  return words != "token" || name.starts_with('-') ||
         (value.size() >= 8 && std::any_of(value.begin(), value.end(), is_digit)) ||
         (value.size() >= 12 && value.find_first_of(" \t\n") == npos);
}

Kind Scrubber::kind_of_secret(std::string_view name) {
  return normalised(name).find("pass") != std::string::npos ? Kind::kPassword : Kind::kToken;
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
