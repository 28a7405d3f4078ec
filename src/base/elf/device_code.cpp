#include "base/elf/device_code.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "base/elf/line_table.h"

namespace faultline {
namespace {

constexpr std::uint32_t kElfMagic = 0x464c457f;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;         // the binary itself
constexpr std::uint32_t kFatbinWrapperMagic = 0x466243b1;  // what compilers put into programs: points to the binary
constexpr std::size_t kFatbinHeaderBytes = 16;
constexpr std::uint8_t kParameterAttribute = 0x17;  // one parameter of a kernel, in a cubin's .nv.info.<kernel>
constexpr std::size_t kLongestName = 64 * 1024;

struct Words {
  std::string_view text;
  // Names, numbers and directives as words; everything else letter by letter.
  std::string_view next() {
    while (!text.empty()) {
      if (std::isspace(static_cast<unsigned char>(text.front())) != 0) {
        text.remove_prefix(1);
      } else if (text.starts_with("//")) {
        text.remove_prefix(std::min(text.size(), text.find('\n')));
      } else if (text.starts_with("/*")) {
        const std::size_t end = text.find("*/");
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
      } else {
        break;
      }
    }
    const auto in_word = [](char letter) {
      return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$' || letter == '%';
    };
    std::size_t size = text.empty() ? 0 : 1;
    if (size == 1 && (in_word(text[0]) || text[0] == '.')) {
      while (size < text.size() && in_word(text[size])) ++size;
    }
    const std::string_view word = text.substr(0, size);
    text.remove_prefix(size);
    return word;
  }
};

std::size_t number(std::string_view word) {
  std::size_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

std::size_t type_bytes(std::string_view type) {
  if (type == ".pred") return 1;
  if (type.size() < 3 || std::string_view("bsuf").find(type[1]) == std::string_view::npos) return 0;
  return number(type.substr(2)) / 8;
}

// From after the opening bracket to the closing one.
std::vector<KernelParameter> read_parameters(Words& words) {
  std::vector<KernelParameter> parameters;
  std::size_t end_bytes = 0, alignment = 0, element = 0, count = 1;
  bool after_pointer = false;  // the alignment that follows .ptr is of what is pointed to
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == ".param") {
      alignment = element = 0;
      count = 1;
      after_pointer = false;
    } else if (word == ".ptr") {
      after_pointer = true;
    } else if (word == ".align") {
      const std::size_t value = number(words.next());
      if (!after_pointer) alignment = value;
    } else if (word == "[") {
      count = std::max<std::size_t>(number(words.next()), 1);
    } else if (word == "," || word == ")") {
      if (element != 0) {
        const std::size_t unit = std::max(alignment, element);
        const std::size_t offset = (end_bytes + unit - 1) / unit * unit;
        parameters.push_back({offset, element * count});
        end_bytes = offset + element * count;
      }
      if (word == ")") break;
    } else if (element == 0 && word.front() == '.') {
      element = type_bytes(word);
    }
  }
  return parameters;
}

std::vector<KernelParameter> parameters_of_section(Bytes section) {
  std::vector<std::pair<std::uint16_t, KernelParameter>> found;
  ByteCursor cursor(section);
  while (cursor.remaining() >= 4) {
    const std::uint8_t format = cursor.u8(), attribute = cursor.u8();
    const std::uint16_t size = cursor.u16();
    if (format != 4) continue;  // the value is in the size field
    ByteCursor value(cursor.take(size));
    if (attribute != kParameterAttribute || size != 12) continue;
    value.skip(4);
    const std::uint16_t ordinal = value.u16(), offset = value.u16();
    const std::uint32_t packed = value.u32();
    if (value.ok()) found.push_back({ordinal, {offset, packed >> 18}});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<KernelParameter> parameters;
  for (const auto& entry : found) parameters.push_back(entry.second);
  return parameters;
}

bool has_ptx(std::string_view text) { return text.find(".version") != std::string_view::npos; }

}  // namespace

std::vector<KernelDescription> kernels_of_ptx(Bytes text) {
  std::vector<KernelDescription> kernels;
  Words words{std::string_view(reinterpret_cast<const char*>(text.data()), text.size())};
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word != ".entry") continue;
    KernelDescription kernel;
    kernel.code = text;
    kernel.name = words.next();
    Words ahead = words;
    if (ahead.next() == "(") {
      words = ahead;
      kernel.parameters = read_parameters(words);
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

std::vector<KernelDescription> kernels_of_cubin(Bytes image) {
  constexpr std::string_view kCode = ".text.", kDescription = ".nv.info.";
  std::vector<KernelDescription> kernels;
  std::unordered_map<std::string_view, Bytes> described;
  const Result<ElfFile> cubin = ElfFile::read(image);
  for (std::uint64_t index = 0; cubin && index < cubin->section_count(); ++index) {
    const ElfSection section = cubin->section(index);
    const std::string_view name = cubin->name(section).substr(0, kLongestName);
    if (name.starts_with(kCode)) kernels.push_back({std::string(name.substr(kCode.size())), {}, image});
    if (name.starts_with(kDescription)) described.try_emplace(name.substr(kDescription.size()), cubin->raw(section));
  }
  for (KernelDescription& kernel : kernels) {
    if (const auto at = described.find(kernel.name); at != described.end())
      kernel.parameters = parameters_of_section(at->second);
  }
  return kernels;
}

void DeviceCode::add(std::vector<KernelDescription> found) {
  for (KernelDescription& kernel : found) {
    const bool known = std::any_of(kernels_.begin(), kernels_.end(),
                                   [&](const KernelDescription& other) { return other.name == kernel.name; });
    if (!known) kernels_.push_back(std::move(kernel));
  }
}

void DeviceCode::read_fatbin() {
  constexpr std::uint16_t kPtx = 1, kCubin = 2;
  constexpr std::uint32_t kEntryBytes = 16;
  ByteCursor cursor(image_, ByteCursor(image_, 6).u16());
  while (cursor.remaining() >= kEntryBytes) {
    const std::uint16_t kind = cursor.u16();
    cursor.skip(2);
    const std::uint32_t header_bytes = cursor.u32();
    const std::uint64_t payload_bytes = cursor.u64();
    if (header_bytes < kEntryBytes) return;
    cursor.skip(header_bytes - kEntryBytes);
    const Bytes payload = cursor.take(payload_bytes);
    if (!cursor.ok()) return;
    if (kind == kPtx && has_ptx({reinterpret_cast<const char*>(payload.data()), payload.size()}))
      add(kernels_of_ptx(payload));
    if (kind == kCubin && is_elf(payload)) add(kernels_of_cubin(payload));
  }
}

std::optional<DeviceCode> DeviceCode::read(const void* image) {
  const auto* bytes = static_cast<const std::uint8_t*>(image);
  std::uint32_t magic = 0;
  if (strnlen(static_cast<const char*>(image), 4) == 4) std::memcpy(&magic, bytes, sizeof magic);
  if (magic == kFatbinWrapperMagic) {
    std::memcpy(&bytes, bytes + 8, sizeof bytes);
    std::memcpy(&magic, bytes, sizeof magic);
  }
  DeviceCode code;
  const auto keep = [&](std::uint64_t size_bytes) { code.image_.assign(bytes, bytes + size_bytes); };
  if (magic == kElfMagic) {
    keep(elf_image_bytes(bytes));
    code.add(kernels_of_cubin(code.image_));
  } else if (magic == kFatbinMagic) {
    ByteCursor header(Bytes(bytes, kFatbinHeaderBytes), 6);
    const std::uint16_t header_bytes = header.u16();
    keep(header_bytes + header.u64());
    code.read_fatbin();
  } else {
    const std::string_view text(static_cast<const char*>(image));
    if (!has_ptx(text)) return std::nullopt;
    keep(text.size());
    code.add(kernels_of_ptx(code.image_));
  }
  return code;
}

std::optional<CodePlace> find_in_cubin(Bytes image, std::uint64_t address) {
  const Result<ElfFile> cubin = ElfFile::read(image);
  if (!cubin) return std::nullopt;
  CodePlace place;
  std::uint64_t holder = 0;
  for (std::uint64_t index = 1; index < cubin->section_count() && holder == 0; ++index) {
    const ElfSection section = cubin->section(index);
    if ((section.flags & kElfExecutable) == 0 || address < section.address ||
        address - section.address >= section.size_bytes)
      continue;
    holder = index;
    place.address = address;
    place.code_start = section.address;
    place.code = cubin->raw(section);
  }
  if (holder == 0) return std::nullopt;
  place.function_start = place.code_start;
  std::string_view function;
  cubin->for_each_symbol(kElfSymbolTable, [&](const ElfSymbol& symbol) {
    if (!symbol.is_function || symbol.section != (holder & 0xffff) || address < symbol.address ||
        address - symbol.address >= symbol.size_bytes)
      return;
    function = symbol.name;
    place.function_start = symbol.address;
  });
  place.function = function.substr(0, kLongestName);
  std::array<std::vector<std::uint8_t>, 3> storage;
  const FoundLines lines = find_lines(line_sections(*cubin, storage), {address});
  place.file = lines.lines[0].file;
  place.line = lines.lines[0].line;
  return place;
}

}  // namespace faultline
