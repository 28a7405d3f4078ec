// Keeps the maps of pools in a run's folder (TF_BFC_MEMORY_DUMP) few: TensorFlow and JAX write one for each request that is refused, and a program may try a thousand times.
//
// Of each process and pool the first and the last ones stay, as long as all together are not too large; the very last one stays however large it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace faultline::process {

struct PoolMapLimits {
  std::size_t most_files = 8;                           // of one pool of one process
  std::uint64_t most_bytes = std::uint64_t{256} << 20;  // of all pools together
};

// Removes what is too many, and says how many that were.
std::size_t thin_out_pool_maps(const std::string& folder, const PoolMapLimits& limits = {});

// While the program runs; where no thread can be started, when it has ended. Does not throw: the program is running.
class PoolMapsBound {
 public:
  explicit PoolMapsBound(std::string folder) noexcept;  // empty: there is none
  ~PoolMapsBound();
  void finish() noexcept;

 private:
  std::string folder_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

}  // namespace faultline::process
