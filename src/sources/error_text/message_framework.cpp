// Out-of-memory texts of everybody else: XLA and JAX, TensorFlow, CuPy, llama.cpp, ONNX Runtime, RMM.
#include <array>
#include <utility>

#include "sources/error_text/message.h"
#include "sources/pool_names.h"

namespace faultline {
namespace {

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
  ErrorMessage message = said(kind, "tensorflow", passage.first_line(400));
  if (!pool.empty()) message.words["allocator"] = pool;
  const std::size_t open = lower.find('[');
  const std::size_t close = lower.find(']');
  if (open != std::string::npos && close != std::string::npos && open < close && close < 300) {
    message.words["tensor.shape"] = passage.words.substr(open, close - open + 1);
    std::size_t type_at = lower.find("and type ", close);
    std::string type = "";
    if (type_at != std::string::npos && type_at < close + 4) {
      type_at += 9;
      type = lower.substr(type_at, lower.find_first_of(" ,.\n", type_at) - type_at);
      message.words["tensor.type"] = type;
    }
    unsigned __int128 bytes = element_bytes(type);
    for (std::size_t at = open + 1; at < close && bytes != 0;) {
      const auto extent = number_at(lower, at);
      if (!extent) break;
      bytes *= *extent;
      if (bytes >> 63 != 0) bytes = 0;
      at = lower.find_first_of(",]", at) + 1;
    }
    if (bytes != 0) message.numbers["requested"] = ByteInterval::exactly(static_cast<std::uint64_t>(bytes));
  }
  if (const auto device = number_after(lower, "device:gpu:", 400); device && *device < 4096)
    message.device = static_cast<std::uint16_t>(*device);
  return message;
}

// XLA prints what it had planned below the message: the totals here, its largest buffers are read by peak_buffers.h.
void read_buffer_assignment(const ErrorPassage& passage, ErrorMessage& message) {
  if (const std::size_t at = passage.lower.find(" total allocation: "); at != std::string::npos) {
    if (const auto bytes = size_between(passage.lower, at + 19, at + 40, SizeStyle::kXla))
      message.numbers["executable_total"] = *bytes;
  }
  if (const std::size_t at = passage.lower.find(" temp allocation: "); at != std::string::npos) {
    if (const auto bytes = size_between(passage.lower, at + 18, at + 40, SizeStyle::kXla))
      message.numbers["executable_temporaries"] = *bytes;
  }
}

// "SameWorkerRecvDone unable to allocate output tensor. Key: /…/device:CPU:0;…;/…/device:GPU:0;edge_1;0:0": the target of a copy found no memory on the second device.
ErrorMessage received_message(const ErrorPassage& passage) {
  ErrorMessage message = said(MessageKind::kOutOfMemory, "tensorflow", passage.first_line(300));
  const std::size_t to = passage.lower.substr(0, 600).rfind("device:");
  message.words["disguise"] = "a copy's target";
  if (to != std::string::npos && passage.lower.compare(to, 11, "device:cpu:") == 0) {
    message.kind = MessageKind::kHostAlloc;
    message.words.erase("disguise");
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
  ErrorMessage message = said(MessageKind::kTpuScratch, "jax", passage.first_line(300));
  message.words["status"] = space;
  for (const auto& [first, second] :
       {std::pair<std::string_view, std::string_view>{"used ", " of "}, {"allocation with size ", " and limit "}}) {
    const std::size_t at = passage.lower.find(first);
    const std::size_t next = at == std::string::npos ? at : passage.lower.find(second, at);
    if (next == std::string::npos || next > at + first.size() + 20) continue;
    if (const auto bytes = size_between(passage.lower, at, next, SizeStyle::kXla))
      message.numbers["requested"] = *bytes;
    const std::size_t limit = next + second.size();
    if (const auto bytes = size_between(passage.lower, limit, limit + 12, SizeStyle::kXla))
      message.numbers["limit"] = *bytes;
    break;
  }
  return message;
}

std::optional<ErrorMessage> xla_message(const ErrorPassage& passage) {
  const std::size_t colon = passage.lower.find(": ") + 2;
  const std::string_view rest = std::string_view(passage.lower).substr(colon);
  const bool trying = rest.starts_with("out of memory while trying to allocate ");
  const bool request = rest.starts_with("failed to allocate request for ");
  const bool memory = rest.starts_with("failed to allocate memory");
  // "SameWorkerRecvDone unable to allocate output tensor. Key: …", of a copy between devices
  if (rest.starts_with("sameworkerrecvdone unable to allocate")) return received_message(passage);
  if (rest.starts_with("out of memory allocating ")) {
    ErrorMessage message = said(MessageKind::kHostAllocXla, "jax", passage.first_line(300));
    if (const auto bytes = xla_size(passage.lower, colon + 25, 40)) message.numbers["requested"] = *bytes;
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
    ErrorMessage message = said(MessageKind::kOutOfMemory, "jax", passage.first_line(300));
    if (const auto bytes = size_between(passage.lower, colon + reserve, colon + reserve + 40, SizeStyle::kXla))
      message.numbers["requested"] = *bytes;
    const std::size_t free = rest.find(" free");
    const std::size_t there = rest.find("there are ");
    if (there < free && free < 300) {
      if (const auto bytes = size_between(passage.lower, colon + there, colon + free, SizeStyle::kXla))
        message.numbers["free"] = *bytes;
    }
    return message;
  }
  if (!trying && !request && !memory) return std::nullopt;  // gRPC and others use the same code
  ErrorMessage message = said(MessageKind::kOutOfMemory, memory ? "tensorflow" : "jax", passage.first_line(300));
  if (!memory) {
    const auto bytes = xla_size(passage.lower, colon + (trying ? 39 : 31), 60);
    if (!bytes) return std::nullopt;
    message.numbers["requested"] = *bytes;
  }
  for (const std::string_view label : {"device ordinal ", " on device "}) {
    if (const auto device = number_after(passage.lower, label, 200); device && *device < 4096)
      message.device = static_cast<std::uint16_t>(*device);
  }
  // "6.00MiB with allocator GPU_0_bfc on device 0."
  if (const std::size_t with = passage.lower.find(" with allocator "); with < 120)
    message.words["allocator"] =
        passage.words.substr(with + 16, passage.words.find_first_of(" .", with + 16) - with - 16);
  if (const auto pool = message.words.find("allocator");
      pool != message.words.end() && pool->second.find("platform") != std::string::npos)
    message.words["call"] = "the driver";
  if (passage.lower.find("/autotuner/") != std::string::npos) message.words["status"] = "autotuner";
  read_buffer_assignment(passage, message);
  return message;
}

}  // namespace

std::optional<ErrorMessage> read_framework_message(Anchor anchor, const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  switch (anchor) {
    case Anchor::kXlaOom: return xla_message(passage);
    case Anchor::kTfOom: return tensor_message(passage);
    case Anchor::kBfcOom: {
      const auto bytes = xla_size(lower, 36, 70);
      if (!bytes) return std::nullopt;
      ErrorMessage message = said(MessageKind::kOutOfMemory, "tensorflow", passage.first_line(300));
      message.numbers["requested"] = *bytes;
      if (lower.find("the caller indicates that this is not a failure") != std::string::npos) {
        message.words["benign"] = "yes";
        message.weak = true;
      }
      if (const std::size_t at = passage.before.rfind("Allocator ("); at != std::string::npos)
        message.words["allocator"] = passage.before.substr(at + 11, passage.before.find(')', at) - at - 11);
      if (const auto pool = message.words.find("allocator"); pool != message.words.end() && !message.weak)
        message.kind = kind_of_pool(pool->second);
      return message;
    }
    // "CUDA runtime implicit initialization on GPU:0 failed. Status: out of memory"
    case Anchor::kTfContext: {
      if (lower.substr(0, 120).find("status: out of memory") == std::string::npos) return std::nullopt;
      ErrorMessage message = said(MessageKind::kOutOfMemory, "tensorflow", passage.first_line(300));
      message.words["call"] = "the context";
      if (const auto device = number_after(lower, "on gpu:", 60); device && *device < 4096)
        message.device = static_cast<std::uint16_t>(*device);
      return message;
    }
    case Anchor::kXlaBare: {
      // "Out of memory while trying to allocate 117964800 bytes.", without the status in front of it that XLA's own message has
      const bool is_told = passage.before.ends_with("xhausted:") || passage.before.ends_with("EXHAUSTED:");
      const auto bytes = is_told || !stands_as_message(passage) ? std::nullopt : xla_size(lower, 39, 60);
      if (!bytes) return std::nullopt;
      ErrorMessage message = said(MessageKind::kOutOfMemory, "jax", passage.first_line(300));
      message.numbers["requested"] = *bytes;
      read_buffer_assignment(passage, message);
      return message;
    }
    case Anchor::kTfReceive:
      return stands_as_message(passage) && !passage.before.ends_with("xhausted:")
                 ? std::optional(received_message(passage))
                 : std::nullopt;
    case Anchor::kTfDriver: {
      // "INTERNAL: Failed to allocate 104857600 bytes for new constant"
      if (lower.find(" bytes for new constant") < 60) {
        const auto bytes = number_at(lower, 19);
        if (!bytes) return std::nullopt;
        ErrorMessage message = said(MessageKind::kOutOfMemory, "jax", passage.first_line(300));
        message.numbers["requested"] = ByteInterval::exactly(*bytes);
        message.words["status"] = "constant";
        return message;
      }
      // "failed to alloc 8589934592 bytes unified memory; result: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
      if (lower.starts_with("failed to alloc ")) {
        const auto bytes = number_at(lower, 16);
        if (!bytes || lower.substr(0, 160).find("out_of_memory") == std::string::npos) return std::nullopt;
        const bool on_host = lower.find(" bytes on host") < 50;
        ErrorMessage message = said(on_host ? MessageKind::kHostPinnedPool : MessageKind::kOutOfMemory, "tensorflow",
                                    passage.first_line(300));
        message.numbers["requested"] = ByteInterval::exactly(*bytes);
        message.weak = true;
        if (!on_host) message.words["call"] = lower.find(" unified memory") < 50 ? "unified memory" : "the driver";
        return message;
      }
      // "[0] Failed to allocate device memory of 4.00GiB (4294967296 bytes): RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY"
      constexpr std::string_view kDeviceMemory = "failed to allocate device memory of ";
      const bool names_device = lower.starts_with(kDeviceMemory);
      const std::size_t from_device = names_device ? 100 : lower.find("from device");
      if (from_device == std::string::npos || from_device > 120) return std::nullopt;
      const std::size_t size = names_device ? kDeviceMemory.size() : 19;
      const auto bytes = xla_size(lower, size, from_device - size);
      if (!bytes || lower.substr(0, 260).find("out_of_memory") == std::string::npos) return std::nullopt;
      ErrorMessage message = said(MessageKind::kPoolGrowth, "tensorflow", passage.first_line(300));
      message.numbers["requested"] = *bytes;
      message.weak = true;
      return message;
    }
    case Anchor::kTfDst: {
      ErrorMessage message = said(MessageKind::kOutOfMemory, "tensorflow", passage.first_line(300));
      message.words["disguise"] = "dst tensor is not initialized";
      message.weak = true;
      return stands_as_message(passage) ? std::optional(message) : std::nullopt;
    }
    case Anchor::kTfMemory: return said(MessageKind::kOutOfMemory, "tensorflow", passage.first_line(300));
    case Anchor::kTfAsync: {
      // "gpu_async_0 cuMemAllocAsync failed to allocate 1073741824 bytes: CUDA error: out of memory"
      const auto bytes = xla_size(lower, 25, 40);
      if (!bytes || lower.substr(0, 200).find("memory") == std::string::npos) return std::nullopt;
      ErrorMessage message = said(MessageKind::kOutOfMemory, "tensorflow", passage.first_line(300));
      message.numbers["requested"] = *bytes;
      message.words["allocator"] = "cudaMallocAsync";
      if (const auto device = number_after(passage.before, "gpu_async_"); device && *device < 4096)
        message.device = static_cast<std::uint16_t>(*device);
      return message;
    }
    case Anchor::kCupyOom: {
      const std::size_t open = lower.find('(');
      if (open == std::string::npos || open > 80) return std::nullopt;
      const std::string_view inside = std::string_view(lower).substr(open);
      const bool recent = inside.starts_with("(allocated so far: ");
      if (!recent && !inside.starts_with("(total ")) return std::nullopt;
      const auto requested = size_between(lower, 20, open, SizeStyle::kTorch);
      if (!requested) return std::nullopt;
      ErrorMessage message = said(MessageKind::kOutOfMemory, "cupy", passage.first_line(300));
      message.numbers["requested"] = *requested;
      // The older wording counts the failed request into its total.
      if (const auto total = size_between(lower, open, open + 50, SizeStyle::kTorch))
        message.numbers["reserved"] = recent ? *total : *total - *requested;
      if (const std::size_t at = inside.find("limit set to"); at != std::string_view::npos && at < 90) {
        if (const auto limit = size_between(lower, open + at, open + at + 50, SizeStyle::kTorch))
          message.numbers["allowed"] = *limit;
      }
      return message;
    }
    case Anchor::kGgmlOom: {
      const std::size_t at = passage.before.rfind("allocating ");
      // MXNet and others say the same of an allocation without a size.
      ErrorMessage message =
          said(MessageKind::kOutOfMemory, at == std::string::npos ? "" : "llama.cpp", passage.first_line(300));
      if (at != std::string::npos) {
        if (const auto bytes = size_between(passage.before, at, passage.before.size(), SizeStyle::kTorch))
          message.numbers["requested"] = *bytes;
        const auto device = number_after(std::string_view(passage.before).substr(at), "on device ");
        if (device && *device < 4096) message.device = static_cast<std::uint16_t>(*device);
        message.text = trimmed(passage.before.substr(at) + " " + message.text, 300);
      }
      return message;
    }
    case Anchor::kOrtOom: {
      ErrorMessage message = said(MessageKind::kOutOfMemory, "onnxruntime", passage.first_line(300));
      if (const auto bytes = number_at(lower, 55)) message.numbers["requested"] = ByteInterval::exactly(*bytes);
      return message;
    }
    case Anchor::kOtherOom: {
      ErrorMessage message = said(MessageKind::kOutOfMemory, "Faiss", passage.first_line(300));
      const std::size_t size = passage.before.rfind(" size ");
      const auto bytes = size == std::string::npos
                             ? std::nullopt
                             : size_between(passage.before, size, passage.before.size(), SizeStyle::kTorch);
      if (!bytes) return std::nullopt;
      message.numbers["requested"] = *bytes;
      return message;
    }
    case Anchor::kVulkanOom: {
      ErrorMessage message = said(MessageKind::kOutOfMemory, "llama.cpp", passage.first_line(300));
      const auto bytes = number_at(lower, 33);
      if (!bytes || lower.find(" failed") == std::string::npos) return std::nullopt;
      message.numbers["requested"] = ByteInterval::exactly(*bytes);
      return message;
    }
    case Anchor::kTensorRt: {
      if (lower.starts_with("cuda runtime (an illegal"))
        return said(MessageKind::kIllegalAddress, "", passage.first_line(200));
      const bool knows_code = passage.before.find("Error Code") != std::string::npos ||
                              passage.before.find("[TRT]") != std::string::npos ||
                              passage.before.find("Cuda Error") != std::string::npos;
      if (!knows_code && !lower.starts_with("cuda error in allocate")) return std::nullopt;
      ErrorMessage message = said(MessageKind::kOutOfMemory, "TensorRT", passage.first_line(200));
      if (const auto bytes = number_after(lower, "requested size was ", 60))
        message.numbers["requested"] = ByteInterval::exactly(*bytes);
      return message;
    }
    case Anchor::kDriverCall: {
      if (passage.lower.find("out of memory") > 40) return std::nullopt;
      return said(MessageKind::kOutOfMemory, "PyCUDA", passage.first_line(200));
    }
    case Anchor::kXlaSpace: {
      // "Used 20.51G of 15.48G hbm. Exceeded hbm capacity by 5.03G."
      const std::string_view space = std::string_view(lower).substr(kSpace.size(), 5);
      if (space.starts_with("vmem") || space.starts_with("smem") || space.starts_with("cmem"))
        return scratch_message(passage, space.substr(0, 4));
      ErrorMessage message = said(MessageKind::kOutOfMemory, "jax", passage.first_line(300));
      const std::size_t used = lower.find("used "), of = used == std::string::npos ? used : lower.find(" of ", used);
      if (used == std::string::npos || of == std::string::npos || of > 160) return std::nullopt;
      if (const auto bytes = size_between(lower, used, of, SizeStyle::kXla))
        message.numbers["executable_total"] = *bytes;
      if (const auto bytes = size_between(lower, of, of + 20, SizeStyle::kXla)) message.numbers["capacity"] = *bytes;
      return message;
    }
    case Anchor::kRmmOom: {
      ErrorMessage message = said(MessageKind::kOutOfMemory, "rmm", passage.first_line(300));
      // "(failed to allocate 8589934592 bytes)", "(failed to allocate 3.725290 GiB)"
      constexpr std::string_view kFailed = "(failed to allocate ";
      if (const std::size_t at = lower.find(kFailed); at < 400) {
        if (const auto size = parse_printed_size(lower, at + kFailed.size(), SizeStyle::kTorch))
          message.numbers["requested"] = size->bytes;
      }
      if (lower.substr(0, 400).find("maximum pool size exceeded") != std::string::npos)
        message.words["status"] = "Maximum pool size exceeded";
      return message;
    }
    default: return std::nullopt;
  }
}

}  // namespace faultline
