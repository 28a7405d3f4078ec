#include "rules/out_of_memory/pool.h"

#include <algorithm>
#include <map>

#include "base/units.h"
#include "fmt/format.h"
#include "models/search.h"
#include "rules/cause.h"
#include "rules/describe.h"
#include "rules/inequality.h"
#include "rules/shortage.h"
#include "sources/pool_names.h"
#include "trace/framework.h"

namespace faultline {
namespace {

constexpr std::size_t kMostHolders = 8;

std::uint64_t bytes_of(const std::vector<DumpedPool::Size>& sizes) {
  ByteInterval sum;  // adds up without an overflow
  for (const DumpedPool::Size& size : sizes) sum = sum + ByteInterval::exactly(size.count * size.size_bytes);
  return sum.min;
}

// What a map that is not whole leaves open.
std::string cut_words(const DumpedPool& pool) {
  const ByteInterval unseen = ByteInterval::exactly(pool.unread_bytes) + pool.unplaced;
  if (pool.is_open)
    return " The map in this text may be cut: its bins and totals, which would show whether lines are missing, are not "
           "there.";
  if (unseen.max == 0) return {};
  return fmt::format(" Lines of the map are missing: of {} it is not known{}.", range_words(unseen),
                     pool.free_by_bins ? " where they lie; how much is free is known from the list of its bins"
                                       : " whether they were in use");
}

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
  std::uint64_t live_bytes = 0;
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (birth.heap != heap || !life.alive_at(failure.moment.event)) return;
    has_stacks |= birth.stack.value != 0;
    const std::string op(birth.extra == 0 ? std::string_view()
                                          : trace.strings.at(trace.tensors.at(TensorId(birth.extra)).op));
    const std::uint64_t bytes = facts.lifetimes.held_bytes(id);
    Held& sum = held[{op, op.empty() ? bytes : 0}];
    live_bytes += bytes;
    sum.bytes += bytes;
    ++sum.count;
  });
  if (has_stacks) return holders_at(facts, failure.slot, failure.moment.event);
  std::vector<Holder> holders;
  // of a map that is cut the summary by size, where that has more
  const DumpedPool* const stated = subject.statements().pool_of(trace.heaps[heap.index()].name);
  if (stated != nullptr && bytes_of(stated->sizes) > live_bytes - std::min(live_bytes, stated->unread_bytes)) {
    held.clear();
    for (const DumpedPool::Size& size : stated->sizes)
      held[{"", size.size_bytes}] = {size.count * size.size_bytes, size.count};
  }
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
  rest.category = kUnlistedLines;
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
  if (parts.has_map && parts.region_count != 0) add_evidence(finding, "pool_regions", parts.region_count);
}

enum class Owner : std::uint8_t { kTensorFlow, kJax, kEither };

Owner owner_of(const Case& subject) {
  const Framework framework = pools_framework(subject.trace());
  if (framework == Framework::kNone) return Owner::kEither;
  return framework == Framework::kJax ? Owner::kJax : Owner::kTensorFlow;
}

// The wording of a map tells how old the program's framework is at least. TensorFlow has cuda_malloc_async since 2.5 (2021), levels by module since 1.5.
constexpr std::uint64_t kAsyncForm = 2021, kModulesForm = 2019;
bool is_before(std::uint64_t form, std::uint64_t year) { return form != 0 && form < year; }

// What gives the pool that much, by the settings that it has.
std::string larger_pool(Owner owner, const PoolShortage& pool, std::uint64_t mib, std::uint64_t form) {
  if (pool.memory != PoolMemory::kGpu) {
    const PoolLimitVariable variable = limit_variable_of(pool.name);
    if (variable.name.empty())
      return fmt::format("Give the pool {} MiB (which setting does that for this pool is not known here)", mib);
    return fmt::format("Set {}={} before the program starts{}", variable.name, mib * kMiB / variable.unit_bytes,
                       variable.remark.empty() ? "" : fmt::format(" ({})", variable.remark));
  }
  const std::string tensorflow = std::string("per_process_gpu_memory_fraction") +
                                 (is_before(form, kAsyncForm) ? "" : " or a smaller TF_DEVICE_MIN_SYS_MEMORY_IN_MB");
  const std::string jax = "XLA_CLIENT_MEM_FRACTION (older: XLA_PYTHON_CLIENT_MEM_FRACTION)";
  return fmt::format("Give the pool {} MiB where the GPU has them ({}; or a larger GPU)", mib,
                     owner == Owner::kJax          ? jax
                     : owner == Owner::kTensorFlow ? tensorflow
                                                   : tensorflow + " in TensorFlow, " + jax + " in JAX");
}

// "XPU:0" of "on /job:localhost/replica:0/task:0/device:XPU:0 by allocator gpu_bfc".
std::string device_in(std::string_view text) {
  constexpr std::string_view kDevice = "/device:";
  const std::size_t at = text.rfind(kDevice);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + kDevice.size(), 40);
  return std::string(rest.substr(0, rest.find_first_of(" ,;[")));
}

// What is known of the memory that the pool serves, where that is not plainly the GPU's.
std::string memory_words(const PoolShortage& pool, const StatedError& stated) {
  const std::string device = device_in(stated.text);
  const std::string named = device.empty() ? "" : "; the exception names the device " + device;
  switch (pool.memory) {
    case PoolMemory::kGpu: return {};
    case PoolMemory::kHost: return " This pool is host memory (RAM), not GPU memory.";
    case PoolMemory::kOtherDevice: return " This pool is memory of a device that a plugin brings" + named + ".";
    case PoolMemory::kUnknown: break;
  }
  return " Which memory this pool serves is not known by its name" + named + ".";
}

