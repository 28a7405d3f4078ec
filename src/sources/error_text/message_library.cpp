// Errors of the libraries that take GPU memory past the framework's allocator: cuBLAS, cuDNN, NCCL.
#include <algorithm>
#include <array>
#include <utility>

#include "sources/error_text/message.h"

namespace faultline {
namespace {

std::string status_word(const std::string& words) {
  std::size_t end = 0;
  while (end < words.size() && ((words[end] >= 'A' && words[end] <= 'Z') || (words[end] >= 'a' && words[end] <= 'z') ||
                                words[end] == '_' || (words[end] >= '0' && words[end] <= '9'))) {
    ++end;
  }
  return words.substr(0, end);
}

std::optional<ErrorMessage> status_message(const ErrorPassage& passage, Library library) {
  ErrorMessage message;
  const std::string status = status_word(passage.words);
  const std::string_view line = std::string_view(passage.words).substr(0, passage.first_line_length);
  if (!stands_as_message(passage) && !is_named_as_failure(passage, line.substr(std::min(status.size(), line.size()))))
    return std::nullopt;
  message.set_maker(file_name_of(library));
  message.status = status;
  const auto has = [&](std::string_view part) { return status.find(part) != std::string::npos; };
  if (has("SUCCESS") || status.size() < (library == Library::kCufft ? 12 : 16)) return std::nullopt;
  // A plan that was tried and passed over: the library says so as a warning and takes another.
  if (passage.before.find("Warning") != std::string::npos) return std::nullopt;
  // Refused for its arguments: no kernel was launched.
  static constexpr std::array<std::pair<std::string_view, LibraryFailure>, 16> kEndings = {{
      {"NOT_SUPPORTED", LibraryFailure::kRefused},
      {"INVALID_VALUE", LibraryFailure::kRefused},
      {"BAD_PARAM", LibraryFailure::kRefused},
      {"ARCH_MISMATCH", LibraryFailure::kRefused},
      {"VERSION_MISMATCH", LibraryFailure::kRefused},
      {"INVALID_SIZE", LibraryFailure::kRefused},
      {"INVALID_PLAN", LibraryFailure::kRefused},
      {"NotSupported", LibraryFailure::kRefused},
      {"ALLOC_FAILED", LibraryFailure::kAlloc},
      {"AllocFailed", LibraryFailure::kAlloc},
      {"DEVICE_ALLOCATION_FAILED", LibraryFailure::kAlloc},
      {"NOT_INITIALIZED", LibraryFailure::kInit},
      {"NotInitialized", LibraryFailure::kInit},
      {"EXECUTION_FAILED", LibraryFailure::kExecution},
      {"INTERNAL_ERROR", LibraryFailure::kInternal},
      {"InternalError", LibraryFailure::kInternal},
  }};
  const auto ending =
      std::find_if(kEndings.begin(), kEndings.end(), [&](const auto& known) { return has(known.first); });
  message.kind = kind_of(library, ending == kEndings.end() ? LibraryFailure::kError : ending->second);
  const std::size_t call = passage.lower.find("when calling `");
  std::size_t end = status.size();
  if (call != std::string::npos && call < status.size() + 8) {
    const std::size_t close = passage.words.find('`', call + 14);
    if (close != std::string::npos && close - call < 400) {
      message.call = passage.words.substr(call + 14, close - call - 14);
      end = close + 1;
    }
  }
  message.text = trimmed(std::string_view(passage.words).substr(0, end), 500);
  return message;
}

}  // namespace

std::optional<ErrorMessage> read_library_message(Anchor anchor, const ErrorPassage& passage) {
  if (anchor == Anchor::kCublas)
    return status_message(passage, passage.lower.starts_with("cusolver")   ? Library::kCusolver
                                   : passage.lower.starts_with("cusparse") ? Library::kCusparse
                                   : passage.lower.starts_with("cufft")    ? Library::kCufft
                                                                           : Library::kCublas);
  if (anchor == Anchor::kCudnn) return status_message(passage, Library::kCudnn);

  ErrorMessage message;
  message.set_maker(file_name_of(Library::kNccl));
  if (anchor == Anchor::kNcclFailure) {
    // "Cuda failure 2 'out of memory'", or without the number before NCCL 2.19.
    const std::size_t quote = passage.lower.find('\'');
    if (quote == std::string::npos || quote > 22) return std::nullopt;
    const CudaPhrase* const phrase = cuda_phrase_at(std::string_view(passage.lower).substr(quote + 1));
    const std::size_t close = passage.lower.find('\'', quote + 1);
    if (close == std::string::npos || close > 160) return std::nullopt;
    message.kind = phrase == nullptr                           ? MessageKind::kNcclCudaError
                   : phrase->kind == MessageKind::kOutOfMemory ? MessageKind::kNcclOom
                                                               : phrase->kind;
    message.text = passage.words.substr(0, close + 1);
    message.asynchronous = true;
    if (const std::size_t at = passage.lower.find("failed to cuda calloc "); at != std::string::npos && at < 600) {
      const std::size_t digits = at + 22 + (passage.lower.compare(at + 22, 6, "async ") == 0 ? 6 : 0);
      if (const auto bytes = number_at(passage.lower, digits)) message.requested = ByteInterval::exactly(*bytes);
    }
    return message;
  }
  message.weak = true;
  if (anchor == Anchor::kNcclCalloc) {
    const auto bytes = size_between(passage.lower, 20, 60, SizeStyle::kTorch);
    if (!bytes) return std::nullopt;
    message.kind = MessageKind::kNcclOom;
    message.requested = *bytes;
    message.text = passage.first_line(200);
    return message;
  }
  if (passage.before.find("NCCL") == std::string::npos) return std::nullopt;
  message.kind = MessageKind::kNcclCudaError;
  message.text = passage.first_line(200);
  return message;
}

}  // namespace faultline
