#include "pack/rewrite.h"

#include <algorithm>

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

// Logs have tabs, colours and progress bars; what has other control characters is binary.
bool is_text(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && std::string_view("\t\n\r\f\b\a\x1b").find(c) == npos;
  });
}

Result<std::string> trace_bytes(const Trace& trace) {
  Result<TemporaryFolder> folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  const std::string path = folder->path() + "/trace";
  if (Status written = write_trace_file(trace, path); !written) return written.error();
  return read_plain_file(path, kMostContentBytes);
}

}  // namespace

std::string rewritten_argument(std::string_view word, std::optional<std::string_view> before, Scrubber& scrubber,
                               const Manner& manner) {
  if (before && before->starts_with('-') && before->find('=') == npos && Scrubber::names_secret(*before) &&
      Scrubber::is_secret_value(*before, word))
    return scrubber.stand_in(Scrubber::kind_of_secret(*before), word);
  if (manner.keep_arguments || !before || *before == "-m") return scrubber.scrub(word);
  const std::size_t equals = word.find('=');
  if (word.starts_with('-') && equals == npos) {
    if (Scrubber::is_telling_argument(word)) return scrubber.scrub(word);
    return std::string(word.substr(0, 2)) + scrubber.stand_in(Kind::kArgument, word.substr(2));  // -pX
  }
  if (Scrubber::is_telling_argument(word) && equals == npos) return scrubber.scrub(word);
  // a file; everything else that is no option, number or type may be somebody's own
  const bool is_plain = word.find_first_of(" \t\n=:@?&%\\") == npos;
  if (is_plain && word.starts_with('/')) return scrubber.scrub(word);
  if (is_plain && word.ends_with(".py")) return scrubber.scrub_relative(word);
  const bool has_name = equals != npos && equals != 0 && equals < 64 &&
                        std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
                          return is_alphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '+';
                        });
  if (!has_name) return scrubber.stand_in(Kind::kArgument, word);
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  const std::string clean_name = scrubber.scrub(name) + "=";
  if (Scrubber::names_secret(name) && Scrubber::is_secret_value(name, value))
    return clean_name + scrubber.stand_in(Scrubber::kind_of_secret(name), value);
  return clean_name + (Scrubber::is_telling_argument(value) && !value.starts_with('-')
                           ? std::string(value)
                           : scrubber.stand_in(Kind::kArgument, value));
}

void rewrite(Trace& trace, Scrubber& scrubber) {
  // Ids stay: two texts that became one are told apart by a stroke.
  StringTable strings;
  for (std::uint32_t i = 1; i < trace.strings.size(); ++i) {
    std::string text = scrubber.scrub_file(trace.strings.at(StringId(i)));
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
    // a text that goes on in two bytes a character (UTF-16) is read as one of one
    text->erase(std::remove(text->begin(), text->end(), '\0'), text->end());
    scrubber.learn(*text);
    if (is_json && is_json_text(*text)) return Rewritten{rewritten_json(*text, scrubber, manner), false};
    return Rewritten{scrubber.scrub(*text), false};
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
