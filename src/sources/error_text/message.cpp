#include "sources/error_text/message.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "sources/error_text/known_words.h"
#include "sources/error_text/log_lines.h"

namespace faultline {
namespace {

constexpr std::size_t kPassage = 2400;  // characters of words; the longest message is about 1200
constexpr std::size_t kBefore = 1024;   // how far back a line's beginning is looked for

constexpr std::array kPhrases = {
    CudaPhrase{"out of memory", MessageKind::kOutOfMemory},
    CudaPhrase{"an illegal memory access was encountered", MessageKind::kIllegalAddress},
    CudaPhrase{"device-side assert triggered", MessageKind::kDeviceAssert},
    CudaPhrase{"misaligned address", MessageKind::kMisalignedAddress},
    CudaPhrase{"unspecified launch failure", MessageKind::kLaunchFailure},
    CudaPhrase{"an illegal instruction was encountered", MessageKind::kIllegalInstruction},
    CudaPhrase{"invalid program counter", MessageKind::kIllegalInstruction},
    CudaPhrase{"operation not supported on global/shared address space", MessageKind::kIllegalAddress},
    CudaPhrase{"hardware stack error", MessageKind::kLaunchFailure},
    CudaPhrase{"the launch timed out and was terminated", MessageKind::kLaunchTimeout},
    CudaPhrase{"too many resources requested for launch", MessageKind::kLaunchResources},
    CudaPhrase{"invalid configuration argument", MessageKind::kLaunchConfiguration},
    CudaPhrase{"no kernel image is available for execution on the device", MessageKind::kNoKernelImage},
    CudaPhrase{"uncorrectable ecc error encountered", MessageKind::kEccError},
    CudaPhrase{"the operation cannot be performed in the present state", MessageKind::kIllegalState},
};

}  // namespace

const CudaPhrase* cuda_phrase_at(std::string_view lower) {
  for (const CudaPhrase& phrase : kPhrases) {
    if (lower.starts_with(phrase.text)) return &phrase;
  }
  return nullptr;
}

bool stands_as_message(const ErrorPassage& passage) {
  const std::size_t last = passage.before.find_last_not_of(' ');
  if (last == std::string::npos) return true;
  // What CUDA libraries print by a macro of their own: "Error an illegal memory access was encountered at line 118 in file ops.cu".
  if (passage.before.substr(0, last + 1) == "Error" && passage.lower.find(" at line ") < passage.first_line_length)
    return true;
  return std::string_view(":])|>-*!'").find(passage.before[last]) != std::string_view::npos;
}

bool is_named_as_failure(const ErrorPassage& passage, std::string_view rest) {
  std::string_view before = passage.before;
  if (before.starts_with("- ") || before.starts_with("* ") || before.starts_with('#')) return false;
  while (before.ends_with(' ')) before.remove_suffix(1);
  const bool in_brackets = before.ends_with('(') && rest.starts_with(')');
  while (in_brackets && rest.starts_with(')')) rest.remove_prefix(1);  // Rust nests them: "Cuda(CublasError(X))"
  const bool ends = rest.empty() || rest == "." || rest.starts_with(": ") || rest.starts_with(", ") ||
                    rest.starts_with(" (") || rest.starts_with(" at ");
  if (!ends) return false;
  if (in_brackets) {
    static constexpr std::array<std::string_view, 6> kFails = {"fail",  "error",    "exception",
                                                               "abort", "terminat", "crash"};
    return has_any(lower_case(before), kFails);
  }
  static constexpr std::array<std::string_view, 5> kReports = {"failed with", "failed with status", "failed with error",
                                                               "failed with code", "returned"};
  return std::any_of(kReports.begin(), kReports.end(), [&](std::string_view words) { return before.ends_with(words); });
}

std::optional<ByteInterval> size_between(std::string_view words, std::size_t from, std::size_t until, SizeStyle style) {
  until = std::min(until, words.size());
  for (std::size_t at = from; at < until; ++at) {
    const bool digit = words[at] >= '0' && words[at] <= '9';
    if (!digit) continue;
    if (const auto size = parse_printed_size(words, at, style)) return size->bytes;
    while (at < until && ((words[at] >= '0' && words[at] <= '9') || words[at] == '.')) ++at;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_at(std::string_view words, std::size_t at) {
  if (at >= words.size()) return std::nullopt;
  std::uint64_t number = 0;
  const auto [stop, code] = std::from_chars(words.data() + at, words.data() + words.size(), number);
  if (code != std::errc{}) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> number_after(std::string_view words, std::string_view label, std::size_t reach) {
  const std::size_t at = words.find(label);
  return at == std::string_view::npos || at >= reach ? std::nullopt : number_at(words, at + label.size());
}

std::string ErrorPassage::first_line(std::size_t length) const {
  return trimmed(std::string_view(words).substr(0, first_line_length), length);
}

ErrorMessage said(MessageKind kind, std::string_view maker, std::string text) {
  ErrorMessage message;
  message.kind = kind;
  message.set_maker(maker);
  message.text = std::move(text);
  return message;
}

ErrorMessage said(MessageKind kind, Framework framework, std::string text) {
  return said(kind, file_name_of(framework), std::move(text));
}

std::string trimmed(std::string_view words, std::size_t length) {
  if (words.size() > length) {
    const std::size_t blank = words.substr(0, length).find_last_of(' ');
    words = words.substr(0, blank == std::string_view::npos ? length : blank);
  }
  while (!words.empty() && words.back() == ' ') words.remove_suffix(1);
  return std::string(words);
}

std::optional<ErrorMessage> read_message(std::string_view text, const AnchorHit& hit) {
  ErrorPassage passage;
  const std::size_t begin = line_begin(text, hit.begin, kBefore);
  const LinePrefix prefix = split_prefix(text.substr(begin, hit.begin - begin));
  passage.tag = prefix.tag;
  const std::size_t body = std::min(begin + prefix.length, hit.begin);
  passage.before = clean_line(text.substr(body, hit.begin - body), kBefore);
  Passage words = passage_from(text, hit.begin, prefix.tag, kPassage);
  passage.words = std::move(words.words);
  passage.first_line_length = words.first_line_length;
  passage.lower = passage.words;
  std::transform(passage.lower.begin(), passage.lower.end(), passage.lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });

  std::optional<ErrorMessage> message;
  switch (hit.anchor) {
    case Anchor::kTorchOom:
    case Anchor::kTorchOomBare:
    case Anchor::kTorchCut:
    case Anchor::kMetalOom:
    case Anchor::kAsyncOom: message = read_torch_message(hit.anchor, passage); break;
    case Anchor::kCublas:
    case Anchor::kCudnn:
    case Anchor::kNcclFailure:
    case Anchor::kNcclCalloc:
    case Anchor::kNcclUnhandled: message = read_library_message(hit.anchor, passage); break;
    case Anchor::kXlaOom:
    case Anchor::kTfOom:
    case Anchor::kBfcOom:
    case Anchor::kTfDriver:
    case Anchor::kTfDst:
    case Anchor::kTfMemory:
    case Anchor::kTfAsync:
    case Anchor::kTfContext:
    case Anchor::kTfReceive:
    case Anchor::kXlaBare:
    case Anchor::kCupyOom:
    case Anchor::kGgmlOom:
    case Anchor::kOrtOom:
    case Anchor::kRmmOom:
    case Anchor::kOtherOom:
    case Anchor::kVulkanOom:
    case Anchor::kTensorRt:
    case Anchor::kDriverCall:
    case Anchor::kXlaSpace: message = read_framework_message(hit.anchor, passage); break;
    case Anchor::kKnown: message = read_known_message(passage); break;
    default: message = read_cuda_message(hit.anchor, passage); break;
  }
  if (message) message->tag = passage.tag;
  return message;
}

}  // namespace faultline
