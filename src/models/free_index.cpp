#include "models/free_index.h"

#include <algorithm>

namespace faultline {

std::size_t FreeIndex::position(const Entries& entries, std::uint64_t size_bytes, std::uint64_t address) {
  const FreeEntry* at = entries.data();
  std::size_t count = entries.size();
  if (count == 0) return 0;
  while (count > 1) {
    const std::size_t half = count / 2;
    at += at[half - 1].before(size_bytes, address) ? half : 0;
    count -= half;
  }
  return static_cast<std::size_t>(at - entries.data()) + (at->before(size_bytes, address) ? 1 : 0);
}

void FreeIndex::insert_sorted(Entries& entries, const FreeEntry& entry) {
  const std::size_t place = position(entries, entry.size_bytes, entry.address);
  entries.push_back(entry);
  FreeEntry* data = entries.data();
  std::move_backward(data + place, data + entries.size() - 1, data + entries.size());
  data[place] = entry;
}

void FreeIndex::insert_into_chunks(Chunks& chunks, const FreeEntry& entry) {
  std::size_t at = chunks.chunk_for(entry.size_bytes, entry.address);
  if (at == chunks.parts.size()) {
    --at;
    chunks.bounds[at] = entry;
  }
  Entries& part = chunks.parts[at];
  insert_sorted(part, entry);
  if (part.size() <= kChunk) return;
  Entries upper(part.begin() + kChunk / 2, part.end());
  part.resize(kChunk / 2);
  chunks.bounds.insert(chunks.bounds.begin() + static_cast<std::ptrdiff_t>(at), part.back());
  chunks.parts.insert(chunks.parts.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(upper));
}

void FreeIndex::insert(const FreeEntry& entry) {
  const Place place = place_of(entry.size_bytes);
  std::uint8_t& octave = octave_at_[place.octave];
  if (octave == 0) {
    if (octaves_.empty()) octaves_.emplace_back();
    octave = static_cast<std::uint8_t>(octaves_.size());
    octaves_.emplace_back();
  }
  octaves_used_ |= 1ull << place.octave;
  used_[place.octave] = static_cast<std::uint16_t>(used_[place.octave] | 1u << place.bucket);
  Bucket& bucket = octaves_[octave][place.bucket];
  if (bucket.chunks != nullptr && !bucket.chunks->parts.empty()) {
    insert_into_chunks(*bucket.chunks, entry);
    return;
  }
  if (bucket.chunks != nullptr) bucket.chunks.reset();
  insert_sorted(bucket.flat, entry);
  if (bucket.flat.size() <= kFlat) return;
  bucket.chunks = std::make_unique<Chunks>();
  bucket.chunks->bounds.push_back(bucket.flat.back());
  bucket.chunks->parts.push_back(std::move(bucket.flat));
  bucket.flat = {};
}

bool FreeIndex::erase_from_chunks(Chunks& chunks, std::uint64_t size_bytes, std::uint64_t address) {
  const std::size_t at = chunks.chunk_for(size_bytes, address);
  if (at == chunks.parts.size()) return false;
  Entries& part = chunks.parts[at];
  const std::size_t entry = position(part, size_bytes, address);
  if (entry == part.size() || part[entry].size_bytes != size_bytes || part[entry].address != address) return false;
  part.erase(part.begin() + static_cast<std::ptrdiff_t>(entry));
  if (part.empty()) {
    chunks.parts.erase(chunks.parts.begin() + static_cast<std::ptrdiff_t>(at));
    chunks.bounds.erase(chunks.bounds.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return true;
}

bool FreeIndex::erase(std::uint64_t size_bytes, std::uint64_t address) {
  const Place place = place_of(size_bytes);
  if ((used_[place.octave] >> place.bucket & 1u) == 0) return false;
  Bucket& bucket = octaves_[octave_at_[place.octave]][place.bucket];
  bool now_empty;
  if (bucket.chunks != nullptr) {
    if (!erase_from_chunks(*bucket.chunks, size_bytes, address)) return false;
    now_empty = bucket.chunks->parts.empty();
  } else {
    Entries& flat = bucket.flat;
    const std::size_t entry = position(flat, size_bytes, address);
    if (entry == flat.size() || flat[entry].size_bytes != size_bytes || flat[entry].address != address) return false;
    flat.erase(flat.begin() + static_cast<std::ptrdiff_t>(entry));
    now_empty = flat.empty();
  }
  if (now_empty) mark_empty(place);
  return true;
}

void FreeIndex::erase(const Cursor& cursor) {
  Bucket& bucket = octaves_[octave_at_[cursor.octave]][cursor.bucket];
  if (bucket.chunks != nullptr) {
    const FreeEntry entry = *cursor.at;
    if (erase_from_chunks(*bucket.chunks, entry.size_bytes, entry.address) && bucket.chunks->parts.empty())
      mark_empty({cursor.octave, cursor.bucket});
    return;
  }
  bucket.flat.erase(bucket.flat.begin() + cursor.entry);
  if (bucket.flat.empty()) mark_empty({cursor.octave, cursor.bucket});
}

void FreeIndex::mark_empty(Place place) {
  used_[place.octave] = static_cast<std::uint16_t>(used_[place.octave] & ~(1u << place.bucket));
  if (used_[place.octave] == 0) octaves_used_ &= ~(1ull << place.octave);
}

FreeIndex::Cursor FreeIndex::front_of(std::uint16_t octave, std::uint16_t bucket) const {
  return {octave, bucket, 0, 0, bucket_at(octave, bucket).part(0).data()};
}

FreeIndex::Cursor FreeIndex::back_of(std::uint16_t octave, std::uint16_t bucket) const {
  const Bucket& here = bucket_at(octave, bucket);
  const auto chunk = static_cast<std::uint32_t>(here.part_count() - 1);
  const auto entry = static_cast<std::uint32_t>(here.part(chunk).size() - 1);
  return {octave, bucket, chunk, entry, &here.part(chunk)[entry]};
}

FreeIndex::Cursor FreeIndex::front_from(std::uint16_t octave, unsigned bucket) const {
  const unsigned here = bucket < kBuckets ? static_cast<unsigned>(used_[octave]) >> bucket << bucket : 0;
  if (here != 0) return front_of(octave, static_cast<std::uint16_t>(std::countr_zero(here)));
  const std::uint64_t above = octaves_used_ >> octave >> 1;
  if (above == 0) return {};
  const auto next_octave = static_cast<std::uint16_t>(octave + 1 + std::countr_zero(above));
  return front_of(next_octave, static_cast<std::uint16_t>(std::countr_zero(static_cast<unsigned>(used_[next_octave]))));
}

FreeIndex::Cursor FreeIndex::first_at_least(std::uint64_t size_bytes) const {
  const Place place = place_of(size_bytes);
  if ((used_[place.octave] >> place.bucket & 1u) == 0) return front_from(place.octave, place.bucket + 1u);
  const Bucket& bucket = bucket_at(place.octave, place.bucket);
  const std::size_t chunk = bucket.chunks == nullptr ? 0 : bucket.chunks->chunk_for(size_bytes, 0);
  if (chunk < bucket.part_count()) {
    const Entries& part = bucket.part(chunk);
    const std::size_t entry = position(part, size_bytes, 0);
    if (entry < part.size()) {
      return {place.octave, place.bucket, static_cast<std::uint32_t>(chunk), static_cast<std::uint32_t>(entry),
              &part[entry]};
    }
    // A chunk's bound may be above all that is left in it; then the next chunk starts with the answer.
    if (chunk + 1 < bucket.part_count()) {
      return {place.octave, place.bucket, static_cast<std::uint32_t>(chunk + 1), 0, bucket.part(chunk + 1).data()};
    }
  }
  return front_from(place.octave, place.bucket + 1u);
}

FreeIndex::Cursor FreeIndex::last() const {
  if (octaves_used_ == 0) return {};
  const auto octave = static_cast<std::uint16_t>(63 - std::countl_zero(octaves_used_));
  return back_of(octave, static_cast<std::uint16_t>(31 - std::countl_zero(static_cast<unsigned>(used_[octave]))));
}

FreeIndex::Cursor FreeIndex::next(Cursor from) const {
  const Bucket& bucket = bucket_at(from.octave, from.bucket);
  if (++from.entry == bucket.part(from.chunk).size()) {
    from.entry = 0;
    if (++from.chunk == bucket.part_count()) return front_from(from.octave, from.bucket + 1u);
  }
  from.at = &bucket.part(from.chunk)[from.entry];
  return from;
}

FreeIndex::Cursor FreeIndex::previous(Cursor from) const {
  const Bucket& bucket = bucket_at(from.octave, from.bucket);
  if (from.entry != 0 || from.chunk != 0) {
    if (from.entry == 0) from.entry = static_cast<std::uint32_t>(bucket.part(--from.chunk).size());
    --from.entry;
    from.at = &bucket.part(from.chunk)[from.entry];
    return from;
  }
  const unsigned below_here = used_[from.octave] & ((1u << from.bucket) - 1);
  if (below_here != 0) return back_of(from.octave, static_cast<std::uint16_t>(31 - std::countl_zero(below_here)));
  const std::uint64_t below = octaves_used_ & ((1ull << from.octave) - 1);
  if (below == 0) return {};
  const auto octave = static_cast<std::uint16_t>(63 - std::countl_zero(below));
  return back_of(octave, static_cast<std::uint16_t>(31 - std::countl_zero(static_cast<unsigned>(used_[octave]))));
}

}  // namespace faultline
