// Secrets by what stands before them: a name that is given something, in every notation that assigns, says or lists; a scheme; a command's option.
//
//   password=X   "api_key": "X"   secret => 'X'   <password>X</password>   ("password", "X")   | password | X |
//   --token X    password is X    machine h login u password X    name: HF_TOKEN ↵ value: X    password: >- ↵   X ↵   Y
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/characters.h"
#include "pack/readable_text.h"
#include "pack/scrubber.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

constexpr std::size_t kMostLines = 64;
constexpr std::string_view kCell = "\xe2\x94\x82";  // │

bool ends_line(char c) { return c == '\n' || c == '\r'; }

std::string_view without_gaps(std::string_view text) {
  while (!text.empty() && is_gap(text.front())) text.remove_prefix(1);
  while (!text.empty() && (is_gap(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  return text;
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
    if (!may_give()) return {};
    if (!Scrubber::names_secret(name_)) return {};
    if (const Introduced given = by_two_words(); given.secret != 0) return given;
    if (rest().starts_with('(') || rest().starts_with('<')) return rest().starts_with('(') ? called() : next_element();
    skip_close();
    gap_ = gaps();
    if (const Introduced given = assigned(); given.secret != 0) return given;
    if (is_quoted_ || opens_element() || before().ends_with('{') || before().ends_with('|') ||
        before().ends_with(kCell) || rest().starts_with(",") || rest().starts_with("|") || rest().starts_with(kCell))
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
    return at_ < text_.size() &&
           (is_quote(text_[at_]) || static_cast<unsigned char>(text_[at_]) <= ' ' ||
            std::string_view("=:]`*,|>-(<").find(text_[at_]) != npos || text_[at_] == kCell[0] || text_[at_] == '\xef');
  }
  // <password, <conn:password
  bool opens_element() {
    std::string_view line = before();
    if (line.ends_with(':')) line.remove_suffix(std::min(line.size(), 1 + name_length_at_end(line, 1)));
    return line.ends_with('<');
  }
  static std::size_t name_length_at_end(std::string_view line, std::size_t but) {
    std::size_t length = 0;
    while (length + but < line.size() && is_word_character(line[line.size() - but - 1 - length])) ++length;
    return length;
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
    for (const std::string_view other :
         {":=", "=>", "->", "\xe2\x86\x92", "\xe2\x87\x92", "\xef\xbc\x9a"}) {  // →, ⇒, ：
      if (here.starts_with(other)) sign = other.size();
    }
    if (here.starts_with("::")) return {};
    const bool assigns = sign != 0;
    if (!assigns && (!is_option_ || gap_ == 0)) return {};
    if (sign == 1 && here.substr(1).starts_with('=')) return {};  // a comparison
    at_ += sign;
    if (sign == 1 && here[0] == ':') at_ += type_length();
    while (at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '`')) ++at_;  // of **Password:** X
    const std::size_t more = gaps();
    // "Password: ", of a question
    if (!is_quoted_ && name_at_ > 0 && is_quote(whole_[name_at_ - 1]) && rest().starts_with(whole_[name_at_ - 1]))
      return {};
    const Introduced given = value(assigns, more != 0);
    if (given.secret == 0) at_ = name_.size();
    return given;
  }

  // Of "password: str = 'X'" what says which type it has; 0: none does.
  std::size_t type_length() const {
    const std::string_view line = rest().substr(0, 64);
    const std::size_t sign = line.substr(0, line.find_first_of("\r\n\"'")).find('=');
    if (sign == npos || sign == 0) return 0;
    const std::string_view type = without_gaps(line.substr(0, sign));
    const std::size_t quote = line.find_first_not_of(" \t", sign + 1);
    const bool is_type = !type.empty() && is_letter(type[0]) && run_of(type, "_.[]|?, ") == type.size();
    if (!is_type || quote == npos) return 0;
    const std::size_t made = run_of(line.substr(quote), "_.");  // Some("X")
    const bool is_made = made != 0 && line.substr(quote + made, 1) == "(";
    return is_quote(line[quote]) || is_made ? sign + 1 : 0;
  }

  Introduced value(bool assigns, bool apart) {
    if (at_ < text_.size() && text_[at_] == '!') {  // a tag of YAML's
      at_ += run(rest().substr(0, 64), [](char c) { return c == '!' || is_letter(c) || c == '/' || c == '_'; });
      gaps();
    }
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
    if (assigns && open == '{') {
      if (const Introduced inside = in_braces(); inside.secret != 0) return inside;
      if (rest().substr(0, kMostBefore).find_first_of("}\r\n") != npos) return {};
    }
    if (const std::size_t made = run_of(rest().substr(0, 64), "_.:"); assigns && made != 0) {  // SecretStr('X')
      if (rest().substr(made, 1) == "(") {
        const std::size_t begin = std::exchange(at_, at_ + made);
        const Introduced wrapped = in_brackets(')');
        const std::size_t end = wrapped.before + wrapped.secret;
        const bool is_all = wrapped.secret != 0 && is_quote(text_[end]) && text_.substr(end + 1, 1) == ")";
        if (is_all && !looks_up(text_.substr(begin, made))) return wrapped;
        std::string_view line = rest().substr(0, kLooked);
        line = line.substr(0, line.find_first_of("\r\n"));
        if (line.find(')') != npos) return or_else(line);
        at_ = begin;
      }
    }
    if (!assigns && open == '-') return {};  // the next option
    const std::string small = lower(name_);
    const bool is_header = small.ends_with("authorization") || small.ends_with("cookie");
    // what a person says of a password goes to the line's end
    const bool is_phrase = assigns && apart && small.find("pass") != npos && Scrubber::surely_names_secret(name_);
    std::string_view given = rest().substr(0, kMostValue);
    given = given.substr(0, given.find_first_of(is_header || is_phrase ? "\r\n\"\x02" : " \t\r\n\"'\x02\x03"));
    if (opens_element() || given.find("</") != npos) given = given.substr(0, given.find('<'));
    if (!is_header) given = given.substr(0, up_to_next_name(given));
    if (is_no_secret(given)) return {};
    while (!given.empty() && std::string_view(",;)]}> \t").find(given.back()) != npos) given.remove_suffix(1);
    return given.empty() || is_no_secret(given) ? Introduced{} : Introduced{at_, given.size()};
  }

  // To the quote that closes it; over lines, where that is not far.
  Introduced quoted() {
    if (const char quote = text_[at_]; rest().starts_with(std::string(3, quote))) {  // '''X'''
      const std::size_t close = text_.substr(at_ + 3, kMostValue).find(std::string(3, quote));
      if (close != npos && close != 0) return (at_ += 3, Introduced{at_, close});
    }
    const std::string_view given = text_.substr(at_ + 1, kMostValue);
    const std::size_t close = given.find(text_[at_]), line = given.find_first_of("\r\n");
    if (given.starts_with("-----BEGIN")) return {};
    std::size_t length = std::min(close, std::min(line, given.size()));
    if (close != npos && close > line && close < kLooked) length = close;
    while (length > 0 && ends_line(given[length - 1])) --length;
    return is_no_secret(given.substr(0, length)) ? Introduced{} : Introduced{at_ + 1, length};
  }

  // os.environ.get("PASSWORD") or "X"
  Introduced or_else(std::string_view line) {
    for (const std::string_view word : {" or ", " || ", " ?? "}) {
      const std::size_t other = line.find(word);
      if (other == npos || other + word.size() >= line.size() || !is_quote(line[other + word.size()])) continue;
      at_ += other + word.size();
      return quoted();
    }
    return {};
  }
  // API key: X, Secret Access Key = X
  Introduced by_two_words() {
    const std::string small = lower(name_);
    if (is_option_ || (small != "key" && small != "token" && small != "pass")) return {};
    const std::string_view line = line_before(whole_, name_at_);
    if (!line.ends_with(' ')) return {};
    const std::size_t length = name_length_at_end(line, 1);
    const std::string_view word = line.substr(line.size() - 1 - length, length);
    if (length == 0 || !Scrubber::surely_names_secret(std::string(word) + "_" + small)) return {};
    const std::size_t begin = at_;
    skip_close();
    gap_ = gaps();
    const Introduced given = assigned();
    const std::string_view value = text_.substr(given.before, given.secret);
    at_ = begin;
    is_quoted_ = false;
    const bool is_number = std::all_of(value.begin(), value.end(), is_digit);
    return is_number || value.size() < 4 || is_said_of_secrets(value) ? Introduced{}
                                                                      : Introduced{given.before, given.secret, true};
  }
  // setPassword("X"), set_secret('service', 'X')
  Introduced called() {
    if (is_option_ || !Scrubber::surely_names_secret(name_) || looks_up(name_)) return {};
    if (lower(name_).ends_with("cookie")) return {};  // its name, and what is told of it
    const Introduced given = in_brackets(')');
    return given.secret != 0 && is_no_secret(text_.substr(given.before, given.secret)) ? Introduced{} : given;
  }
  // "password": {"value": "X"}
  Introduced in_braces() const {
    if (!Scrubber::surely_names_secret(name_)) return {};
    const std::string_view given = text_.substr(at_, kLooked);
    const std::size_t end = given.substr(0, given.find_first_of("\r\n")).find('}');
    if (end == npos) return {};
    const std::size_t sign = given.substr(0, end).find(':');
    const std::size_t last = given.substr(0, end).find_last_of("\"'\x02\x03");
    return sign == npos || last == npos || last < sign ? Introduced{} : Introduced{at_ + 1, end - 1};
  }
  // <key>password</key> ↵ <string>X</string>
  Introduced next_element() {
    const std::string_view line = before();
    const std::size_t open = line.rfind('<');
    if (!line.ends_with('>') || open == npos || !Scrubber::surely_names_secret(name_)) return {};
    const std::string close = "</" + std::string(line.substr(open + 1, line.size() - open - 1));
    if (!rest().starts_with(close)) return {};
    at_ += close.size();
    at_ += run(rest().substr(0, 128), [](char c) { return is_gap(c) || ends_line(c); });
    if (!rest().starts_with('<') || rest().starts_with("</")) return {};
    return in_element();
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
      std::size_t inside = run(below, is_gap);
      if (is_at_begin && words.starts_with("- ")) {  // an item
        const std::size_t mark = 1 + run(words.substr(1), is_gap);
        words.remove_prefix(mark);
        inside += mark;
      }
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
    if (opens_element()) return in_element();
    skip_close();
    gaps();
    // <property name="password">X</property>
    if (const std::size_t tag = line.rfind('<'); line.ends_with('=') && tag != npos && line.find('>', tag) == npos) {
      std::string_view more = rest().substr(0, kMostBefore);
      more = more.substr(0, more.find('>'));
      if (lower(more).find("value") == npos) return in_element();
    }
    const std::string_view cell = rest().starts_with(kCell) ? kCell
                                  : rest().starts_with('|') ? std::string_view("|")
                                                            : "";
    const std::size_t other = line.rfind('|'), box = line.rfind(kCell);
    const std::size_t begin = other != npos ? other + 1 : box != npos ? box + kCell.size() : 0;
    const std::string_view words_before = line.substr(begin);  // | db password | X |
    const bool is_row =
        (line.empty() || begin != 0) && words_before.size() < 32 && run_of(words_before, " _-") == words_before.size();
    if (!cell.empty() && is_row) {
      at_ += cell.size();
      gaps();
      const std::string_view given = rest().substr(0, rest().substr(0, kLooked).find_first_of("|\xe2\r\n"));
      const std::string_view words = without_gaps(given);
      const bool is_prose = !words_before.empty() && words.find(' ') != npos;
      return is_prose || is_no_secret(words) ? Introduced{} : Introduced{at_, words.size()};
    }
    if (!rest().starts_with(',')) return {};
    ++at_;
    const std::size_t apart = run(rest().substr(0, 64), [](char c) { return is_gap(c) || ends_line(c); });
    if (at_ + apart < text_.size() && is_quote(text_[at_ + apart]) && is_quoted_) {
      const std::size_t here = at_ + apart;
      const Introduced beside = beside_name();
      return beside.secret != 0 ? beside : (at_ = here, quoted());
    }
    if (is_quoted_) return by_default();
    if (surely && line.ends_with('{') && at_ + apart < text_.size() &&
        is_quote(text_[at_ + apart])) {  // {password, "X"}
      at_ += apart;
      return quoted();
    }
    // a row of values that commas part
    if (apart != 0 || is_quoted_ || !surely || !(line.empty() || line.ends_with(','))) return {};
    const std::string_view given = rest().substr(0, rest().substr(0, kLooked).find_first_of(", \t\r\n"));
    return given.size() < 4 || is_no_secret(given) || Scrubber::names_secret(given) ? Introduced{}
                                                                                    : Introduced{at_, given.size()};
  }

  // add_argument("--api-key", type=str, default="X")
  Introduced by_default() {
    const std::string_view more = rest().substr(0, kMostBefore);
    const std::size_t word = more.substr(0, more.find(')')).find("default");
    if (word == npos || is_word_character(more[word - 1])) return {};
    at_ += word + 7;
    gaps();
    if (!rest().starts_with('=') || rest().starts_with("==")) return {};
    ++at_;
    gaps();
    return at_ < text_.size() && is_quote(text_[at_]) ? quoted() : Introduced{};
  }

  // <password>X</password>, <password encrypted="no">X<
  Introduced in_element() {
    const std::size_t end = rest().substr(0, kMostBefore).find_first_of(">\r\n");
    if (end == npos || text_[at_ + end] != '>' || text_[at_ + end - 1] == '/') return {};
    constexpr std::string_view kAsIs = "<![CDATA[";
    std::size_t begin = at_ + end + 1;
    if (text_.substr(begin).starts_with(kAsIs)) {
      begin += kAsIs.size();
      const std::size_t length = text_.substr(begin, kMostValue).find("]]>");
      return length == npos || length == 0 ? Introduced{} : Introduced{begin, length};
    }
    const std::string_view given = text_.substr(begin, kMostValue);
    const std::size_t length = given.find('<');
    if (length == npos || length == 0 || given.starts_with("-----BEGIN")) return {};
    return is_no_secret(without_gaps(given.substr(0, length))) ? Introduced{} : Introduced{begin, length};
  }

  // name="password" value="X", - name: HF_TOKEN ↵ value: X
  Introduced beside_name() {
    at_ = name_.size();
    at_ += run(rest().substr(0, 128),
               [](char c) { return is_gap(c) || ends_line(c) || c == ',' || c == '{' || is_quote(c); });
    const bool is_apart = at_ != name_.size();
    for (const std::string_view word : {"value", "Value", "VALUE", "default"}) {
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
    if (gaps() == 0) return is_password() ? below_login() : Introduced{};
    if (at_ < text_.size() && is_quote(text_[at_])) {  // #define API_KEY "X", PASSWORD 'X'
      const std::size_t close = text_.substr(at_ + 1, 128).find(text_[at_]);
      const std::string_view word = text_.substr(at_ + 1, close == npos ? 0 : close);
      if (before().ends_with("#define")) return quoted();
      if (word.size() >= 4 && word.find_first_of(" \t\r\n") == npos && word.find("://") == npos &&
          !is_said_of_secrets(word))
        return quoted();
    }
    if (lower(rest().substr(0, 4)) == "for " && is_password()) {  // Password for user me: X
      std::string_view line = rest().substr(0, 128);
      line = line.substr(0, line.find_first_of("\r\n"));
      const std::size_t sign = std::min(line.rfind(": "), line.rfind("= "));
      const std::string_view given = sign == npos ? std::string_view() : without_gaps(line.substr(sign + 2));
      if (!given.empty() && is_quote(given[0])) {  // SET PASSWORD FOR 'u' = 'X'
        at_ += line.find(given, sign + 2);
        return quoted();
      }
      if (given.empty() || is_no_secret(given) || given.find(' ') != npos) return {};
      return {at_ + line.find(given, sign + 2), given.size()};
    }
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
    const std::string_view line = before();
    const bool is_alone = without_gaps(line).empty() && is_password() &&
                          (at_ + given.size() >= text_.size() || ends_line(text_[at_ + given.size()]));
    while (!is_alone && !given.empty() && std::string_view(".,;)]}!").find(given.back()) != npos)
      given.remove_suffix(1);
    if (given.size() < 4 || is_no_secret(given) || is_said_of_secrets(given)) return {};
    const bool is_account = has_word(line, "login") || has_word(line, "machine") || has_word(line, "user");
    const char behind = at_ + given.size() < text_.size() ? text_[at_ + given.size()] : '\n';
    const bool is_line = without_gaps(line).empty() && ends_line(behind) && text_.substr(name_.size(), 1) == "\t";
    const bool is_entry = is_alone;
    const bool is_value =
        given.find_first_of("()<>{}") == npos &&
        (is_mixed_up(given) || (given.size() >= 8 && std::any_of(given.begin(), given.end(), is_digit)));
    const bool is_variable = name_.find('_') != npos || name_.find('-') != npos;
    const bool is_set = has_word(line, "setenv") || line.starts_with("set -");
    const bool is_used = is_password() && (line.ends_with("with") || line.ends_with("using"));
    const bool gives = is_set || (is_used && is_value) || (is_account && is_password()) || is_line || is_entry ||
                       (is_told && (is_password() || is_value)) || (is_variable && is_value);
    return gives ? Introduced{at_, given.size()} : Introduced{};
  }
  // machine h ↵ login user ↵ password ↵ X
  Introduced below_login() const {
    if (at_ >= text_.size() || !ends_line(text_[at_])) return {};
    const std::string_view above =
        whole_.substr(name_at_ > kMostBefore ? name_at_ - kMostBefore : 0, std::min(name_at_, kMostBefore));
    const std::size_t begin = at_ + run(rest().substr(0, 2), ends_line);
    const std::size_t length =
        run(text_.substr(begin, kLooked), [](char c) { return static_cast<unsigned char>(c) > ' '; });
    if (!has_word(above, "login") || !has_word(above, "machine") || length < 4) return {};
    return is_no_secret(text_.substr(begin, length)) ? Introduced{} : Introduced{begin, length};
  }
  bool is_password() const { return Scrubber::kind_of_secret(name_) == Kind::kPassword; }

  std::string_view whole_;
  std::size_t name_at_ = 0;
  std::string_view text_, name_;  // from the name on
  std::optional<std::string_view> before_;
  std::size_t at_ = 0, gap_ = 0;
  bool is_option_ = false, is_quoted_ = false;
};

}  // namespace

Introduced given_secret(std::string_view text, std::size_t at) { return Giving(text, at).found(); }

}  // namespace faultline::pack
