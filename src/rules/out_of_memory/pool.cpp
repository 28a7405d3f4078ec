#include "rules/out_of_memory/pool.h"

#include <algorithm>
#include <map>

#include "base/units.h"
#include "fmt/format.h"
#include "rules/describe.h"
#include "rules/shortage.h"

namespace faultline {
namespace {

constexpr std::size_t kMostHolders = 8;

// By the operation where the input names them, by the size of the chunk where it does not, by the line where there are stacks.
std::vector<Holder> holders_of(const Case& subject, const PoolFailure& failure) {
  const Facts& facts = subject.facts();
  const Trace& trace = subject.trace();
  const HeapId heap = trace.events[failure.moment.event].heap;
  struct Held {
    std::uint64_t bytes = 0, count = 0;
  };
  std::map<std::pair<std::string, std::uint64_t>, Held> held;
  bool has_stacks = false;
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (birth.heap != heap || !life.alive_at(failure.moment.event)) return;
    has_stacks |= birth.stack.value != 0;
    const std::string op(birth.extra == 0 ? std::string_view()
                                          : trace.strings.at(trace.tensors.at(TensorId(birth.extra)).op));
    const std::uint64_t bytes = facts.lifetimes.held_bytes(id);
    Held& sum = held[{op, op.empty() ? bytes : 0}];
    sum.bytes += bytes;
    ++sum.count;
  });
  if (has_stacks) return holders_at(facts, failure.slot, failure.moment.event);
  std::vector<Holder> holders;
  for (const auto& [key, sum] : held) {
    Holder& holder = holders.emplace_back();
    holder.bytes = sum.bytes;
    holder.count = sum.count;
    holder.category = "in the pool";
    holder.location.op = key.first;
    if (key.first.empty())
      holder.detail =
          sum.count == 1 ? "a chunk of " + format_bytes(key.second) : "chunks of " + format_bytes(key.second);
  }
  std::stable_sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  if (holders.size() <= kMostHolders) return holders;
  Holder rest;
  rest.category = "the rest";
  const std::size_t others = holders.size() - kMostHolders + 1;
  for (std::size_t at = kMostHolders - 1; at < holders.size(); ++at) {
    rest.bytes += holders[at].bytes;
    rest.count += holders[at].count;
  }
  rest.detail = fmt::format("of {} other {}", format_count(others),
                            held.begin()->first.first.empty() ? "sizes" : "operations and sizes");
  holders.resize(kMostHolders - 1);
  holders.push_back(std::move(rest));
  return holders;
}

void add_numbers(const Shortage& shortage, Finding& finding) {
  const PoolShortage& parts = *shortage.pool;
  const auto add = [&](const char* name, const std::optional<ByteInterval>& bytes) {
    if (bytes) add_evidence(finding, name, bytes->middle());
  };
  if (parts.knows_request) add_evidence(finding, "rounded_request_bytes", shortage.requested.middle());
  add("pool_limit_bytes", parts.limit);
  add("pool_taken_bytes", shortage.reserved);
  add("pool_in_use_bytes", shortage.live);
  add("pool_free_bytes", shortage.idle);
  add("pool_largest_free_bytes", shortage.largest_piece);
  add("pool_not_taken_bytes", parts.left);
  add("pool_slack_bytes", parts.slack);
  add("refused_region_bytes", parts.refused);
  if (parts.has_map) add_evidence(finding, "pool_regions", parts.region_count);
}

enum class Owner : std::uint8_t { kTensorFlow, kJax, kEither };

Owner owner_of(const Case& subject) {
  const auto framework = subject.trace().properties.find("bfc.framework");
  if (framework == subject.trace().properties.end()) return Owner::kEither;
  return framework->second == "jax" ? Owner::kJax : Owner::kTensorFlow;
}

