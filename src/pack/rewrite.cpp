#include "pack/rewrite.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/byte_stream.h"
#include "base/characters.h"
#include "base/plain_file.h"
#include "base/temporary_folder.h"
#include "base/units.h"
#include "pack/secrets.h"
#include "sources/input.h"
#include "sources/pack/pack.h"
#include "trace/file_reader.h"
#include "trace/file_writer.h"
#include "trace/text.h"

namespace faultline::pack {
namespace {

constexpr std::size_t kHeadBytes = 4096;
constexpr std::size_t kMostTextBytes = std::size_t{1} << 30;
constexpr std::size_t kMostContentBytes = std::size_t{2} << 30;

std::string_view as_text(const std::uint8_t* begin, const std::uint8_t* end) {
  return {reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin)};
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Logs have tabs, colours and progress bars; what has other control characters is binary.
bool is_text(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && std::string_view("\t\n\r\f\b\x1b").find(c) == npos;
  });
}

bool is_command(std::string_view key) {
  return key == "command" || key == "argv" || key == "arguments" || key == "cmd" || key == "cmdline";
}
// What decides about memory is kept of an environment; everything else is somebody's own.
bool is_telling_variable(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kBegins = {"PYTORCH_", "CUDA_", "TORCH_", "TF_",  "XLA_",
                                                               "JAX_",     "NCCL_", "OMP_",   "MKL_", "WORLD_SIZE"};
  return std::any_of(kBegins.begin(), kBegins.end(), [&](std::string_view begin) { return name.starts_with(begin); });
}

// A pass over a JSON text: strings are looked at, all else is copied.
class JsonPass {
 public:
  JsonPass(std::string_view text, Scrubber& scrubber, const Manner& manner)
      : text_(text), scrubber_(scrubber), manner_(manner) {
    inside_.push_back({});
  }
  std::string run() {
    out_.reserve(text_.size());
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        string();
        continue;
      }
      if (c == '{' || c == '[') inside_.push_back({std::string(inside_.back().key), {}, {}, c == '['});
      if ((c == '}' || c == ']') && inside_.size() > 1) inside_.pop_back();
      out_ += c;
      ++at_;
    }
    return std::move(out_);
  }

 private:
  struct Inside {
    std::string name;    // the key whose value this is
    std::string key;     // of an object: the last one
    std::string before;  // of an array: the last string
    bool is_array = false;
  };

  void string() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    end = std::min(end, text_.size());
    const std::string_view raw = text_.substr(at_ + 1, end - at_ - 1);
    const bool is_closed = end < text_.size();
    std::size_t next = is_closed ? end + 1 : end;
    while (next < text_.size() && is_blank(text_[next])) ++next;
    const bool is_key = !inside_.back().is_array && next < text_.size() && text_[next] == ':';
    std::string value(raw);
    bool is_decoded = raw.find('\\') == npos;
    if (!is_decoded && is_closed) {
      const nlohmann::json parsed = nlohmann::json::parse(text_.substr(at_, end + 1 - at_), nullptr, false);
      if (parsed.is_string()) value = parsed.get<std::string>(), is_decoded = true;
    }
    const std::string clean = is_key ? key(value) : this->value(value);
    if (clean == value)
      out_.append(text_.substr(at_, end - at_)), out_ += is_closed ? "\"" : "";
    else if (is_decoded)
      out_ += nlohmann::json(clean).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    else
      out_ += '"' + clean + (is_closed ? "\"" : "");  // stand-ins have neither quotes nor backslashes
    if (is_key)
      inside_.back().key = value;
    else
      inside_.back().before = value;
    at_ = is_closed ? end + 1 : end;
  }

  // Readers look for keys: only what is plainly no word of theirs is replaced in them.
  std::string key(const std::string& name) {
    return name.find_first_of("/@\\") != npos || name.size() > 20 ? scrubber_.scrub(name) : name;
  }

  std::string value(const std::string& value) {
    const Inside& here = inside_.back();
    const std::string& name = here.is_array ? here.name : here.key;
    if (!here.is_array && Scrubber::names_secret(name) && Scrubber::is_secret_value(name, value))
      return scrubber_.stand_in(Scrubber::kind_of_secret(name), value);
    if (here.is_array && is_command(name)) return rewritten_argument(value, here.before, scrubber_, manner_);
    if (here.is_array && here.before.starts_with('-') && Scrubber::names_secret(here.before) &&
        Scrubber::is_secret_value(here.before, value))
      return scrubber_.stand_in(Scrubber::kind_of_secret(here.before), value);
    if (!here.is_array && (here.name == "environment" || here.name == "env") && !is_telling_variable(name) &&
        !value.empty() && !manner_.keep_arguments)
      return scrubber_.stand_in(Kind::kArgument, value);
    return scrubber_.scrub(value);
  }

  std::string_view text_;
  Scrubber& scrubber_;
  Manner manner_;
  std::vector<Inside> inside_;
  std::string out_;
  std::size_t at_ = 0;
};

