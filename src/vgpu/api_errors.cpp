// The names and sentences of the driver's codes.
#include <algorithm>
#include <iterator>

#include "vgpu/api.h"
#include "vgpu/call.h"

namespace faultline::vgpu {
namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};

// One entry for each value of CUresult in the header.
#define FAULTLINE_ERROR(code, text) \
  { code, #code, text }
constexpr ErrorText kErrors[] = {
    FAULTLINE_ERROR(CUDA_SUCCESS, "no error"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    FAULTLINE_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    FAULTLINE_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    FAULTLINE_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    FAULTLINE_ERROR(CUDA_ERROR_PROFILER_DISABLED, "profiler disabled"),
    FAULTLINE_ERROR(CUDA_ERROR_PROFILER_NOT_INITIALIZED, "profiler not initialized"),
    FAULTLINE_ERROR(CUDA_ERROR_PROFILER_ALREADY_STARTED, "profiler already started"),
    FAULTLINE_ERROR(CUDA_ERROR_PROFILER_ALREADY_STOPPED, "profiler already stopped"),
    FAULTLINE_ERROR(CUDA_ERROR_STUB_LIBRARY, "stub library"),
    FAULTLINE_ERROR(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "call requires newer driver"),
    FAULTLINE_ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "device unavailable"),
    FAULTLINE_ERROR(CUDA_ERROR_MULTICAST_RESOURCE_FULL, "multicast resource full"),
    FAULTLINE_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    FAULTLINE_ERROR(CUDA_ERROR_DEVICE_NOT_LICENSED, "device not licensed"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    FAULTLINE_ERROR(CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "context already current"),
    FAULTLINE_ERROR(CUDA_ERROR_MAP_FAILED, "map failed"),
    FAULTLINE_ERROR(CUDA_ERROR_UNMAP_FAILED, "unmap failed"),
    FAULTLINE_ERROR(CUDA_ERROR_ARRAY_IS_MAPPED, "array is mapped"),
    FAULTLINE_ERROR(CUDA_ERROR_ALREADY_MAPPED, "already mapped"),
    FAULTLINE_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    FAULTLINE_ERROR(CUDA_ERROR_ALREADY_ACQUIRED, "already acquired"),
    FAULTLINE_ERROR(CUDA_ERROR_NOT_MAPPED, "not mapped"),
    FAULTLINE_ERROR(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "not mapped as array"),
    FAULTLINE_ERROR(CUDA_ERROR_NOT_MAPPED_AS_POINTER, "not mapped as pointer"),
    FAULTLINE_ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "ecc uncorrectable"),
    FAULTLINE_ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "unsupported limit"),
    FAULTLINE_ERROR(CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "context already in use"),
    FAULTLINE_ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access unsupported"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "invalid graphics context"),
    FAULTLINE_ERROR(CUDA_ERROR_NVLINK_UNCORRECTABLE, "nvlink uncorrectable"),
    FAULTLINE_ERROR(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "jit compiler not found"),
    FAULTLINE_ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "unsupported ptx version"),
    FAULTLINE_ERROR(CUDA_ERROR_JIT_COMPILATION_DISABLED, "jit compilation disabled"),
    FAULTLINE_ERROR(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "unsupported exec affinity"),
    FAULTLINE_ERROR(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "unsupported devside sync"),
    FAULTLINE_ERROR(CUDA_ERROR_CONTAINED, "contained"),
    FAULTLINE_ERROR(CUDA_ERROR_INSUFFICIENT_LOADER_VERSION, "insufficient loader version"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_SOURCE, "invalid source"),
    FAULTLINE_ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    FAULTLINE_ERROR(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found"),
    FAULTLINE_ERROR(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object init failed"),
    FAULTLINE_ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    FAULTLINE_ERROR(CUDA_ERROR_ILLEGAL_STATE, "illegal state"),
    FAULTLINE_ERROR(CUDA_ERROR_LOSSY_QUERY, "lossy query"),
    FAULTLINE_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    FAULTLINE_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    FAULTLINE_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    FAULTLINE_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    FAULTLINE_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    FAULTLINE_ERROR(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "launch incompatible texturing"),
    FAULTLINE_ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access already enabled"),
    FAULTLINE_ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access not enabled"),
    FAULTLINE_ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "primary context active"),
    FAULTLINE_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    FAULTLINE_ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    FAULTLINE_ERROR(CUDA_ERROR_TOO_MANY_PEERS, "too many peers"),
    FAULTLINE_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                    "part or all of the requested memory range is already mapped"),
    FAULTLINE_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    FAULTLINE_ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    FAULTLINE_ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    FAULTLINE_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE, "invalid address space"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_PC, "invalid program counter"),
    FAULTLINE_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    FAULTLINE_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "cooperative launch too large"),
    FAULTLINE_ERROR(CUDA_ERROR_TENSOR_MEMORY_LEAK, "tensor memory leak"),
    FAULTLINE_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    FAULTLINE_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    FAULTLINE_ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not ready"),
    FAULTLINE_ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system driver mismatch"),
    FAULTLINE_ERROR(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "compat not supported on device"),
    FAULTLINE_ERROR(CUDA_ERROR_MPS_CONNECTION_FAILED, "mps connection failed"),
    FAULTLINE_ERROR(CUDA_ERROR_MPS_RPC_FAILURE, "mps rpc failure"),
    FAULTLINE_ERROR(CUDA_ERROR_MPS_SERVER_NOT_READY, "mps server not ready"),
    FAULTLINE_ERROR(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "mps max clients reached"),
    FAULTLINE_ERROR(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "mps max connections reached"),
    FAULTLINE_ERROR(CUDA_ERROR_MPS_CLIENT_TERMINATED, "mps client terminated"),
    FAULTLINE_ERROR(CUDA_ERROR_CDP_NOT_SUPPORTED, "cdp not supported"),
    FAULTLINE_ERROR(CUDA_ERROR_CDP_VERSION_MISMATCH, "cdp version mismatch"),
    FAULTLINE_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    FAULTLINE_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    FAULTLINE_ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "stream capture merge"),
    FAULTLINE_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "stream capture unmatched"),
    FAULTLINE_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "stream capture unjoined"),
    FAULTLINE_ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "stream capture isolation"),
    FAULTLINE_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "stream capture implicit"),
    FAULTLINE_ERROR(CUDA_ERROR_CAPTURED_EVENT, "captured event"),
    FAULTLINE_ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "stream capture wrong thread"),
    FAULTLINE_ERROR(CUDA_ERROR_TIMEOUT, "timeout"),
    FAULTLINE_ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "graph exec update failure"),
    FAULTLINE_ERROR(CUDA_ERROR_EXTERNAL_DEVICE, "external device"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size"),
    FAULTLINE_ERROR(CUDA_ERROR_FUNCTION_NOT_LOADED, "function not loaded"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_RESOURCE_TYPE, "invalid resource type"),
    FAULTLINE_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "invalid resource configuration"),
    FAULTLINE_ERROR(CUDA_ERROR_KEY_ROTATION, "key rotation"),
    FAULTLINE_ERROR(CUDA_ERROR_STREAM_DETACHED, "stream detached"),
    FAULTLINE_ERROR(CUDA_ERROR_GRAPH_RECAPTURE_FAILURE, "graph recapture failure"),
    FAULTLINE_ERROR(CUDA_ERROR_FABRIC_NOT_READY, "fabric not ready"),
    FAULTLINE_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef FAULTLINE_ERROR

void tell(CUresult code, const char* ErrorText::*what, const char** place) {
  require(place != nullptr);
  const auto error =
      std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorText& known) { return known.code == code; });
  *place = error != std::end(kErrors) ? error->*what : nullptr;
  require(*place != nullptr);
}

}  // namespace

void api::cuGetErrorName(CUresult code, const char** name) { tell(code, &ErrorText::name, name); }
void api::cuGetErrorString(CUresult code, const char** text) { tell(code, &ErrorText::text, text); }

}  // namespace faultline::vgpu
