#include "view/kept.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace faultline::view {
namespace {

constexpr std::size_t kStretches = 512;

struct Candidate {
  AllocationId id;
  std::uint32_t born = 0;
  std::uint64_t bytes = 0;
  double area = 0;  // bytes × events it was held
};

// Moves the `count` first of the order to the front.
template <class Before>
void put_first(std::vector<Candidate>& all, std::size_t begin, std::size_t end, std::size_t count, Before before) {
  const auto at = [&](std::size_t index) { return all.begin() + static_cast<std::ptrdiff_t>(index); };
  if (begin + count < end) std::nth_element(at(begin), at(begin + count), at(end), before);
}

}  // namespace

std::vector<AllocationId> choose_allocations(const Facts& facts, std::uint16_t device, std::size_t most,
                                             std::uint64_t& all) {
  std::vector<Candidate> candidates;
  const auto events = static_cast<std::uint32_t>(facts.trace.events.size());
  facts.lifetimes.for_each([&](AllocationId id, const Lifetime& life, const Event& birth) {
    if (birth.kind != EventKind::kAlloc || birth.device != device || !facts.uses.is_program(birth.heap)) return;
    const std::uint64_t bytes = facts.lifetimes.held_bytes(id);
    const std::uint32_t events_held = std::min(life.released, events) - life.born;
    candidates.push_back({id, life.born, bytes, static_cast<double>(bytes) * events_held});
  });
  all = candidates.size();
  std::size_t chosen = candidates.size();
  if (candidates.size() > most) {
    const std::size_t seen_from_afar = most / 2;
    // by id where they are equal: the same recording gives the same page
    put_first(candidates, 0, candidates.size(), seen_from_afar,
              [](const Candidate& a, const Candidate& b) { return a.area != b.area ? a.area > b.area : a.id < b.id; });
    const auto rest = candidates.begin() + static_cast<std::ptrdiff_t>(seen_from_afar);
    std::sort(rest, candidates.end(), [](const Candidate& a, const Candidate& b) { return a.born < b.born; });
    chosen = seen_from_afar;
    const std::size_t each = (most - seen_from_afar) / kStretches;
    const std::uint64_t stretch = events / kStretches + 1;
    for (std::size_t begin = seen_from_afar; begin < candidates.size();) {
      std::size_t end = begin;
      while (end < candidates.size() && candidates[end].born / stretch == candidates[begin].born / stretch) ++end;
      const std::size_t count = std::min(each, end - begin);
      put_first(candidates, begin, end, count, [](const Candidate& a, const Candidate& b) {
        return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id;
      });
      for (std::size_t at = begin; at < begin + count; ++at) std::swap(candidates[chosen++], candidates[at]);
      begin = end;
    }
  }
  std::vector<AllocationId> ids;
  ids.reserve(chosen);
  for (std::size_t at = 0; at < chosen; ++at) ids.push_back(candidates[at].id);
  std::sort(ids.begin(), ids.end(),
            [&](AllocationId a, AllocationId b) { return facts.lifetimes.of(a).born < facts.lifetimes.of(b).born; });
  return ids;
}

void add_allocations(const Facts& facts, std::uint16_t device, std::size_t most, SceneTables& tables, Scene& scene) {
  const Trace& trace = facts.trace;
  const std::vector<AllocationId> ids = choose_allocations(facts, device, most, scene.allocation_count);
  // What is known of a tensor may be told behind its allocation; the last word counts.
  std::vector<bool> is_kept(trace.allocation_count + std::size_t{1});
  for (const AllocationId id : ids) is_kept[id.index()] = true;
  std::unordered_map<std::uint32_t, std::uint32_t> notes;
  if (trace.tensors.size() > 1) {
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kTensorNote && event.extra != 0 && is_kept[event.allocation.index()])
        notes[event.allocation.value] = event.extra;
    }
  }
  for (const AllocationId id : ids) {
    const Lifetime& life = facts.lifetimes.of(id);
    const Event& birth = facts.lifetimes.birth(id);
    KeptAllocation kept{id,
                        life.born,
                        life.released,
                        life.returned,
                        facts.lifetimes.held_bytes(id),
                        birth.size_bytes,
                        birth.has(kAddressKnown) ? birth.address : 0,
                        tables.stack(birth.stack),
                        tables.tensor(TensorId(birth.extra))};
    if (const auto note = notes.find(id.value); note != notes.end()) {
      if (const std::uint32_t told = tables.tensor(TensorId(note->second)); told != 0) kept.tensor = told;
    }
    scene.allocations.push_back(kept);
  }
}

