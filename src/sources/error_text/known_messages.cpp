#include "sources/error_text/known_messages.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/characters.h"

namespace faultline {
namespace {

constexpr auto kKnown = std::to_array<KnownWords>({
    {"defaultcpuallocator: can't allocate memory", "host-alloc", true},
    {"defaultcpuallocator: not enough memory", "host-alloc", true},
    {"torch: not enough memory: you tried to allocate", "host-alloc"},
    {"[errno 12] cannot allocate memory", "host-refused"},
    {"unable to allocate ", "host-alloc"},
    {"std::bad_alloc", "host-bad-alloc"},
    {"memoryerror", "host-alloc"},
    {"memory cgroup out of memory", "host-cgroup", true},
    {"oomkilled", "host-cgroup"},
    {"out of memory: killed process", "host-oom-killer", true},
    {"out of memory: kill process", "host-oom-killer", true},
    {"invoked oom-killer:", "host-oom-invoked", true},
    {"oom-kill event", "host-cgroup", true},
    {"oom_kill event", "host-cgroup", true},
    {"signal 9 (sigkill) received by pid", "host-killed", true},
    {"killed", "host-killed"},
    {"failed (exitcode: -9)", "host-killed", true},
    {"exits with return code = -9", "host-killed", true},
    {"exited with code 137", "host-killed", true},
    {"exit code: 137", "host-killed", true},
    {"term_memlimit: job killed", "host-cgroup", true},
    {"task was killed due to the node running low on memory", "host-ray"},
    {"killed due to memory pressure (oom)", "host-ray", true},
    {"the paging file is too small for this operation", "host-paging"},
    {"your session crashed after using all available ram", "host-session", true},
    {"dataloader worker (pid", "host-worker"},
    {"workers are out of shared memory", "host-bus", true},
    {"unable to write to file </torch_", "host-shm"},
    {"unable to open shared memory object </torch_", "host-shm"},
    {"unable to allocate shared memory", "host-shm"},
    {"could not open file to read numa node", "harmless-numa", true},
    {"numa node read from sysfs had negative value", "harmless-numa", true},
    {"setting because the tf_force_gpu_allow_growth", "harmless-growth", true},
    {"unable to register cudnn factory: attempting to register", "harmless-factory", true},
    {"unable to register cublas factory: attempting to register", "harmless-factory", true},
    {"unable to register cufft factory: attempting to register", "harmless-factory", true},
    {"tf-trt warning: could not find tensorrt", "harmless-tensorrt", true},
    {"exceeds 10% of free system memory", "harmless-host-share", true},
    {"by rematerialization; only reduced to", "harmless-rematerialization", true},
    {"cannot dlopen some gpu libraries", "setup-tensorflow-libraries"},
    {"but source was compiled with", "setup-library-version", true},
    {"dnn library is not found", "setup-no-cudnn", true},
    {"dnn library initialization failed", "setup-no-cudnn", true},
    {"no cuda gpus are available", "setup-no-gpu"},
    {"no cuda-capable device is detected", "setup-no-gpu"},
    {"but torch.cuda.is_available() is false", "setup-no-gpu"},
    {"torch not compiled with cuda enabled", "setup-cpu-build"},
    {"found no nvidia driver on your system", "setup-no-driver"},
    {"couldn't communicate with the nvidia driver", "setup-no-driver", true},
    {"cuda driver version is insufficient for cuda runtime version", "setup-old-driver"},
    {"the nvidia driver on your system is too old", "setup-old-driver"},
    {"driver/library version mismatch", "setup-driver-mismatch"},
    {"forward compatibility was attempted on non supported hw", "setup-driver-mismatch"},
    {"all cuda-capable devices are busy or unavailable", "setup-busy"},
    {"cuda-capable device(s) is/are busy or unavailable", "setup-busy"},
    {"invalid device ordinal", "setup-ordinal"},
    {"cuda unknown error - this may be due to", "setup-unknown"},
    {"system not yet initialized", "setup-fabric"},
    {"cuda error: unknown error", "unknown-error"},
    {"cannot re-initialize cuda in forked subprocess", "setup-fork"},
    {"the provided ptx was compiled with an unsupported toolchain", "setup-ptx"},
    {"cuda error: initialization error", "setup-init"},
    {"error named symbol not found at line", "setup-symbol"},
    {"cuda error: invalid argument", "call-invalid"},
    {"cuda error: operation not supported", "call-unsupported"},
    {"operation not permitted when stream is capturing", "call-capture"},
    {"expected canuse32bitindexmath(", "call-32bit"},
    {"index out of range in self", "operands-index"},
    {"was unable to find an engine to execute this computation", "engine-none"},
    {"unable to find a valid cudnn algorithm to run convolution", "engine-none"},
    {"invalid buffer size: ", "metal-buffer"},
    {"nvmapmemalloc", "jetson-alloc"},
    {"nvml_success == r internal assert failed", "nvml-assert"},
    {"nvrm: xid (", "xid", true},
    {"no available memory for the cache blocks", "vllm-no-blocks"},
    {"tokens that can be stored in kv cache", "vllm-length"},
    {"which is larger than the available kv cache memory", "vllm-length"},
    {"is less than desired gpu memory utilization", "vllm-start"},
    {"allocation on device", "async-bare"},
    {"out of memory on device. to view more detail", "matlab-memory", true},
    {"the gpu failed to allocate memory. to continue, reset", "matlab-memory", true},
    {"maximum variable size allowed on the device is exceeded", "matlab-size", true},
    {"erroroutofdevicememory", "vulkan-memory", true},
    {"vk_error_out_of_device_memory", "vulkan-memory", true},
    {"outofdevicememoryerror", "vulkan-memory", true},
    {"erroroutofhostmemory", "vulkan-host-memory", true},
    {"vk_error_out_of_host_memory", "vulkan-host-memory", true},
    {"errordevicelost", "vulkan-lost", true},
    {"vk_error_device_lost", "vulkan-lost", true},
    {"devicelosterror", "vulkan-lost", true},
    {"vk_error_incompatible_driver", "vulkan-setup", true},
    {"vk_error_initialization_failed", "vulkan-setup", true},
    {"errorincompatibledriver", "vulkan-setup", true},
    {"cl_mem_object_allocation_failure", "opencl-memory", true},
    {"failed: mem_object_allocation_failure", "opencl-memory", true},
    {"cl_out_of_resources", "opencl-resources", true},
    {"failed: out_of_resources", "opencl-resources", true},
    {"failed: out of resources", "opencl-resources"},
    {"error code -5 (out of resources)", "opencl-resources", true},
    {"failed: mem object allocation failure", "opencl-memory"},
    {"error code -4 (mem object allocation failure)", "opencl-memory", true},
    {"cl_out_of_host_memory", "opencl-host", true},
    {"failed: out_of_host_memory", "opencl-host", true},
    {"cl_invalid_buffer_size", "opencl-size", true},
    {"failed: invalid_buffer_size", "opencl-size", true},
    {"uses too much shared data", "ptxas-shared", true},
    {"ptxas fatal : memory allocation failure", "ptxas-host", true},
    {"register allocation failed with register count", "ptxas-registers", true},
    {"ptxas fatal", "ptxas-fatal", true},
    {"hsa_status_error_out_of_resources", "rocm-resources", true},
    {"hsa_status_error_memory_aperture_violation", "rocm-fault", true},
    {"hsa_status_error_memory_fault", "rocm-fault", true},
    {"hsa_status_error_illegal_instruction", "rocm-fault", true},
    {"hsa_status_error_exception", "rocm-fault", true},
    {"hiperrornobinaryforgpu", "rocm-image", true},
    {"hiperrorinvaliddevicefunction", "rocm-image", true},
    {"shapes cannot be multiplied", "operands"},
    {"size mismatch, m1: [", "operands"},
    {"size mismatch, got", "operands"},
    {"error(s) in loading state_dict for", "checkpoint"},
    {"must match the size of tensor", "operands"},
    {"must match the existing size", "operands"},
    {"is invalid for input of size", "operands"},
    {"view size is not compatible with input tensor's size", "operands"},
    {"sizes of tensors must match except in dimension", "operands"},
    {"tensors must have same number of dimensions", "operands"},
    {"channels, but got", "operands"},
    {"stack expects each tensor to be equal size", "operands"},
    {"to match target batch_size", "operands"},
    {"must be equal to input_size", "operands"},
    {"doesn't match the broadcast shape", "operands"},
    {"expected target size", "operands"},
    {"that is different to the input size", "operands"},
    {"must be the same as input size", "operands"},
    {"the shape of the mask", "operands"},
    {"expected input with shape [*, ", "operands"},
    {"multi-target not supported", "operands"},
    {"expected size for first two dimensions of batch2", "operands"},
    {"size of tensor to match the size", "operands"},
    {"error no kernel image is available for execution on", "no-kernel-image"},
    {"must match mat2 dim 0", "operands"},
    {"is incompatible with the layer: ", "operands-keras", true},
    {"is incompatible with layer ", "operands-keras", true},
    {"requires contracting dimensions to have the same shape", "operands-shapes"},
    {"incompatible shapes for broadcasting", "operands-shapes"},
    {"cannot concatenate arrays with ", "operands-shapes"},
    {"dimensions must be equal, but are ", "operands-shapes"},
    {") are incompatible", "operands-shapes"},
    {"] are incompatible", "operands-shapes"},
    {"incompatible shapes: [", "operands-shapes"},
    {"matrix size-incompatible: in[0]", "operands-shapes"},
    {"logits and labels must have the same first dimension", "operands-shapes"},
    {"cannot reshape array of s", "operands-shapes"},
    {"input to reshape is a tensor with ", "operands-shapes"},
    {"in both shapes must be equal", "operands-shapes"},
    {"operands could not be broadcast together with ", "operands-shapes"},
    {"has a mismatch in its core dimension", "operands-shapes"},
    {"(unbatched) or", "operands"},
    {"to have one of the following scalar types", "operands"},
    {"on the same device as the indexed tensor", "operands"},
    {"not implemented for '", "operands"},
    {"expected scalar type", "operands"},
    {"expected object of scalar type", "operands"},
    {"must have the same dtype", "operands"},
    {"to have the same dtype", "operands"},
    {"weight type (", "operands"},
    {"bias type (", "operands"},
    {"tensors used as indices must be", "operands"},
    {"can't be cast to the desired output type", "operands"},
    {"to be on the same device", "operands"},
    {"different from other tensors on", "operands"},
    {"expected object of device type", "operands"},
});

// "Killed" alone, or as a shell tells it: "run.sh: line 3: 4711 Killed python train.py".
bool is_killed_line(const ErrorPassage& passage) {
  const std::string line = passage.first_line(200);
  if (!line.starts_with("Killed")) return false;
  const bool behind_progress = passage.before.find("%|") != std::string::npos && passage.before.ends_with("]");
  if (passage.before.empty() || behind_progress) return line == "Killed";
  const std::size_t at = passage.before.find("line ");
  return at != std::string::npos &&
         passage.before.find_last_of("0123456789") + 1 >= passage.before.find_last_not_of(' ') + 1;
}

// What stands behind the reason where a cluster tells it, "Reason: OOMKilled", "OOMKilled: true", and not where somebody writes about it.
bool is_state(std::string_view rest) {
  if (rest.starts_with('"') || rest.starts_with('\'')) rest.remove_prefix(1);
  if (rest.starts_with(", ")) rest.remove_prefix(1);
  if (rest.starts_with(' ') || rest.starts_with(',')) rest.remove_prefix(1);
  if (rest.empty() || rest == "}" || rest == "," || is_digit(rest.front())) return true;
  static constexpr std::array<std::string_view, 8> kNext = {
      ": true", ":true", "(exit", "exit code:", "\"", "}", ",", "- exit code"};
  return std::any_of(kNext.begin(), kNext.end(), [&](std::string_view next) { return rest.starts_with(next); });
}

}  // namespace

std::span<const KnownWords> known_words() { return kKnown; }

std::vector<const KnownWords*> known_words_at(std::string_view lower) {
  std::vector<const KnownWords*> known;
  for (const std::span<const KnownWords> table : {known_words(), program_words()}) {
    for (const KnownWords& words : table) {
      if (!lower.starts_with(words.text) || (!known.empty() && words.text.size() < known.front()->text.size()))
        continue;
      if (!known.empty() && words.text.size() > known.front()->text.size()) known.clear();
      known.push_back(&words);
    }
  }
  return known;
}

bool has_error_name(std::string_view before) {
  for (const std::string_view word :
       {"Error: ", "Error:", "error: ", "Exception: ", "what(): ", "!!! ", "] failed: "}) {
    if (before.find(word) != std::string_view::npos) return true;
  }
  return false;
}

std::string whole_sentence(const ErrorPassage& passage) {
  const std::string front = passage.before.empty() ? std::string() : passage.before + " ";
  std::string_view before = front;
  for (const std::string_view name : {"Error: ", "Exception: ", "what(): "}) {
    if (const std::size_t at = before.rfind(name); at != std::string_view::npos) {
      before = before.substr(at + name.size());
      break;
    }
  }
  return trimmed(std::string(before) + passage.words.substr(0, std::min<std::size_t>(passage.first_line_length, 400)),
                 400);
}

namespace {

// "see NV_ENC_ERR_OUT_OF_MEMORY": the word in front is one of a sentence, and nothing in it fails.
bool follows_a_word(std::string_view before) {
  while (before.ends_with(' ')) before.remove_suffix(1);
  const std::string_view word = before.substr(before.find_last_of(' ') + 1);
  if (word.empty() || !std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; })) return false;
  static constexpr std::array<std::string_view, 12> kReports = {
      "fail", "error", " code", "status", "return", "throw", "abort", "caught", "crash", "result", "got", "panic"};
  const std::string lower = lower_case(before);
  return std::none_of(kReports.begin(), kReports.end(),
                      [&](std::string_view report) { return lower.find(report) != std::string::npos; });
}

}  // namespace

