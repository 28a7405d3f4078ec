#include "sources/error_text/other_failures.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "base/characters.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/plain_text.h"
#include "sources/error_text/quotation.h"
#include "sources/error_text/text_limits.h"

namespace faultline {
namespace {

constexpr std::size_t kMostTold = 4, kMostHeads = 256, kMostCauses = 12;
constexpr std::string_view kWatchdog = "Watchdog caught collective operation timeout";

// One error, of one writer or of several.
struct Told {
  std::string key, place, words;
  std::vector<std::string> writers;
  bool follows = false;  // by its words and its place it comes of a rank that has ended
  std::size_t more = 0;  // of the same writer, at the same line, with other numbers
};

// What several of them have in common: the words, whatever their numbers.
std::string cause_of(const Told& one) {
  std::string cause;
  for (const char letter : one.words.substr(0, 60)) {
    if (!is_digit(letter))
      cause += letter;
    else if (cause.empty() || cause.back() != '#')
      cause += '#';
  }
  return cause;
}

// Of an allocator's message what tells it from others.
std::string short_words(const ErrorMessage& message) {
  const std::size_t end = std::min(message.text.find(" (GPU "), message.text.find(". GPU "));
  if (end == std::string::npos) return trimmed(message.text, 160);
  return message.text.substr(0, end) + (message.device ? " on GPU " + std::to_string(*message.device) : "");
}

void add(std::vector<Told>& all, Told one) {
  const auto known = std::find_if(all.begin(), all.end(), [&](const Told& other) { return other.key == one.key; });
  if (known == all.end()) return all.push_back(std::move(one));
  if (one.writers == known->writers) ++known->more;
  for (std::string& writer : one.writers) {
    if (std::find(known->writers.begin(), known->writers.end(), writer) == known->writers.end())
      known->writers.push_back(std::move(writer));
  }
}

std::string written(const Told& one) {
  std::string who;
  for (std::size_t i = 0; i < one.writers.size() && i < 3; ++i) who += (i == 0 ? "" : " and ") + one.writers[i];
  if (one.writers.size() > 3) who += " and " + std::to_string(one.writers.size() - 3) + " more";
  return (who.empty() ? "" : who + ", ") + one.place +
         (one.more == 0 ? "" : " and " + std::to_string(one.more) + " more like it") +
         (one.follows ? ", likely a consequence (a rank that ends leaves the others waiting): " : ": ") + one.words;
}

std::optional<TracebackFrame> own_line(const std::vector<TracebackFrame>& frames) {
  const auto own =
      std::find_if(frames.rbegin(), frames.rend(), [](const TracebackFrame& frame) { return !is_installed(frame); });
  return own == frames.rend() ? std::nullopt : std::optional(*own);
}

std::string line_words(std::string_view text, std::size_t at, const std::optional<TracebackFrame>& own) {
  return "line " + std::to_string(line_number(text, at)) +
         (own ? ", " + own->file + ":" + std::to_string(own->line) : "");
}

std::vector<std::string> writers_of(std::string_view text, const std::string& tag) {
  const std::string who = writer_of(text, tag).name;
  return who.empty() ? std::vector<std::string>() : std::vector<std::string>{who};
}

// Of one kind, and yet another error: its request, its device or its line is another.
bool is_another(const Chosen& one, const std::optional<TracebackFrame>& one_line, const Chosen& other,
                const std::optional<TracebackFrame>& other_line) {
  const bool other_writer = is_other_writer(one.message.tag, other.message.tag);
  if (other_writer) return one.message.text != other.message.text;  // what one said another may repeat
  // One process tells of a fault of a kernel, or of its pool, more than once.
  if (ends_cuda(one.message.kind) || is_of_pool(one.message)) return false;
  const auto &request = one.message.requested, &wanted = other.message.requested;
  if (request && wanted && (surely_less(*request, *wanted) || surely_less(*wanted, *request))) return true;
  if (one.message.device && other.message.device && one.message.device != other.message.device) return true;
  return one_line && other_line && (one_line->file != other_line->file || one_line->line != other_line->line);
}

bool is_same_place(const std::vector<Chosen>& all, std::size_t at) {
  return std::any_of(all.begin(), all.end(), [&](const Chosen& one) { return one.begin == at; });
}

bool is_kind(const std::vector<Chosen>& all, MessageKind kind) {
  return std::any_of(all.begin(), all.end(), [&](const Chosen& one) { return one.message.kind == kind; });
}

void add_messages(std::string_view text, const Survey& seen, const Chosen& chosen, const std::vector<Chosen>& survived,
                  std::vector<Told>& all, OtherFailures& others) {
  std::map<std::size_t, std::optional<TracebackFrame>> lines;  // by where the message stands
  const auto own_of = [&](const Chosen& one) -> const std::optional<TracebackFrame>& {
    const auto [at, fresh] = lines.try_emplace(one.begin);
    if (fresh) at->second = own_line(traceback_at(text, one.begin, one.message.tag));
    return at->second;
  };
  const std::optional<TracebackFrame> own = own_of(chosen);
  const bool of_kernel_log = is_kind(seen.kernel_log, chosen.message.kind);
  std::vector<Chosen> candidates = seen.all;
  const auto kernel_line = std::find_if(seen.kernel_log.begin(), seen.kernel_log.end(),
                                        [](const Chosen& line) { return line.message.kind == MessageKind::kXid; });
  if (kernel_line != seen.kernel_log.end() && !of_kernel_log) candidates.push_back(*kernel_line);
  std::set<MessageKind> kinds;  // of the same writer, each kind once
  for (const Chosen& other : candidates) {
    if (other.begin == chosen.begin) others.times += other.times;
    if (other.begin == chosen.begin) continue;
    const bool same_kind = other.message.kind == chosen.message.kind,
               other_writer = is_other_writer(chosen.message.tag, other.message.tag);
    const std::optional<TracebackFrame> line = own_of(other);
    if (same_kind && !is_another(chosen, own, other, line)) {
      others.times += other.times;
      continue;
    }
    if (is_same_place(survived, other.begin)) continue;
    if (of_kernel_log && is_kind(seen.kernel_log, other.message.kind)) continue;  // explained by itself
    if (other.message.weak && other.message.kind != MessageKind::kXid &&
        !(other_writer && ends_cuda(other.message.kind)))
      continue;
    if (!other_writer && !same_kind) {
      // What follows an error that ends all work with CUDA is its consequence, unless another writer tells of it.
      if (ends_cuda(chosen.message.kind) && (other.begin > chosen.begin || ends_cuda(other.message.kind))) continue;
      if (is_kind(survived, other.message.kind) || !kinds.insert(other.message.kind).second) continue;
    }
    // The like of one that was survived, at the same line.
    if (std::any_of(survived.begin(), survived.end(), [&](const Chosen& before) {
          return before.message.kind == other.message.kind && !is_another(before, own_of(before), other, line);
        }))
      continue;
    add(all, {std::string(name_of(other.message.kind)) + " " +
                  (!other.message.requested || !other_writer ? std::string()
                                                             : std::to_string(other.message.requested->middle())) +
                  (other_writer ? "" : "own") + " " + (line ? line->file + ":" + std::to_string(line->line) : ""),
              line_words(text, other.begin, line), short_words(other.message), writers_of(text, other.message.tag)});
  }
}

// What comes of a rank that has ended: the others wait for it, or find the connection closed.
bool is_of_waiting(std::string_view words) {
  static constexpr std::array<std::string_view, 6> kParts = {
      "NCCL", "DistBackendError", "Watchdog", "Connection closed by", "Connection reset by peer", "Broken pipe"};
  return has_any(words, kParts);
}

// Exceptions of other writers that are no messages of GPU memory.
void add_exceptions(std::string_view text, const Survey& seen, const Chosen& chosen, std::vector<Told>& all) {
  if (writer_of(text, chosen.message.tag).name.empty()) return;
  static constexpr std::array<std::string_view, 5> kOfLaunchers = {"ChildFailedError", "CalledProcessError",
                                                                   "ProcessRaisedException", "ProcessExitedException",
                                                                   "KeyboardInterrupt"};
  std::set<std::string> told = {chosen.message.tag};
  for (const Chosen& one : seen.all) told.insert(one.message.tag);
  const auto is_new = [&](const std::string& tag) {
    return !tag.empty() && !writer_of(text, tag).name.empty() && told.insert(tag).second;
  };
  const auto tag_at = [&](std::size_t at) {
    const std::size_t begin = line_begin(text, at, kLongestLine);
    return split_prefix(text.substr(begin, kLongestLine)).tag;
  };
  const auto add_one = [&](std::size_t at, const std::string& tag, const std::string& words,
                           const std::optional<TracebackFrame>& own) {
    const bool follows = at > chosen.begin && is_of_waiting(words);
    add(all, {words.substr(0, 60) + (follows ? " follows" : ""), line_words(text, at, own), trimmed(words, 160),
              writers_of(text, tag), follows});
  };
  std::size_t heads = 0;
  for (std::size_t head = text.find(kTracebackHead); head != std::string_view::npos && ++heads < kMostHeads;
       head = text.find(kTracebackHead, head + 1)) {
    const std::string tag = tag_at(head);
    if (tag.empty() || tag == chosen.message.tag) continue;
    const ExceptionLine exception = exception_of(text, head, tag);
    if (exception.words.empty() || has_any(exception.words, kOfLaunchers) || !is_new(tag)) continue;
    // without the module of its name
    const std::size_t name = exception.words.rfind('.', std::min(exception.words.find(':'), exception.words.size()));
    add_one(exception.begin, tag, exception.words.substr(name == std::string::npos ? 0 : name + 1),
            own_line(traceback_at(text, exception.begin, tag)));
  }
  heads = 0;
  for (std::size_t at = text.find(kWatchdog); at != std::string_view::npos && ++heads < kMostHeads;
       at = text.find(kWatchdog, at + 1)) {
    const std::string tag = tag_at(at);
    if (is_new(tag)) add_one(at, tag, clean_line(text.substr(at, line_end(text, at, 200) - at), 200), std::nullopt);
  }
}

}  // namespace

LogWriter writer_of(std::string_view text, std::string_view tag) {
  for (const std::string_view word : {"rank", "Rank", "RANK"}) {
    const std::size_t at = tag.find(word);
    if (at == std::string_view::npos) continue;
    const std::size_t digit = tag.find_first_of("0123456789", at);
    if (digit == std::string_view::npos || digit > at + word.size() + 2) continue;
    const std::size_t end = tag.find_first_not_of("0123456789", digit);
    return {.name = "rank " + std::string(tag.substr(digit, end == std::string_view::npos ? end : end - digit)),
            .is_rank = true};
  }
  if (tag.find("pid=") != std::string_view::npos && tag.starts_with('('))
    return {.name = tag.starts_with("(pid=") ? "process " + std::string(tag.substr(5, tag.find_first_of(",)") - 5))
                                             : std::string(tag.substr(1, tag.find_first_of(",)") - 1))};
  while (!tag.empty() && std::string_view(":| ]").find(tag.back()) != std::string_view::npos) tag.remove_suffix(1);
  if (tag.starts_with('[')) tag.remove_prefix(1);
  // mpirun's job and rank: "[1,3]<stderr>:"
  if (const std::size_t comma = tag.find(',');
      comma != std::string_view::npos && comma + 1 < tag.size() &&
      std::all_of(tag.begin() + static_cast<std::ptrdiff_t>(comma) + 1, tag.end(), is_digit))
    return {.name = "rank " + std::string(tag.substr(comma + 1)), .is_rank = true};
  if (tag.empty() || tag.size() > 40 || tag.find_first_of(" ,[](){}\"'") != std::string_view::npos) return {};
  if (!std::all_of(tag.begin(), tag.end(), is_digit)) return {.name = std::string(tag)};
  // The number of a task stands before many lines, that of a line before one.
  const std::string mark = std::string(tag) + ": ";
  const std::size_t first = text.starts_with(mark) ? 0 : text.find("\n" + mark);
  const bool again = first != std::string_view::npos && text.find("\n" + mark, first + 1) != std::string_view::npos;
  return again ? LogWriter{.name = "task " + std::string(tag), .is_task = true} : LogWriter();
}

bool is_installed(const TracebackFrame& frame) {
  return frame.file.find("-packages") != std::string::npos || frame.file.find("/lib/python3") != std::string::npos;
}

std::uint64_t line_number(std::string_view text, std::size_t at) {
  std::uint64_t line = 1;
  const char *here = text.data(), *const end = here + at;
  while ((here = static_cast<const char*>(std::memchr(here, '\n', static_cast<std::size_t>(end - here)))) != nullptr) {
    if (here == text.data() || here[-1] != kOverwritten) ++line;
    if (++here == end) break;
    if (*here == kLeftOut)
      line += number_at(text, static_cast<std::size_t>(here - text.data()) + 1).value_or(1) - 1;  // for its own
  }
  return line;
}

std::string place_words(std::string_view text, const Chosen& message) {
  return line_words(text, message.begin, own_line(traceback_at(text, message.begin, message.message.tag))) + ": " +
         short_words(message.message);
}

OtherFailures other_failures(std::string_view text, const Survey& seen, const Chosen& chosen,
                             const std::vector<Chosen>& survived) {
  OtherFailures others;
  std::vector<Told> all;
  add_messages(text, seen, chosen, survived, all, others);
  add_exceptions(text, seen, chosen, all);
  if (all.size() <= kMostTold) {
    for (const Told& one : all) others.told.push_back(written(one));
    return others;
  }
  // Too many to be told one by one: each cause once, by the first that tells of it.
  std::vector<Told> causes;
  for (Told& one : all) {
    one.key = cause_of(one);
    const auto known =
        std::find_if(causes.begin(), causes.end(), [&](const Told& other) { return other.key == one.key; });
    if (known == causes.end()) {
      causes.push_back(std::move(one));
      continue;
    }
    known->more += 1 + one.more;
    for (std::string& writer : one.writers) {
      if (std::find(known->writers.begin(), known->writers.end(), writer) == known->writers.end())
        known->writers.push_back(std::move(writer));
    }
  }
  for (std::size_t i = 0; i < causes.size() && i < kMostTold; ++i) others.told.push_back(written(causes[i]));
  std::string rest;
  for (std::size_t i = kMostTold; i < causes.size() && i < kMostCauses; ++i)
    rest += (rest.empty() ? "" : "; ") + (causes[i].writers.empty() ? "" : causes[i].writers.front() + ", ") +
            trimmed(causes[i].words, 60);
  if (causes.size() > kMostTold)
    others.told.back() += " (and " + std::to_string(causes.size() - kMostTold) + " more causes: " + rest +
                          (causes.size() > kMostCauses ? "; …)" : ")");
  return others;
}

}  // namespace faultline
