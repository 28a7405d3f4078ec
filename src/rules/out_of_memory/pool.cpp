#include "rules/out_of_memory/pool.h"

#include <algorithm>
#include <map>

#include "base/units.h"
#include "fmt/format.h"
#include "models/search.h"
#include "rules/cause.h"
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
void add_settings(Owner owner, const Shortage& shortage, const CauseVerdict& verdict, bool is_recorded,
                  Finding& finding) {
  const bool tensorflow = owner != Owner::kJax, jax = owner != Owner::kTensorFlow;
  const std::string unconfirmed =
      is_recorded ? "" : " Not confirmed: the map does not show the requests that led to it.";
  switch (verdict.story) {
    case Story::kPoolPieces:
    case Story::kPoolRegions:
    case Story::kPoolSlack:
      if (shortage.pool->region_count > 1 && tensorflow && !is_recorded && !shortage.pool->is_host)
        add_try(finding, fmt::format("The pool grew in {} regions, and no request can lie across two: without growth "
                                     "it takes its limit as one "
                                     "region (TF_FORCE_GPU_ALLOW_GROWTH=false, no set_memory_growth).{}",
                                     format_count(shortage.pool->region_count), unconfirmed));
      if (shortage.pool->region_count > 1 && jax && !is_recorded && !shortage.pool->is_host)
        add_try(finding, fmt::format("The pool grew in {} regions, and no request can lie across two: "
                                     "XLA_PYTHON_CLIENT_PREALLOCATE=true (JAX's "
                                     "default) takes it as one region.{}",
                                     format_count(shortage.pool->region_count), unconfirmed));
      if (tensorflow && !shortage.pool->is_host)
        add_try(finding, "TF_GPU_ALLOCATOR=cuda_malloc_async puts pieces together by mapping them anew." + unconfirmed);
      if (jax && !shortage.pool->is_host)
        add_try(finding,
                "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async puts pieces together by mapping them anew." + unconfirmed);
      if (!is_recorded)
        add_try(finding,
                "To have settings tried: TF_CPP_VMODULE=bfc_allocator=4 python train.py 2> allocator.log, then "
                "faultline replay "
                "allocator.log --search (slow: it writes a line for each request).");
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
                           (owner == Owner::kJax ? ", jax.checkpoint around the layers." : "."));
      if (jax)
        add_try(finding,
                "JAX takes three quarters of the device at start: if nothing else needs it, "
                "XLA_CLIENT_MEM_FRACTION=0.95 (older: "
                "XLA_PYTHON_CLIENT_MEM_FRACTION) gives the pool more.");
      return;
    default: return;
  }
}

// Settings that serve the request within the limit, and the limit that would have, where a replay of the recording shows it. A map alone has no requests to repeat: from it only the
// limit can be tried, by the request that failed, in the state that the map shows.
void try_settings(Case& subject, std::size_t slot, const Shortage& shortage, Finding& finding) {
  constexpr std::size_t kMostStateEvents = 100'000;
  const Trace& trace = subject.trace();
  const std::uint16_t device = trace.devices[slot].index;
  const bool is_recorded = subject.model_is_trusted(slot);
  if (finding.cause != "fragmented" && finding.cause != "exhausted") return;
  const auto served = [](const ReplayResult* answer) { return answer != nullptr && answer->failure_count == 0; };
  if (is_recorded && finding.cause == "fragmented") {
    for (const SettingChanges& changes : proposed_settings(trace, device)) {
      if (!served(subject.what_if(slot, changes, std::nullopt))) continue;
      finding.tries.push_back(
          {fmt::format("{}: within the same limit {}.", instruction(trace, device, changes), kServedThen), true, 0});
      break;
    }
  }
  // A map that is not whole, or in which the model would have found room, is not the state that it failed in.
  if (!shortage.pool->limit || !shortage.pool->has_map || shortage.idle->min != shortage.idle->max) return;
  if (!is_recorded) {
    const ReplayResult* as_it_was =
        trace.events.size() > kMostStateEvents ? nullptr : subject.what_if(slot, {}, std::nullopt);
    if (as_it_was == nullptr || as_it_was->failure_count == 0) return;
  }
  const auto with_limit = [&](std::uint64_t mib) {
    return SettingChanges{
        {shortage.pool->is_host ? "TF_CPU_BFC_MEM_LIMIT_IN_MB" : "memory_limit", std::to_string(mib)}};
  };
  // The least whole number of MiB with which a replay serves everything.
  std::uint64_t too_little = shortage.pool->limit->min / kMiB;
  // below what the pool has taken there is no state to go on from
  if (!is_recorded) too_little = std::max(shortage.pool->limit->max, shortage.reserved->max) / kMiB;
  std::uint64_t enough = too_little + 1;
  const std::uint64_t most = 64 * (too_little + shortage.requested.max / kMiB + 1);
  while (enough <= most && !served(subject.what_if(slot, with_limit(enough), std::nullopt))) {
    too_little = enough;
    enough *= 2;
  }
  if (enough > most) return;
  while (enough - too_little > 1) {
    const std::uint64_t middle = too_little + (enough - too_little) / 2;
    (served(subject.what_if(slot, with_limit(middle), std::nullopt)) ? enough : too_little) = middle;
  }
  const std::string change =
      shortage.pool->is_host
          ? instruction(trace, device, with_limit(enough))
          : fmt::format("Give the pool {} MiB where the GPU has them ({}; or a larger GPU)", enough,
                        owner_of(subject) == Owner::kJax          ? "XLA_CLIENT_MEM_FRACTION"
                        : owner_of(subject) == Owner::kTensorFlow ? "per_process_gpu_memory_fraction or a smaller "
                                                                    "TF_DEVICE_MIN_SYS_MEMORY_IN_MB"
                                                                  : "per_process_gpu_memory_fraction or a smaller "
                                                                    "TF_DEVICE_MIN_SYS_MEMORY_IN_MB in TensorFlow, "
                                                                    "XLA_CLIENT_MEM_FRACTION in JAX");
  finding.tries.push_back(
      {fmt::format("{}: {}.", change,
                   is_recorded ? kServedThen
                               : "in the state that the map shows this request is then served; what came before and "
                                 "what would have come next is not in it"),
       true, 0});
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
    if (!subject.statements().error)
      finding.message += " Such a map is also written where the caller goes on without the memory.";
  }
  if (stated != nullptr && stated->unread_bytes + stated->unplaced_bytes != 0)
    finding.message += fmt::format(" Lines of the map are missing: of {} it is not known whether they were in use.",
                                   format_bytes(stated->unread_bytes + stated->unplaced_bytes));
  if (shortage.pool->is_host) finding.message += " This pool is memory of the host, not of the GPU.";
  if (stated != nullptr && stated->is_mixed) {
    finding.confidence = Confidence::kHint;
    finding.cause.clear();
    finding.message +=
        " Two maps are mixed in this text, line by line, and nothing tells which pool is which: what is told here may "
        "be the other one's, and no cause is told from it.";
  }
  add_numbers(shortage, finding);
  if (stated == nullptr || !stated->is_mixed) add_evidence(finding, "inequality", verdict.inequality);
  finding.holders = holders_of(subject, failure);
  if (stated != nullptr && stated->is_mixed)
    return add_try(
        finding,
        "Record it so that lines are told apart: TF_CPP_LOG_THREAD_ID=1 puts the thread in front of each, or "
        "run with one GPU.");
  try_settings(subject, failure.slot, shortage, finding);
  add_settings(owner_of(subject), shortage, verdict, subject.model_is_trusted(failure.slot), finding);
}

}  // namespace faultline