bool is_talked_about(const KnownWords& known, const ErrorPassage& passage) {
  constexpr std::size_t kShortestName = 16;  // of one word
  if (known.text.size() < kShortestName || known.text.find(' ') != std::string_view::npos) return false;
  std::string_view rest = std::string_view(passage.lower).substr(0, passage.first_line_length);
  rest.remove_prefix(std::min(known.text.size(), rest.size()));
  if (known.text.find('_') != std::string_view::npos && follows_a_word(passage.before)) return true;
  // A part of a longer name, "cudaErrorIncompatibleDriverContext".
  const auto is_of_name = [](char c) { return is_letter(c) || is_digit(c) || c == '_'; };
  if (!rest.empty() && is_of_name(rest[0]) && is_of_name(known.text.back())) return true;
  // "DXGI_ERROR_DEVICE_REMOVED: Final = -2005270523", `("cudaErrorA", "hipErrorB"),`
  const bool is_first = passage.before.empty();
  if (is_first && rest.starts_with(": ") && rest.find(" = ") != std::string_view::npos) return true;
  if (!is_first && (passage.before[0] == '(' || passage.before[0] == '"') && rest.starts_with('"')) return true;
  static constexpr std::array<std::string_view, 16> kVerbs = {
      " will ", " may ",    " can ",     " could ", " should ", " would ",  " is returned", " is raised",
      " means", " occurs ", " happens ", " or ",    " and ",    " errors ", " if ",         " when the "};
  return std::any_of(kVerbs.begin(), kVerbs.end(), [&](std::string_view verb) { return rest.starts_with(verb); });
}

