// The GPUs Faultline knows by name, and what a program finds on each of them.
//
// A card has less memory than its box says: the driver keeps some for itself (error correction, firmware, display), and the CUDA context and
// libraries of the program take more before PyTorch's allocator gets its first byte. So an entry has two figures, and each says how it is known:
//
//     capacity_bytes   what cudaMemGetInfo calls total; PyTorch's messages print it as "total capacity"
//   - context_bytes    what a training process holds outside PyTorch's allocator
//   = what the caching allocator can take from the driver
//
// Where several capacities were seen, the entry has the smallest: a plan must not promise memory that is not there. docs/gpus.md lists what was
// seen, and where. A name is read without regard to case, spaces, dashes and the words NVIDIA, Tesla, GeForce and RTX. Every verb that takes
// --gpu asks find_gpu; nothing else in Faultline knows a card by its name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace faultline {

enum class FigureSource : std::uint8_t {
  kMeasured,   // on a card, by Faultline's own programs
  kPublished,  // printed by PyTorch or CUDA on such a card, in a public report
  kEstimated,  // derived from cards like it
  kAssumed,    // the card is not known: a size was given
};
std::string_view to_string(FigureSource source);  // "measured"

struct Gpu {
  std::string_view name;       // "A100-40GB"; empty: a size was given
  std::string_view full_name;  // as torch.cuda.get_device_name() prints it; empty: a size was given
  std::uint64_t capacity_bytes = 0;
  FigureSource capacity_source = FigureSource::kAssumed;
  std::uint64_t context_bytes = 0;
  FigureSource context_source = FigureSource::kAssumed;
  std::uint32_t box_gib = 0;  // the size the card is sold with; 0: a size was given
  int compute_major = 0;
  int compute_minor = 0;
  int sm_count = 0;
  int max_threads_per_sm = 0;
  int warp_size = 32;
  std::uint64_t l2_bytes = 0;
  std::uint64_t max_shared_bytes_per_block = 0;  // after a kernel has asked for it
  std::string_view note;  // a clause to show the user, about a choice that was made for them; may be empty
};

// A name, or a size such as 24GiB. A size makes a device of compute capability 8.0 with an A100's multiprocessors and kContextWhenUnknown.
Result<Gpu> find_gpu(std::string_view text);

// One or several: "T4", "2xA100-80GB", "A100-40GB,T4". In the order of their numbers.
Result<std::vector<Gpu>> find_gpus(std::string_view text);
inline constexpr std::size_t kMostGpus = 64;  // in one program

inline constexpr std::uint64_t kContextWhenUnknown = 640 * kMiB;

// "Tesla T4", or "a device of 24.00 GiB".
std::string describe(const Gpu& gpu);

// The whole catalogue. `words` are the names of the entry as find_gpu compares them (gpu_word); `loose_words` fit several cards, of which the
// entry is the smallest or the usual one, and `loose_note` says so.
struct GpuEntry {
  Gpu gpu;
  std::string_view words;
  std::string_view loose_words;
  std::string_view loose_note;
};
std::span<const GpuEntry> gpu_catalogue();

// The name as it is compared: "NVIDIA GeForce RTX 4090" and "rtx-4090" are "4090", "Tesla V100-SXM2-16GB" is "v100sxm216".
std::string gpu_word(std::string_view text);

}  // namespace faultline
