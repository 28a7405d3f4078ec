// Secrets that the form of a statement or a command tells: what follows IDENTIFIED BY, mot de passe :, requirepass, echo X | sudo -S, login("u", "X").
#include <algorithm>
#include <array>
#include <string>

#include "base/characters.h"
#include "pack/readable_text.h"
#include "pack/scrubber.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

// What says that a secret follows, in small letters; so many words stand between.
struct Phrase {
  std::string_view words;
  std::size_t between = 0;
  bool is_quoted = false, is_assigned = false;  // 'X' alone; = X or : X alone
  std::string_view beside = "";                 // what its line has, too
};
constexpr Phrase kPhrases[] = {
    // SQL, PowerShell, settings of servers
    {"identified by", 0, true},
    {"identified with", 2, true},
    {"convertto-securestring", 0, true},
    {"requirepass"},
    {"masterauth"},
    // commands
    {"rclone obscure"},
    {"rabbitmqctl add_user", 1},
    {"rabbitmqctl change_password", 1},
    {"rabbitmqctl authenticate_user", 1},
    {"net use", 2, false, false, "\\"},
    {"net user", 1, false, false, "/add"},
    {"sudo -s <<<"},
    // of other languages
    {"mot de passe", 0, false, true},
    {"parola d'ordine", 0, false, true},
    {"contrase\xc3\xb1"
     "a",
     0, false, true},
    {"clave", 0, false, true},
    {"senha", 0, false, true},
    {"wachtwoord", 0, false, true},
    {"l\xc3\xb6senord", 0, false, true},
    {"adgangskode", 0, false, true},
    {"salasana", 0, false, true},
    {"has\xc5\x82o", 0, false, true},
    {"heslo", 0, false, true},
    {"jelsz\xc3\xb3", 0, false, true},
    {"\xc5\x9fifre", 0, false, true},
    {"\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c", 0, false, true},  // Russian
    {"\xd0\x9f\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c", 0, false, true},
    {"\xe5\xaf\x86\xe7\xa0\x81", 0, false, true},  // Chinese
    {"\xe5\xaf\x86\xe7\xa2\xbc", 0, false, true},
    {"\xe3\x83\x91\xe3\x82\xb9\xe3\x83\xaf\xe3\x83\xbc\xe3\x83\x89", 0, false, true},  // Japanese
    {"\xeb\xb9\x84\xeb\xb0\x80\xeb\xb2\x88\xed\x98\xb8", 0, false, true},              // Korean
};
constexpr std::array<bool, 256> kBeginsPhrase = [] {
  std::array<bool, 256> begins{};
  for (const Phrase& phrase : kPhrases) {
    const char first = phrase.words[0];
    begins[static_cast<unsigned char>(first)] = true;
    if (is_lower(first)) begins[static_cast<unsigned char>(first - 'a' + 'A')] = true;
  }
  return begins;
}();

bool ends_word_here(char c) { return static_cast<unsigned char>(c) <= ' ' || is_quote(c); }

// The value that stands here, in quotes or up to a blank.
Introduced value_at(std::string_view text, std::size_t at, bool is_quoted) {
  if (at >= text.size()) return {};
  if (is_quote(text[at])) {
    const std::size_t close = text.substr(at + 1, kLooked).find_first_of(std::string("\r\n") + text[at]);
    if (close == npos || text[at + 1 + close] != text[at]) return {};
    return is_no_secret(text.substr(at + 1, close)) ? Introduced{} : Introduced{at + 1, close};
  }
  const std::size_t length = run(text.substr(at, kLooked), [](char c) { return !ends_word_here(c); });
  const std::string_view value = text.substr(at, length);
  const bool is_one = !is_quoted && length >= 4 && !value.starts_with('-') && !is_no_secret(value);
  return is_one ? Introduced{at, length} : Introduced{};
}

// echo X | sudo -S: the next command reads it.
Introduced piped(std::string_view text) {
  for (const std::string_view begin : {"echo ", "echo -n ", "printf "}) {
    if (!text.starts_with(begin)) continue;
    const std::size_t at = begin.size() + run(text.substr(begin.size(), 16), is_gap);
    const Introduced given = value_at(text, at, false);
    if (given.secret == 0) continue;
    std::string_view line = text.substr(given.before + given.secret, kMostBefore);
    line = line.substr(0, line.find_first_of("\r\n"));
    if (line.find('|') == npos) continue;
    for (const std::string_view reader : {"sudo -S", "--password-stdin", "chpasswd", "--with-token", "--passphrase-fd"})
      if (line.find(reader) != npos) return given;
  }
  return {};
}

