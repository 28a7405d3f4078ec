// Out-of-memory texts of everybody else: XLA and JAX, TensorFlow, CuPy, llama.cpp, ONNX Runtime, RMM.
#include <array>
#include <utility>

#include "sources/error_text/message.h"
#include "sources/pool_names.h"

namespace faultline {
namespace {

constexpr std::string_view kTrying = "out of memory while trying to allocate ",
                           kRequest = "failed to allocate request for ", kAllocating = "out of memory allocating ",
                           kFailedToAllocate = "failed to allocate ", kFailedToAlloc = "failed to alloc ";

// "2.21GiB" or "8.41G (9029127168 bytes)": the exact number where there is one.
std::optional<ByteInterval> xla_size(const std::string& lower, std::size_t from, std::size_t reach) {
  const std::size_t until = std::min(lower.size(), from + reach);
  std::optional<ByteInterval> shown = size_between(lower, from, until, SizeStyle::kXla);
  for (const std::string_view open : {"(rounded to ", "("}) {
    const std::size_t at = lower.find(open, from);
    if (at == std::string::npos || at >= until) continue;
    const auto number = number_at(lower, at + open.size());
    const std::size_t behind = lower.find_first_not_of("0123456789", at + open.size());
    if (!number || behind == std::string::npos) continue;
    const std::string_view rest = std::string_view(lower).substr(behind);
    if (rest.starts_with(" bytes)") || rest.starts_with("b)") || open.size() > 1) return ByteInterval::exactly(*number);
  }
  return shown;
}

std::uint64_t element_bytes(std::string_view type) {
  struct Type {
    std::string_view name;
    std::uint64_t bytes;
  };
  static constexpr std::array kTypes = {
      Type{"float", 4},     Type{"double", 8},      Type{"half", 2},   Type{"bfloat16", 2}, Type{"int64", 8},
      Type{"int32", 4},     Type{"int16", 2},       Type{"int8", 1},   Type{"uint8", 1},    Type{"bool", 1},
      Type{"complex64", 8}, Type{"complex128", 16}, Type{"uint32", 4}, Type{"uint64", 8}};
  for (const Type& known : kTypes) {
    if (known.name == type) return known.bytes;
  }
  return 0;
}

// The CPU's own allocators. Pools of page-locked memory (gpu_host_bfc) are told as pools.
MessageKind kind_of_pool(std::string_view pool) {
  return memory_of(pool) == PoolMemory::kHost && !pool.ends_with("host_bfc") ? MessageKind::kHostAlloc
                                                                             : MessageKind::kOutOfMemory;
}

// "OOM when allocating tensor with shape[32,1024,64,64] and type float on …/device:GPU:0 by allocator GPU_0_bfc"
std::optional<ErrorMessage> tensor_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  // The host's allocators fail with the same words.
  constexpr std::string_view kBy = " by allocator ";
  const std::size_t by = lower.find(kBy);
  std::string pool;
  if (by < 600) {
    const std::size_t begin = by + kBy.size();
    pool = trimmed(passage.words.substr(begin, passage.words.find_first_of(" ,;[", begin) - begin), 200);
  }
  MessageKind kind = pool.empty() ? MessageKind::kOutOfMemory : kind_of_pool(pool);
  const bool names_unknown = pool.empty() || memory_of(pool) == PoolMemory::kUnknown;
  if (names_unknown && lower.substr(0, 400).find("device:cpu") != std::string::npos) kind = MessageKind::kHostAlloc;
  ErrorMessage message = said(kind, Framework::kTensorFlow, passage.first_line(400));
  if (!pool.empty()) message.pool = pool;
  const std::size_t open = lower.find('[');
  const std::size_t close = lower.find(']');
  if (open != std::string::npos && close != std::string::npos && open < close && close < 300) {
    message.tensor_shape = passage.words.substr(open, close - open + 1);
    std::size_t type_at = lower.find("and type ", close);
    std::string type = "";
    if (type_at != std::string::npos && type_at < close + 4) {
      type_at += 9;
      type = lower.substr(type_at, lower.find_first_of(" ,.\n", type_at) - type_at);
      message.tensor_type = type;
    }
    unsigned __int128 bytes = element_bytes(type);
    for (std::size_t at = open + 1; at < close && bytes != 0;) {
      const auto extent = number_at(lower, at);
      if (!extent) break;
      bytes *= *extent;
      if (bytes >> 63 != 0) bytes = 0;
      at = lower.find_first_of(",]", at) + 1;
    }
    if (bytes != 0) message.requested = ByteInterval::exactly(static_cast<std::uint64_t>(bytes));
  }
  if (const auto device = number_after(lower, "device:gpu:", 400); device && *device < 4096)
    message.device = static_cast<std::uint16_t>(*device);
  return message;
}

// XLA prints what it had planned below the message: the totals here, its largest buffers are read by peak_buffers.h.
void read_buffer_assignment(const ErrorPassage& passage, ErrorMessage& message) {
  if (const std::size_t at = passage.lower.find(" total allocation: "); at != std::string::npos) {
    if (const auto bytes = size_between(passage.lower, at + 19, at + 40, SizeStyle::kXla))
      message.executable_total = *bytes;
  }
  if (const std::size_t at = passage.lower.find(" temp allocation: "); at != std::string::npos) {
    if (const auto bytes = size_between(passage.lower, at + 18, at + 40, SizeStyle::kXla))
      message.executable_temporaries = *bytes;
  }
}

// "SameWorkerRecvDone unable to allocate output tensor. Key: /…/device:CPU:0;…;/…/device:GPU:0;edge_1;0:0": the target of a copy found no memory on the second device.
ErrorMessage received_message(const ErrorPassage& passage) {
  ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kTensorFlow, passage.first_line(300));
  const std::size_t to = passage.lower.substr(0, 600).rfind("device:");
  message.disguised = true;
  if (to != std::string::npos && passage.lower.compare(to, 11, "device:cpu:") == 0) {
    message.kind = MessageKind::kHostAlloc;
    message.disguised = false;
  }
  if (const auto device =
          to == std::string::npos ? std::nullopt : number_after(passage.lower.substr(to), "device:gpu:");
      device && *device < 4096)
    message.device = static_cast<std::uint16_t>(*device);
  return message;
}