std::optional<ErrorMessage> read_known_message(const ErrorPassage& passage) {
  const std::string& lower = passage.lower;
  const std::vector<const KnownWords*> rows = known_words_at(lower);
  if (rows.empty() || is_talked_about(*rows.front(), passage)) return std::nullopt;
  const KnownWords* const known = rows.front();
  if (const std::span<const KnownWords> programs = program_words();
      known >= programs.data() && known < programs.data() + programs.size()) {
    for (const KnownWords* row : rows) {
      if (auto message = read_program_message(*row, passage)) return message;
    }
    return std::nullopt;
  }
  std::string kind(known->kind);
  const std::string_view line = std::string_view(lower).substr(0, passage.first_line_length);
  const auto says = [&](std::string_view words) { return line.find(words) != std::string_view::npos; };
  if (known->text == "killed") {
    if (!is_killed_line(passage)) return std::nullopt;
  } else if (kind == "operands" || kind.starts_with("setup-no-gpu")) {
    if (!has_error_name(passage.before) && !stands_as_message(passage)) return std::nullopt;
    if (kind == "operands" && !has_error_name(passage.before) && !passage.before.empty()) return std::nullopt;
  } else if (!known->anywhere && !stands_as_message(passage) && !has_error_name(passage.before)) {
    return std::nullopt;
  }
  if (known->text == "unable to allocate " && !says("for an array")) return std::nullopt;
  // RMM says so of the device's memory, in the same line.
  if ((known->text == "std::bad_alloc" || known->text == "memoryerror") &&
      (says("out_of_memory") || says("cuda") || says("cumem") || says("hipmalloc") || says("hiperror")))
    return std::nullopt;
  if (known->text == "oomkilled" && !is_state(line.substr(known->text.size()))) return std::nullopt;
  if (known->text == "std::bad_alloc" && line.size() > 14 &&
      std::string_view("'\"`:.)").find(line[14]) == std::string_view::npos)
    return std::nullopt;
  if (known->text == "memoryerror" && (!passage.before.empty() || (line.size() > 11 && line.substr(11, 1) != ":")))
    return std::nullopt;
  if (known->text == "allocation on device" && (says("would exceed allowed") || line.size() > 40)) return std::nullopt;
  // "Input 0 of layer \"dense\" is incompatible with the layer: expected axis -1 …"
  if (kind == "operands-keras" &&
      (passage.before.find("nput ") == std::string::npos ||
       (passage.before.find("of layer") == std::string::npos && !known->text.ends_with("with layer "))))
    return std::nullopt;
  // Below "Graph execution error:" TensorFlow's sentence has a line of its own.
  if (kind == "operands-shapes" && !has_error_name(passage.before) &&
      !(passage.before.empty() && (known->text.ends_with("in[0]") || known->text.ends_with(": ["))))
    return std::nullopt;
  if (known->text == "but source was compiled with" && passage.before.find("untime CuDNN") == std::string::npos)
    return std::nullopt;
  if (kind == "host-worker") {
    if (says("bus error") || says("shared memory"))
      kind = "host-bus";
    else if (!says("signal: killed") && !says("exited unexpectedly"))
      return std::nullopt;
  }
  // load_state_dict lists what does not fit line by line.
  ErrorMessage message = said(kind, "", kind == "checkpoint" ? trimmed(passage.words, 2000) : whole_sentence(passage));
  if (kind == "xid") {
    // "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python, …"
    const std::size_t close = lower.find("): ");
    const auto number = close == std::string::npos || close > 60 ? std::nullopt : number_at(lower, close + 3);
    if (!number || *number > 9999) return std::nullopt;
    message.words["xid"] = std::to_string(*number);
    const auto pid = number_after(line, "pid=");
    const std::size_t name = line.find("name=");
    if (pid)
      message.words["process"] =
          std::to_string(*pid) +
          (name == std::string_view::npos
               ? ""
               : " (" + passage.words.substr(name + 5, passage.words.find_first_of(", \n", name) - name - 5) + ")");
    message.weak = true;
  }
  if (kind.starts_with("harmless-") || kind == "unknown-error" || kind == "host-oom-invoked" ||
      kind.starts_with("call-") || kind == "host-killed" || kind == "host-worker" || kind == "async-bare" ||
      kind.starts_with("vulkan-") || kind.starts_with("opencl-") || kind.starts_with("rocm-") ||
      kind.starts_with("matlab-") || kind == "ptxas-fatal" || kind == "setup-no-cudnn")
    message.weak = true;
  // The number that stands for the signal ends its line; a sentence about it goes on.
  if (const std::size_t end = known->text.size();
      known->text.ends_with("137") && end < line.find_last_not_of(" .)") + 1)
    return std::nullopt;
  if (kind == "vllm-length") {
    for (const std::string_view label : {"estimated maximum model length is ", "stored in kv cache ("}) {
      if (const auto tokens = number_after(lower, label, 700)) message.words["status"] = std::to_string(*tokens);
    }
  }
  // "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory (5.23 GiB)"
  if (kind == "vllm-length" && known->text.starts_with("which")) {
    const std::size_t open = passage.before.rfind('(');
    if (const auto bytes = open == std::string::npos
                               ? std::nullopt
                               : size_between(passage.before, open, passage.before.size(), SizeStyle::kTorch))
      message.numbers["requested"] = *bytes;
    if (const auto bytes = size_between(lower, known->text.size(), known->text.size() + 20, SizeStyle::kTorch))
      message.numbers["free"] = *bytes;
  }
  // "Free memory on device (13.21/23.65 GiB) on startup is less than desired GPU memory utilization (0.9, 21.28 GiB)"
  if (kind == "vllm-start") {
    const std::size_t open = passage.before.rfind('('), slash = passage.before.find('/', open),
                      close = passage.before.find(')', slash);
    if (open < slash && slash < close && close != std::string::npos) {
      const std::string free = passage.before.substr(open + 1, slash - open - 1),
                        whole = passage.before.substr(slash + 1, close - slash - 1);
      const std::string unit = whole.substr(std::min(whole.find(' '), whole.size()));
      if (const auto bytes = size_between(free + unit, 0, free.size() + unit.size(), SizeStyle::kTorch))
        message.numbers["free"] = *bytes;
      if (const auto bytes = size_between(whole, 0, whole.size(), SizeStyle::kTorch))
        message.numbers["capacity"] = *bytes;
    }
    if (const std::size_t comma = lower.find(", "); comma < passage.first_line_length) {
      if (const auto bytes = size_between(lower, comma, comma + 20, SizeStyle::kTorch))
        message.numbers["requested"] = *bytes;
    }
  }
  // "ptxas error : Entry function 'k' uses too much shared data (0x12000 bytes, 0xc000 max)"
  if (kind == "ptxas-shared") {
    const auto hexadecimal = [&](std::string_view behind) -> std::optional<std::uint64_t> {
      const std::size_t at = line.find(behind);
      std::uint64_t value = 0;
      if (at == std::string_view::npos ||
          std::from_chars(line.data() + at + behind.size(), line.data() + line.size(), value, 16).ec != std::errc())
        return std::nullopt;
      return value;
    };
    if (const auto used = hexadecimal("(0x")) message.numbers["requested"] = ByteInterval::exactly(*used);
    if (const auto most = hexadecimal(", 0x")) message.numbers["limit"] = ByteInterval::exactly(*most);
  }
  // "Can't reduce memory use below 20.52GiB (… bytes) by rematerialization; only reduced to 71.53GiB (… bytes)"
  if (kind == "harmless-rematerialization") {
    const std::size_t below = passage.before.rfind("below ");
    if (const auto bytes = size_between(lower, known->text.size(), known->text.size() + 20, SizeStyle::kXla))
      message.numbers["requested"] = *bytes;
    if (const auto bytes = below == std::string::npos
                               ? std::nullopt
                               : size_between(passage.before, below, below + 20, SizeStyle::kXla))
      message.numbers["allowed"] = *bytes;
  }
  if (kind == "host-alloc" || kind == "host-shm" || kind == "metal-buffer") {
    if (const auto bytes = size_between(lower, 0, passage.first_line_length, SizeStyle::kTorch))
      message.numbers["requested"] = *bytes;
  }
  return message;
}

}  // namespace faultline
