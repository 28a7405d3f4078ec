#include "capture/real_driver.h"

#include <dlfcn.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "capture/open_driver.h"
#include "capture/violations.h"
#include "driver/find_driver.h"

namespace faultline::capture {
namespace {

struct RealDriver {
  std::array<char, 4096> path{};
  void* library = nullptr;
  OwnCalls own;

  void open() {
    const char* named = std::getenv("FAULTLINE_DRIVER");
    if (named != nullptr && *named != '\0')
      std::strncpy(path.data(), named, path.size() - 1);
    else
      search();
    if (path[0] == '\0') return;
    library = open_real_driver(path.data());
    if (library == nullptr) return;
#define FAULTLINE_FIND(name, symbol) find(own.name, #symbol);
    FAULTLINE_OWN_CALLS(FAULTLINE_FIND)
#undef FAULTLINE_FIND
    void (*set_sink)(driver::ViolationSink) = nullptr;
    find(set_sink, driver::kSetViolationSink);
    if (set_sink != nullptr) set_sink(record_violation);
  }
  void search() {
    try {
      std::strncpy(path.data(), driver::find_real_driver().c_str(), path.size() - 1);
    } catch (...) {  // no memory: no driver
    }
  }
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
  }
};

// No lock of ours is held around the loader's: a thread that has that one may be waiting for us (a library whose start calls CUDA). So several threads may open
// the driver at once, each in a place of its own; the first to be done is believed. Nothing here has an end: it outlives every thread that may still call.
static_assert(std::is_trivially_destructible_v<RealDriver>);
constinit std::array<RealDriver, 64> places;
std::atomic<std::uint32_t> places_taken{0};
std::atomic<const RealDriver*> the_driver{nullptr};

const RealDriver& real() {
  if (const RealDriver* known = the_driver.load(std::memory_order_acquire)) return *known;
  if (const std::uint32_t place = places_taken.fetch_add(1); place < places.size()) {
    places[place].open();
    const RealDriver* none = nullptr;
    the_driver.compare_exchange_strong(none, &places[place]);
  }
  const RealDriver* known = nullptr;
  while ((known = the_driver.load(std::memory_order_acquire)) == nullptr) ::sched_yield();
  return *known;
}

}  // namespace

void* real_library() { return real().library; }
std::string_view real_library_path() { return real().path.data(); }
const OwnCalls& own() { return real().own; }
void* real_symbol(const char* name) { return real().library == nullptr ? nullptr : ::dlsym(real().library, name); }

}  // namespace faultline::capture