constexpr std::string_view kSpace = "ran out of memory in memory space ";

// The scratch memory of a TPU's core: "Used 1.05M of 1.00M smem.", "Scoped allocation with size 17.25M and limit 16.00M exceeded scoped vmem limit by 1.25M."
ErrorMessage scratch_message(const ErrorPassage& passage, std::string_view space) {
  ErrorMessage message = said(MessageKind::kTpuScratch, Framework::kJax, passage.first_line(300));
  message.scratch = space;
  for (const auto& [first, second] :
       {std::pair<std::string_view, std::string_view>{"used ", " of "}, {"allocation with size ", " and limit "}}) {
    const std::size_t at = passage.lower.find(first);
    const std::size_t next = at == std::string::npos ? at : passage.lower.find(second, at);
    if (next == std::string::npos || next > at + first.size() + 20) continue;
    if (const auto bytes = size_between(passage.lower, at, next, SizeStyle::kXla)) message.requested = *bytes;
    const std::size_t limit = next + second.size();
    if (const auto bytes = size_between(passage.lower, limit, limit + 12, SizeStyle::kXla)) message.limit = *bytes;
    break;
  }
  return message;
}

std::optional<ErrorMessage> xla_message(const ErrorPassage& passage) {
  const std::size_t colon = passage.lower.find(": ") + 2;
  const std::string_view rest = std::string_view(passage.lower).substr(colon);
  const bool trying = rest.starts_with(kTrying);
  const bool request = rest.starts_with(kRequest);
  const bool memory = rest.starts_with("failed to allocate memory");
  // "SameWorkerRecvDone unable to allocate output tensor. Key: …", of a copy between devices
  if (rest.starts_with("sameworkerrecvdone unable to allocate")) return received_message(passage);
  if (rest.starts_with(kAllocating)) {
    ErrorMessage message = said(MessageKind::kHostAllocXla, Framework::kJax, passage.first_line(300));
    if (const auto bytes = xla_size(passage.lower, colon + kAllocating.size(), 40)) message.requested = *bytes;
    return message;
  }
  // of a TPU: "There are 1.20G free.", also behind "Error loading program 'jit_step': " and "Error allocating device buffer: "
  const std::size_t reserve = rest.starts_with("error loading program") ? rest.find("attempting to reserve ")
                              : rest.starts_with("error allocating device buffer")
                                  ? rest.find("attempting to allocate ")
                                  : 0;
  if (const std::string_view tried = rest.substr(std::min(reserve, rest.size()));
      reserve < 200 && (tried.starts_with("attempting to allocate ") || tried.starts_with("attempting to reserve ")) &&
      tried.find("that was not possible") < 100) {
    ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kJax, passage.first_line(300));
    if (const auto bytes = size_between(passage.lower, colon + reserve, colon + reserve + 40, SizeStyle::kXla))
      message.requested = *bytes;
    const std::size_t free = rest.find(" free");
    const std::size_t there = rest.find("there are ");
    if (there < free && free < 300) {
      if (const auto bytes = size_between(passage.lower, colon + there, colon + free, SizeStyle::kXla))
        message.free = *bytes;
    }
    return message;
  }
  if (!trying && !request && !memory) return std::nullopt;  // gRPC and others use the same code
  ErrorMessage message =
      said(MessageKind::kOutOfMemory, memory ? Framework::kTensorFlow : Framework::kJax, passage.first_line(300));
  if (!memory) {
    const auto bytes = xla_size(passage.lower, colon + (trying ? kTrying : kRequest).size(), 60);
    if (!bytes) return std::nullopt;
    message.requested = *bytes;
  }
  for (const std::string_view label : {"device ordinal ", " on device "}) {
    if (const auto device = number_after(passage.lower, label, 200); device && *device < 4096)
      message.device = static_cast<std::uint16_t>(*device);
  }
  // "6.00MiB with allocator GPU_0_bfc on device 0."
  if (const std::size_t with = passage.lower.find(" with allocator "); with < 120)
    message.pool = passage.words.substr(with + 16, passage.words.find_first_of(" .", with + 16) - with - 16);
  if (message.pool.find("platform") != std::string::npos) message.asked_of = AskedOf::kDriver;
  if (passage.lower.find("/autotuner/") != std::string::npos) message.for_autotuner = true;
  read_buffer_assignment(passage, message);
  return message;
}

