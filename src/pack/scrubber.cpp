#include "pack/scrubber.h"

#include <algorithm>

#include "base/characters.h"
#include "pack/readable_text.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

constexpr std::size_t kMostPathBytes = 4096, kMostLearned = 4096;
// A text is looked at in pieces of that size, so that what is kept beside it stays small.
constexpr std::size_t kPieceBytes = std::size_t{8} << 20;

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
                                                       {"words named with --take-out", "word"}}};

// Names that say nothing of anybody, as users, machines and folders have them.
constexpr std::array<std::string_view, 30> kNobody = {
    "root",  "user",  "users",  "admin", "ubuntu", "debian", "centos", "docker",    "jovyan",   "colab",
    "test",  "guest", "nobody", "torch", "cuda",   "python", "main",   "localhost", "ec2-user", "runner",
    "build", "data",  "home",   "train", "model",  "host",   "plan",   "worker",    "default",  "container"};
// of the frameworks' own sources, as their messages name them
constexpr std::array<std::string_view, 18> kFrameworkFolders = {
    "pytorch",  "aten",        "ATen", "native",     "c10",    "THC", "generic",     "core",      "csrc",
    "autograd", "distributed", "xla",  "tensorflow", "jaxlib", "rmm", "third_party", "Anaconda3", "AppData"};
constexpr std::array<std::string_view, 60> kKnownFolders = {
    "Windows",    "System32",  "etc",     "dev",     "shm",      "sbin",       "Documents",  "Desktop", "Downloads",
    "runs",       "home",      "Users",   "user",    "root",     "tmp",        "opt",        "var",     "mnt",
    "data",       "workspace", "work",    "content", "kaggle",   "working",    "input",      "srv",     "scratch",
    "venv",       ".venv",     "env",     "envs",    ".conda",   "conda",      "miniconda3", "lib",     "lib64",
    "bin",        "src",       "build",   "python",  "include",  "anaconda3",  "local",      "share",   "usr",
    ".cache",     "cache",     "torch",   "triton",  "nvidia",   "tests",      "examples",   "scripts", "notebooks",
    "miniforge3", ".local",    "private", "project", "Projects", "huggingface"};
constexpr std::array<std::string_view, 9> kSystemFolders = {"usr",  "lib", "lib64", "bin", "sbin",
                                                            "proc", "sys", "nix",   "boot"};
// Where paths begin, also where no blank stands before them.
constexpr std::array<std::string_view, 30> kTopFolders = {
    "usr",  "home",    "Users", "data",     "mnt",    "opt", "srv",      "scratch", "workspace", "root",
    "tmp",  "var",     "etc",   "content",  "kaggle", "nfs", "gpfs",     "lustre",  "fsx",       "shared",
    "work", "storage", "dev",   "projects", "media",  "efs", "datasets", "export",  "private",   "net"};
constexpr std::array<std::string_view, 4> kInstalled = {"site-packages", "dist-packages", "nvidia", "torch"};

bool is_known_folder(std::string_view name) {
  return is_one_of(name, kKnownFolders) || is_one_of(name, kFrameworkFolders) || is_one_of(name, kInstalled) ||
         name.starts_with("cuda") || (name.starts_with("python") && name.size() > 6 && is_digit(name[6]));
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
  return static_cast<unsigned char>(c) <= ' ' || std::string_view("\"'`<>|*?;,()[]{}:\\&").find(c) != npos;
}

bool is_name_character(char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; }

// "train.py:12", "torchrun", line 3, "prog(+0x12)": a place in a program, whatever its file is called.
bool is_place(std::string_view behind) {
  return (behind.size() > 1 && behind[0] == ':' && is_digit(behind[1])) || behind.starts_with("\", line ") ||
         behind.starts_with("(+0x") || behind.starts_with("(_Z") || behind.starts_with("+0x");
}

