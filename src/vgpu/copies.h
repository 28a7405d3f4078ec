// Copies and fills: what the many calls of the driver come down to, and the checks that the real driver makes before it accepts one.
//
// A device range must lie in one allocation (or in virtual mappings that touch); a copy that would leave it is refused and moves nothing. Host memory
// that nobody pinned is read before an asynchronous call returns, and written before it returns; pinned memory is touched when the stream gets there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vgpu/stream.h"

namespace faultline::vgpu {

enum class Side : std::uint8_t { kHost, kDevice, kEither };
enum class Place : std::uint8_t { kPageable, kPinned, kDevice };  // managed memory counts as the device's

// A box of bytes in memory laid out in rows and slices.
struct CopyEnd {
  Side side = Side::kEither;
  std::uint64_t address = 0;  // of the box's first byte
  std::size_t pitch_bytes = 0;
  std::size_t slice_bytes = 0;
};

struct CopyRequest {
  CopyEnd to;
  CopyEnd from;
  std::size_t width_bytes = 0;
  std::size_t height = 1;
  std::size_t depth = 1;

  static CopyRequest linear(Side to_side, std::uint64_t to, Side from_side, std::uint64_t from, std::size_t size_bytes);
};

CopyRequest copy_request(const CUDA_MEMCPY2D& copy);
CopyRequest copy_request(const CUDA_MEMCPY3D& copy);
CopyRequest copy_request(const CUDA_MEMCPY3D_PEER& copy);
CUDA_MEMCPY3D as_node_parameters(const CopyRequest& request);

// A request whose memory was found. Refuses (invalid value) in the constructor.
class PlannedCopy {
 public:
  explicit PlannedCopy(const CopyRequest& request);
  void run() const;
  void stage();  // reads the source now; run() then takes it from there
  bool nothing() const { return width_bytes_ == 0 || height_ == 0 || depth_ == 0; }
  Place to() const { return to_place_; }
  Place from() const { return from_place_; }

 private:
  std::byte* to_ = nullptr;
  const std::byte* from_ = nullptr;
  std::size_t to_pitch_ = 0, to_slice_ = 0, from_pitch_ = 0, from_slice_ = 0;
  std::size_t width_bytes_ = 0, height_ = 0, depth_ = 0;
  Place to_place_ = Place::kDevice, from_place_ = Place::kDevice;
  std::shared_ptr<std::vector<std::byte>> staged_;
};

enum class HostWait : std::uint8_t { kAsync, kSync };
void copy(const CopyRequest& request, const StreamPointer& stream, HostWait wait);

struct FillRequest {
  std::uint64_t address = 0;
  std::size_t pitch_bytes = 0;
  std::uint32_t value = 0;
  unsigned element_bytes = 1;  // 1, 2 or 4
  std::size_t width = 0;       // in elements
  std::size_t height = 1;
};

FillRequest fill_request(const CUDA_MEMSET_NODE_PARAMS& set);

class PlannedFill {
 public:
  explicit PlannedFill(const FillRequest& request);
  void run() const;
  bool nothing() const { return request_.width == 0 || request_.height == 0; }
  Place to() const { return place_; }

 private:
  FillRequest request_;
  std::byte* to_ = nullptr;
  Place place_ = Place::kDevice;
};

void fill(const FillRequest& request, const StreamPointer& stream, HostWait wait);

}  // namespace faultline::vgpu
