#include "sources/error_text/known_words.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/characters.h"
#include "sources/error_text/log_lines.h"
#include "sources/messages/kinds.h"

namespace faultline {
namespace {

constexpr std::size_t kShortestName = 16;  // of one word

struct Printed {
  ByteInterval bytes;
  std::size_t length = 0;
};

// A size with its unit, or, of "{name:n}", a plain number.
std::optional<Printed> number_of_form(std::string_view words, std::size_t at, bool is_plain) {
  if (!is_plain) {
    const auto size = parse_printed_size(words, at, SizeStyle::kTorch);
    return size ? std::optional(Printed{size->bytes, size->length}) : std::nullopt;
  }
  const auto number = number_at(words, at);
  if (!number) return std::nullopt;
  return Printed{ByteInterval::exactly(*number),
                 std::min(words.find_first_not_of("0123456789", at), words.size()) - at};
}

// Fills in what the form names; false: its first number is not there.
bool read_form(std::string_view form, std::string_view words, ErrorMessage& message) {
  constexpr std::size_t kReach = 700;
  std::size_t at = 0;
  bool first = true, has_first = form.empty();
  for (std::size_t open = form.find('{'); open != std::string_view::npos; open = form.find('{')) {
    const std::string_view label = form.substr(0, open);
    std::string_view name = form.substr(open + 1, form.find('}') - open - 1);
    form.remove_prefix(form.find('}') + 1);
    const bool is_plain = name.ends_with(":n");
    if (is_plain) name.remove_suffix(2);
    const std::size_t found = words.find(label, at);
    const std::size_t begin = found + label.size();
    const bool near = found != std::string_view::npos && found < at + kReach && begin < words.size();
    const auto number = near ? number_of_form(words, begin, is_plain || name == "device") : std::nullopt;
    if (number) {
      at = begin + number->length;
      if (name == "device")
        message.device = static_cast<std::uint16_t>(std::min<std::uint64_t>(number->bytes.min, 4096));
      else if (name == "tokens")
        message.tokens = number->bytes.min;
      else if (std::optional<ByteInterval>* const stated = number_named(message, name))
        *stated = number->bytes;
    }
    has_first |= first && number.has_value();
    first = false;
  }
  return has_first;
}

// A name in a list of constants: "OPTIX_ERROR_DEVICE_OUT_OF_MEMORY = 7807," or a label of a switch.
bool is_declared(std::string_view text, const ErrorPassage& passage) {
  if (text.size() < kShortestName || text.find(' ') != std::string_view::npos) return false;
  std::string_view rest = std::string_view(passage.lower).substr(0, passage.first_line_length);
  rest.remove_prefix(std::min(text.size(), rest.size()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest.starts_with('=') || (passage.before.empty() && (rest.empty() || rest == "," || rest.starts_with(", ")));
}

// Behind a mark of code that is still open: "`vkAllocateMemory failed`" of a page. One between letters joins names (of Mathematica's contexts).
bool is_in_code_marks(std::string_view before) {
  std::size_t marks = 0;
  for (std::size_t at = before.find('`'); at != std::string_view::npos; at = before.find('`', at + 1)) {
    const bool joins = at > 0 && is_letter(before[at - 1]) && at + 1 < before.size() && is_letter(before[at + 1]);
    marks += joins ? 0 : 1;
  }
  return marks % 2 != 0;
}

// The longest words that `lower` begins with: several where rows of the same words differ in what they need beside them, the first that has it is meant.
std::vector<const KnownWords*> known_words_at(std::string_view lower) {
  std::vector<const KnownWords*> longest;
  for (const KnownWords& known : all_known_words()) {
    const std::string_view text = known.words->text;
    if (!lower.starts_with(text) || (!longest.empty() && text.size() < longest.front()->words->text.size())) continue;
    if (!longest.empty() && text.size() > longest.front()->words->text.size()) longest.clear();
    longest.push_back(&known);
  }
  return longest;
}

// Whether an exception's name or another label stands in front.
bool has_error_name(std::string_view before) {
  for (const std::string_view word :
       {"Error: ", "Error:", "error: ", "Exception: ", "what(): ", "!!! ", "] failed: "}) {
    if (before.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// The whole sentence: what stands in front of the words on their line belongs to it, behind the exception's name.
std::string whole_sentence(const ErrorPassage& passage) {
  const std::string front = passage.before.empty() ? std::string() : passage.before + " ";
  std::string_view before = front;
  for (const std::string_view name : {"Error: ", "Exception: ", "what(): "}) {
    if (const std::size_t at = before.rfind(name); at != std::string_view::npos) {
      before = before.substr(at + name.size());
      break;
    }
  }
  return trimmed(std::string(before) + passage.words.substr(0, std::min<std::size_t>(passage.first_line_length, 400)),
                 400);
}

// "see NV_ENC_ERR_OUT_OF_MEMORY": the word in front is one of a sentence, and nothing in it fails.
bool follows_a_word(std::string_view before) {
  while (before.ends_with(' ')) before.remove_suffix(1);
  const std::string_view word = before.substr(before.find_last_of(' ') + 1);
  if (word.empty() || !std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; })) return false;
  static constexpr std::array<std::string_view, 12> kReports = {
      "fail", "error", " code", "status", "return", "throw", "abort", "caught", "crash", "result", "got", "panic"};
  const std::string lower = lower_case(before);
  return std::none_of(kReports.begin(), kReports.end(),
                      [&](std::string_view report) { return lower.find(report) != std::string::npos; });
}

// "VK_ERROR_DEVICE_LOST will be reported": a constant's name in a sentence about it.
bool is_talked_about(std::string_view text, const ErrorPassage& passage) {
  if (text.size() < kShortestName || text.find(' ') != std::string_view::npos) return false;
  std::string_view rest = std::string_view(passage.lower).substr(0, passage.first_line_length);
  rest.remove_prefix(std::min(text.size(), rest.size()));
  if (text.find('_') != std::string_view::npos && follows_a_word(passage.before)) return true;
  // A part of a longer name, "cudaErrorIncompatibleDriverContext".
  const auto is_of_name = [](char c) { return is_letter(c) || is_digit(c) || c == '_'; };
  if (!rest.empty() && is_of_name(rest[0]) && is_of_name(text.back())) return true;
  // "DXGI_ERROR_DEVICE_REMOVED: Final = -2005270523", `("cudaErrorA", "hipErrorB"),`
  const bool is_first = passage.before.empty();
  if (is_first && rest.starts_with(": ") && rest.find(" = ") != std::string_view::npos) return true;
  if (!is_first && (passage.before[0] == '(' || passage.before[0] == '"') && rest.starts_with('"')) return true;
  static constexpr std::array<std::string_view, 16> kVerbs = {
      " will ", " may ",    " can ",     " could ", " should ", " would ",  " is returned", " is raised",
      " means", " occurs ", " happens ", " or ",    " and ",    " errors ", " if ",         " when the "};
  return std::any_of(kVerbs.begin(), kVerbs.end(), [&](std::string_view verb) { return rest.starts_with(verb); });
}

bool stands_as_wanted(const MessageWords& words, const ErrorPassage& passage) {
  switch (words.stands) {
    case Stands::kAnywhereOrCode:
    case Stands::kAsAccepted: return true;
    case Stands::kAsErrorOrCode: return stands_as_message(passage) || has_error_name(passage.before);
    case Stands::kBegins: return passage.before.empty() || has_error_name(passage.before);
    case Stands::kBehindName: return has_error_name(passage.before);
    case Stands::kAsError:
      if (!stands_as_message(passage) && !has_error_name(passage.before)) return false;
      break;
    case Stands::kAnywhere: break;
  }
  return !is_declared(words.text, passage) && !is_in_code_marks(passage.before);
}

// Nothing, where the words are only talked about or lack what they need.
std::optional<ErrorMessage> read_words(const KnownWords& known, const ErrorPassage& passage) {
  const MessageWords& words = *known.words;
  if (!stands_as_wanted(words, passage) || (words.accepts != nullptr && !words.accepts(passage))) return std::nullopt;
  std::string around = lower_case(passage.before);
  const std::string_view line =
      std::string_view(passage.lower).substr(0, std::max<std::size_t>(passage.first_line_length, 300));
  around += (around.empty() || around.ends_with(' ') ? "" : " ") + std::string(line);
  if (!words.needs.empty() && around.find(words.needs) == std::string::npos) return std::nullopt;
  ErrorMessage message = said(known.kind, known.program, whole_sentence(passage));
  const bool has_numbers =
      read_form(words.form,
                around.size() > line.size() + 1 ? around + passage.lower.substr(line.size()) : passage.lower, message);
  if (words.stands == Stands::kAnywhere && !has_numbers) return std::nullopt;
  message.weak = words.force != Force::kStrong;
  if (words.force == Force::kBenign) message.benign = true;
  if (words.reads != nullptr) words.reads(passage, message);
  return message;
}

}  // namespace

std::optional<ErrorMessage> read_known_message(const ErrorPassage& passage) {
  const std::vector<const KnownWords*> known = known_words_at(passage.lower);
  if (known.empty() || is_talked_about(known.front()->words->text, passage)) return std::nullopt;
  for (const KnownWords* words : known) {
    if (auto message = read_words(*words, passage)) return message;
  }
  return std::nullopt;
}

}  // namespace faultline
