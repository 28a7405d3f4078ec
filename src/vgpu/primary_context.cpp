#include <map>
#include <utility>

#include "vgpu/call.h"
#include "vgpu/context.h"
#include "vgpu/device.h"

namespace faultline::vgpu {
namespace {

struct Primary {
  ContextPointer context;
  unsigned users = 0;
  unsigned flags = 0;
};

struct Primaries {
  std::mutex mutex;
  std::map<CUdevice, Primary> by_device;
};

Primaries& primaries() {
  static Primaries& all = *new Primaries;
  return all;
}

}  // namespace

CUcontext retain_primary(CUdevice device) {
  require_device(device);
  const std::lock_guard lock(primaries().mutex);
  Primary& primary = primaries().by_device[device];
  if (primary.context == nullptr) primary.context = create_context(device, primary.flags);
  ++primary.users;
  return primary.context->handle;
}

void release_primary(CUdevice device) {
  require_device(device);
  ContextPointer ending;
  {
    const std::lock_guard lock(primaries().mutex);
    Primary& primary = primaries().by_device[device];
    require(primary.users != 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--primary.users == 0) ending = std::exchange(primary.context, nullptr);
  }
  if (ending != nullptr) end_context(ending);
}

void reset_primary(CUdevice device) {
  require_device(device);
  ContextPointer ending;
  {
    const std::lock_guard lock(primaries().mutex);
    Primary& primary = primaries().by_device[device];
    primary.users = 0;
    ending = std::exchange(primary.context, nullptr);
  }
  if (ending != nullptr) end_context(ending);
}

void set_primary_flags(CUdevice device, unsigned flags) {
  require_device(device);
  const std::lock_guard lock(primaries().mutex);
  Primary& primary = primaries().by_device[device];
  primary.flags = flags;
  if (primary.context != nullptr) primary.context->flags = flags;
}

bool primary_state(CUdevice device, unsigned& flags) {
  require_device(device);
  const std::lock_guard lock(primaries().mutex);
  const Primary& primary = primaries().by_device[device];
  flags = primary.flags;
  return primary.context != nullptr;
}

}  // namespace faultline::vgpu
