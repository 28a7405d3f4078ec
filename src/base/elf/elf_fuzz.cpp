// Any bytes read as an ELF file: sections, symbols and lines are found or not, within the bytes.
#include "base/elf/device_code.h"
#include "base/elf/line_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const LineSections alone{{bytes, size}, {bytes, size}, {bytes, size}};  // the bytes as line programs of their own
  FAULTLINE_CHECK(find_lines(alone, {0x10, 0x1000, 0x401000}).lines.size() == 3);
  for (const KernelDescription& kernel : kernels_of_ptx({bytes, size})) FAULTLINE_CHECK(kernel.code.size() == size);
  const Result<ElfFile> file = ElfFile::read({bytes, size});
  if (!file) return 0;
  std::uint64_t named = 0;
  for (const std::uint32_t kind : {kElfSymbolTable, kElfDynamicSymbols}) {
    file->for_each_symbol(kind, [&](const ElfSymbol& symbol) { named += symbol.name.size(); });
  }
  std::array<std::vector<std::uint8_t>, 3> storage;
  FAULTLINE_CHECK(find_lines(line_sections(*file, storage), {0x10, named}).lines.size() == 2);
  (void)find_in_cubin({bytes, size}, named);
  for (const KernelDescription& kernel : kernels_of_cubin({bytes, size}))
    FAULTLINE_CHECK(kernel.parameters.size() <= size);
  return 0;
}
