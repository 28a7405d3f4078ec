#include "sources/symbolise.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/demangle.h"
#include "base/elf/line_table.h"
#include "base/mapped_file.h"

namespace faultline {
namespace {

// A frame of the trace that names a place in a module.
struct NativeFrame {
  FrameId frame;
  std::uint64_t offset = 0;
};

struct Meaning {
  std::string function;  // empty: no symbol covers it
  SourceLine source;
};

std::optional<std::uint64_t> native_offset(const Frame& frame, std::string_view function) {
  if (frame.line != 0 || frame.file == StringId() || !function.starts_with("+0x")) return std::nullopt;
  std::uint64_t offset = 0;
  const auto [end, problem] = std::from_chars(function.data() + 3, function.data() + function.size(), offset, 16);
  return problem == std::errc() && end == function.data() + function.size() ? std::optional(offset) : std::nullopt;
}

// A module that was installed, or Python itself: its functions are named, but its lines, where it has debug information, are nobody's to change and would pass for the user's.
bool is_installed(std::string_view module) {
  const std::string_view name = module.substr(module.rfind('/') + 1);
  if (name.starts_with("python") || name.starts_with("libpython")) return true;
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/", "/lib-dynload/"}) {
    if (module.find(folder) != std::string_view::npos) return true;
  }
  const bool in_system = module.starts_with("/usr/") || module.starts_with("/lib/") || module.starts_with("/lib64/") ||
                         module.starts_with("/opt/");
  return in_system && name.find(".so") != std::string_view::npos;
}

// "1a2b…" of the build-id note, by which distributions keep debug information apart from the file.
std::string build_id(const ElfFile& file) {
  const std::optional<ElfSection> section = file.find(".note.gnu.build-id");
  if (!section) return {};
  ByteCursor cursor(file.raw(*section));
  const std::uint32_t name_bytes = cursor.u32();
  const std::uint32_t id_bytes = cursor.u32();
  cursor.skip(4 + (std::uint64_t{name_bytes} + 3) / 4 * 4);
  std::string text;
  for (const std::uint8_t byte : cursor.take(std::min<std::uint32_t>(id_bytes, 64)))
    text += fmt::format("{:02x}", byte);
  return text;
}

// The best symbol of each address: the smallest that covers it; a name that others may use before a private one.
class SymbolSearch {
 public:
  explicit SymbolSearch(const std::vector<NativeFrame>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) wanted_.emplace_back(frames[i].offset, i);
    std::sort(wanted_.begin(), wanted_.end());
    best_.resize(frames.size());
    looks_left_ = kLooksEach * (frames.size() + 1024);
  }

  void look_into(const ElfFile& file) {
    for (const std::uint32_t kind : {kElfSymbolTable, kElfDynamicSymbols}) {
      file.for_each_symbol(kind, [&](const ElfSymbol& symbol) {
        if (!symbol.is_function || symbol.size_bytes == 0) return;
        auto at = std::lower_bound(wanted_.begin(), wanted_.end(), std::pair(symbol.address, std::size_t{0}));
        for (; at != wanted_.end() && at->first - symbol.address < symbol.size_bytes && looks_left_ != 0;
             ++at, --looks_left_) {
          ElfSymbol& best = best_[at->second];
          const bool is_better = best.name.empty() || symbol.size_bytes < best.size_bytes ||
                                 (symbol.size_bytes == best.size_bytes && symbol.is_global && !best.is_global);
          if (is_better && !symbol.name.empty()) best = symbol;
        }
      });
    }
  }
  std::string_view name(std::size_t place) const { return best_[place].name; }

 private:
  static constexpr std::size_t kLooksEach = 256;  // symbols that cover one address: a few, unless somebody made them so

  std::vector<std::pair<std::uint64_t, std::size_t>> wanted_;
  std::size_t looks_left_ = 0;
  std::vector<ElfSymbol> best_;
};