// Settings that bear on this cause. Where nothing but a map is known, what was asked for before it is not, and none of them can be tried.
void add_settings(Owner owner, const Shortage& shortage, const CauseVerdict& verdict, bool is_recorded,
                  std::uint64_t form, Finding& finding) {
  const bool of_gpu = shortage.pool->memory == PoolMemory::kGpu;
  const bool tensorflow = of_gpu && owner != Owner::kJax, jax = of_gpu && owner != Owner::kTensorFlow;
  const std::string unconfirmed =
      is_recorded ? "" : " Not confirmed: the map does not show the requests that led to it.";
  switch (verdict.story) {
    case Story::kPoolPieces:
    case Story::kPoolRegions:
    case Story::kPoolSlack:
      if (shortage.pool->region_count > 1 && tensorflow && !is_recorded)
        add_try(finding, fmt::format("The pool grew in {} regions, and no request can lie across two: without growth "
                                     "it takes its limit as one "
                                     "region (TF_FORCE_GPU_ALLOW_GROWTH=false, no set_memory_growth).{}",
                                     format_count(shortage.pool->region_count), unconfirmed));
      if (shortage.pool->region_count > 1 && jax && !is_recorded)
        add_try(finding, fmt::format("The pool grew in {} regions, and no request can lie across two: "
                                     "XLA_PYTHON_CLIENT_PREALLOCATE=true (JAX's "
                                     "default) takes it as one region.{}",
                                     format_count(shortage.pool->region_count), unconfirmed));
      if (tensorflow && !is_before(form, kAsyncForm))
        add_try(finding,
                "TF_GPU_ALLOCATOR=cuda_malloc_async (TensorFlow 2.5 and later, with CUDA 11.2) puts pieces together by "
                "mapping them anew." +
                    unconfirmed);
      if (jax && !is_before(form, kAsyncForm))
        add_try(finding,
                "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async puts pieces together by mapping them anew." + unconfirmed);
      if (!is_recorded && !is_before(form, kModulesForm))
        add_try(finding,
                "To have settings tried: TF_CPP_VMODULE=bfc_allocator=4 python train.py 2> allocator.log, then "
                "faultline replay "
                "allocator.log --search (slow: it writes a line for each request).");
      add_try(finding, "Make the large and lasting arrays first, before the small ones that come and go.");
      return;
    case Story::kPoolRefused:
      if (shortage.pool->memory == PoolMemory::kHost)
        return add_try(finding,
                       "See what RAM there is and how much of it may be locked: free -h, ulimit -l; in a container its "
                       "own limit counts.");
      if (!of_gpu) return add_try(finding, "See who else uses that device, with the tool of its maker.");
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
    case Story::kPoolAsGoodAsFull:
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
void try_settings(Case& subject, std::size_t slot, const Shortage& shortage, std::uint64_t form, Finding& finding) {
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
  const auto with_limit = [](std::uint64_t mib) { return SettingChanges{{"memory_limit", std::to_string(mib)}}; };
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
  // a variable may count in larger units
  const std::uint64_t unit = limit_variable_of(shortage.pool->name).unit_bytes;
  if (unit > kMiB) enough = (enough * kMiB + unit - 1) / unit * (unit / kMiB);
  if (unit > kMiB && !served(subject.what_if(slot, with_limit(enough), std::nullopt))) return;
  finding.tries.push_back(
      {fmt::format("{}: {}.", larger_pool(owner_of(subject), *shortage.pool, enough, form),
                   is_recorded ? kServedThen
                               : "in the state that the map shows this request is then served; what came before and "
                                 "what would have come next is not in it"),
       true, 0});
}

}  // namespace

std::optional<PoolFailure> pool_failure(const Case& subject) {
  const Trace& trace = subject.trace();
  std::optional<PoolFailure> last;
  // A message without a map of its own: those in the text are of other failures.
  if (subject.statements().message_only && !trace.events.empty() &&
      trace.heaps[trace.events.back().heap.index()].kind != HeapKind::kBfc)
    return last;
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
    finding.message = fmt::format("{} was requested{}: {}.", shown(shortage.requested), asker, verdict.why);
  } else {
    finding.message = fmt::format("A request of unknown size failed{}: {}.", asker, verdict.why);
    if (!subject.statements().error)
      finding.message += " Such a map is also written where the caller goes on without the memory.";
  }
  if (stated != nullptr) finding.message += cut_words(*stated);
  finding.message += memory_words(*shortage.pool, subject.statements().error);
  if (stated != nullptr && stated->is_mixed) {
    finding.confidence = Confidence::kHint;
    finding.cause.clear();
    finding.message +=
        " Two maps are mixed in this text, line by line, and nothing shows which pool is which: these numbers may be "
        "the other one's, and they show no cause.";
  }
  // the words of this cause are the GPU's
  if (verdict.story == Story::kPoolRefused && shortage.pool->memory == PoolMemory::kHost) finding.cause.clear();
  add_numbers(shortage, finding);
  if (stated == nullptr || !stated->is_mixed) add_evidence(finding, "inequality", verdict.inequality);
  finding.holders = holders_of(subject, failure);
  if (stated != nullptr && stated->is_mixed)
    return add_try(
        finding,
        "Record it so that their lines can be told apart: TF_CPP_LOG_THREAD_ID=1 puts the thread in front of each, or "
        "run with one GPU.");
  const std::uint64_t form = stated == nullptr ? 0 : stated->form;
  try_settings(subject, failure.slot, shortage, form, finding);
  add_settings(owner_of(subject), shortage, verdict, subject.model_is_trusted(failure.slot), form, finding);
}

}  // namespace faultline
