#include "vgpu/device_code.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace faultline::vgpu {
namespace {

constexpr std::uint32_t kFatbinMagic = 0xba55ed50;          // the binary itself
constexpr std::uint32_t kFatbinWrapperMagic = 0x466243b1;   // what compilers put into programs: points to the binary
constexpr std::uint8_t kParameterAttribute = 0x17;          // one parameter of a kernel, in a cubin's .nv.info.<kernel>

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
    const auto in_word = [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$' || letter == '%'; };
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

template <class Header>
bool read_at(std::string_view bytes, std::uint64_t offset, Header& header) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Header)) return false;
  std::memcpy(&header, bytes.data() + offset, sizeof(Header));
  return true;
}

std::vector<KernelParameter> parameters_of_section(std::string_view section) {
  std::vector<std::pair<std::uint16_t, KernelParameter>> found;
  while (section.size() >= 4) {
    const auto format = static_cast<std::uint8_t>(section[0]), attribute = static_cast<std::uint8_t>(section[1]);
    std::uint16_t size = 0;
    std::memcpy(&size, section.data() + 2, sizeof size);
    section.remove_prefix(4);
    if (format != 4) continue;  // the value is in the size field
    if (section.size() < size) break;
    if (attribute == kParameterAttribute && size == 12) {
      std::uint16_t ordinal = 0, offset = 0;
      std::uint32_t packed = 0;
      std::memcpy(&ordinal, section.data() + 4, sizeof ordinal);
      std::memcpy(&offset, section.data() + 6, sizeof offset);
      std::memcpy(&packed, section.data() + 8, sizeof packed);
      found.push_back({ordinal, {offset, packed >> 18}});
    }
    section.remove_prefix(size);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<KernelParameter> parameters;
  for (const auto& entry : found) parameters.push_back(entry.second);
  return parameters;
}

std::uint64_t elf_bytes(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  const std::uint64_t sections = header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize;
  const std::uint64_t segments = header.e_phoff + std::uint64_t{header.e_phnum} * header.e_phentsize;
  return std::max(sections, segments);
}

void read_fatbin(const char* binary, std::vector<KernelDescription>& kernels) {
  struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t payload_bytes;
  } header;
  std::memcpy(&header, binary, sizeof header);
  std::string_view rest(binary + header.header_bytes, header.payload_bytes);
  struct Entry {
    std::uint16_t kind, unknown;
    std::uint32_t header_bytes;
    std::uint64_t payload_bytes;
  } entry;
  constexpr std::uint16_t kPtx = 1, kElf = 2;
  while (read_at(rest, 0, entry) && entry.header_bytes >= sizeof entry && rest.size() >= entry.header_bytes &&
         rest.size() - entry.header_bytes >= entry.payload_bytes) {
    const std::string_view payload = rest.substr(entry.header_bytes, entry.payload_bytes);
    std::vector<KernelDescription> found;
    if (entry.kind == kPtx && payload.find(".version") != std::string_view::npos) found = kernels_of_ptx(payload);
    if (entry.kind == kElf && payload.starts_with(ELFMAG)) found = kernels_of_cubin(payload);
    for (KernelDescription& kernel : found) {
      const bool known = std::any_of(kernels.begin(), kernels.end(), [&](const KernelDescription& other) { return other.name == kernel.name; });
      if (!known) kernels.push_back(std::move(kernel));
    }
    rest.remove_prefix(entry.header_bytes + entry.payload_bytes);
  }
}

}  // namespace

std::vector<KernelDescription> kernels_of_ptx(std::string_view text) {
  std::vector<KernelDescription> kernels;
  Words words{text};
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word != ".entry") continue;
    KernelDescription kernel;
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

std::vector<KernelDescription> kernels_of_cubin(std::string_view elf) {
  std::vector<KernelDescription> kernels;
  Elf64_Ehdr header;
  if (!read_at(elf, 0, header)) return kernels;
  const auto section_at = [&](std::uint64_t index, Elf64_Shdr& section) { return read_at(elf, header.e_shoff + index * header.e_shentsize, section); };
  Elf64_Shdr names;
  if (!section_at(header.e_shstrndx, names)) return kernels;
  const auto name_of = [&](const Elf64_Shdr& section) -> std::string_view {
    const std::uint64_t at = names.sh_offset + section.sh_name;
    if (at >= elf.size()) return {};
    const std::string_view from = elf.substr(at);
    return from.substr(0, from.find('\0'));
  };
  constexpr std::string_view kCode = ".text.", kDescription = ".nv.info.";
  std::vector<std::pair<std::string_view, std::vector<KernelParameter>>> described;
  for (std::uint64_t index = 0; index < header.e_shnum; ++index) {
    Elf64_Shdr section;
    if (!section_at(index, section)) break;
    const std::string_view name = name_of(section);
    if (name.starts_with(kCode)) kernels.push_back({std::string(name.substr(kCode.size())), {}, 0});
    if (name.starts_with(kDescription) && section.sh_offset <= elf.size() && section.sh_size <= elf.size() - section.sh_offset) {
      described.push_back({name.substr(kDescription.size()), parameters_of_section(elf.substr(section.sh_offset, section.sh_size))});
    }
  }
  for (KernelDescription& kernel : kernels) {
    for (const auto& [name, parameters] : described) {
      if (name == kernel.name) kernel.parameters = parameters;
    }
  }
  return kernels;
}

bool read_device_code(const void* image, std::vector<KernelDescription>& kernels) {
  const char* bytes = static_cast<const char*>(image);
  std::uint32_t magic = 0;
  if (std::strncmp(bytes, ELFMAG, SELFMAG) == 0) {
    kernels = kernels_of_cubin({bytes, elf_bytes(image)});
    return true;
  }
  if (const std::size_t shown = strnlen(bytes, 4); shown == 4) std::memcpy(&magic, bytes, sizeof magic);
  if (magic == kFatbinWrapperMagic) {
    std::memcpy(&bytes, bytes + 8, sizeof bytes);
    std::memcpy(&magic, bytes, sizeof magic);
  }
  if (magic == kFatbinMagic) {
    read_fatbin(bytes, kernels);
    return true;
  }
  const std::string_view text(bytes);
  if (text.find(".version") == std::string_view::npos) return false;
  kernels = kernels_of_ptx(text);
  return true;
}

}  // namespace faultline::vgpu
