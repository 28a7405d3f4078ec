// Finds the kernels in device code: PTX text, a cubin, or a fat binary (whose plain PTX parts are read; compressed parts are not).
//
// The driver's interface gives an image without its length; the length comes from the image's own headers, as with the real driver.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace faultline::vgpu {

struct KernelParameter {
  std::size_t offset_bytes = 0;
  std::size_t size_bytes = 0;
};

struct KernelDescription {
  std::string name;
  std::vector<KernelParameter> parameters;
  std::size_t shared_bytes = 0;
};

std::vector<KernelDescription> kernels_of_ptx(std::string_view text);
std::vector<KernelDescription> kernels_of_cubin(std::string_view elf);
bool read_device_code(const void* image, std::vector<KernelDescription>& kernels);  // false: it is none of these

}  // namespace faultline::vgpu