// htpasswd -b FILE USER X, htpasswd -nb USER X
Introduced last_of_htpasswd(std::string_view text) {
  constexpr std::string_view kName = "htpasswd -";
  if (!text.starts_with(kName)) return {};
  std::string_view line = text.substr(0, kMostBefore);
  line = line.substr(0, line.find_first_of("\r\n|;&"));
  while (!line.empty() && is_gap(line.back())) line.remove_suffix(1);
  const std::size_t options = run(line.substr(kName.size()), is_letter);
  const std::size_t last = line.rfind(' ');
  if (line.substr(kName.size(), options).find('b') == npos || last == npos || last < kName.size() + options + 1)
    return {};
  return value_at(text, last + 1, false);
}

// smtp.login("u", "X"), HTTPBasicAuth("u", "X"), Fernet(b"X"): the last that stands in the brackets.
Introduced last_of_call(std::string_view text) {
  struct Call {
    std::string_view name;
    std::size_t before = 0;  // so many stand before it
  };
  for (const auto& [name, before] : {Call{"login(", 1}, Call{"HTTPBasicAuth(", 1}, Call{"HTTPDigestAuth(", 1},
                                     Call{"BasicAuth(", 1}, Call{"Fernet(", 0}}) {
    if (!text.starts_with(name)) continue;
    std::size_t at = name.size();
    for (std::size_t i = 0;; ++i) {
      at += run(text.substr(at, 16), [](char c) { return is_gap(c) || c == 'b' || c == 'r'; });
      if (at >= text.size() || !is_quote(text[at])) return {};
      const std::size_t close = text.substr(at + 1, kLooked).find_first_of(std::string("\r\n") + text[at]);
      if (close == npos || text[at + 1 + close] != text[at]) return {};
      if (i == before)
        return close == 0 || text.substr(at + 2 + close, 1) != ")" ? Introduced{} : Introduced{at + 1, close};
      at += close + 2;
      if (text.substr(at, 1) != ",") return {};
      ++at;
    }
  }
  return {};
}

// "value": "X", "name": "HF_TOKEN"
Introduced before_its_name(std::string_view text) {
  const auto skip = [&](std::size_t at, std::string_view these) {
    return at + run(text.substr(std::min(at, text.size()), 64), [=](char c) { return these.find(c) != npos; });
  };
  for (const std::string_view name : {"value\"", "Value\"", "default\""}) {
    if (!text.starts_with(name)) continue;
    const std::size_t begin = skip(name.size(), " \t:");
    if (begin == name.size() || begin >= text.size() || text[begin] != '"') return {};
    const Introduced given = value_at(text, begin, true);
    const std::size_t beside = skip(given.before + given.secret + 1, " \t\r\n,");
    for (const std::string_view title : {"\"name\"", "\"Name\"", "\"key\""}) {
      if (given.secret == 0 || !text.substr(std::min(beside, text.size())).starts_with(title)) continue;
      const std::size_t at = std::min(skip(beside + title.size(), " \t:\""), text.size());
      const std::string_view word = text.substr(at, run_of(text.substr(at, 128), "_-."));
      if (Scrubber::surely_names_secret(word)) return given;
    }
  }
  return {};
}

}  // namespace

Introduced phrased_secret(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at, kMostValue);
  if (at > 0 && text[at - 1] == '"')
    if (const Introduced given = before_its_name(rest); given.secret != 0) return given;
  if (rest[0] == 'e' || rest[0] == 'p')
    if (const Introduced given = piped(rest); given.secret != 0) return given;
  if (std::string_view("lHBF").find(rest[0]) != npos)
    if (const Introduced given = last_of_call(rest); given.secret != 0) return given;
  if (rest.starts_with("htpasswd ")) return last_of_htpasswd(rest);
  if (!kBeginsPhrase[static_cast<unsigned char>(rest[0])]) return {};
  for (const Phrase& phrase : kPhrases) {
    std::size_t to = phrase.words.size();
    if (lower(rest.substr(0, to)) != phrase.words || to >= rest.size()) continue;
    if (!phrase.beside.empty() && rest.substr(0, rest.find_first_of("\r\n")).find(phrase.beside) == npos) continue;
    to += run(rest.substr(to, 64), is_gap);
    if (phrase.is_assigned) {
      if (rest.substr(to).starts_with("\xef\xbc\x9a"))  // a wide colon
        to += 3;
      else if (to < rest.size() && (rest[to] == ':' || rest[to] == '='))
        ++to;
      else
        return {};
      to += run(rest.substr(to, 64), is_gap);
    } else if (to == phrase.words.size()) {
      return {};
    }
    for (std::size_t i = 0; i < phrase.between; ++i) {
      to += run(rest.substr(to, kLooked), [](char c) { return !ends_word_here(c); });
      to += run(rest.substr(to, 64), is_gap);
    }
    return value_at(rest, to, phrase.is_quoted);
  }
  return {};
}

}  // namespace faultline::pack
