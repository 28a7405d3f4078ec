#include "models/bfc/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fmt/format.h"

namespace faultline {
namespace {

constexpr std::string_view kGrowth = "TF_FORCE_GPU_ALLOW_GROWTH", kPreallocate = "XLA_PYTHON_CLIENT_PREALLOCATE",
                           kCollection = "TF_ENABLE_GPU_GARBAGE_COLLECTION", kLimit = "memory_limit",
                           kCpuLimit = "TF_CPU_BFC_MEM_LIMIT_IN_MB", kFraction = "per_process_gpu_memory_fraction",
                           kJaxFraction = "XLA_CLIENT_MEM_FRACTION", kOldJaxFraction = "XLA_PYTHON_CLIENT_MEM_FRACTION",
                           kReserve = "TF_DEVICE_MIN_SYS_MEMORY_IN_MB", kWhole = "internal_fragmentation_fraction";

std::optional<bool> truth(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(),
                 [](char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; });
  if (low == "true" || low == "1") return true;
  if (low == "false" || low == "0") return false;
  return std::nullopt;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    return std::nullopt;
  return value;
}

Error bad_value(std::string_view name, std::string_view value, std::string_view accepts) {
  return {fmt::format("{} takes {}, not '{}'", name, accepts, value), {}, {}};
}

Error needs_size(std::string_view name) {
  return {fmt::format("{} is counted from the device's memory, which the recording does not state", name),
          {},
          "Name the GPU with --gpu, or give the pool's size itself: memory_limit, in MiB."};
}

std::uint64_t bounded(double bytes) {
  return bytes >= static_cast<double>(kBfcNoLimit) ? kBfcNoLimit : static_cast<std::uint64_t>(bytes);
}

std::uint64_t free_at_start(const TargetGpu& gpu) {
  return gpu.capacity_bytes - std::min(gpu.capacity_bytes, kBfcContextAtStart);
}

Status apply(BfcSettings& settings, const BfcTarget& target, const std::string& name, const std::string& value) {
  if (name == kGrowth || name == kPreallocate || name == kCollection) {
    const std::optional<bool> on = truth(value);
    if (!on) return bad_value(name, value, "true or false");
    if (name == kGrowth) settings.growth = *on;
    if (name == kPreallocate) settings.growth = !*on;
    if (name == kCollection) settings.garbage_collection = *on;
    return Ok{};
  }
  const std::optional<double> amount = number(value);
  if (name == kLimit || name == kCpuLimit) {
    if (!amount || *amount == 0) return bad_value(name, value, "a number of MiB above 0");
    settings.limit_bytes = bounded(*amount * static_cast<double>(kMiB));
    return Ok{};
  }
  if (name == kFraction || name == kJaxFraction || name == kOldJaxFraction) {
    if (!amount || *amount == 0) return bad_value(name, value, "a share such as 0.9");
    if (!target.gpu) return needs_size(name);
    settings.limit_bytes = share_of(target.gpu->capacity_bytes, *amount);
    return Ok{};
  }
  if (name == kReserve) {
    if (!amount) return bad_value(name, value, "a number of MiB");
    if (!target.gpu) return needs_size(name);
    const std::uint64_t free = free_at_start(*target.gpu);
    settings.limit_bytes = free - std::min(free, bounded(*amount * static_cast<double>(kMiB)));
    return Ok{};
  }
  if (name == kWhole) {
    if (!amount || *amount >= 1) return bad_value(name, value, "a share of the limit below 1; 0 is TensorFlow's own");
    settings.left_whole_below_bytes =
        *amount == 0 ? kBfcLeftWhole : bounded(*amount * static_cast<double>(settings.limit_bytes));
    return Ok{};
  }
  return Error{fmt::format("'{}' is not a setting of this allocator", name),
               {},
               fmt::format("TensorFlow's and JAX's pool has {}.", fmt::join(bfc_setting_names(), ", "))};
}

}  // namespace

std::uint64_t tensorflow_reserve_bytes(std::uint64_t free_bytes, int compute_major) {
  if (free_bytes < 2 * kGiB) return 225 * kMiB;
  return (compute_major <= 6 ? 500 : compute_major == 7 ? 1050 : 1536) * kMiB;
}

std::uint64_t tensorflow_context_bytes(const TargetGpu& gpu, const SettingChanges& changes) {
  std::optional<std::uint64_t> reserve;
  for (const auto& [name, value] : changes) {
    if ((name == kLimit || name == kFraction) && !reserve) reserve = 0;
    if (const std::optional<double> told = number(value); name == kReserve && told)
      reserve = bounded(*told * static_cast<double>(kMiB));
  }
  if (reserve) return kBfcContextAtStart + *reserve;
  return std::min(kBfcContextAtStart + tensorflow_reserve_bytes(free_at_start(gpu), gpu.compute_major),
                  gpu.capacity_bytes / 2);
}

std::uint64_t share_of(std::uint64_t capacity_bytes, double fraction) {
  return bounded(static_cast<double>(capacity_bytes) * fraction);
}

Status apply_changes(BfcSettings& settings, const BfcTarget& target, const SettingChanges& changes) {
  if (target.gpu) {
    const std::uint64_t free = free_at_start(*target.gpu);
    settings.limit_bytes = target.framework == Framework::kJax
                               ? share_of(target.gpu->capacity_bytes, kJaxShare)
                               : free - std::min(free, tensorflow_reserve_bytes(free, target.gpu->compute_major));
  }
  for (const auto& [name, value] : changes) {
    if (Status status = apply(settings, target, name, value); !status) return status;
  }
  return Ok{};
}

const std::vector<std::string_view>& bfc_setting_names() {
  static const std::vector<std::string_view> kNames = {kGrowth,         kCollection, kLimit,    kFraction,
                                                       kReserve,        kWhole,      kCpuLimit, kJaxFraction,
                                                       kOldJaxFraction, kPreallocate};
  return kNames;
}

std::string written(const BfcSettings& settings, Framework framework) {
  const bool is_jax = framework == Framework::kJax;
  std::string text =
      is_jax ? fmt::format("{}={}", kPreallocate, !settings.growth) : fmt::format("{}={}", kGrowth, settings.growth);
  if (!is_jax || settings.garbage_collection) text += fmt::format(",{}={}", kCollection, settings.garbage_collection);
  if (settings.limit_bytes < kBfcNoLimit) {
    text +=
        settings.limit_bytes % kMiB == 0
            ? fmt::format(",{}={}", kLimit, settings.limit_bytes / kMiB)
            : fmt::format(",{}={:.2f}", kLimit, static_cast<double>(settings.limit_bytes) / static_cast<double>(kMiB));
  }
  if (settings.left_whole_below_bytes != kBfcLeftWhole && settings.limit_bytes != 0)
    text +=
        fmt::format(",{}={:.4g}", kWhole,
                    static_cast<double>(settings.left_whole_below_bytes) / static_cast<double>(settings.limit_bytes));
  return text;
}

}  // namespace faultline
