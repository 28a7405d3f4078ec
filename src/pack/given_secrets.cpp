// Secrets by what stands before them: a name that is given something, in every notation that assigns, says or lists; a scheme; a command's option.
//
//   password=X   "api_key": "X"   secret => 'X'   <password>X</password>   ("password", "X")   | password | X |
//   --token X    password is X    machine h login u password X    name: HF_TOKEN ↵ value: X    password: >- ↵   X ↵   Y
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/characters.h"
#include "pack/readable_text.h"
#include "pack/scrubber.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

constexpr std::size_t kMostValue = 4 * kLooked, kMostBefore = 256, kMostLines = 64;
constexpr std::string_view kCell = "\xe2\x94\x82";  // │

bool is_quote(char c) { return c == '"' || c == '\'' || c == kEscapedDouble || c == kEscapedSingle; }
bool ends_line(char c) { return c == '\n' || c == '\r'; }

std::string_view line_before(std::string_view text, std::size_t at) {
  const std::string_view some = text.substr(at > kMostBefore ? at - kMostBefore : 0, std::min(at, kMostBefore));
  const std::size_t cut = some.find_last_of("\r\n");
  return cut == npos ? some : some.substr(cut + 1);
}
std::string_view without_gaps(std::string_view text) {
  while (!text.empty() && is_gap(text.front())) text.remove_prefix(1);
  while (!text.empty() && (is_gap(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  return text;
}
bool has_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != npos; at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_alphanumeric(line[at - 1])) && (end == line.size() || !is_alphanumeric(line[end]))) return true;
  }
  return false;
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

// Where another one begins: ", user=", "&x=1", "; name:".
std::size_t up_to_next_name(std::string_view value) {
  for (std::size_t at = value.find_first_of(",;&"); at != npos; at = value.find_first_of(",;&", at + 1)) {
    const std::string_view rest = value.substr(at + 1, 64);
    const std::size_t name = run_of(rest, "_-.");
    if (name != 0 && name < rest.size() && (rest[name] == '=' || rest[name] == ':')) return at;
  }
  return value.size();
}

// Looks from a name to what it is given.
class Giving {
 public:
  Giving(std::string_view text, std::size_t at) : whole_(text), name_at_(at), text_(text.substr(at)) {}

  Introduced found() {
    const std::size_t dashes = run(text_.substr(0, 2), [](char c) { return c == '-'; });
    const std::size_t length = run_of(text_.substr(dashes, 128), "_-.");
    if (length == 0) return {};
    name_ = text_.substr(0, dashes + length);
    is_option_ = dashes != 0;
    at_ = name_.size();
    if (!may_give() || !Scrubber::names_secret(name_)) return {};
    skip_close();
    gap_ = gaps();
    if (const Introduced given = assigned(); given.secret != 0) return given;
    if (is_quoted_ || before().ends_with('<') || before().ends_with('|') || before().ends_with(kCell) ||
        rest().starts_with(",") || rest().starts_with("|"))
      if (const Introduced listed = in_list(); listed.secret != 0) return listed;
    return said();
  }

 private:
  std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  std::string_view before() {
    if (!before_) before_ = line_before(whole_, name_at_);
    std::string_view line = *before_;
    while (!line.empty() && (is_quote(line.back()) || is_gap(line.back()) || line.back() == '*' || line.back() == '`'))
      line.remove_suffix(1);
    return line;
  }
  std::size_t gaps() {
    const std::size_t length = run(rest().substr(0, kLooked), is_gap);
    at_ += length;
    return length;
  }
  // Most words are followed by nothing that gives them anything: they cost a look at one character.
  bool may_give() const {
    return at_ < text_.size() && (is_quote(text_[at_]) || static_cast<unsigned char>(text_[at_]) <= ' ' ||
                                  std::string_view("=:]`*,|>-").find(text_[at_]) != npos || text_[at_] == kCell[0]);
  }
  // Of a key that is quoted, of environ["X"], of **Password:**
  void skip_close() {
    for (int i = 0; i < 4 && at_ < text_.size(); ++i, ++at_) {
      const char c = text_[at_];
      if (is_quote(c))
        is_quoted_ = true;
      else if (c != ']' && c != '`' && c != '*')
        break;
    }
  }

