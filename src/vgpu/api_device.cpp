// The driver itself and its devices.
#include <cstdio>
#include <cstring>

#include "vgpu/api.h"
#include "vgpu/call.h"
#include "vgpu/device.h"

namespace faultline::vgpu {

CUresult api::cuInit(unsigned flags) {
  require(flags == 0);
  require(!forked_child(), CUDA_ERROR_NOT_INITIALIZED);
  require(devices().count != 0, CUDA_ERROR_NO_DEVICE);
  initialize();
  return CUDA_SUCCESS;
}

CUresult api::cuDriverGetVersion(int* version) { return answer(version, [&] { return kDriverVersion; }); }

CUresult api::cuDeviceGetCount(int* count) { return answer(count, [&] { return devices().count; }); }

CUresult api::cuDeviceGet(CUdevice* device, int ordinal) {
  require(device != nullptr);
  require_device(ordinal);
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceGetName(char* name, int size, CUdevice device) {
  require(name != nullptr && size > 0);
  require_device(device);
  std::snprintf(name, static_cast<std::size_t>(size), "%s", devices().name.c_str());
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  require(uuid != nullptr);
  require_device(device);
  *uuid = device_uuid(device);
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceGetLuid(char*, unsigned*, CUdevice) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult api::cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  require(bytes != nullptr);
  require_device(device);
  *bytes = devices().capacity_bytes;
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  require(value != nullptr && attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
  require_device(device);
  *value = device_attribute(attribute, device);
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  require(major != nullptr && minor != nullptr);
  require_device(device);
  *major = devices().major;
  *minor = devices().minor;
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  require(id != nullptr && size > 0);
  require_device(device);
  std::snprintf(id, static_cast<std::size_t>(size), "0000:%02X:00.0", static_cast<unsigned>(device + 1));
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  require(device != nullptr && id != nullptr);
  unsigned domain = 0, bus = 0, slot = 0;
  const bool with_domain = std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) == 3;
  require(with_domain || std::sscanf(id, "%x:%x", &bus, &slot) == 2);
  require_device(static_cast<CUdevice>(bus) - 1);
  *device = static_cast<CUdevice>(bus) - 1;
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  require(can != nullptr);
  require_device(device);
  require_device(peer);
  *can = device != peer ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  require(value != nullptr && device != peer);
  require_device(device);
  require_device(peer);
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult api::cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice device) {
  require(supported != nullptr);
  require_device(device);
  *supported = 0;
  return CUDA_SUCCESS;
}

// Private tables of the vendor's own libraries: never imitated.
CUresult api::cuGetExportTable(const void** table, const CUuuid*) {
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace faultline::vgpu
