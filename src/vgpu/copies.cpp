#include "vgpu/copies.h"

#include <cstring>

#include "vgpu/call.h"
#include "vgpu/capture.h"
#include "vgpu/memory.h"

namespace faultline::vgpu {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 47;  // beyond any address; larger numbers would overflow below

struct Found {
  std::byte* bytes;
  Place place;
};

Found find_bytes(Side side, std::uint64_t address, std::size_t extent_bytes, bool to_write) {
  Memory& memory = Memory::get();
  const ByteRange range = ByteRange::of(address, extent_bytes);
  const std::optional<Allocation> allocation = memory.find(address);
  if (!allocation) {
    require(side != Side::kDevice && !memory.device_address(address) && address != 0);
    return {reinterpret_cast<std::byte*>(address), Place::kPageable};
  }
  std::byte* const bytes = memory.bytes_of(range, to_write);
  require(bytes != nullptr);
  const bool pinned = allocation->kind == MemoryKind::kPinned || allocation->kind == MemoryKind::kRegistered;
  return {bytes, pinned ? Place::kPinned : Place::kDevice};
}

std::size_t extent(const CopyEnd& end, std::size_t width_bytes, std::size_t height, std::size_t depth) {
  require(width_bytes < kLargest && height < kLargest && depth < kLargest && end.pitch_bytes < kLargest &&
          end.slice_bytes < kLargest);
  require(height == 1 || end.pitch_bytes >= width_bytes);
  std::size_t rows = 0, slices = 0, total = 0;
  const bool too_large = __builtin_mul_overflow(height - 1, end.pitch_bytes, &rows) ||
                         __builtin_mul_overflow(depth - 1, end.slice_bytes, &slices) ||
                         __builtin_add_overflow(rows, slices, &total) ||
                         __builtin_add_overflow(total, width_bytes, &total) || total > kLargest;
  require(!too_large);
  return total;
}

CUDA_MEMSET_NODE_PARAMS as_node_parameters(const FillRequest& request) {
  CUDA_MEMSET_NODE_PARAMS parameters{};
  parameters.dst = request.address;
  parameters.pitch = request.pitch_bytes;
  parameters.value = request.value;
  parameters.elementSize = request.element_bytes;
  parameters.width = request.width;
  parameters.height = request.height;
  return parameters;
}

template <class Element>
void fill_row(std::byte* row, std::size_t count, std::uint32_t value) {
  const Element element = static_cast<Element>(value);
  for (std::size_t at = 0; at < count; ++at) std::memcpy(row + at * sizeof(Element), &element, sizeof(Element));
}

}  // namespace

CopyRequest CopyRequest::linear(Side to_side, std::uint64_t to, Side from_side, std::uint64_t from,
                                std::size_t size_bytes) {
  CopyRequest request;
  request.to = {.side = to_side, .address = to};
  request.from = {.side = from_side, .address = from};
  request.width_bytes = size_bytes;
  return request;
}

PlannedCopy::PlannedCopy(const CopyRequest& request)
    : to_pitch_(request.to.pitch_bytes),
      to_slice_(request.to.slice_bytes),
      from_pitch_(request.from.pitch_bytes),
      from_slice_(request.from.slice_bytes),
      width_bytes_(request.width_bytes),
      height_(request.height),
      depth_(request.depth) {
  if (nothing()) return;
  const Found to =
      find_bytes(request.to.side, request.to.address, extent(request.to, width_bytes_, height_, depth_), true);
  const Found from =
      find_bytes(request.from.side, request.from.address, extent(request.from, width_bytes_, height_, depth_), false);
  to_ = to.bytes;
  to_place_ = to.place;
  from_ = from.bytes;
  from_place_ = from.place;
}

void PlannedCopy::run() const {
  for (std::size_t z = 0; z < depth_; ++z) {
    for (std::size_t y = 0; y < height_; ++y) {
      std::memmove(to_ + z * to_slice_ + y * to_pitch_, from_ + z * from_slice_ + y * from_pitch_, width_bytes_);
    }
  }
}

void PlannedCopy::stage() {
  PlannedCopy into = *this;
  staged_ = std::make_shared<std::vector<std::byte>>(width_bytes_ * height_ * depth_);
  into.to_ = staged_->data();
  into.to_pitch_ = width_bytes_;
  into.to_slice_ = width_bytes_ * height_;
  into.run();
  from_ = into.to_;
  from_pitch_ = into.to_pitch_;
  from_slice_ = into.to_slice_;
}

void copy(const CopyRequest& request, const StreamPointer& stream, HostWait wait) {
  PlannedCopy planned(request);
  if (planned.nothing()) return;
  bool capturing = false;
  {
    const auto lock = order_lock();
    capturing = captured(*stream);
  }
  if (capturing) {
    if (wait == HostWait::kSync && (planned.to() != Place::kDevice || planned.from() != Place::kDevice)) {
      const auto lock = order_lock();
      require_not_captured(*stream);
    }
  } else if (wait == HostWait::kAsync && planned.from() == Place::kPageable && planned.to() != Place::kPageable) {
    planned.stage();
  }
  const CompletionPointer completion = submit(*stream, {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                                                        .run = [planned] { planned.run(); },
                                                        .parameters = as_node_parameters(request)});
  const bool between_devices = planned.to() == Place::kDevice && planned.from() == Place::kDevice;
  const bool host_waits = wait == HostWait::kSync ? !between_devices : planned.to() == Place::kPageable;
  if (completion != nullptr && host_waits) completion->wait();
}

FillRequest fill_request(const CUDA_MEMSET_NODE_PARAMS& set) {
  return {.address = set.dst,
          .pitch_bytes = set.pitch,
          .value = set.value,
          .element_bytes = set.elementSize,
          .width = set.width,
          .height = set.height};
}

PlannedFill::PlannedFill(const FillRequest& request) : request_(request) {
  require(request.element_bytes == 1 || request.element_bytes == 2 || request.element_bytes == 4);
  require(request.address % request.element_bytes == 0);
  require(request.height <= 1 || request.pitch_bytes % request.element_bytes == 0);
  if (nothing()) return;
  require(request.width < kLargest);
  const CopyEnd end{.side = Side::kDevice, .address = request.address, .pitch_bytes = request.pitch_bytes};
  const Found to = find_bytes(Side::kDevice, request.address,
                              extent(end, request.width * request.element_bytes, request.height, 1), true);
  to_ = to.bytes;
  place_ = to.place;
}

void PlannedFill::run() const {
  for (std::size_t y = 0; y < request_.height; ++y) {
    std::byte* const row = to_ + y * request_.pitch_bytes;
    if (request_.element_bytes == 1) std::memset(row, static_cast<int>(request_.value & 0xff), request_.width);
    if (request_.element_bytes == 2) fill_row<std::uint16_t>(row, request_.width, request_.value);
    if (request_.element_bytes == 4) fill_row<std::uint32_t>(row, request_.width, request_.value);
  }
}

void fill(const FillRequest& request, const StreamPointer& stream, HostWait wait) {
  const PlannedFill planned(request);
  if (planned.nothing()) return;
  const CompletionPointer completion = submit(*stream, {.type = CU_GRAPH_NODE_TYPE_MEMSET,
                                                        .run = [planned] { planned.run(); },
                                                        .parameters = as_node_parameters(request)});
  if (completion != nullptr && wait == HostWait::kSync && planned.to() == Place::kPinned) completion->wait();
}

}  // namespace faultline::vgpu
