// Finding the few words that every GPU memory error contains, in a text of any size.
//
// One pass, one table step per byte, whatever the text holds: the words are matched without case, across line breaks, colours and the
// prefixes of wrapped lines. What a hit means is decided afterwards from the words around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace faultline {

enum class Anchor : std::uint8_t {
  kTorchOom,
  kTorchOomBare,
  kTorchCut,
  kMetalOom,
  kAsyncOom,
  kCudaError,
  kRuntimeCode,
  kThcCheck,
  kErrorName,
  kIllegalAccess,
  kDeviceAssert,
  kMisaligned,
  kLaunchFailure,
  kAssertLine,
  kAssertBlock,
  kCublas,
  kCudnn,
  kNcclFailure,
  kNcclCalloc,
  kNcclUnhandled,
  kXlaOom,
  kTfOom,
  kBfcOom,
  kTfDriver,
  kTfDst,
  kTfMemory,
  kTfAsync,
  kTfContext,
  kTfReceive,
  kXlaBare,
  kCupyOom,
  kGgmlOom,
  kOrtOom,
  kRmmOom,
  kRocmFault,
  kSharedMemory,
  kOtherOom,
  kVulkanOom,
  kTensorRt,
  kDriverCall,
  kNumbaCode,
  kXlaSpace,
  kKnown,
};

struct AnchorHit {
  Anchor anchor;
  std::size_t begin = 0;  // in the text as given
  std::size_t end = 0;
};

struct AnchorHits {
  std::vector<AnchorHit> hits;  // in order, at most kMaxAnchorHits
  std::uint64_t not_kept = 0;   // lines with some beyond that
};
inline constexpr std::size_t kMaxAnchorHits = 50000;

AnchorHits find_anchors(std::string_view text);

}  // namespace faultline