std::optional<ErrorMessage> pool_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  constexpr std::size_t kSize = std::string_view("ran out of memory trying to allocate").size();
  const auto bytes = xla_size(lower, kSize, 70);
  if (!bytes) return std::nullopt;
  ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kTensorFlow, passage.first_line(300));
  message.requested = *bytes;
  if (lower.find("the caller indicates that this is not a failure") != std::string::npos) {
    message.benign = true;
    message.weak = true;
  }
  if (const std::size_t at = passage.before.rfind("Allocator ("); at != std::string::npos)
    message.pool = passage.before.substr(at + 11, passage.before.find(')', at) - at - 11);
  if (!message.pool.empty() && !message.weak) message.kind = kind_of_pool(message.pool);
  return message;
}

// "CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory"
std::optional<ErrorMessage> context_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  if (lower.substr(0, 120).find("status: out of memory") == std::string::npos) return std::nullopt;
  ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kTensorFlow, passage.first_line(300));
  message.asked_of = AskedOf::kContext;
  if (const auto device = number_after(lower, "on gpu:", 60); device && *device < 4096)
    message.device = static_cast<std::uint16_t>(*device);
  return message;
}

std::optional<ErrorMessage> bare_xla_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  // "Out of memory while trying to allocate 117964800 bytes.", without the status in front of it that XLA's own message has
  const bool is_told = passage.before.ends_with("xhausted:") || passage.before.ends_with("EXHAUSTED:");
  const auto bytes = is_told || !stands_as_message(passage) ? std::nullopt : xla_size(lower, kTrying.size(), 60);
  if (!bytes) return std::nullopt;
  ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kJax, passage.first_line(300));
  message.requested = *bytes;
  read_buffer_assignment(passage, message);
  return message;
}

std::optional<ErrorMessage> driver_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  // "INTERNAL: Failed to allocate 104857600 bytes for new constant"
  if (lower.find(" bytes for new constant") < 60) {
    const auto bytes = number_at(lower, kFailedToAllocate.size());
    if (!bytes) return std::nullopt;
    ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kJax, passage.first_line(300));
    message.requested = ByteInterval::exactly(*bytes);
    message.for_constant = true;
    return message;
  }
  // "failed to alloc 8589934592 bytes unified memory; result: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
  if (lower.starts_with(kFailedToAlloc)) {
    const auto bytes = number_at(lower, kFailedToAlloc.size());
    if (!bytes || lower.substr(0, 160).find("out_of_memory") == std::string::npos) return std::nullopt;
    const bool on_host = lower.find(" bytes on host") < 50;
    ErrorMessage message = said(on_host ? MessageKind::kHostPinnedPool : MessageKind::kOutOfMemory,
                                Framework::kTensorFlow, passage.first_line(300));
    message.requested = ByteInterval::exactly(*bytes);
    message.weak = true;
    if (!on_host) message.asked_of = lower.find(" unified memory") < 50 ? AskedOf::kUnifiedMemory : AskedOf::kDriver;
    return message;
  }
  // "[0] Failed to allocate device memory of 4.00GiB (4294967296 bytes): RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY"
  constexpr std::string_view kDeviceMemory = "failed to allocate device memory of ";
  const bool names_device = lower.starts_with(kDeviceMemory);
  const std::size_t from_device = names_device ? 100 : lower.find("from device");
  if (from_device == std::string::npos || from_device > 120) return std::nullopt;
  const std::size_t size = names_device ? kDeviceMemory.size() : kFailedToAllocate.size();
  const auto bytes = xla_size(lower, size, from_device - size);
  if (!bytes || lower.substr(0, 260).find("out_of_memory") == std::string::npos) return std::nullopt;
  ErrorMessage message = said(MessageKind::kPoolGrowth, Framework::kTensorFlow, passage.first_line(300));
  message.requested = *bytes;
  message.weak = true;
  return message;
}

