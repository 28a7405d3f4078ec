// Errors of the CUDA and HIP runtimes and drivers, and what kernels print before they stop.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/characters.h"
#include "sources/error_text/message.h"

namespace faultline {
namespace {

struct CodeName {
  std::string_view name;  // lower case
  MessageKind kind;
};
constexpr std::array kNames = {
    CodeName{"cudaerrormemoryallocation", MessageKind::kOutOfMemory},
    CodeName{"hiperroroutofmemory", MessageKind::kOutOfMemory},
    CodeName{"cudaerrorillegaladdress", MessageKind::kIllegalAddress},
    CodeName{"cudaerrormisalignedaddress", MessageKind::kMisalignedAddress},
    CodeName{"cudaerrorlaunchfailure", MessageKind::kLaunchFailure},
    CodeName{"cudaerrorassert", MessageKind::kDeviceAssert},
    CodeName{"cuda_error_out_of_memory", MessageKind::kOutOfMemory},
    CodeName{"cuda_error_illegal_address", MessageKind::kIllegalAddress},
    CodeName{"cuda_error_misaligned_address", MessageKind::kMisalignedAddress},
    CodeName{"cuda_error_launch_failed", MessageKind::kLaunchFailure},
    CodeName{"cuda_error_assert", MessageKind::kDeviceAssert},
};

// An error string is followed by the end of its line or by what runtimes add; anything else is a sentence about the error.
bool ends_as_message(const ErrorPassage& passage, std::size_t end) {
  if (end >= passage.lower.size() || end >= passage.first_line_length) return true;
  const std::string_view rest = std::string_view(passage.lower).substr(end);
  for (const std::string_view follows : {"\n",
                                         ".",
                                         "'",
                                         "\"",
                                         "(",
                                         ")",
                                         ",",
                                         ";",
                                         "\\n",
                                         " (",
                                         " at ",
                                         " cuda kernel errors",
                                         " search for",
                                         " compile with",
                                         " current device",
                                         " terminate called",
                                         " exception raised",
                                         " in function",
                                         " in file ",
                                         " when calling",
                                         " while calling",
                                         " launching kernel",
                                         " on device ",
                                         " [",
                                         "</"}) {
    if (rest.starts_with(follows)) return true;
  }
  // The place in the source, as a program's own macro prints it.
  const std::string_view next = rest.substr(0, std::min(rest.find(' ', 1), std::min<std::size_t>(rest.size(), 200)));
  return next.starts_with(' ') && (next.find(".cu") != std::string_view::npos ||
                                   next.find(".cpp") != std::string_view::npos || next.starts_with(" /"));
}

void note_asynchrony(const ErrorPassage& passage, ErrorMessage& message) {
  // The sentence is left out exactly when CUDA_LAUNCH_BLOCKING was set; texts that never had it say nothing either way.
  const std::string_view near = std::string_view(passage.lower).substr(0, 700);
  if (near.find("errors might be asynchronously reported") != std::string_view::npos)
    message.asynchronous = true;
  else if (near.find("to enable device-side assertions") != std::string_view::npos)
    message.asynchronous = false;
}

std::optional<ErrorMessage> phrase_message(const ErrorPassage& passage, std::size_t at, bool weak) {
  const CudaPhrase* const phrase =
      cuda_phrase_at(std::string_view(passage.lower).substr(std::min(at, passage.lower.size())));
  if (phrase == nullptr || !ends_as_message(passage, at + phrase->text.size())) return std::nullopt;
  ErrorMessage message =
      said(phrase->kind, "", trimmed(std::string_view(passage.words).substr(0, at + phrase->text.size()), 300));
  message.weak = weak;
  // Before 1.0 PyTorch's own allocator spoke so.
  if (message.kind == MessageKind::kOutOfMemory &&
      std::string_view(passage.lower).substr(0, 240).find("/thc/") != std::string_view::npos)
    message.framework = Framework::kPyTorch;
  note_asynchrony(passage, message);
  return message;
}

void copy_after(const std::string& words, std::string_view label, std::string_view until, std::string& into) {
  const std::size_t at = words.find(label);
  if (at == std::string::npos) return;
  const std::size_t begin = at + label.size();
  const std::size_t end = std::min(words.find(until, begin), begin + 400);
  into = trimmed(std::string_view(words).substr(begin, end - begin), 400);
}

// "…/Indexing.cu:1292: indexSelectLargeIndex: block: [654,0,0], thread: [46,0,0] Assertion `srcIndex < srcSelectDimSize` failed."
std::optional<ErrorMessage> assert_line(const ErrorPassage& passage) {
  const std::size_t block = passage.before.rfind("block: [");
  const std::size_t thread = passage.before.rfind("thread: [");
  if (block == std::string::npos || thread == std::string::npos || thread < block) return std::nullopt;
  const std::size_t quote = passage.words.find('`');
  const std::size_t close = passage.words.find("` failed", quote + 1);
  if (close == std::string::npos || close - quote > 500) return std::nullopt;
  ErrorMessage message =
      said(MessageKind::kDeviceAssert, "", trimmed(passage.before + " " + passage.words.substr(0, close + 8), 600));
  message.assertion.expression = passage.words.substr(quote + 1, close - quote - 1);
  message.assertion.block = passage.before.substr(block + 7, passage.before.find(']', block) - block - 6);
  message.assertion.thread = passage.before.substr(thread + 8, passage.before.find(']', thread) - thread - 7);
  std::string place = passage.before.substr(0, block);
  while (!place.empty() && (place.back() == ' ' || place.back() == ':')) place.pop_back();
  // "file.cu:12: kernel" or, on Windows and for templates, with less or more around it.
  const std::size_t source = place.find(".cu"), colon = source == std::string::npos ? source : place.find(':', source);
  const std::size_t name = colon == std::string::npos ? colon : place.find(": ", colon);
  place = name == std::string::npos ? std::string() : place.substr(name + 2);
  if (const std::size_t bracket = place.find('('); bracket != std::string::npos) {
    place = place.substr(0, bracket);
    if (const std::size_t blank = place.rfind(' '); blank != std::string::npos) place = place.substr(blank + 1);
  }
  if (const std::size_t scope = place.rfind("::"); scope != std::string::npos && place.find('<') == std::string::npos)
    place = place.substr(scope + 2);
  message.assertion.kernel = trimmed(place, 200);
  return message;
}

// The block that PyTorch prints when it was built to collect its kernels' assertions.
std::optional<ErrorMessage> assert_block(const ErrorPassage& passage) {
  ErrorMessage message =
      said(MessageKind::kDeviceAssert, "", trimmed(std::string_view(passage.words).substr(0, 500), 500));
  copy_after(passage.words, "failure message = ", " File containing", message.assertion.expression);
  copy_after(passage.words, "Device function containing assertion = ", " Thread ID", message.assertion.kernel);
  copy_after(passage.words, "Thread ID that failed assertion = ", " Block ID", message.assertion.thread);
  copy_after(passage.words, "Block ID that failed assertion = ", " File containing kernel", message.assertion.block);
  return message;
}

std::optional<ErrorMessage> rocm_fault(const ErrorPassage& passage) {
  ErrorMessage message = said(MessageKind::kIllegalAddress, "rocm", passage.first_line(300));
  const std::size_t at = passage.lower.find("on address 0x");
  if (at != std::string::npos) {
    const char* const begin = passage.lower.data() + at + 13;
    std::from_chars(begin, passage.lower.data() + passage.lower.size(), message.address, 16);
  }
  message.asynchronous = true;
  return message;
}

// A size with its unit, else a plain number of bytes.
std::optional<ByteInterval> bytes_after(const std::string& lower, std::string_view label, std::size_t reach) {
  const std::size_t at = lower.find(label);
  if (at == std::string::npos || at >= reach) return std::nullopt;
  if (const auto size = parse_printed_size(lower, at + label.size(), SizeStyle::kTorch)) return size->bytes;
  const auto number = number_at(lower, at + label.size());
  return number ? std::optional(ByteInterval::exactly(*number)) : std::nullopt;
}

// "Failed cuvidCreateDecoder 2 (CUDA_ERROR_OUT_OF_MEMORY)", "HIPError(code hipErrorOutOfMemory, out of memory)", "CUDA_ERROR_OUT_OF_MEMORY-out of memory"
bool is_named_in_report(const ErrorPassage& passage, std::string_view rest) {
  static constexpr std::array<std::string_view, 3> kMeanings = {"-out of memory", ", out of memory)",
                                                                ", an illegal memory access was encountered)"};
  if (std::any_of(kMeanings.begin(), kMeanings.end(), [&](std::string_view means) { return rest.starts_with(means); }))
    return true;
  return is_named_as_failure(passage, rest);
}

std::optional<ErrorMessage> error_name(const ErrorPassage& passage) {
  const std::string_view line = std::string_view(passage.lower).substr(0, passage.first_line_length);
  const auto is_at = [&](const CodeName& known) { return line.starts_with(known.name); };
  const auto name = std::find_if(kNames.begin(), kNames.end(), is_at);
  const bool in_report = name != kNames.end() && is_named_in_report(passage, line.substr(name->name.size()));
  // "CUresult::CUDA_ERROR_OUT_OF_MEMORY" is a name of a program's source
  const bool stands = stands_as_message(passage) && !passage.before.ends_with("::");
  if (!in_report && !stands && passage.before.find("code=") == std::string::npos &&
      !passage.before.ends_with("results in ") && !passage.before.ends_with("results in"))
    return std::nullopt;
  for (const CodeName& known : kNames) {
    if (!passage.lower.starts_with(known.name)) continue;
    const std::size_t end = known.name.size();
    const bool named = in_report || passage.lower.compare(end, 2, ": ") == 0 ||
                       passage.lower.compare(end, 2, ") ") == 0 ||
                       passage.lower.compare(end, 14, " out of memory") == 0;
    if (!named && !ends_as_message(passage, end)) return std::nullopt;
    ErrorMessage message = said(
        known.kind, "",
        trimmed(std::string_view(passage.words).substr(0, std::min<std::size_t>(passage.first_line_length, 200)), 200));
    message.weak = true;
    // XGBoost prints its numbers on the next lines: "- Free memory: 1258291200", "- Requested memory: 4294967296".
    // Since 2.1 with a unit: "53.1098GB".
    const auto free = bytes_after(passage.lower, "free memory: ", 400),
               requested = bytes_after(passage.lower, "requested memory: ", 400);
    if (free && requested && message.kind == MessageKind::kOutOfMemory) {
      message.set_maker("xgboost");
      message.requested = requested;
      message.free = free;
      message.weak = false;
    }
    return message;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ErrorMessage> read_cuda_message(Anchor anchor, const ErrorPassage& passage) {
  switch (anchor) {
    case Anchor::kCudaError: {
      if (!stands_as_message(passage)) return std::nullopt;
      const std::size_t colon = passage.lower.find(": ");
      return phrase_message(passage, colon + 2, false);
    }
    case Anchor::kRuntimeCode: {
      // "error == cudaSuccess (2 vs. 0) out of memory" of Caffe, "CUDA runtime error in ::cudaMalloc(p, n): out of memory" of TensorRT-LLM.
      const bool compares = passage.lower.starts_with("error ==");
      const std::size_t colon = compares                                              ? passage.lower.find("0) ") + 1
                                : passage.lower.starts_with("cuda runtime error in ") ? passage.lower.find("): ") + 1
                                                                                      : passage.lower.find(": ");
      return colon == std::string::npos || colon == 0 || colon > 200 ? std::nullopt
                                                                     : phrase_message(passage, colon + 2, false);
    }
    case Anchor::kThcCheck: {
      const std::size_t error = passage.lower.find("error=");
      const std::size_t colon = error == std::string::npos ? error : passage.lower.find(": ", error);
      return colon == std::string::npos ? std::nullopt : phrase_message(passage, colon + 2, true);
    }
    case Anchor::kErrorName: return error_name(passage);
    case Anchor::kNumbaCode: {
      // "[700] Call to cuCtxSynchronize results in UNKNOWN_CUDA_ERROR": the number of the error is known, its name was not to that numba.
      static constexpr std::array<std::pair<std::string_view, MessageKind>, 5> kCodes = {
          {{"[2] ", MessageKind::kOutOfMemory},
           {"[700] ", MessageKind::kIllegalAddress},
           {"[716] ", MessageKind::kMisalignedAddress},
           {"[710] ", MessageKind::kDeviceAssert},
           {"[719] ", MessageKind::kLaunchFailure}}};
      for (const auto& [code, kind] : kCodes) {
        if (const std::size_t at = passage.before.rfind(code); at != std::string::npos)
          return said(kind, "", trimmed(passage.before.substr(at) + " " + passage.first_line(60), 200));
      }
      return std::nullopt;
    }
    case Anchor::kIllegalAccess:
    case Anchor::kDeviceAssert:
    case Anchor::kMisaligned:
    case Anchor::kLaunchFailure:
      return stands_as_message(passage) && !passage.before.empty() ? phrase_message(passage, 0, true) : std::nullopt;
    case Anchor::kAssertLine: return assert_line(passage);
    case Anchor::kAssertBlock: return assert_block(passage);
    case Anchor::kRocmFault: return rocm_fault(passage);
    case Anchor::kSharedMemory: {
      const auto required = number_after(passage.lower, "required: "),
                 limit = number_after(passage.lower, "hardware limit: ");
      if (!required || !limit) return std::nullopt;
      ErrorMessage message = said(MessageKind::kSharedMemoryLimit, "triton", passage.first_line(300));
      message.requested = ByteInterval::exactly(*required);
      message.limit = ByteInterval::exactly(*limit);
      return message;
    }
    default: return std::nullopt;
  }
}

}  // namespace faultline