  Introduced assigned() {
    const std::string_view here = rest();
    std::size_t sign = here.starts_with('=') || here.starts_with(':') ? 1 : 0;
    for (const std::string_view two : {":=", "=>", "->"}) {
      if (here.starts_with(two)) sign = 2;
    }
    if (here.starts_with("::")) return {};
    const bool assigns = sign != 0;
    if (!assigns && (!is_option_ || gap_ == 0)) return {};
    if (sign == 1 && here.substr(1).starts_with('=')) return {};  // a comparison
    at_ += sign;
    while (at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '`')) ++at_;  // of **Password:** X
    const std::size_t more = gaps();
    const Introduced given = value(assigns, more != 0);
    if (given.secret == 0) at_ = name_.size();
    return given;
  }

  Introduced value(bool assigns, bool apart) {
    if (at_ >= text_.size()) return {};
    if (rest().starts_with("-----BEGIN") || rest().substr(1).starts_with("-----BEGIN")) return {};  // a private key
    const char open = text_[at_];
    if (open == '(' || open == '[') {
      if (const Introduced several = in_brackets(open == '(' ? ')' : ']'); several.secret != 0) return several;
    }
    if (ends_line(open)) return assigns ? on_next_lines() : Introduced{};
    if ((open == '|' || open == '>') && assigns) {
      const std::size_t mark = 1 + run(rest().substr(1, 3), [](char c) { return is_digit(c) || c == '+' || c == '-'; });
      if (at_ + mark < text_.size() && ends_line(text_[at_ + mark])) return (at_ += mark, on_next_lines());
    }
    if (open == 'b' && at_ + 1 < text_.size() && is_quote(text_[at_ + 1])) ++at_;
    if (is_quote(text_[at_])) return quoted();
    if (!assigns && open == '-') return {};  // the next option
    const std::string small = lower(name_);
    const bool is_header = small.ends_with("authorization") || small.ends_with("cookie");
    // what a person says of a password goes to the line's end
    const bool is_phrase = assigns && apart && small.find("pass") != npos && Scrubber::surely_names_secret(name_);
    std::string_view given = rest().substr(0, kMostValue);
    given = given.substr(0, given.find_first_of(is_header || is_phrase ? "\r\n\"\x02" : " \t\r\n\"'\x02\x03"));
    if (before().ends_with("<") || given.find("</") != npos) given = given.substr(0, given.find('<'));
    if (!is_header) given = given.substr(0, up_to_next_name(given));
    if (is_no_secret(given)) return {};
    while (!given.empty() && std::string_view(",;)]}> \t").find(given.back()) != npos) given.remove_suffix(1);
    return given.empty() || is_no_secret(given) ? Introduced{} : Introduced{at_, given.size()};
  }

  // To the quote that closes it; over lines, where that is not far.
  Introduced quoted() {
    const std::string_view given = text_.substr(at_ + 1, kMostValue);
    const std::size_t close = given.find(text_[at_]), line = given.find_first_of("\r\n");
    if (given.starts_with("-----BEGIN")) return {};
    std::size_t length = std::min(close, std::min(line, given.size()));
    if (close != npos && close > line && close < kLooked) length = close;
    while (length > 0 && ends_line(given[length - 1])) --length;
    return is_no_secret(given.substr(0, length)) ? Introduced{} : Introduced{at_ + 1, length};
  }

  // ("a" ↵ "b"), ["a", "b"], ("user", "X")
  Introduced in_brackets(char close) const {
    const std::string_view given = text_.substr(at_, kLooked);
    const std::size_t first = given.find_first_not_of(" \t\r\n", 1);
    if (first == npos || !is_quote(given[first])) return {};
    const std::size_t end = given.find(close, first + 1);
    const std::size_t last = given.find_last_of("\"'\x02\x03", end);
    if (end == npos || last == first || last == npos) return {};
    const bool is_one = given.find(given[first], first + 1) == last;
    return is_one ? Introduced{at_ + first + 1, last - first - 1} : Introduced{at_ + first, last - first + 1};
  }

  // Alone on the lines below, further in than the name: "Authorization:\n  X", a block of YAML.
  Introduced on_next_lines() {
    std::string_view line = before_ ? *before_ : line_before(whole_, name_at_);
    const std::size_t indent = run(line, [](char c) { return is_gap(c) || c == '-'; });
    const bool is_at_begin = indent == line.size();
    std::size_t begin = npos, end = at_, at = at_;
    for (std::size_t lines = 0; lines < kMostLines && at < text_.size() && at - at_ < kMostValue; ++lines) {
      at += text_.substr(at, 2) == "\r\n" ? 2 : 1;
      const std::string_view below = text_.substr(at, std::min(text_.find_first_of("\r\n", at), text_.size()) - at);
      std::string_view words = without_gaps(below);
      while (words.ends_with(',')) words.remove_suffix(1);
      at += below.size();
      if (words.empty()) {
        if (begin != npos || lines > 1) break;
        continue;
      }
      const std::size_t inside = run(below, is_gap);
      if (begin != npos && (!is_at_begin || inside <= indent)) break;
      const std::size_t name = run_of(words, "_-.");
      const bool is_named =
          name < words.size() && (words[name] == ':' || (words[name] == '=' && name + 2 < words.size()));
      const bool is_other = words.size() < 4 || is_named || words.starts_with("---") || is_no_secret(words) ||
                            words.find_first_of(begin != npos || (is_at_begin && inside > indent)
                                                    ? std::string_view("{}<>")
                                                    : std::string_view(" \t/(){}[]<>")) != npos;
      if (is_other) break;
      if (begin == npos) begin = at - below.size() + inside;
      end = at - below.size() + inside + words.size();
    }
    return begin == npos ? Introduced{} : Introduced{begin, end - begin};
  }

  // As a cell, an element, a part of a list; or its value stands beside the name as the next member.
  Introduced in_list() {
    at_ = name_.size();
    const bool surely = Scrubber::surely_names_secret(name_);
    const std::string_view line = before();
    if (line.ends_with('<')) return in_element();
    skip_close();
    gaps();
    const std::string_view cell = rest().starts_with(kCell) ? kCell
                                  : rest().starts_with('|') ? std::string_view("|")
                                                            : "";
    const bool is_row = line.empty() || line.ends_with('|') || line.ends_with(kCell);
    if (!cell.empty() && is_row) {
      at_ += cell.size();
      gaps();
      const std::string_view given = rest().substr(0, rest().substr(0, kLooked).find_first_of("|\xe2\r\n"));
      const std::string_view words = without_gaps(given);
      return is_no_secret(words) ? Introduced{} : Introduced{at_, words.size()};
    }
    if (!rest().starts_with(',')) return {};
    ++at_;
    const std::size_t apart = run(rest().substr(0, 64), [](char c) { return is_gap(c) || ends_line(c); });
    if (at_ + apart < text_.size() && is_quote(text_[at_ + apart]) && is_quoted_) return (at_ += apart, quoted());
    // a row of values that commas part
    if (apart != 0 || is_quoted_ || !surely || !(line.empty() || line.ends_with(','))) return {};
    const std::string_view given = rest().substr(0, rest().substr(0, kLooked).find_first_of(", \t\r\n"));
    return given.size() < 4 || is_no_secret(given) || Scrubber::names_secret(given) ? Introduced{}
                                                                                    : Introduced{at_, given.size()};
  }

  // <password>X</password>, <password encrypted="no">X<
  Introduced in_element() {
    const std::size_t end = rest().substr(0, kMostBefore).find_first_of(">\r\n");
    if (end == npos || text_[at_ + end] != '>') return {};
    const std::size_t begin = at_ + end + 1;
    const std::string_view given = text_.substr(begin, kMostValue);
    const std::size_t length = given.find('<');
    if (length == npos || length == 0 || given.starts_with("-----BEGIN")) return {};
    return is_no_secret(without_gaps(given.substr(0, length))) ? Introduced{} : Introduced{begin, length};
  }

  // name="password" value="X", - name: HF_TOKEN ↵ value: X
  Introduced beside_name() {
    at_ = name_.size();
    at_ += run(rest().substr(0, 128), [](char c) { return is_gap(c) || ends_line(c) || c == ',' || is_quote(c); });
    const bool is_apart = at_ != name_.size();
    for (const std::string_view word : {"value", "Value", "VALUE"}) {
      if (!is_apart || !rest().starts_with(word)) continue;
      at_ += word.size();
      skip_close();
      gaps();
      if (!rest().starts_with('=') && !rest().starts_with(':')) return {};
      ++at_;
      gaps();
      return value(true, false);
    }
    return {};
  }

  // password is X; machine h login u password X; setenv HF_TOKEN X
  Introduced said() {
    if (is_option_ || !Scrubber::surely_names_secret(name_)) return {};
    if (const Introduced beside = beside_name(); beside.secret != 0) return beside;
    at_ = name_.size();
    skip_close();
    if (gaps() == 0) return {};
    bool is_told = false;
    for (const std::string_view word : {"is ", "was ", "to "}) {
      if (!is_told && rest().starts_with(word)) {
        at_ += word.size();
        is_told = true;
        gaps();
        if (rest().starts_with('=') || rest().starts_with(':')) (++at_, gaps());
      }
    }
    if (at_ >= text_.size()) return {};
    if (is_quote(text_[at_]) && is_told) return quoted();
    std::string_view given = rest().substr(0, rest().substr(0, kLooked).find_first_of(" \t\r\n\"'\x02\x03"));
    while (!given.empty() && std::string_view(".,;)]}!").find(given.back()) != npos) given.remove_suffix(1);
    if (given.size() < 4 || is_no_secret(given) || is_said_of_it(given)) return {};
    const std::string_view line = before();
    const bool is_account = has_word(line, "login") || has_word(line, "machine") || has_word(line, "user");
    const char behind = at_ + given.size() < text_.size() ? text_[at_ + given.size()] : '\n';
    const bool is_line = without_gaps(line).empty() && ends_line(behind) && text_.substr(name_.size(), 1) == "\t";
    const bool is_entry = without_gaps(line).empty() && ends_line(behind) && is_password();
    const bool is_value =
        given.find_first_of("()<>{}") == npos &&
        (is_mixed_up(given) || (given.size() >= 8 && std::any_of(given.begin(), given.end(), is_digit)));
    const bool is_variable = name_.find('_') != npos || name_.find('-') != npos;
    const bool gives = (is_account && is_password()) || is_line || is_entry ||
                       (is_told && (is_password() || is_value)) || (is_variable && is_value);
    return gives ? Introduced{at_, given.size()} : Introduced{};
  }
  bool is_password() const { return Scrubber::kind_of_secret(name_) == Kind::kPassword; }

  // "password is required", "secret key to use"
  static bool is_said_of_it(std::string_view word) {
    static constexpr std::array<std::string_view, 36> kWords = {
        "required", "incorrect", "wrong",  "invalid", "missing", "empty",   "correct",  "needed",    "hidden",
        "stored",   "expired",   "valid",  "your",    "have",    "must",    "should",   "will",      "used",
        "from",     "with",      "when",   "that",    "this",    "given",   "provided", "protected", "authentication",
        "changed",  "accepted",  "denied", "failed",  "prompt",  "manager", "based",    "login",     "unset"};
    return std::find(kWords.begin(), kWords.end(), lower(word)) != kWords.end();
  }

  std::string_view whole_;
  std::size_t name_at_ = 0;
  std::string_view text_, name_;  // from the name on
  std::optional<std::string_view> before_;
  std::size_t at_ = 0, gap_ = 0;
  bool is_option_ = false, is_quoted_ = false;
};

