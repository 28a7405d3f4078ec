// From what the ObjectMachine lowered to a trace that holds the invariants: device and kind of each event, allocation ids, heaps, the state
// before the recording began, annotations in their place.
//
// The beginning may be missing (PyTorch keeps a ring). It is rebuilt from what the rest implies: a block freed without having been
// allocated, or alive at the end and never touched, was there before; so were segments and mapped ranges.
#pragma once

#include "base/result.h"
#include "sources/torch_snapshot/address_table.h"
#include "sources/torch_snapshot/object_machine.h"
#include "trace/trace.h"

namespace faultline::torch_snapshot {

class TraceBuilder {
 public:
  TraceBuilder(Trace& trace, ObjectMachine& machine) : trace_(trace), machine_(machine) {}
  Status build(Value top);

 private:
  struct Insertion {
    std::uint64_t before = 0;  // index of the event it precedes
    Event event;
  };
  struct LiveSegment {
    std::uint32_t id = 0;  // driver allocation
    std::uint64_t size_bytes = 0;
    std::uint32_t instance = 0;  // into instance_pools_
  };

  Status take_top(Value top);
  void take_settings(Value dict);
  void count_unknown_key(std::string_view name, std::uint64_t times);
  void deduce_version();
  Status take_traces(Value list);
  void assign_kinds();
  Status check_sizes();
  Status check_segments() const;
  void make_heaps();
  HeapId heap_for(std::uint16_t device, std::uint16_t pool);
  void pair_events();
  void pair_alloc(std::uint64_t index);
  void pair_free(std::uint64_t index, Action action);
  void pair_segment(std::uint64_t index, Action action);
  void compare_with_final_state();
  void find_preexisting_segments();
  void find_preexisting_mappings();
  void settle_pools();
  void add_annotations();
  void complete_missing_frees();
  void insert_and_prepend();
  void name_devices();
  AllocationId new_allocation() { return AllocationId(++trace_.allocation_count); }
  std::uint16_t final_pool_at(std::uint64_t address, std::uint16_t device);
  Event preexisting(EventKind kind, std::uint64_t address, std::uint64_t size_bytes, std::uint16_t device);

  Trace& trace_;
  ObjectMachine& machine_;
  bool has_external_annotations_ = false;
  bool has_settings_ = false;
  bool pools_matter_ = false;
  std::size_t unknown_key_names_ = 0;
  std::uint64_t requested_count_ = 0;
  std::uint64_t completed_count_ = 0;
  bool requests_complete_ = false;  // the recording leaves out completed frees: a request stands for both halves
  std::vector<std::uint64_t> entry_count_of_device_;
  std::vector<Action> actions_;                  // of the event at the same index, until it has its kind
  HashMap<std::uint32_t, HeapId> heap_of_pool_;  // device << 16 | pool
  std::uint32_t last_pool_ = 0xffffffff;         // the pair heap_for was last asked for
  HeapId last_heap_;
  AddressTable blocks_;
  std::map<std::pair<std::uint16_t, std::uint64_t>, LiveSegment> live_segments_;  // by device and address
  std::vector<std::uint16_t> instance_pools_;
  std::vector<std::uint32_t> instance_of_allocation_;   // only while pools_matter_
  std::vector<const FinalSegment*> segments_by_place_;  // by device and address, for final_pool_at
  std::vector<Event> front_segments_;
  std::vector<Event> front_blocks_;
  std::vector<Insertion> insertions_;
};

}  // namespace faultline::torch_snapshot