namespace {

// Memory mapped behind addresses, each piece as long as it is there.
class Pieces {
 public:
  explicit Pieces(std::vector<KeptSegment>& done) : done_(done) {}

  void map(const Event& event, std::uint32_t at) {
    unmap(event, at);
    if (event.size_bytes != 0)
      now_[event.address] = {at, kNever, event.address, event.size_bytes, event.stream.value, true};
  }
  void unmap(const Event& event, std::uint32_t at) {
    const std::uint64_t begin = event.address, end = event.address + event.size_bytes;
    auto piece = now_.upper_bound(begin);
    if (piece != now_.begin()) --piece;
    while (piece != now_.end() && piece->first < end) {
      const KeptSegment held = piece->second;
      const std::uint64_t held_end = held.address + held.bytes;
      if (held_end <= begin) {
        ++piece;
        continue;
      }
      piece = now_.erase(piece);
      const std::uint64_t from = std::max(begin, held.address), until = std::min(end, held_end);
      if (held.address < from) now_[held.address] = part(held, held.address, from);
      if (until < held_end) piece = now_.insert_or_assign(until, part(held, until, held_end)).first;
      KeptSegment gone = part(held, from, until);
      gone.gone = at;
      done_.push_back(gone);
    }
  }
  void finish() {
    for (const auto& [address, piece] : now_) done_.push_back(piece);
  }

 private:
  static KeptSegment part(KeptSegment of, std::uint64_t begin, std::uint64_t end) {
    of.address = begin;
    of.bytes = end - begin;
    return of;
  }
  std::vector<KeptSegment>& done_;
  std::map<std::uint64_t, KeptSegment> now_;  // by address
};

}  // namespace

void add_segments(const Facts& facts, std::uint16_t device, std::size_t most, Scene& scene) {
  scene.has_segments = facts.uses.has_framework(device) && facts.trace.can(kAddresses);
  if (!scene.has_segments) return;
  std::vector<KeptSegment>& segments = scene.segments;
  facts.lifetimes.for_each([&](AllocationId, const Lifetime& life, const Event& birth) {
    if (birth.kind == EventKind::kAlloc && birth.device == device && birth.has(kAddressKnown) &&
        facts.uses.of(birth.heap) == HeapUse::kSegments)
      segments.push_back({life.born, life.returned, birth.address, birth.size_bytes, birth.stream.value, false});
  });
  Pieces pieces(segments);
  for (std::uint32_t at = 0; at < facts.trace.events.size(); ++at) {
    const Event& event = facts.trace.events[at];
    const bool maps = event.kind == EventKind::kMap, unmaps = event.kind == EventKind::kUnmap;
    if ((!maps && !unmaps) || event.device != device || event.has(kFailed) || event.size_bytes > ~event.address ||
        facts.uses.of(event.heap) != HeapUse::kSegments)
      continue;
    if (maps) pieces.map(event, at);
    if (unmaps) pieces.unmap(event, at);
  }
  pieces.finish();
  scene.segment_count = segments.size();
  const auto larger = [](const KeptSegment& a, const KeptSegment& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.born < b.born;
  };
  if (segments.size() > most) {
    std::nth_element(segments.begin(), segments.begin() + static_cast<std::ptrdiff_t>(most), segments.end(), larger);
    segments.resize(most);
  }
  std::stable_sort(segments.begin(), segments.end(),
                   [](const KeptSegment& a, const KeptSegment& b) { return a.address < b.address; });
}

}  // namespace faultline::view