// Commands whose option is a password. A login's option is another thing's without it.
struct Typed {
  std::string_view command, option;
  bool is_login = false, stands_apart = true;  // from its option; together with it always
};
constexpr std::array<Typed, 22> kTyped = {{{"mysql", "-p", false, false},
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
                                           {"ipmitool", "-P"}}};

}  // namespace

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
  if (rest.size() < 3 || rest[0] != '-' || std::string_view("pPawN").find(rest[1]) == npos || rest[2] == '-') return {};
  const std::string_view line = line_before(text, at);
  for (const Typed& typed : kTyped) {
    if (!rest.starts_with(typed.option) || !has_word(line, typed.command)) continue;
    if (typed.is_login && !has_word(line, "login")) continue;
    std::size_t begin = typed.option.size();
    const std::size_t apart = run(rest.substr(begin), [](char c) { return is_gap(c) || c == '='; });
    if (apart != 0 && !typed.stands_apart) continue;
    begin += apart;
    if (begin >= rest.size()) continue;
    const std::size_t close = is_quote(rest[begin]) ? rest.find(rest[begin], begin + 1) : npos;
    if (close != npos) ++begin;
    const std::size_t end = close != npos ? close : std::min(rest.find_first_of(" \t\r\n\"'", begin), rest.size());
    const std::string_view value = rest.substr(begin, end - begin);
    if (!value.empty() && !value.starts_with('-') && !is_no_secret(value)) return {begin, value.size()};
  }
  return {};
}

Introduced given_secret(std::string_view text, std::size_t at) { return Giving(text, at).found(); }

}  // namespace faultline::pack
