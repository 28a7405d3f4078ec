// Secrets that commands and addresses carry: Bearer X, https://USER:X@host, curl -u USER:X, docker login -p X, mysql -pX. And what tells where one may stand.
#include <algorithm>
#include <array>
#include <string>

#include "base/characters.h"
#include "pack/readable_text.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

// Commands whose option is a password. A login's option is another thing's without it.
struct Typed {
  std::string_view command, option;
  bool is_login = false, stands_apart = true;  // from its option; together with it always
  bool is_behind_user = false;                 // USER%X
};
constexpr std::array<Typed, 41> kTyped = {{{"mysql", "-p", false, false},
                                           {"mysqldump", "-p", false, false},
                                           {"mariadb", "-p", false, false},
                                           {"sshpass", "-p"},
                                           {"docker", "-p", true},
                                           {"podman", "-p", true},
                                           {"nerdctl", "-p", true},
                                           {"buildah", "-p", true},
                                           {"skopeo", "-p", true},
                                           {"helm", "-p", true},
                                           {"oras", "-p", true},
                                           {"crane", "-p", true},
                                           {"az", "-p", true},
                                           {"oc", "-p", true},
                                           {"cf", "-p", true},
                                           {"redis-cli", "-a"},
                                           {"unzip", "-P"},
                                           {"zip", "-P"},
                                           {"7z", "-p", false, false},
                                           {"ldapsearch", "-w"},
                                           {"ssh-keygen", "-N"},
                                           {"ipmitool", "-P"},
                                           {"smbclient", "-U", false, true, true},
                                           {"rpcclient", "-U", false, true, true},
                                           {"mongo", "-p"},
                                           {"mongosh", "-p"},
                                           {"mongodump", "-p"},
                                           {"mongorestore", "-p"},
                                           {"mongoimport", "-p"},
                                           {"openssl", "-k"},
                                           {"snmpwalk", "-c"},
                                           {"snmpget", "-c"},
                                           {"ldapmodify", "-w"},
                                           {"ldapadd", "-w"},
                                           {"sqlcmd", "-P"},
                                           {"bcp", "-P"},
                                           {"mosquitto_pub", "-P"},
                                           {"mosquitto_sub", "-P"},
                                           {"psexec", "-p"},
                                           {"useradd", "-p"},
                                           {"usermod", "-p"}}};

}  // namespace

bool is_quote(char c) { return c == '"' || c == '\'' || c == kEscapedDouble || c == kEscapedSingle; }
std::string_view line_before(std::string_view text, std::size_t at) {
  const std::string_view some = text.substr(at > kMostBefore ? at - kMostBefore : 0, std::min(at, kMostBefore));
  const std::size_t cut = some.find_last_of("\r\n");
  return cut == npos ? some : some.substr(cut + 1);
}
bool has_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_alphanumeric(line[at - 1])) && (end == line.size() || !is_alphanumeric(line[end]))) return true;
  }
  return false;
}

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

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return small;
}

Introduced bearer(std::string_view text) {
  if (text.empty() || std::string_view("bB").find(text[0]) == npos) return {};
  for (const std::string_view word : {"bearer", "basic"}) {
    if (lower(text.substr(0, word.size())) != word) continue;
    const std::size_t before = word.size() + run(text.substr(word.size(), kLooked), is_gap);
    const std::size_t length = run_of(text.substr(before), "._~+/=-");
    const std::string_view given = text.substr(before, length);
    // "Basic information" is none
    const bool is_encoded = std::any_of(given.begin(), given.end(), [](char c) { return is_digit(c) || c == '='; });
    if (before != word.size() && length >= 12 && (word == "bearer" || is_encoded)) return {before, length};
  }
  return {};
}

Introduced url_credentials(std::string_view text) {
  if (text.starts_with("thin:")) {  // jdbc:oracle:thin:user/X@host
    const std::string_view rest = text.substr(5, 512);
    const std::size_t end = rest.find('@'), stroke = rest.find('/');
    return end != npos && stroke < end && rest.substr(0, end).find_first_of(" \t\r\n\"'") == npos ? Introduced{5, end}
                                                                                                  : Introduced{};
  }
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

Introduced typed_secret(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at, kMostValue);
  if (rest.size() < 3 || rest[0] != '-' || std::string_view("pPawNkcU").find(rest[1]) == npos || rest[2] == '-')
    return {};
  const std::string_view line = line_before(text, at);
  for (const Typed& typed : kTyped) {
    if (!rest.starts_with(typed.option) || !has_word(line, typed.command)) continue;
    if (typed.is_login && !has_word(line, "login")) continue;
    std::size_t begin = typed.option.size();
    const std::size_t apart = run(rest.substr(begin), [](char c) { return is_gap(c) || c == '='; });
    if (apart != 0 && !typed.stands_apart) continue;
    begin += apart;
    if (begin >= rest.size()) continue;
    if (apart == 0 && at > 0 && is_quote(rest[begin]) && rest[begin] == text[at - 1]) {  // "-p", "X"
      begin += 1 + run(rest.substr(begin + 1, 64), [](char c) { return is_gap(c) || c == ',' || c == '\n'; });
      if (begin >= rest.size() || !is_quote(rest[begin])) continue;
    }
    const std::size_t close = is_quote(rest[begin]) ? rest.find(rest[begin], begin + 1) : npos;
    if (close != npos) ++begin;
    const std::size_t end = close != npos ? close : std::min(rest.find_first_of(" \t\r\n\"'", begin), rest.size());
    const std::string_view value = rest.substr(begin, end - begin);
    if (typed.is_behind_user) {
      const std::size_t sign = value.find('%');
      if (sign == npos || sign + 1 == value.size()) continue;
      return {begin + sign + 1, value.size() - sign - 1};
    }
    if (value.starts_with("-") || is_no_secret(value)) continue;
    return {begin, value.size(), !typed.stands_apart};
  }
  return {};
}

}  // namespace faultline::pack
