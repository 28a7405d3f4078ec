// The BFC allocator once more, as plainly as it can be said, for tests: lists that are searched from end to end. Slow, and written without looking at pool.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace faultline::reference {

struct Piece {
  std::uint64_t address = 0, bytes = 0;
  bool used = false;
};
using Region = std::vector<Piece>;  // by address, without gaps

struct Pool {
  std::uint64_t limit = 0, next = 0, whole_below = 128ull << 20;
  bool collects = false;
  std::function<std::optional<std::uint64_t>(std::uint64_t)> ask;  // the driver: an address, or nothing
  std::function<void(std::uint64_t, std::uint64_t)> give_back;
  std::vector<Region> regions;

  Pool(std::uint64_t limit_bytes, bool growth) : limit(limit_bytes) {
    next = up(growth ? std::min<std::uint64_t>(limit_bytes, 2ull << 20) : limit_bytes);
  }
  static std::uint64_t up(std::uint64_t bytes) { return (bytes + 255) & ~255ull; }
  std::uint64_t taken() const {
    std::uint64_t sum = 0;
    for (const Region& region : regions) {
      for (const Piece& piece : region) sum += piece.bytes;
    }
    return sum;
  }

  std::optional<std::uint64_t> place(std::uint64_t bytes) {
    Region* best_region = nullptr;
    std::size_t best = 0;
    for (Region& region : regions) {
      for (std::size_t at = 0; at < region.size(); ++at) {
        const Piece& piece = region[at];
        if (piece.used || piece.bytes < bytes) continue;
        const bool better = best_region == nullptr || piece.bytes < (*best_region)[best].bytes ||
                            (piece.bytes == (*best_region)[best].bytes && piece.address < (*best_region)[best].address);
        if (better) best_region = &region, best = at;
      }
    }
    if (best_region == nullptr) return std::nullopt;
    Piece& piece = (*best_region)[best];
    const std::uint64_t address = piece.address, spare = piece.bytes - bytes;
    piece.used = true;
    if (spare >= bytes || spare >= whole_below) {
      piece.bytes = bytes;
      if (spare != 0)
        best_region->insert(best_region->begin() + static_cast<std::ptrdiff_t>(best) + 1,
                            {address + bytes, spare, false});
    }
    return address;
  }

  bool grow(std::uint64_t bytes) {
    const std::uint64_t left = (limit - taken()) / 256 * 256;
    if (bytes > left) return false;
    bool doubled = false;
    for (; bytes > next; doubled = true) next *= 2;
    std::uint64_t size = std::min(next, left);
    std::optional<std::uint64_t> address = ask(size);
    while (!address) {
      const float share = static_cast<float>(size) * 0.9f;
      const std::uint64_t less = up(static_cast<std::uint64_t>(share));
      size = less < size ? less : size - 256;
      if (size < bytes) return false;
      address = ask(size);
    }
    if (!doubled) next *= 2;
    regions.push_back({{*address, size, false}});
    return true;
  }

  std::optional<std::uint64_t> allocate(std::uint64_t asked) {
    const std::uint64_t bytes = up(asked);
    std::optional<std::uint64_t> found = place(bytes);
    if (!found && grow(bytes)) found = place(bytes);
    if (found || !collects) return found;
    const auto unused = [](const Region& region) {
      return std::none_of(region.begin(), region.end(), [](const Piece& piece) { return piece.used; });
    };
    std::uint64_t empty = 0;
    for (const Region& region : regions) empty += unused(region) ? region.front().bytes : 0;
    if (empty == 0 || bytes > limit - taken() + empty) return std::nullopt;
    std::sort(regions.begin(), regions.end(),
              [](const Region& a, const Region& b) { return a[0].address < b[0].address; });
    for (const Region& region : regions) {
      if (unused(region)) give_back(region.front().address, region.front().bytes);
    }
    std::erase_if(regions, unused);
    return grow(bytes) ? place(bytes) : std::nullopt;
  }

  void free(std::uint64_t address) {
    for (Region& region : regions) {
      for (Piece& piece : region) {
        if (piece.address == address && piece.used) piece.used = false;
      }
      for (std::size_t at = 0; at + 1 < region.size();) {
        if (region[at].used || region[at + 1].used) {
          ++at;
          continue;
        }
        region[at].bytes += region[at + 1].bytes;
        region.erase(region.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
    }
  }
};

}  // namespace faultline::reference
