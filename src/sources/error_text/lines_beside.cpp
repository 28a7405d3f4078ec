#include "sources/error_text/lines_beside.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "base/units.h"
#include "sources/bfc_dump/dump_line.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/other_failures.h"
#include "sources/error_text/text_limits.h"
#include "sources/pool_names.h"

namespace faultline {
namespace {

constexpr std::size_t kMostJobPids = 16, kMostJobLines = 256;
constexpr int kMostDevices = 64;
constexpr std::uint64_t kPoolUnit = 256;  // a pool rounds what it is asked for up to it

// TensorFlow's allocator tells the bytes, and the operation that wanted them the shape: one failure, where the bytes agree.
void add_tensor(const Survey& seen, ErrorMessage& message) {
  const auto& asked = message.requested;
  if (!asked || !message.tensor_shape.empty()) return;
  for (const Chosen& other : seen.all) {
    const auto& bytes = other.message.requested;
    if (other.message.kind != message.kind || !bytes || other.message.tensor_shape.empty()) continue;
    const ByteInterval rounded{bytes->min, bytes->max + kPoolUnit - 1};
    if (surely_less(rounded, *asked) || surely_less(*asked, rounded)) continue;
    message.tensor_shape = other.message.tensor_shape;
    if (message.tensor_type.empty()) message.tensor_type = other.message.tensor_type;
    return;
  }
}

// Of TensorFlow 1: "[[Node: conv2/BiasAdd = BiasAdd[T=DT_FLOAT, …"; the type of the operation stands behind its name.
// "[[{{node model/dense/MatMul}}]]", "[[node MatMul (defined at …)]]", "requested by op model/dense/MatMul"
void add_operation(std::string_view text, std::size_t at, ErrorMessage& message) {
  constexpr std::size_t kReach = 4096;
  const std::string_view near = text.substr(at, kReach);
  for (const std::string_view mark : {"[[{{node ", "[[node ", "[[Node: ", "requested by op "}) {
    const std::size_t found = near.find(mark);
    if (found == std::string_view::npos) continue;
    const std::string_view rest = near.substr(found + mark.size());
    const std::string_view name = rest.substr(0, rest.find_first_of(" }]\n\r"));
    if (name.empty() || name.size() > 200) continue;
    message.op = std::string(name);
    if (const std::string_view behind = rest.substr(name.size()); behind.starts_with(" = ")) {
      const std::string_view type = behind.substr(3, behind.find_first_of("[ (\n", 3) - 3);
      if (type.size() < 80) message.op_type = std::string(type);
    }
    return;
  }
}

// "local_rank: 3 (pid: 91)", "Sending process 90 closing signal SIGTERM": the job's own.
void add_job(std::string_view text, TextNotes& notes) {
  constexpr std::string_view kRank = "local_rank: ", kPid = " (pid: ", kSending = "Sending process ";
  std::set<std::string> told;
  const auto add = [&](std::uint64_t pid, const std::string& who) {
    if (told.size() >= kMostJobPids || !told.insert(std::to_string(pid)).second) return;
    notes.jobs.push_back({std::to_string(pid), who});
  };
  std::size_t looks = 0;
  for (std::size_t at = text.find(kRank); at != std::string_view::npos && ++looks < kMostJobLines;
       at = text.find(kRank, at + 1)) {
    const auto rank = number_at(text, at + kRank.size());
    const auto pid = number_after(text.substr(at, kRank.size() + 64), kPid);
    if (rank && pid) add(*pid, "local rank " + std::to_string(*rank));
  }
  looks = 0;
  for (std::size_t at = text.find(kSending); at != std::string_view::npos && ++looks < kMostJobLines;
       at = text.find(kSending, at + 1)) {
    const auto pid = number_at(text, at + kSending.size());
    if (pid && text.substr(at, 80).find(" closing signal") != std::string_view::npos) add(*pid, "a rank");
  }
}

// What the runtime saw of a device: "Found device 0 with properties: …" and below it "Total memory: 11.90GiB", "Free memory: 381.44MiB", since 1.4 in one line "totalMemory: 7.92GiB freeMemory:
// 350.12MiB". Of several GPUs that of the message's.
bool add_room(std::string_view before, std::string_view total_label, std::string_view free_label,
              ErrorMessage& message) {
  constexpr std::string_view kFound = "Found device ";
  constexpr std::size_t kReach = 400, kNumber = 12;
  std::size_t end = before.size();
  for (int looks = 0; looks < kMostDevices; ++looks) {
    const std::size_t free = find_last(before.substr(0, end), free_label);
    if (free == std::string_view::npos) return false;
    end = free;
    const std::size_t from = free > kReach ? free - kReach : 0;
    const std::string_view near = before.substr(from, free - from);
    const std::size_t total = near.rfind(total_label), found = near.rfind(kFound);
    if (total == std::string_view::npos) continue;
    const auto device = found == std::string_view::npos ? std::nullopt : number_at(near, found + kFound.size());
    if (device && message.device && *device != *message.device) continue;
    const std::size_t size = from + total + total_label.size();
    const auto bytes = size_between(before, free, free + free_label.size() + kNumber, SizeStyle::kXla),
               all = size_between(before, size, size + kNumber, SizeStyle::kXla);
    if (!bytes || !all) continue;
    message.start_free = *bytes;
    message.start_capacity = *all;
    return true;
  }
  return false;
}

// "Created device …/device:GPU:0 with 381 MB memory": what its pool may take.
bool add_pool(std::string_view before, std::string_view created_label, ErrorMessage& message) {
  constexpr std::string_view kGpu = "device:GPU:", kWith = " with ", kMemory = " MB memory";
  std::size_t end = before.size();
  for (int looks = 0; looks < kMostDevices; ++looks) {
    const std::size_t created = find_last(before.substr(0, end), created_label);
    if (created == std::string_view::npos) return false;
    end = created;
    const std::string_view line =
        before.substr(created, std::min(line_end(before, created, 400) - created, std::size_t{400}));
    const auto device = number_after(line, kGpu);
    const std::size_t with = line.find(kWith);
    const auto mib = with == std::string_view::npos ? std::nullopt : number_at(line, with + kWith.size());
    if (!mib || !device || line.find(kMemory) == std::string_view::npos || *mib > (std::uint64_t{1} << 32)) continue;
    if (message.device && *message.device != *device) continue;
    message.start_pool = ByteInterval{*mib * kMiB, (*mib + 1) * kMiB};
    return true;
  }
  return false;
}

// As it began: what was free of the device, and what its pool may take.
void add_start(std::string_view text, std::size_t at, ErrorMessage& message) {
  const std::string_view before = text.substr(0, at);
  if (!add_room(before, "totalMemory: ", "freeMemory: ", message))
    add_room(before, "Total memory: ", "Free memory: ", message);
  if (!add_pool(before, "Created device ", message)) add_pool(before, "Created TensorFlow device (", message);
}

// "failed to allocate 8.00G (8589934592 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY", a few lines before the exception: the last one.
void add_refused(std::string_view text, std::size_t at, ErrorMessage& message) {
  constexpr std::size_t kReach = std::size_t{16} << 10;
  const std::size_t from = at > kReach ? at - kReach : 0;
  const std::string_view before = text.substr(from, at - from);
  for (const std::string_view words : {"Failed to allocate device memory of ", "failed to allocate "}) {
    const std::size_t failed = find_last(before, words);
    if (failed == std::string_view::npos) continue;
    const DumpLine line = read_dump_line(before.substr(failed, line_end(before, failed, 400) - failed));
    if (line.kind != DumpLine::Kind::kRefused) continue;
    message.refused_region = *line.sizes[0];
    return;
  }
}

// "failed to alloc 2466545664 bytes unified memory; result: CUDA_ERROR_OUT_OF_MEMORY", before the pool gave up: the last one's bytes.
void add_unified(std::string_view text, std::size_t at, ErrorMessage& message) {
  constexpr std::string_view kFailed = "failed to alloc ", kUnified = " bytes unified memory; result: ";
  const std::size_t from = at > kLookBackBytes ? at - kLookBackBytes : 0;
  const std::string_view before = text.substr(from, at - from);
  const std::size_t unified = find_last(before, kUnified);
  const std::size_t failed = unified == std::string_view::npos ? unified : before.substr(0, unified).rfind(kFailed);
  if (failed == std::string_view::npos || unified - failed > kFailed.size() + 20) return;
  // What a constant or the autotuner got none of was not asked of the pool.
  if (const auto bytes = number_at(before, failed + kFailed.size());
      bytes && !message.for_constant && !message.for_autotuner)
    message.refused_unified = ByteInterval::exactly(*bytes);
}

// ggml's parts are in many programs.
void name_program(std::string_view text, const Chosen& chosen, ErrorMessage& message) {
  if (message.program != "llama.cpp") return;
  constexpr std::size_t kAround = std::size_t{64} << 10;
  const std::size_t from = chosen.begin > kAround ? chosen.begin - kAround : 0;
  const std::string_view near = text.substr(from, 2 * kAround);
  if (near.find("whisper_") != std::string_view::npos)
    message.program = "whisper.cpp";
  else if (near.find("stable-diffusion.cpp") != std::string_view::npos ||
           near.find("ggml_extend.hpp") != std::string_view::npos)
    message.program = "stable-diffusion.cpp";
}

// A weak line beside the message, of the same failure, may have the size.
void add_size(const Survey& seen, Chosen& chosen) {
  constexpr std::size_t kBeside = 600;
  if (!seen.first_weak || chosen.message.requested || chosen.message.kind != MessageKind::kOutOfMemory) return;
  const Chosen& weak = *seen.first_weak;
  const std::size_t apart = weak.begin > chosen.begin ? weak.begin - chosen.begin : chosen.begin - weak.begin;
  if (weak.message.kind != chosen.message.kind || !weak.message.requested || apart > kBeside) return;
  if (const std::string maker = chosen.message.maker_name(); !maker.empty() && maker != weak.message.maker_name())
    return;
  chosen.message.requested = weak.message.requested;
  chosen.message.set_maker(weak.message.maker_name());
  if (!chosen.message.device) chosen.message.device = weak.message.device;
}

}  // namespace

// "cudaMallocHost(&p, n) failed: out of memory": the call that failed, on the message's line or the next, asks for memory of the host; or a tensor is pinned on the line that raised it.
bool names_pinned_call(std::string_view text, std::size_t at) {
  static constexpr std::array<std::string_view, 6> kCalls = {"cudaMallocHost", "cudaHostAlloc", "cuMemAllocHost",
                                                             "cuMemHostAlloc", "hipHostMalloc", "cudaHostRegister"};
  const std::size_t begin = line_begin(text, at, kLongestLine), end = line_end(text, at, kLongestLine);
  const std::size_t next = std::min(end + 1, text.size());
  // the source line of the last frame of the traceback that ends here
  const std::size_t above = begin == 0 ? 0 : line_begin(text, begin - 1, kLongestLine);
  const std::string_view source = text.substr(above, begin - above);
  const bool pins = source.starts_with("    ") && (source.find(".pin_memory(") != std::string_view::npos ||
                                                   source.find("pin_memory=True") != std::string_view::npos);
  return pins || has_any(text.substr(begin, end - begin), kCalls) ||
         has_any(text.substr(next, line_end(text, next, kLongestLine) - next), kCalls);
}

void settle_kind(std::string_view text, const Survey& seen, Chosen& chosen) {
  ErrorMessage& message = chosen.message;
  if (message.kind == MessageKind::kRocmTimeout) {
    constexpr std::size_t kNear = 8192;
    const std::string next = lower_case(text.substr(chosen.begin, kNear));
    const bool is_reset = next.find("gpu reset begin") != std::string::npos;
    if (is_reset) message.kind = MessageKind::kRocmReset;
    if (!is_reset && next.find("soft recovered") != std::string::npos) {
      message.kind = MessageKind::kRocmRecovered;
      message.benign = true;
    }
  }
  if (message.program == "onnxruntime" && message.kind == MessageKind::kOutOfMemory) {
    static constexpr std::array<std::string_view, 9> kDevice = {"CUDA",
                                                                "cuda",
                                                                "Cuda",
                                                                "GPU",
                                                                "gpu",
                                                                "TensorrtExecutionProvider",
                                                                "DmlExecutionProvider",
                                                                "ROCM",
                                                                "BFCArena for Hip"};
    static constexpr std::array<std::string_view, 3> kHost = {"CPUExecutionProvider", "BFCArena for Cpu",
                                                              "BFCArena for CPU"};
    if (!has_any(text, kDevice)) {
      if (has_any(text, kHost))
        message.kind = MessageKind::kHostArena;
      else
        message.of_unknown_memory = true;
    }
  }
  // TensorFlow tells of the pool in a line of its own, which may stand below the operation's.
  if (message.framework == Framework::kTensorFlow && message.kind == MessageKind::kOutOfMemory &&
      message.pool.empty() && !message.disguised) {
    std::string pool;
    for (const Chosen& other : seen.all) {
      const std::string& named = other.message.pool;
      if (named.empty() || other.message.tag != message.tag) continue;
      if (!pool.empty() && pool != named) return;
      pool = named;
    }
    if (!pool.empty() && memory_of(pool) == PoolMemory::kHost) message.pool = pool;
  }
}

void add_lines_beside(std::string_view text, const Survey& seen, Chosen& chosen, TextNotes& notes) {
  ErrorMessage& message = chosen.message;
  add_size(seen, chosen);
  name_program(text, chosen, message);
  if (message.framework == Framework::kTensorFlow && message.kind == MessageKind::kOutOfMemory) {
    add_tensor(seen, message);
    add_operation(text, line_begin(text, chosen.begin, kLongestLine), message);
  }
  if (is_of_pool(message) && message.kind == MessageKind::kOutOfMemory) {
    add_start(text, chosen.begin, message);
    add_unified(text, chosen.begin, message);
    add_refused(text, chosen.begin, message);
  }
  const bool is_start = row_of(message.kind).group == ErrorKind::kLibraryStart;
  if (is_start && seen.first_weak && seen.first_weak->begin < chosen.begin &&
      seen.first_weak->message.framework != Framework::kPyTorch && seen.first_weak->message.is_allocation()) {
    if (const auto& bytes = seen.first_weak->message.requested)
      notes.refused =
          format_bytes(bytes->middle()) + " (line " + std::to_string(line_number(text, seen.first_weak->begin)) + ")";
  }
  // "Could not create cudnn handle: …" and behind it "Memory usage: 49152 bytes free, 25438126080 bytes total."
  if (is_start) {
    constexpr std::string_view kUsage = "Memory usage: ", kFree = " bytes free, ";
    const std::string_view behind = text.substr(chosen.begin, 2048);
    const std::size_t usage = behind.find(kUsage), free = behind.find(kFree, usage);
    const auto left = usage == std::string_view::npos ? std::nullopt : number_at(behind, usage + kUsage.size()),
               all = free == std::string_view::npos ? std::nullopt : number_at(behind, free + kFree.size());
    if (left && all && *left <= *all) {
      if (!message.free) message.free = ByteInterval::exactly(*left);
      if (!message.capacity) message.capacity = ByteInterval::exactly(*all);
    }
  }
  if (!message.processes.empty()) add_job(text, notes);
}

}  // namespace faultline