std::optional<ErrorMessage> disguised_message(const ErrorPassage& passage) {
  ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kTensorFlow, passage.first_line(300));
  message.disguised = true;
  message.weak = true;
  return stands_as_message(passage) ? std::optional(message) : std::nullopt;
}

std::optional<ErrorMessage> async_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  // "gpu_async_0 cuMemAllocAsync failed to allocate 1073741824 bytes: CUDA error: out of memory"
  const auto bytes = xla_size(lower, std::string_view("async failed to allocate ").size(), 40);
  if (!bytes || lower.substr(0, 200).find("memory") == std::string::npos) return std::nullopt;
  ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kTensorFlow, passage.first_line(300));
  message.requested = *bytes;
  message.pool = kAsyncPool;
  if (const auto device = number_after(passage.before, "gpu_async_"); device && *device < 4096)
    message.device = static_cast<std::uint16_t>(*device);
  return message;
}

std::optional<ErrorMessage> cupy_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  const std::size_t open = lower.find('(');
  if (open == std::string::npos || open > 80) return std::nullopt;
  const std::string_view inside = std::string_view(lower).substr(open);
  const bool recent = inside.starts_with("(allocated so far: ");
  if (!recent && !inside.starts_with("(total ")) return std::nullopt;
  const auto requested = size_between(lower, 20, open, SizeStyle::kTorch);
  if (!requested) return std::nullopt;
  ErrorMessage message = said(MessageKind::kOutOfMemory, "cupy", passage.first_line(300));
  message.requested = *requested;
  // The older wording counts the failed request into its total.
  if (const auto total = size_between(lower, open, open + 50, SizeStyle::kTorch))
    message.reserved = recent ? *total : *total - *requested;
  if (const std::size_t at = inside.find("limit set to"); at != std::string_view::npos && at < 90) {
    if (const auto limit = size_between(lower, open + at, open + at + 50, SizeStyle::kTorch)) message.allowed = *limit;
  }
  return message;
}

std::optional<ErrorMessage> ggml_message(const ErrorPassage& passage) {
  const std::size_t at = passage.before.rfind("allocating ");
  // MXNet and others say the same of an allocation without a size.
  ErrorMessage message =
      said(MessageKind::kOutOfMemory, at == std::string::npos ? "" : "llama.cpp", passage.first_line(300));
  if (at != std::string::npos) {
    if (const auto bytes = size_between(passage.before, at, passage.before.size(), SizeStyle::kTorch))
      message.requested = *bytes;
    const auto device = number_after(std::string_view(passage.before).substr(at), "on device ");
    if (device && *device < 4096) message.device = static_cast<std::uint16_t>(*device);
    message.text = trimmed(passage.before.substr(at) + " " + message.text, 300);
  }
  return message;
}

std::optional<ErrorMessage> onnx_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  ErrorMessage message = said(MessageKind::kOutOfMemory, "onnxruntime", passage.first_line(300));
  if (const auto bytes =
          number_at(lower, std::string_view("failed to allocate memory for requested buffer of size ").size()))
    message.requested = ByteInterval::exactly(*bytes);
  return message;
}

std::optional<ErrorMessage> faiss_message(const ErrorPassage& passage) {
  ErrorMessage message = said(MessageKind::kOutOfMemory, "Faiss", passage.first_line(300));
  const std::size_t size = passage.before.rfind(" size ");
  const auto bytes = size == std::string::npos
                         ? std::nullopt
                         : size_between(passage.before, size, passage.before.size(), SizeStyle::kTorch);
  if (!bytes) return std::nullopt;
  message.requested = *bytes;
  return message;
}

