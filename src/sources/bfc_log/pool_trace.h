// The trace of a log in the making: pools, the events in them, and what is said of each pool.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_interval.h"
#include "base/byte_range.h"
#include "base/hash.h"
#include "trace/framework.h"
#include "trace/trace.h"

namespace faultline {

class PoolTrace {
 public:
  using Pool = std::uint16_t;  // 0: none
  // Who did something, and when.
  struct Mark {
    std::int64_t time_ns = 0;
    ThreadId thread;
  };

  PoolTrace();
  // 0 where there are more pools than any program has.
  Pool pool(std::string_view name);
  void created(Pool pool) { pools_[pool].from_start = true; }

  void region_taken(Pool pool, ByteRange region, Mark mark);
  void region_returned(Pool pool, std::uint64_t address, Mark mark);
  // The event's number.
  std::size_t allocated(Pool pool, std::uint64_t bytes, std::uint64_t address, Mark mark);
  // How much was asked for, where it was taken for another request's.
  void correct(Pool pool, std::uint64_t address, std::uint64_t bytes);
  std::size_t failed(Pool pool, std::uint64_t bytes, Mark mark);
  void freed(Pool pool, std::uint64_t address, Mark mark, StackId stack, bool at_exit = false);
  // From now on a free says only how much was asked for: what is live is found out later (level3.h).
  void frees_are_nameless() { frees_are_nameless_ = true; }
  // A free of which only the size is known.
  void freed_somewhere(Pool pool, std::uint64_t bytes, Mark mark);

  void state_limit(Pool pool, ByteInterval limit);
  void state_growth(Pool pool, bool grows) { pools_[pool].growth = grows; }
  void name_device(std::uint16_t index, std::string_view name) { device_names_[index] = std::string(name); }
  void state_framework(Framework framework) { trace.properties[kPoolsFramework] = file_name_of(framework); }

  Event& event(std::size_t number) { return trace.events[number]; }
  // Devices, properties, capabilities. What goes when the interpreter ends was held to the end: nobody let go of it.
  Trace finish(bool has_stacks);

  Trace trace;

 private:
  struct Held {
    AllocationId id;
    std::uint64_t bytes = 0;  // as asked for
    std::size_t event = 0;
  };
  struct PoolState {
    std::string name;
    HeapId heap, driver_heap;
    std::uint16_t device = 0;
    bool from_start = false, is_host = false;
    std::optional<ByteInterval> limit;
    std::optional<bool> growth;
    HashMap<std::uint64_t, Held> live, regions;  // by address
  };
  Event made(EventKind kind, const PoolState& pool, HeapId heap, std::uint64_t address, std::uint64_t bytes, Mark mark);
  void place_hosts();
  void drop_exit();

  std::vector<PoolState> pools_;  // [0] is none
  bool frees_are_nameless_ = false;
  std::vector<std::size_t> exit_frees_;  // events
  std::map<std::uint16_t, std::string> device_names_;
};

}  // namespace faultline
