// Handles of the driver's objects: numbers dressed as pointers, never given twice, so that a destroyed object's handle is known to be dead for good.
//
// Objects are shared: a stream's worker or an event's waiter may still hold what the program has destroyed. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vgpu/call.h"

namespace faultline::vgpu {

inline std::uint64_t next_handle_value() {
  static std::atomic<std::uint64_t> next{0x5fa0'0000'0000};  // no mapped memory of a program lies there
  return next.fetch_add(64, std::memory_order_relaxed);
}

// One of each kind, which is never destroyed: streams may use it until the process is gone.
template <class Handle, class Object>
class Handles {
 public:
  static Handles& get() {
    static Handles& handles = *new Handles;
    return handles;
  }
  Handle insert(std::shared_ptr<Object> object) {
    const std::uint64_t value = next_handle_value();
    const std::unique_lock lock(mutex_);
    objects_.emplace(value, std::move(object));
    return reinterpret_cast<Handle>(value);
  }
  // Null: no such object (any more).
  std::shared_ptr<Object> find(Handle handle) const {
    const std::shared_lock lock(mutex_);
    const auto at = objects_.find(reinterpret_cast<std::uint64_t>(handle));
    return at == objects_.end() ? nullptr : at->second;
  }
  std::shared_ptr<Object> require(Handle handle, CUresult unknown) const {
    std::shared_ptr<Object> object = find(handle);
    vgpu::require(object != nullptr, unknown);
    return object;
  }
  std::shared_ptr<Object> remove(Handle handle) {
    const std::unique_lock lock(mutex_);
    const auto at = objects_.find(reinterpret_cast<std::uint64_t>(handle));
    if (at == objects_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(at->second);
    objects_.erase(at);
    return object;
  }
  std::vector<std::shared_ptr<Object>> all() const {
    const std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<Object>> found;
    for (const auto& entry : objects_) found.push_back(entry.second);
    return found;
  }
  template <class Condition>
  std::vector<std::shared_ptr<Object>> remove_if(const Condition& condition) {
    std::vector<std::shared_ptr<Object>> removed;
    const std::unique_lock lock(mutex_);
    std::erase_if(objects_, [&](auto& entry) {
      if (!condition(*entry.second)) return false;
      removed.push_back(std::move(entry.second));
      return true;
    });
    return removed;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Object>> objects_;
};

}  // namespace faultline::vgpu