// A stand-in of ours, which is scrubbed a second time.
bool is_stand_in(std::string_view name) {
  return name.starts_with("folder-") && name.size() > 7 && name.size() < 16 &&
         std::all_of(name.begin() + 7, name.end(), is_digit);
}

// Where a text may be cut: behind a line, and not within a private key or before a value that stands on its own line.
std::size_t piece_length(std::string_view text) {
  if (text.size() <= kPieceBytes) return text.size();
  std::size_t cut = kPieceBytes;
  const std::size_t begin = text.rfind("-----BEGIN ", cut);
  if (begin != npos && begin + (std::size_t{1} << 16) > cut && begin > kPieceBytes / 2 &&
      text.substr(begin, cut - begin).find("-----END ") == npos)
    cut = begin;
  for (std::size_t at = text.rfind('\n', cut - 1); at != npos && at > kPieceBytes / 2; at = text.rfind('\n', at - 1)) {
    const std::size_t last = text[at - 1] == '\r' ? at - 2 : at - 1;
    if (std::string_view(":= ").find(text[last]) == npos) return at + 1;
  }
  for (const char* ends : {",;}", " \t\n"}) {  // one endless line: behind a value, or at least behind a word
    const std::size_t at = text.find_last_of(ends, cut - 1);
    if (at != npos && at > kPieceBytes / 2) return at + 1;
  }
  return cut;
}

// sha256:9f86…: of an image's layer, a file; whoever has the thing can tell it.
bool is_digest(std::string_view before, std::size_t length) {
  return (before.ends_with("sha256:") && length == 64) || (before.ends_with("sha512:") && length == 128);
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
  // A folder in a project, as that of the runs, is a part of it: it has its path there, and no name of its own.
  const auto is_in_one = [&](const std::string& folder) {
    return std::any_of(roots_.begin(), roots_.end(), [&](const Root& root) {
      return root.kind == Kind::kProject && folder.starts_with(root.folder + "/");
    });
  };
  for (const std::string& project : owner.projects) {
    if (is_in_one(project)) continue;
    const std::string rest = ++number == 1 ? std::string() : "-" + std::to_string(number);
    add_root(project, "/home/user/project" + rest, Kind::kProject);
  }
  std::stable_sort(roots_.begin(), roots_.end(),
                   [](const Root& a, const Root& b) { return a.folder.size() > b.folder.size(); });
  for (const std::string& word : owner.words) {
    add_word(Kind::kWord, word);
    has_asked_ = has_asked_ || !word.empty();
  }
  for (const std::string& user : owner.users) add_word(Kind::kUser, user);
  for (const std::string& host : owner.hosts) {
    add_word(Kind::kHost, host);
    if (const std::size_t point = host.find('.'); point != std::string::npos)
      add_word(Kind::kHost, host.substr(0, point));
  }
}

void Scrubber::add_word(Kind kind, const std::string& word) {
  const bool is_asked_for = kind == Kind::kWord && !word.empty();
  const std::string small = lower(word);
  if (!is_asked_for && (word.size() < 3 || is_one_of(std::string_view(small), kNobody))) return;
  if (!words_[word.size()].emplace(small, std::pair(kind, word)).second) return;
  for (const char first :
       {small.front(), is_lower(small.front()) ? static_cast<char>(small.front() - 'a' + 'A') : small.front()})
    begins_word_[static_cast<unsigned char>(first)] = true;
}