// Settings that bear on this cause. Where nothing but a map is known, what was asked for before it is not, and none of them can be tried.
void add_settings(Owner owner, const Shortage& shortage, const CauseVerdict& verdict, Finding& finding) {
  const bool tensorflow = owner != Owner::kJax, jax = owner != Owner::kTensorFlow;
  const std::string unconfirmed = " Not confirmed: the map does not show the requests that led to it.";
  switch (verdict.story) {
    case Story::kPoolPieces:
    case Story::kPoolRegions:
    case Story::kPoolSlack:
      if (shortage.pool->region_count > 1 && tensorflow)
        add_try(finding, fmt::format("The pool grew in {} regions, and no request can lie across two: without growth "
                                     "it takes its limit as one "
                                     "region (TF_FORCE_GPU_ALLOW_GROWTH=false, no set_memory_growth).{}",
                                     format_count(shortage.pool->region_count), unconfirmed));
      if (shortage.pool->region_count > 1 && jax)
        add_try(finding, fmt::format("The pool grew in {} regions, and no request can lie across two: "
                                     "XLA_PYTHON_CLIENT_PREALLOCATE=true (JAX's "
                                     "default) takes it as one region.{}",
                                     format_count(shortage.pool->region_count), unconfirmed));
      if (tensorflow)
        add_try(finding, "TF_GPU_ALLOCATOR=cuda_malloc_async puts pieces together by mapping them anew." + unconfirmed);
      if (jax)
        add_try(finding,
                "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async puts pieces together by mapping them anew." + unconfirmed);
      add_try(finding, "Make the large and lasting arrays first, before the small ones that come and go.");
      return;
    case Story::kPoolRefused:
      add_try(finding,
              "See who holds the device: nvidia-smi; workers of the same job, forgotten notebooks, and a second "
              "framework in this process "
              "count.");
      if (tensorflow)
        add_try(finding,
                "Keep what the pool may take within what is there: per_process_gpu_memory_fraction or "
                "set_logical_device_configuration(memory_limit=…); "
                "of two programs on one GPU each.");
      if (jax)
        add_try(finding,
                "Keep what the pool may take within what is there: XLA_CLIENT_MEM_FRACTION (older: "
                "XLA_PYTHON_CLIENT_MEM_FRACTION), for each "
                "program on this GPU.");
      return;
    case Story::kPoolTooLarge:
    case Story::kPoolFull:
      add_try(finding, std::string(finding.location.known() ? "Hold less at this line" : "Hold less at once") +
                           ": a smaller batch or sequence, a smaller type" +
                           (jax ? ", jax.checkpoint around the layers." : "."));
      if (jax)
        add_try(finding,
                "JAX takes three quarters of the device at start: if nothing else needs it, "
                "XLA_CLIENT_MEM_FRACTION=0.95 (older: "
                "XLA_PYTHON_CLIENT_MEM_FRACTION) gives the pool more.");
      return;
    default: return;
  }
}

}  // namespace

std::optional<PoolFailure> pool_failure(const Case& subject) {
  const Trace& trace = subject.trace();
  std::optional<PoolFailure> last;
  for (std::size_t slot = 0; slot < subject.facts().usage.size(); ++slot) {
    for (const UsageMoment& moment : subject.facts().usage[slot].failures) {
      if (trace.heaps[trace.events[moment.event].heap.index()].kind != HeapKind::kBfc) continue;
      if (!last || moment.event > last->moment.event) last = PoolFailure{slot, moment};
    }
  }
  return last;
}

void tell_pool(Case& subject, const PoolFailure& failure, Finding& finding) {
  const Trace& trace = subject.trace();
  const Heap& heap = trace.heaps[trace.events[failure.moment.event].heap.index()];
  const Shortage shortage = shortage_of(subject, failure.slot, failure.moment);
  const CauseVerdict verdict = cause_of(shortage);
  const DumpedPool* const stated = subject.statements().pool_of(heap.name);
  const std::string asker = stated == nullptr || stated->asked_by.empty() ? "" : " by " + stated->asked_by;
  finding.cause = verdict.cause();
  finding.confidence = verdict.confidence;
  finding.device = trace.devices[failure.slot].index;
  if (shortage.pool->knows_request) {
    finding.bytes = trace.events[failure.moment.event].size_bytes;
    finding.message = fmt::format("{} were asked for{}: {}.", shown(shortage.requested), asker, verdict.why);
  } else {
    finding.message = fmt::format("A request failed{}; how much was asked for is not told: {}.", asker, verdict.why);
  }
  if (stated != nullptr && stated->unread_bytes + stated->unplaced_bytes != 0)
    finding.message += fmt::format(" Lines of the map are missing: of {} it is not known whether they were in use.",
                                   format_bytes(stated->unread_bytes + stated->unplaced_bytes));
  if (shortage.pool->is_host) finding.message += " This pool is memory of the host, not of the GPU.";
  add_numbers(shortage, finding);
  add_evidence(finding, "inequality", verdict.inequality);
  finding.holders = holders_of(subject, failure);
  add_settings(owner_of(subject), shortage, verdict, finding);
}

}  // namespace faultline