std::optional<ErrorMessage> vulkan_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  ErrorMessage message = said(MessageKind::kOutOfMemory, "llama.cpp", passage.first_line(300));
  const auto bytes = number_at(lower, std::string_view("device memory allocation of size ").size());
  if (!bytes || lower.find(" failed") == std::string::npos) return std::nullopt;
  message.requested = ByteInterval::exactly(*bytes);
  return message;
}

std::optional<ErrorMessage> tensorrt_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  if (lower.starts_with("cuda runtime (an illegal"))
    return said(MessageKind::kIllegalAddress, "", passage.first_line(200));
  const bool knows_code = passage.before.find("Error Code") != std::string::npos ||
                          passage.before.find("[TRT]") != std::string::npos ||
                          passage.before.find("Cuda Error") != std::string::npos;
  if (!knows_code && !lower.starts_with("cuda error in allocate")) return std::nullopt;
  ErrorMessage message = said(MessageKind::kOutOfMemory, "TensorRT", passage.first_line(200));
  if (const auto bytes = number_after(lower, "requested size was ", 60))
    message.requested = ByteInterval::exactly(*bytes);
  return message;
}

std::optional<ErrorMessage> driver_call_message(const ErrorPassage& passage) {
  if (passage.lower.find("out of memory") > 40) return std::nullopt;
  return said(MessageKind::kOutOfMemory, "PyCUDA", passage.first_line(200));
}

std::optional<ErrorMessage> memory_space_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  // "Used 20.51G of 15.48G hbm. Exceeded hbm capacity by 5.03G."
  const std::string_view space = std::string_view(lower).substr(kSpace.size(), 5);
  if (space.starts_with("vmem") || space.starts_with("smem") || space.starts_with("cmem"))
    return scratch_message(passage, space.substr(0, 4));
  ErrorMessage message = said(MessageKind::kOutOfMemory, Framework::kJax, passage.first_line(300));
  const std::size_t used = lower.find("used "), of = used == std::string::npos ? used : lower.find(" of ", used);
  if (used == std::string::npos || of == std::string::npos || of > 160) return std::nullopt;
  if (const auto bytes = size_between(lower, used, of, SizeStyle::kXla)) message.executable_total = *bytes;
  if (const auto bytes = size_between(lower, of, of + 20, SizeStyle::kXla)) message.capacity = *bytes;
  return message;
}

std::optional<ErrorMessage> rmm_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  ErrorMessage message = said(MessageKind::kOutOfMemory, "rmm", passage.first_line(300));
  // "(failed to allocate 8589934592 bytes)", "(failed to allocate 3.725290 GiB)"
  constexpr std::string_view kFailed = "(failed to allocate ";
  if (const std::size_t at = lower.find(kFailed); at < 400) {
    if (const auto size = parse_printed_size(lower, at + kFailed.size(), SizeStyle::kTorch))
      message.requested = size->bytes;
  }
  if (lower.substr(0, 400).find("maximum pool size exceeded") != std::string::npos) message.at_pool_limit = true;
  return message;
}

}  // namespace

std::optional<ErrorMessage> read_framework_message(Anchor anchor, const ErrorPassage& passage) {
  switch (anchor) {
    case Anchor::kXlaOom: return xla_message(passage);
    case Anchor::kTfOom: return tensor_message(passage);
    case Anchor::kBfcOom: return pool_message(passage);
    case Anchor::kTfContext: return context_message(passage);
    case Anchor::kXlaBare: return bare_xla_message(passage);
    case Anchor::kTfReceive:
      return stands_as_message(passage) && !passage.before.ends_with("xhausted:")
                 ? std::optional(received_message(passage))
                 : std::nullopt;
    case Anchor::kTfDriver: return driver_message(passage);
    case Anchor::kTfDst: return disguised_message(passage);
    case Anchor::kTfMemory: return said(MessageKind::kOutOfMemory, Framework::kTensorFlow, passage.first_line(300));
    case Anchor::kTfAsync: return async_message(passage);
    case Anchor::kCupyOom: return cupy_message(passage);
    case Anchor::kGgmlOom: return ggml_message(passage);
    case Anchor::kOrtOom: return onnx_message(passage);
    case Anchor::kOtherOom: return faiss_message(passage);
    case Anchor::kVulkanOom: return vulkan_message(passage);
    case Anchor::kTensorRt: return tensorrt_message(passage);
    case Anchor::kDriverCall: return driver_call_message(passage);
    case Anchor::kXlaSpace: return memory_space_message(passage);
    case Anchor::kRmmOom: return rmm_message(passage);
    default: return std::nullopt;
  }
}

}  // namespace faultline
