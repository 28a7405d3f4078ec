#include "models/torch/segment_sizes.h"

#include "models/torch/settings.h"

namespace faultline {

std::uint64_t TorchSegmentSizes::segment_bytes(std::uint64_t block_bytes) const {
  if (block_bytes <= kTorchSmallRequest) return small_bytes;
  if (block_bytes < kTorchOwnSegment) return large_bytes;
  return (block_bytes + small_bytes - 1) / small_bytes * small_bytes;
}

ByteInterval TorchSegmentSizes::block_behind(ByteInterval segment) const {
  if (segment.max <= small_bytes) return {1, segment.max};
  if (segment.min <= large_bytes && segment.max >= large_bytes) return {kTorchSmallRequest, segment.max};
  return {segment.min > small_bytes ? segment.min - small_bytes : 1, segment.max};
}

TorchSegmentSizes torch_segment_sizes(const Trace& trace) {
  TorchSegmentSizes sizes;
  if (const Result<RecordedTorchSettings> recorded = recorded_torch_settings(trace.properties))
    sizes.large_bytes = recorded->settings.large_segment_bytes;
  return sizes;
}

}  // namespace faultline