std::vector<Meaning> read_module(const ElfFile& file, const std::vector<NativeFrame>& frames) {
  std::vector<Meaning> meanings(frames.size());
  SymbolSearch symbols(frames);
  symbols.look_into(file);
  std::vector<std::uint64_t> offsets;
  for (const NativeFrame& frame : frames) offsets.push_back(frame.offset);
  std::array<std::vector<std::uint8_t>, 3> storage;
  LineSections lines = line_sections(file, storage);
  // Debug information kept apart has the symbols too, of which a stripped file has only those it exports.
  std::unique_ptr<MappedFile> apart;
  std::optional<ElfFile> debug;
  if (const std::string id = build_id(file); lines.line.empty() && id.size() > 2) {
    apart = std::make_unique<MappedFile>(
        fmt::format("/usr/lib/debug/.build-id/{}/{}.debug", id.substr(0, 2), id.substr(2)));
    if (const Result<ElfFile> read = ElfFile::read(apart->bytes())) {
      debug = *read;
      symbols.look_into(*debug);
      lines = line_sections(*debug, storage);
    }
  }
  FoundLines found;
  found.lines.resize(frames.size());
  if (!lines.line.empty()) found = find_lines(lines, offsets);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    meanings[i].function = demangled(symbols.name(i));
    meanings[i].source = std::move(found.lines[i]);
  }
  return meanings;
}

class Symboliser {
 public:
  explicit Symboliser(Trace& trace) : trace_(trace) {}

  void run() {
    // A trace that was saved brings the count of that time; what is missing now is counted now.
    trace_.lost.erase("symbolise.missing_modules");
    trace_.lost.erase("symbolise.changed_modules");
    find_native_frames();
    if (modules_.empty()) return;
    for (std::uint32_t i = 0; i < trace_.stacks.frame_count(); ++i) frames_.push_back(trace_.stacks.frame(FrameId(i)));
    for (const auto& [path, frames] : modules_) read(path, frames);
    rebuild_stacks();
  }

 private:
  void find_native_frames() {
    for (std::uint32_t i = 0; i < trace_.stacks.frame_count(); ++i) {
      const Frame& frame = trace_.stacks.frame(FrameId(i));
      if (const auto offset = native_offset(frame, trace_.strings.at(frame.function)))
        modules_[std::string(trace_.strings.at(frame.file))].push_back({FrameId(i), *offset});
    }
  }

  void read(const std::string& path, const std::vector<NativeFrame>& frames) {
    const MappedFile module(path);
    const Result<ElfFile> file = ElfFile::read(module.bytes());
    if (!file) {
      trace_.count("symbolise.missing_modules");
      return;
    }
    // Only a recording with the system's clock can tell.
    const std::int64_t last_ns = trace_.events.empty() ? 0 : trace_.events.back().time_ns;
    if (trace_.can(kTimes) && last_ns > kSystemClockNs && module.changed_ns() > last_ns) {
      trace_.count("symbolise.changed_modules");
      return;
    }
    const bool has_own_lines = !is_installed(path);
    const std::vector<Meaning> meanings = read_module(*file, frames);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      Frame& frame = frames_[frames[i].frame.index()];
      const Meaning& meaning = meanings[i];
      if (!meaning.function.empty()) frame.function = trace_.strings.intern(meaning.function);
      if (meaning.source.line == 0 || !has_own_lines) continue;
      frame.file = trace_.strings.intern(meaning.source.file);
      frame.line = meaning.source.line;
    }
  }

  // Stacks stand behind their callers, so one pass in order suffices; different frames that became equal make their stacks equal too.
  void rebuild_stacks() {
    StackTable stacks;
    std::vector<StackId> renamed(trace_.stacks.size());
    for (std::uint32_t i = 1; i < trace_.stacks.size(); ++i) {
      const StackId old(i);
      renamed[i] = stacks.push(renamed[trace_.stacks.parent(old).index()],
                               stacks.intern_frame(frames_[trace_.stacks.frame_id(old).index()]));
    }
    for (Event& event : trace_.events) event.stack = renamed[event.stack.index()];
    for (FinalSegment& segment : trace_.final_segments) segment.stack = renamed[segment.stack.index()];
    for (FinalBlock& block : trace_.final_blocks) block.stack = renamed[block.stack.index()];
    trace_.stacks = std::move(stacks);
  }

  static constexpr std::int64_t kSystemClockNs = std::int64_t{1'000'000'000} * 1'000'000'000;  // a time in this century

  Trace& trace_;
  std::map<std::string, std::vector<NativeFrame>> modules_;
  std::vector<Frame> frames_;
};

}  // namespace

void symbolise(Trace& trace) { Symboliser(trace).run(); }

}  // namespace faultline