void Scrubber::learn(std::string_view text) {
  for (const std::string_view above : {"/home/", "/Users/", "\\Users\\", "%2Fhome%2F", "%2FUsers%2F"}) {
    for (std::size_t at = text.find(above); at != npos; at = text.find(above, at + 1)) {
      std::string_view rest = text.substr(at + above.size(), 64);
      while (rest.starts_with('\\')) rest.remove_prefix(1);
      const auto end = std::find_if_not(rest.begin(), rest.end(), is_name_character);
      std::string_view name = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
      while (name.ends_with('.')) name.remove_suffix(1);
      // a file right below is none
      const bool is_folder = end != rest.end() && std::string_view("/\\%").find(*end) != npos;
      if (name.size() == 64 || (!is_folder && has_ending(name)) || learned_ == kMostLearned) continue;
      const std::size_t known = words_[name.size()].size();
      add_word(Kind::kUser, std::string(name));
      learned_ += words_[name.size()].size() - known;
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

Scrubber::Taken Scrubber::word_at(std::string_view text, std::size_t at, bool begins, std::size_t seam) {
  if (!begins_word_[static_cast<unsigned char>(text[at])]) return {};
  for (auto of_length = words_.rbegin(); of_length != words_.rend(); ++of_length) {
    const auto& [length, words] = *of_length;
    if (at + length > text.size()) continue;
    const auto found = words.find(lower(text.substr(at, length)));
    if (found == words.end()) continue;
    const auto& [kind, word] = found->second;
    const char next = at + length < text.size() && at + length != seam ? text[at + length] : ' ';
    if (kind != Kind::kWord && (!begins || is_alphanumeric(next))) continue;
    return {0, length, stand_in(kind, word)};
  }
  return {};
}

// A part of a path: no folders are looked for in it.
std::string Scrubber::with_words_replaced(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char before = at == 0 ? ' ' : text[at - 1];
    Taken taken;
    if (!is_word_character(before) && (text[at] != '-' || before != '-')) taken = secret_at(text, at, text.size());
    if (taken.length == 0) taken = word_at(text, at, !is_alphanumeric(before), npos);
    if (taken.length == 0) {
      out += text[at++];
      continue;
    }
    // names stand in what introduces a secret too: ANNA_TOKEN=
    for (const std::size_t end = at + taken.before; at < end;) {
      const Taken word = word_at(text.substr(0, end), at, at == 0 || !is_alphanumeric(text[at - 1]), npos);
      out += word.length == 0 ? std::string(1, text[at]) : word.stand_in;
      at += std::max<std::size_t>(word.length, 1);
    }
    out += taken.stand_in;
    at += taken.length;
  }
  return out;
}

// Folder by folder, from one below which nothing is known.
std::string Scrubber::below(std::string_view path, bool ends_in_file) {
  std::string out;
  std::string_view above;
  bool is_installed = false, is_users = false;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    const bool is_last = end == path.size();
    const bool is_file =
        is_last && (ends_in_file || above == "bin" || above == "sbin" || above == "dev" || has_ending(name));
    is_installed = is_installed || is_installed_part(name);
    if (is_users && !name.empty() && !is_one_of(name, kNobody)) {
      out += stand_in(Kind::kUser, known_user(name));
    } else if (is_installed || name.empty() || name == "." || name == ".." || is_known_folder(name) || is_file ||
               is_stand_in(name)) {
      out += with_words_replaced(name);
    } else {
      out += stand_in(Kind::kFolder, name);
    }
    is_users = name == "home" || name == "Users";
    above = name;
    if (!is_last) out += '/';
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return out;
}

bool Scrubber::is_host(std::string_view text, std::size_t at) const {
  return std::any_of(words_.begin(), words_.end(), [&](const auto& of_length) {
    const auto found = of_length.second.find(lower(text.substr(at, of_length.first)));
    const std::size_t end = at + of_length.first;
    return found != of_length.second.end() && found->second.first == Kind::kHost &&
           (end >= text.size() || !is_alphanumeric(text[end]));
  });
}

// As a name is known, whatever case it is written in.
std::string_view Scrubber::known_user(std::string_view name) const {
  const auto of_length = words_.find(name.size());
  if (of_length == words_.end()) return name;
  const auto found = of_length->second.find(lower(name));
  return found != of_length->second.end() && found->second.first == Kind::kUser ? std::string_view(found->second.second)
                                                                                : name;
}

std::string Scrubber::path_stand_in(std::string_view path, bool ends_in_file) {
  for (const Root& root : roots_) {
    if (!path.starts_with(root.folder)) continue;
    if (path.size() > root.folder.size() && path[root.folder.size()] != '/') continue;
    count(root.kind);
    counts_[static_cast<std::size_t>(root.kind)].different +=
        known_.emplace(std::pair(root.kind, root.folder), root.stand_in).second ? 1 : 0;
    if (path.size() == root.folder.size()) return root.stand_in;
    const std::string_view rest = path.substr(root.folder.size() + 1);
    return root.stand_in + "/" + (root.kind == Kind::kProject ? with_words_replaced(rest) : below(rest, ends_in_file));
  }
  const std::string_view first = path.substr(1, std::min(path.find('/', 1), path.size()) - 1);
  if (is_one_of(first, kSystemFolders)) return with_words_replaced(path);
  return "/" + below(path.substr(1), ends_in_file);
}

std::string Scrubber::scrub_relative(std::string_view path) {
  const bool ends_in_file = has_ending(path.substr(path.rfind('/') + 1));
  return path.starts_with('/') ? path_stand_in(path, ends_in_file) : below(path, ends_in_file);
}

// The end of a path: at what no path has, but a blank behind a backslash is of it.
static std::size_t path_length(std::string_view rest) {
  std::size_t length = 0;
  while (length < rest.size()) {
    if (rest.substr(length, 2) == "\\ ")
      length += 2;
    else if (ends_path(rest[length]))
      break;
    else
      ++length;
  }
  return length;
}

Scrubber::Taken Scrubber::path_at(std::string_view text, std::size_t at, char before) {
  std::string_view rest = text.substr(at, kMostPathBytes);
  // ~/X, $HOME/X, ../X
  for (const std::string_view begin : {"~/", "$HOME/", "${HOME}/", "../"}) {
    if (rest[0] == '/' || !rest.starts_with(begin) || is_word_character(before) || before == '.') continue;
    const std::string_view path = rest.substr(begin.size());
    const std::size_t length = path_length(path);
    if (length == 0) return {};
    return {begin.size(), length, below(path.substr(0, length), is_place(path.substr(length)))};
  }
  if (rest[0] != '/') return {};
  const bool is_known = rest.starts_with("/home/") || rest.starts_with("/Users/") ||
                        std::any_of(roots_.begin(), roots_.end(), [&](const Root& root) {
                          if (!rest.starts_with(root.folder)) return false;
                          const char next = rest.size() > root.folder.size() ? rest[root.folder.size()] : '/';
                          return next == '/' || ends_path(next);
                        });
  const bool is_url = before == '/' && at >= 3 && text.substr(at - 3, 3) == "://";
  const bool is_top = is_one_of(rest.substr(1, std::min(rest.find('/', 1), rest.size()) - 1), kTopFolders);
  bool is_joined = is_word_character(before) || std::string_view("/.~)]}*>%").find(before) != npos;
  if (is_joined && is_top && (before == ']' || before == '>' || before == ')' || before == '}')) is_joined = false;
  if (is_joined && is_top && is_letter(before)) {  // -I/data, -isystem/opt
    std::size_t begin = at;
    while (begin > 0 && at - begin < 16 && is_letter(text[begin - 1])) --begin;
    is_joined = begin == 0 || text[begin - 1] != '-';
  }
  if (!is_known && !is_url && is_joined) return {};
  if (rest.size() < 2 || !(is_word_character(rest[1]) || rest[1] == '.')) return {};
  std::size_t length = path_length(rest);
  // with blanks in it: between quotes, or all that a text is
  if (before == '"' || before == '\'' || before == kEscapedDouble || before == kEscapedSingle) {
    if (const std::size_t close = rest.find_first_of(std::string("\n\r") + before);
        close != npos && rest[close] == before)
      length = close;
  } else if (at == 0 && text.size() < kMostPathBytes && text.find_first_of("\n\r") == npos &&
             text.find_first_of("\"'`<>|;:\\") == npos && text.find(" /") == npos && text.find(" -") == npos) {
    length = text.size();
  }
  while (length > 1 && rest[length - 1] == '.') --length;  // of a sentence
  const std::string_view path = rest.substr(0, length);
  if (!is_known && path.find('/', 1) == npos) return {};
  return {0, length, path_stand_in(path, is_place(rest.substr(length)) || (is_file_ && length == text.size()))};
}

// C:\Users\anna\…, D:\data\…: every folder, but not the file
Scrubber::Taken Scrubber::windows_path_at(std::string_view text, std::size_t at) {
  if (text.substr(at + 1, 2) != ":\\") return {};
  const std::string_view rest = text.substr(at + 3, kMostPathBytes);
  const std::string_view path = rest.substr(0, rest.find_first_of(" \t\"'<>|,;*?\r\n\x02\x03:"));
  if (path.empty()) return {};
  std::string strokes(path);
  std::replace(strokes.begin(), strokes.end(), '\\', '/');
  strokes = below(strokes, is_place(rest.substr(path.size())));
  std::replace(strokes.begin(), strokes.end(), '/', '\\');
  return {3, path.size(), std::move(strokes)};
}

Scrubber::Taken Scrubber::secret_at(std::string_view text, std::size_t at, std::size_t seam) {
  const std::string_view rest = text.substr(at);
  const auto whole = [&](Kind kind, std::size_t length) -> Taken {
    return {0, length, stand_in(kind, rest.substr(0, length))};
  };
  const auto introduced = [&](const Introduced& found, Kind kind) -> Taken {
    return {found.before, found.secret, stand_in(kind, rest.substr(found.before, found.secret))};
  };
  if (const std::size_t length = private_key_length(rest); length != 0) return whole(Kind::kPrivateKey, length);
  const Introduced typed = typed_secret(text, at);
  if (typed.is_sure) return introduced(typed, Kind::kPassword);
  if (const Introduced found = given_secret(text, at); found.secret != 0) {
    const std::string_view name =
        rest.substr(0, rest.find_first_not_of("-") + run_of(rest.substr(rest.find_first_not_of("-")), "_-."));
    if (found.is_sure || is_secret_value(name, rest.substr(found.before, found.secret)))
      return introduced(found, kind_of_secret(name));
  }
  if (const Introduced found = bearer(rest); found.secret != 0) return introduced(found, Kind::kToken);
  if (const Introduced found = url_credentials(rest); found.secret != 0) return introduced(found, Kind::kPassword);
  if (const Introduced found = login(rest); found.secret != 0) return introduced(found, Kind::kPassword);
  if (const Introduced found = phrased_secret(text, at); found.secret != 0) return introduced(found, Kind::kPassword);
  if (typed.secret != 0) return introduced(typed, Kind::kPassword);
  if (const std::size_t length = token_length(rest); length != 0 && !is_digest(text.substr(0, at), length))
    return whole(Kind::kToken, length);
  if (seam != npos && seam > at) {  // what follows is of another colour
    if (const std::size_t length = token_length(text.substr(at, seam - at)); length != 0)
      return whole(Kind::kToken, length);
  }
  if (const std::size_t length = email_length(rest); length != 0) return whole(Kind::kEmail, length);
  // somebody at a machine that is known: a prompt's
  if (const std::size_t name = rest.substr(0, 64).find('@'); name != npos && name != 0 && name + 1 < rest.size()) {
    const auto end = rest.begin() + static_cast<std::ptrdiff_t>(name);
    const std::string_view who = rest.substr(0, name);
    if (std::all_of(rest.begin(), end, is_name_character) && !is_one_of(who, kNobody) && is_host(rest, name + 1))
      return {0, name, stand_in(Kind::kUser, known_user(who))};
  }
  if (const std::size_t length = is_version(text, at) ? 0 : address_length(rest); length != 0)
    return whole(Kind::kAddress, length);
  return {};
}

std::string Scrubber::scrub(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = piece_length(text);
    scrub_piece(text.substr(0, length), out);
    text.remove_prefix(length);
  }
  return out;
}

std::string Scrubber::scrub_file(std::string_view text) {
  is_file_ = true;
  std::string out = scrub(text);
  is_file_ = false;
  return out;
}

void Scrubber::scrub_piece(std::string_view raw, std::string& out) {
  ReadableText readable(raw);
  const std::string_view text = readable.text();
  std::size_t seam = readable.next_seam(0);
  const std::vector<SecretCell> cells = secret_cells(text);
  const std::vector<SecretCell> cut_keys = keys_without_begin(text);
  auto cell = cells.begin();
  auto cut_key = cut_keys.begin();
  for (std::size_t at = 0; at < text.size();) {
    if (seam != npos && seam < at) seam = readable.next_seam(at);
    const char c = text[at];
    const char before = at == 0 || seam == at ? ' ' : text[at - 1];
    const bool begins = !is_word_character(before);
    const std::size_t end = seam == at ? readable.next_seam(at + 1) : seam;
    while (cell != cells.end() && cell->at < at) ++cell;
    while (cut_key != cut_keys.end() && cut_key->at < at) ++cut_key;
    Taken taken;
    // its title may stand behind anything: "\\n-----BEGIN"
    const std::size_t key = cut_key != cut_keys.end() && cut_key->at == at ? cut_key->length
                            : c == '-' && before != '-'                    ? private_key_length(text.substr(at))
                                                                           : 0;
    if (key != 0)
      taken = {0, key, stand_in(Kind::kPrivateKey, text.substr(at, key))};
    else if (cell != cells.end() && cell->at == at)
      taken = {0, cell->length, stand_in(kind_of_secret(cell->name), text.substr(at, cell->length))};
    if (taken.length == 0 && (c == '/' || c == '~' || c == '$' || c == '.')) taken = path_at(text, at, before);
    if (taken.length == 0 && begins && is_letter(c)) taken = windows_path_at(text, at);
    if (taken.length == 0 && begins &&
        (is_word_character(c) || (c == '-' && before != '-') || c == ':' || static_cast<unsigned char>(c) >= 0xc3))
      taken = secret_at(text, at, end);
    // run_hf_…, x_10.0.0.7
    if (taken.length == 0 && before == '_' && is_alphanumeric(c)) {
      const std::string_view rest = text.substr(at);
      const std::size_t token = token_with_prefix(rest);
      const bool is_mixed = std::any_of(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(token),
                                        [](char one) { return is_digit(one) || is_upper(one); });
      const std::size_t address = token == 0 && is_digit(c) && !is_version(text, at) ? address_length(rest) : 0;
      if (token != 0 && is_mixed) taken = {0, token, stand_in(Kind::kToken, rest.substr(0, token))};
      if (address != 0) taken = {0, address, stand_in(Kind::kAddress, rest.substr(0, address))};
    }
    if (taken.length == 0 && (has_asked_ || !is_alphanumeric(before)))
      taken = word_at(text, at, !is_alphanumeric(before), end);
    if (taken.length == 0) {
      ++at;
      continue;
    }
    // names stand in what introduces a secret too: ANNA_TOKEN=
    for (const std::size_t to = at + taken.before; at < to;) {
      const Taken word = word_at(text.substr(0, to), at, at == 0 || !is_alphanumeric(text[at - 1]), npos);
      if (word.length != 0) {
        readable.copy(at, out);
        out += word.stand_in;
        readable.skip(at + word.length, out);
      }
      at += std::max<std::size_t>(word.length, 1);
    }
    readable.copy(at, out);
    out += taken.stand_in;
    at += taken.length;
    readable.skip(at, out);
  }
  readable.copy(text.size(), out);
}

}  // namespace faultline::pack
