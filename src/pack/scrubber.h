// Scrubber: takes out of texts what tells who and where somebody is, and what lets others in.
//
// What it takes out is replaced by a stand-in, the same for the same thing wherever it stands and another for another: stacks and reports agree with each
// other afterwards as they did before. A path keeps its form (system folders, what is installed, a file's own name, everything below the project), so that
// whatever is concluded from a path is concluded from its stand-in too.
//
//   /home/anna/acme/train.py   /home/user/folder-1/train.py          anna@acme.io      <email-1>
//   the project's folder       /home/user/project                    10.0.0.7          <ip-1>
//   hf_abc…, AKIA…, eyJ….…     <token-1>                             --password=pw     --password=<password-1>
//
// One pass over the text, from left to right, by tables and not by regular expressions: a hostile text costs its length.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace faultline::pack {

enum class Kind : std::uint8_t {
  kHome,
  kProject,
  kFolder,
  kUser,
  kHost,
  kArgument,
  kToken,
  kPassword,
  kPrivateKey,
  kEmail,
  kAddress,
  kWord  // that was asked for
};
inline constexpr int kKindCount = 12;
std::string_view name_of(Kind kind);  // "tokens and keys"

// Whose machine it is. Empty where it is not known.
struct Owner {
  std::vector<std::string> homes;
  std::vector<std::string> users;
  std::vector<std::string> hosts;
  std::vector<std::string> projects;  // folders
  std::vector<std::string> words;     // that are to go wherever they stand
};

class Scrubber {
 public:
  explicit Scrubber(const Owner& owner);

  // Learns names of users from the paths in a text, before anything is replaced.
  void learn(std::string_view text);

  std::string scrub(std::string_view text);
  // Of a text that may be a file's path and nothing else: its last part is the file's name, whatever it is.
  std::string scrub_file(std::string_view text);
  std::string scrub_relative(std::string_view path);  // of a path that need not begin at the top
  // The stand-in of a value that is known to be of this kind, whatever it looks like.
  std::string stand_in(Kind kind, std::string_view value);
  // An option's, a variable's or a member's name: what it is given is a secret ("--hf-token", "WANDB_API_KEY").
  static bool names_secret(std::string_view name);         // perhaps: is_secret_value decides
  static bool surely_names_secret(std::string_view name);  // whatever it is given
  static bool is_secret_value(std::string_view name, std::string_view value);
  static Kind kind_of_secret(std::string_view name);
  // A word of a command line that says how a program was run and not whose it is: an option's name, a number, a size, a type.
  static bool is_telling_argument(std::string_view word);

  // How many were replaced, and how many different ones.
  struct Count {
    std::uint64_t times = 0;
    std::uint64_t different = 0;
  };
  const std::array<Count, kKindCount>& counts() const { return counts_; }

 private:
  // What goes of a text: `length` characters, `before` characters behind where it was looked for; none: nothing goes.
  struct Taken {
    std::size_t before = 0, length = 0;
    std::string stand_in;
  };
  // `seam`: the next place where a colour begins or ends
  Taken path_at(std::string_view text, std::size_t at, char before);
  Taken windows_path_at(std::string_view text, std::size_t at);
  Taken secret_at(std::string_view text, std::size_t at, std::size_t seam);
  Taken word_at(std::string_view text, std::size_t at, bool begins, std::size_t seam);
  void scrub_piece(std::string_view text, std::string& out);
  bool is_host(std::string_view text, std::size_t at) const;
  std::string_view known_user(std::string_view name) const;
  void add_word(Kind kind, const std::string& word);
  std::string with_words_replaced(std::string_view text);
  std::string path_stand_in(std::string_view path, bool ends_in_file);
  std::string below(std::string_view path, bool ends_in_file);  // of a folder that has its stand-in
  void count(Kind kind) { ++counts_[static_cast<std::size_t>(kind)].times; }

  struct Root {
    std::string folder, stand_in;
    Kind kind = Kind::kHome;
  };
  std::vector<Root> roots_;  // the longest first
  // by length, then as they are in small letters
  std::map<std::size_t, std::unordered_map<std::string, std::pair<Kind, std::string>>> words_;
  std::array<bool, 256> begins_word_{};
  std::size_t learned_ = 0;
  bool has_asked_ = false, is_file_ = false;
  std::map<std::pair<Kind, std::string>, std::string, std::less<>> known_;
  std::array<Count, kKindCount> counts_{};
};

}  // namespace faultline::pack
