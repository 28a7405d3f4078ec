#include "pack/scrubber.h"

#include <algorithm>

#include "base/characters.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

constexpr std::size_t kMostPathBytes = 4096, kMostUsers = 64;

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct KindWords {
  std::string_view name, stand_in;
};
constexpr std::array<KindWords, kKindCount> kKinds = {{{"home folders", ""},
                                                       {"project folders", ""},
                                                       {"other folders in paths", "folder"},
                                                       {"user names", "user"},
                                                       {"host names", "host"},
                                                       {"arguments and environment", "argument"},
                                                       {"tokens and keys", "token"},
                                                       {"passwords", "password"},
                                                       {"private keys", "private-key"},
                                                       {"e-mail addresses", "email"},
                                                       {"network addresses", "ip"},
                                                       {"words that were asked for", "word"}}};

// Names that say nothing of anybody, as users, machines and folders have them.
constexpr std::array<std::string_view, 30> kNobody = {
    "root",  "user",  "users",  "admin", "ubuntu", "debian", "centos", "docker",    "jovyan",   "colab",
    "test",  "guest", "nobody", "torch", "cuda",   "python", "main",   "localhost", "ec2-user", "runner",
    "build", "data",  "home",   "train", "model",  "host",   "plan",   "worker",    "default",  "container"};
constexpr std::array<std::string_view, 50> kKnownFolders = {
    "home",      "Users",   "user",    "root",     "tmp",        "opt",        "var",     "mnt",       "data",
    "workspace", "work",    "content", "kaggle",   "working",    "input",      "srv",     "scratch",   "venv",
    ".venv",     "env",     "envs",    ".conda",   "conda",      "miniconda3", "lib",     "lib64",     "bin",
    "src",       "build",   "python",  "include",  "anaconda3",  "local",      "share",   "usr",       ".cache",
    "cache",     "torch",   "triton",  "nvidia",   "tests",      "examples",   "scripts", "notebooks", "miniforge3",
    ".local",    "private", "project", "Projects", "huggingface"};
constexpr std::array<std::string_view, 11> kSystemFolders = {"usr",  "lib", "lib64", "bin", "sbin", "etc",
                                                             "proc", "sys", "dev",   "nix", "boot"};
constexpr std::array<std::string_view, 4> kInstalled = {"site-packages", "dist-packages", "nvidia", "torch"};

bool is_known_folder(std::string_view name) {
  return is_one_of(name, kKnownFolders) || is_one_of(name, kInstalled) || name.starts_with("cuda") ||
         (name.starts_with("python") && name.size() > 6 && is_digit(name[6]));
}
// From here on a path is the same on every machine.
bool is_installed_part(std::string_view name) {
  return name == "site-packages" || name == "dist-packages" ||
         (name.starts_with("python") && name.size() > 7 && is_digit(name[6]) && name.find('.') != npos);
}
bool has_ending(std::string_view name) {
  const std::size_t point = name.rfind('.');
  if (point == npos || point == 0 || name.size() - point > 11 || point + 1 == name.size()) return false;
  return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(point) + 1, name.end(), is_alphanumeric);
}
bool ends_path(char c) {
  return static_cast<unsigned char>(c) <= ' ' || std::string_view("\"'`<>|*?;,()[]{}:\\").find(c) != npos;
}

std::string normalised(std::string_view name) {
  while (name.starts_with('-')) name.remove_prefix(1);
  std::string words;
  for (const char c : name) words += c == '-' || c == '.' ? '_' : is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return words;
}

}  // namespace

std::string_view name_of(Kind kind) { return kKinds[static_cast<std::size_t>(kind)].name; }

