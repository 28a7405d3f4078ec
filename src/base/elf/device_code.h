// Device code: PTX text, a cubin, or a fat binary (whose plain parts are read; compressed parts are not). Which kernels it holds and what they are given, and which
// function and line an address in a cubin belongs to.
//
// The driver's interface gives an image without its length; the length comes from the image's own headers, as with the real driver. Cubins themselves are hostile bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_cursor.h"

namespace faultline {

struct KernelParameter {
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
};

struct KernelDescription {
  std::string name;  // mangled
  std::vector<KernelParameter> parameters;
  Bytes code;  // the cubin or the PTX text that holds it
};

std::vector<KernelDescription> kernels_of_ptx(Bytes text);
std::vector<KernelDescription> kernels_of_cubin(Bytes image);

// A loaded image, kept whole.
class DeviceCode {
 public:
  // Nothing: the image is none of these.
  static std::optional<DeviceCode> read(const void* image);
  DeviceCode(DeviceCode&&) = default;
  DeviceCode& operator=(DeviceCode&&) = default;

  const std::vector<KernelDescription>& kernels() const { return kernels_; }  // each name once

 private:
  DeviceCode() = default;
  void add(std::vector<KernelDescription> found);
  void read_fatbin();

  std::vector<std::uint8_t> image_;  // what the kernels' code points into
  std::vector<KernelDescription> kernels_;
};

struct CodePlace {
  std::string function;  // mangled; empty: no symbol covers the address
  std::uint64_t function_start = 0;
  std::string file;
  std::uint32_t line = 0;
  std::uint64_t address = 0;
  std::uint64_t code_start = 0;  // address of the first byte of `code`
  Bytes code;                    // the section that holds the address
};

// Nothing where no code of the cubin lies at this address.
std::optional<CodePlace> find_in_cubin(Bytes image, std::uint64_t address);

}  // namespace faultline
