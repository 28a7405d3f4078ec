// The virtual devices: what FAULTLINE_VGPU describes, for example "name=NVIDIA T4,bytes=15835660288,major=7,minor=5,count=2". Every part is
// optional; `context_bytes` is what each context takes for itself. Fixed from the first use on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "driver/functions.h"

namespace faultline::vgpu {

constexpr int kDriverVersion = 13000;

struct DeviceDescription {
  std::string name = "Faultline virtual GPU";
  std::uint64_t capacity_bytes = std::uint64_t{16} << 30;
  std::uint64_t context_bytes = 0;
  int major = 8;
  int minor = 0;
  int count = 1;
};

// What cannot be read keeps its default.
DeviceDescription parse_device_description(std::string_view text);

const DeviceDescription& devices();  // they are all alike
void require_device(CUdevice device);
int device_attribute(CUdevice_attribute attribute, CUdevice device);  // 0 for what has no meaning here
CUuuid device_uuid(CUdevice device);

}  // namespace faultline::vgpu