Scrubber::Scrubber(const Owner& owner) {
  const auto add_root = [&](std::string folder, std::string stand_in, Kind kind) {
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    // "/", "/root" and "/tmp" say nothing
    if (!folder.starts_with('/') || std::count(folder.begin(), folder.end(), '/') < 2) return;
    for (const Root& root : roots_) {
      if (root.folder == folder) return;
    }
    roots_.push_back({std::move(folder), std::move(stand_in), kind});
  };
  std::size_t number = 0;
  for (const std::string& home : owner.homes) add_root(home, "/home/user", Kind::kHome);
  for (const std::string& project : owner.projects) {
    ++number;
    add_root(project, "/home/user/project" + (number == 1 ? std::string() : "-" + std::to_string(number)),
             Kind::kProject);
  }
  std::stable_sort(roots_.begin(), roots_.end(),
                   [](const Root& a, const Root& b) { return a.folder.size() > b.folder.size(); });
  for (const std::string& word : owner.words) add_word(Kind::kWord, word);
  for (const std::string& user : owner.users) add_word(Kind::kUser, user);
  for (const std::string& host : owner.hosts) {
    add_word(Kind::kHost, host);
    if (const std::size_t point = host.find('.'); point != std::string::npos)
      add_word(Kind::kHost, host.substr(0, point));
  }
}

void Scrubber::add_word(Kind kind, const std::string& word) {
  const bool is_asked_for = kind == Kind::kWord && !word.empty();
  if (!is_asked_for && (word.size() < 3 || is_one_of(word, kNobody))) return;
  const std::pair<Kind, std::string> entry(kind, word);
  if (std::find(words_.begin(), words_.end(), entry) == words_.end() && words_.size() < kMostUsers)
    words_.push_back(entry);
}

void Scrubber::learn(std::string_view text) {
  for (const std::string_view above : {std::string_view("/home/"), std::string_view("/Users/")}) {
    for (std::size_t at = text.find(above); at != npos; at = text.find(above, at + 1)) {
      const std::string_view rest = text.substr(at + above.size(), 64);
      const std::size_t end = rest.find('/');
      const std::string_view name = rest.substr(0, end == npos ? 0 : end);
      if (std::all_of(name.begin(), name.end(),
                      [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; }))
        add_word(Kind::kUser, std::string(name));
    }
  }
}

std::string Scrubber::stand_in(Kind kind, std::string_view value) {
  count(kind);
  const std::pair<Kind, std::string> key(kind, value);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const std::uint64_t number = ++counts_[static_cast<std::size_t>(kind)].different;
  const std::string word(kKinds[static_cast<std::size_t>(kind)].stand_in);
  std::string text = word + "-" + std::to_string(number);
  if (kind == Kind::kUser || kind == Kind::kHost)
    text = number == 1 ? word : text;
  else if (kind != Kind::kFolder)
    text = "<" + text + ">";
  return known_.emplace(key, std::move(text)).first->second;
}

bool Scrubber::names_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 33> kNames = {
      "password",      "passwd",       "passphrase",  "secret",         "api_key",       "apikey",       "access_key",
      "secret_key",    "private_key",  "auth_key",    "authkey",        "access_key_id", "account_key",  "credentials",
      "authorization", "cookie",       "auth_token",  "access_token",   "api_token",     "hf_token",     "hub_token",
      "github_token",  "gitlab_token", "bot_token",   "session_token",  "refresh_token", "bearer_token", "wandb_token",
      "client_secret", "sas_token",    "signing_key", "encryption_key", "use_auth_token"};
  const std::string words = normalised(name);
  if (words == "token" || is_one_of(std::string_view(words), kNames)) return true;
  if (std::any_of(kNames.begin(), kNames.end(), [&](std::string_view known) {
        return words.size() > known.size() && words.ends_with(known) && words[words.size() - known.size() - 1] == '_';
      }))
    return true;
  // a variable of the environment; lower-case names of that kind are a tokenizer's
  const bool is_variable =
      std::any_of(name.begin(), name.end(), is_upper) && std::none_of(name.begin(), name.end(), is_lower);
  return is_variable && (words.ends_with("_token") || words.ends_with("_key") || words.ends_with("_pat") ||
                         words.ends_with("_secret") || words.ends_with("_pass"));
}

