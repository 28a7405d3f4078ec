// The driver itself and its devices.
#include <cstdio>
#include <cstring>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/device.h"

namespace faultline::vgpu {

void api::cuInit(unsigned flags) {
  require(flags == 0);
  require(!forked_child(), CUDA_ERROR_NOT_INITIALIZED);
  require(devices().count != 0, CUDA_ERROR_NO_DEVICE);
  initialize();
}

void api::cuDriverGetVersion(int* version) {
  answer(version, [&] { return kDriverVersion; });
}

void api::cuDeviceGetCount(int* count) {
  answer(count, [&] { return devices().count; });
}

void api::cuDeviceGet(CUdevice* device, int ordinal) {
  require(device != nullptr);
  require_device(ordinal);
  *device = ordinal;
}

void api::cuDeviceGetName(char* name, int size, CUdevice device) {
  require(name != nullptr && size > 0);
  require_device(device);
  std::snprintf(name, static_cast<std::size_t>(size), "%s", devices().name.c_str());
}

void api::cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  require(uuid != nullptr);
  require_device(device);
  *uuid = device_uuid(device);
}

void api::cuDeviceGetLuid(char*, unsigned*, CUdevice) { refuse(CUDA_ERROR_NOT_SUPPORTED); }

void api::cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  require(bytes != nullptr);
  require_device(device);
  *bytes = devices().capacity_bytes;
}

void api::cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  require(value != nullptr && attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
  require_device(device);
  *value = device_attribute(attribute, device);
}

void api::cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  require(major != nullptr && minor != nullptr);
  require_device(device);
  *major = devices().major;
  *minor = devices().minor;
}

void api::cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  require(id != nullptr && size > 0);
  require_device(device);
  std::snprintf(id, static_cast<std::size_t>(size), "0000:%02X:00.0", static_cast<unsigned>(device + 1));
}

void api::cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  require(device != nullptr && id != nullptr);
  unsigned domain = 0, bus = 0, slot = 0;
  const bool with_domain = std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) == 3;
  require(with_domain || std::sscanf(id, "%x:%x", &bus, &slot) == 2);
  require_device(static_cast<CUdevice>(bus) - 1);
  *device = static_cast<CUdevice>(bus) - 1;
}

void api::cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  require(can != nullptr);
  require_device(device);
  require_device(peer);
  *can = device != peer ? 1 : 0;
}

void api::cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  require(value != nullptr && device != peer);
  require_device(device);
  require_device(peer);
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ? 1 : 0;
}

void api::cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice device) {
  require(supported != nullptr);
  require_device(device);
  *supported = 0;
}

// Private tables of the vendor's own libraries: never imitated.
void api::cuGetExportTable(const void** table, const CUuuid*) {
  if (table != nullptr) *table = nullptr;
  refuse(CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace faultline::vgpu