Result<std::string> trace_bytes(const Trace& trace) {
  Result<TemporaryFolder> folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  const std::string path = folder->path() + "/trace";
  if (Status written = write_trace_file(trace, path); !written) return written.error();
  return read_plain_file(path, kMostContentBytes);
}

}  // namespace

std::string rewritten_json(std::string_view text, Scrubber& scrubber, const Manner& manner) {
  return JsonPass(text, scrubber, manner).run();
}

std::string rewritten_argument(std::string_view word, std::string_view before, Scrubber& scrubber,
                               const Manner& manner) {
  if (before.starts_with('-') && before.find('=') == npos && Scrubber::names_secret(before) &&
      Scrubber::is_secret_value(before, word))
    return scrubber.stand_in(Scrubber::kind_of_secret(before), word);
  const std::string clean = scrubber.scrub(word);
  // the program, its file, a module; everything else that is no option, number or type may be somebody's own
  const bool is_file = word.ends_with(".py") || word.find('/') != npos;
  if (manner.keep_arguments || before.empty() || before == "-m" || Scrubber::is_telling_argument(word) ||
      (is_file && word.find(' ') == npos && word.find('=') == npos)) {
    const std::size_t equals = word.find('=');
    if (manner.keep_arguments || equals == npos || !word.starts_with('-')) return clean;
  }
  const std::size_t equals = word.find('=');
  const bool has_name =
      equals != npos && equals != 0 && equals < 64 &&
      std::all_of(
          word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
          [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || c == '+'; });
  if (!has_name) return scrubber.stand_in(Kind::kArgument, word);
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  if (Scrubber::names_secret(name) && Scrubber::is_secret_value(name, value))
    return std::string(name) + "=" + scrubber.stand_in(Scrubber::kind_of_secret(name), value);
  return std::string(name) + "=" +
         (Scrubber::is_telling_argument(value) && !value.starts_with('-') ? std::string(value)
                                                                          : scrubber.stand_in(Kind::kArgument, value));
}

void rewrite(Trace& trace, Scrubber& scrubber) {
  // Ids stay: two texts that became one are told apart by a stroke.
  StringTable strings;
  for (std::uint32_t i = 1; i < trace.strings.size(); ++i) {
    std::string text = scrubber.scrub(trace.strings.at(StringId(i)));
    while (strings.intern(text) != StringId(i)) text += '~';
  }
  trace.strings = std::move(strings);
  for (Heap& heap : trace.heaps) heap.name = scrubber.scrub(heap.name);
  for (Device& device : trace.devices) device.name = scrubber.scrub(device.name);
  trace.source_path = scrubber.scrub(trace.source_path);
  for (auto& [name, value] : trace.properties)
    value = Scrubber::names_secret(name) && Scrubber::is_secret_value(name, value)
                ? scrubber.stand_in(Scrubber::kind_of_secret(name), value)
                : scrubber.scrub(value);
  std::map<std::string, std::uint64_t> lost;
  for (const auto& [what, times] : trace.lost) lost[scrubber.scrub(what)] += times;
  trace.lost = std::move(lost);
}

Result<Rewritten> rewritten_file(const std::string& path, Scrubber& scrubber, const Manner& manner) {
  Result<ByteStream> stream = ByteStream::open(path, NamedBy::kInput);
  if (!stream) return stream.error();
  if (Result<const std::uint8_t*> head = stream->more(stream->begin(), kHeadBytes); !head) return head.error();
  const std::string_view head = as_text(stream->begin(), stream->end()).substr(0, kHeadBytes);
  if (looks_like_pack({stream->begin(), stream->end()})) return Error{"this is a pack already", {}, {}};
  const bool was_trace = looks_like_trace_file({stream->begin(), stream->end()});
  const bool is_trace_text = looks_like_trace_text(head);
  if (is_text(head) && !is_trace_text) {
    const std::size_t first = std::min(head.find_first_not_of(" \t\r\n"), head.size());
    const bool is_json = first < head.size() && (head[first] == '{' || head[first] == '[');
    Result<std::string> text = stream->read_all(kMostTextBytes);
    if (!text) return text.error();
    scrubber.learn(*text);
    return Rewritten{is_json ? rewritten_json(*text, scrubber, manner) : scrubber.scrub(*text), false};
  }
  Result<Trace> trace = load(path, NamedBy::kInput);
  if (!trace) return Error{"it is binary and cannot be read: " + trace.error().message(), {}, {}};
  for (std::uint32_t i = 1; i < trace->strings.size(); ++i) scrubber.learn(trace->strings.at(StringId(i)));
  rewrite(*trace, scrubber);
  if (is_trace_text) return Rewritten{trace_to_text(*trace), false};
  Result<std::string> bytes = trace_bytes(*trace);
  if (!bytes) return bytes.error();
  return Rewritten{std::move(*bytes), !was_trace};
}

}  // namespace faultline::pack