bool Scrubber::is_secret_value(std::string_view name, std::string_view value) {
  if (value.empty() || value == "None" || value == "null" || value == "true" || value == "false") return false;
  // in texts about language models a bare "token" is a word of the text
  return normalised(name) != "token" || name.starts_with('-') ||
         (value.size() >= 8 && std::any_of(value.begin(), value.end(), is_digit));
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
  if (word.empty() || word.starts_with('-')) return true;
  const std::string small = normalised(word);
  if (is_one_of(std::string_view(small), kWords)) return true;
  // 16, 3e-4, 24GiB, 1x8, 0,1
  return is_digit(word.front()) && word.size() <= 16 && std::all_of(word.begin(), word.end(), [](char c) {
           return is_digit(c) || std::string_view(".,+-eExX_kKmMgGtTiIbB").find(c) != npos;
         });
}

std::size_t Scrubber::replace_word(std::string_view text, std::size_t at, std::string& out) {
  for (const auto& [kind, word] : words_) {
    if (text.substr(at, word.size()) != word) continue;
    const char next = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    if (kind != Kind::kWord && is_alphanumeric(next)) continue;
    out += stand_in(kind, word);
    return word.size();
  }
  return 0;
}

std::string Scrubber::with_words_replaced(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !is_alphanumeric(text[at - 1]);
    const bool begins_word = at == 0 || !is_word_character(text[at - 1]);
    std::size_t taken = begins_word ? replace_secret(text, at, out) : 0;
    if (taken == 0 && (begins || !words_.empty()))
      taken = begins || words_.front().first == Kind::kWord ? replace_word(text, at, out) : 0;
    if (taken == 0) out += text[at++];
    at += taken;
  }
  return out;
}

// Folder by folder, from one below which nothing is known.
std::string Scrubber::below(std::string_view path) {
  std::string out;
  bool is_installed = false, is_users = false;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    const bool is_last = end == path.size();
    is_installed = is_installed || is_installed_part(name);
    if (is_users && !name.empty() && !is_one_of(name, kNobody)) {
      out += stand_in(Kind::kUser, name);
    } else if (is_installed || name.empty() || name == "." || name == ".." || is_known_folder(name) ||
               (is_last && has_ending(name)) || name.starts_with("folder-")) {
      out += with_words_replaced(name);
    } else {
      out += stand_in(Kind::kFolder, name);
    }
    is_users = name == "home" || name == "Users";
    if (!is_last) out += '/';
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return out;
}

std::string Scrubber::path_stand_in(std::string_view path) {
  for (const Root& root : roots_) {
    if (!path.starts_with(root.folder)) continue;
    if (path.size() > root.folder.size() && path[root.folder.size()] != '/') continue;
    count(root.kind);
    counts_[static_cast<std::size_t>(root.kind)].different +=
        known_.emplace(std::pair(root.kind, root.folder), root.stand_in).second ? 1 : 0;
    if (path.size() == root.folder.size()) return root.stand_in;
    const std::string_view rest = path.substr(root.folder.size() + 1);
    return root.stand_in + "/" + (root.kind == Kind::kProject ? with_words_replaced(rest) : below(rest));
  }
  const std::string_view first = path.substr(1, std::min(path.find('/', 1), path.size()) - 1);
  if (is_one_of(first, kSystemFolders)) return with_words_replaced(path);
  return "/" + below(path.substr(1));
}

std::size_t Scrubber::replace_path(std::string_view text, std::size_t at, std::string& out) {
  const char before = at == 0 ? ' ' : text[at - 1];
  const std::string_view rest = text.substr(at, kMostPathBytes);
  const bool is_known = rest.starts_with("/home/") || rest.starts_with("/Users/") ||
                        std::any_of(roots_.begin(), roots_.end(), [&](const Root& root) {
                          if (!rest.starts_with(root.folder)) return false;
                          const char next = rest.size() > root.folder.size() ? rest[root.folder.size()] : '/';
                          return next == '/' || ends_path(next);
                        });
  const bool is_url = before == '/' && at >= 3 && text.substr(at - 3, 3) == "://";
  if (!is_known && !is_url && (is_word_character(before) || std::string_view("/.~)]}*>%").find(before) != npos))
    return 0;
  if (rest.size() < 2 || !(is_word_character(rest[1]) || rest[1] == '.')) return 0;
  std::size_t length = static_cast<std::size_t>(std::find_if(rest.begin(), rest.end(), ends_path) - rest.begin());
  // with blanks in it: between quotes, or all that a text is
  if (before == '"' || before == '\'') {
    if (const std::size_t close = rest.find_first_of(std::string("\n\r") + before);
        close != npos && rest[close] == before)
      length = close;
  } else if (at == 0 && text.size() < kMostPathBytes && text.find_first_of("\n\r") == npos &&
             text.find_first_of("\"'`<>|;:\\") == npos && text.find(" /") == npos && text.find(" -") == npos) {
    length = text.size();
  }
  while (length > 1 && rest[length - 1] == '.') --length;  // of a sentence
  const std::string_view path = rest.substr(0, length);
  if (!is_known && path.find('/', 1) == npos) return 0;
  out += path_stand_in(path);
  return length;
}

std::size_t Scrubber::replace_secret(std::string_view text, std::size_t at, std::string& out) {
  const std::string_view rest = text.substr(at);
  if (const std::size_t length = private_key_length(rest); length != 0)
    return out += stand_in(Kind::kPrivateKey, rest.substr(0, length)), length;
  const auto introduced = [&](const Introduced& found, Kind kind) {
    out.append(rest.substr(0, found.before));
    out += stand_in(kind, rest.substr(found.before, found.secret));
    return found.before + found.secret;
  };
  if (const Introduced found = assigned_secret(rest); found.secret != 0) {
    const std::string_view name = rest.substr(0, rest.find_first_of("=: \t\"'"));
    if (is_secret_value(name, rest.substr(found.before, found.secret))) return introduced(found, kind_of_secret(name));
  }
  if (const Introduced found = bearer(rest); found.secret != 0) return introduced(found, Kind::kToken);
  if (const Introduced found = url_credentials(rest); found.secret != 0) return introduced(found, Kind::kPassword);
  if (const std::size_t length = token_length(rest); length != 0)
    return out += stand_in(Kind::kToken, rest.substr(0, length)), length;
  if (const std::size_t length = email_length(rest); length != 0)
    return out += stand_in(Kind::kEmail, rest.substr(0, length)), length;
  // a version of four numbers stands behind == or a dash
  const bool is_version = at != 0 && (text[at - 1] == '-' || (at > 1 && text.substr(at - 2, 2) == "=="));
  if (const std::size_t length = is_version ? 0 : address_length(rest); length != 0)
    return out += stand_in(Kind::kAddress, rest.substr(0, length)), length;
  return 0;
}

std::string Scrubber::scrub(std::string_view text) {
  const bool has_asked = !words_.empty() && words_.front().first == Kind::kWord;
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const char before = at == 0 ? ' ' : text[at - 1];
    std::size_t taken = 0;
    if (c == '/')
      taken = replace_path(text, at, out);
    else if (!is_word_character(before) && (is_word_character(c) || (c == '-' && before != '-') || c == ':'))
      taken = replace_secret(text, at, out);
    if (taken == 0 && is_letter(c) && !is_word_character(before) && text.substr(at + 1, 2) == ":\\") {
      // C:\Users\anna\…
      const std::string_view rest = text.substr(at, kMostPathBytes);
      if (const std::size_t users = rest.find("\\Users\\"); users != npos && users < 4) {
        const std::size_t end = std::min(rest.find_first_of("\\\"'/\n", users + 7), rest.size());
        out.append(rest.substr(0, users + 7));
        out += stand_in(Kind::kUser, rest.substr(users + 7, end - users - 7));
        taken = end;
      }
    }
    if (taken == 0 && (has_asked || !is_alphanumeric(before))) taken = replace_word(text, at, out);
    if (taken == 0) out += text[at++];
    at += taken;
  }
  return out;
}

}  // namespace faultline::pack
