#include "view/perfetto_writer.h"

#include <algorithm>

#include "base/safe_text.h"

namespace faultline::view {
namespace {

constexpr std::size_t kLongestText = 1000;

// protos/perfetto/trace/trace_packet.proto and what it includes
namespace field {
constexpr std::uint32_t kTracePacket = 1;
namespace packet {
constexpr std::uint32_t kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInternedData = 12, kSequenceFlags = 13,
                        kTrackDescriptor = 60;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;
}  // namespace packet
namespace track {
constexpr std::uint32_t kUuid = 1, kName = 2, kParent = 5, kCounter = 8, kChildOrdering = 11, kRank = 12,
                        kDescription = 14;
constexpr std::uint64_t kExplicit = 3;
}  // namespace track
namespace counter {
constexpr std::uint32_t kUnit = 3, kAxis = 7;
constexpr std::uint64_t kSizeBytes = 3;
}  // namespace counter
namespace event {
constexpr std::uint32_t kCategory = 3, kAnnotation = 4, kType = 9, kName = 10, kTrack = 11, kCounterValue = 30;
constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace event
namespace annotation {
constexpr std::uint32_t kName = 1, kNumber = 3, kText = 17;
}
namespace interned {
constexpr std::uint32_t kCategories = 1, kNames = 2, kAnnotationNames = 3, kAnnotationTexts = 29;
constexpr std::uint32_t kNumber = 1, kText = 2;
}  // namespace interned
}  // namespace field

constexpr std::uint64_t kSequence = 1;

ProtoWriter event_on(TrackId track, std::uint64_t type) {
  ProtoWriter event;
  event.number(field::event::kType, type);
  event.number(field::event::kTrack, track);
  return event;
}

}  // namespace

std::uint64_t PerfettoWriter::Interned::number(std::string_view text) {
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  return numbers_.emplace(text, numbers_.size() + 1).first->second;
}

TrackId PerfettoWriter::describe(TrackId parent, std::string_view name, std::string_view description,
                                 const ProtoWriter* counter) {
  if (children_.empty()) children_.push_back(0);
  const TrackId id = children_.size();
  children_.push_back(0);
  ProtoWriter track;
  track.number(field::track::kUuid, id);
  track.text(field::track::kName, shown(name, kLongestText));
  if (parent != 0) track.number(field::track::kParent, parent);
  track.number(field::track::kChildOrdering, field::track::kExplicit);
  track.number(field::track::kRank, children_[parent]++);
  if (!description.empty()) track.text(field::track::kDescription, shown(description, kLongestText));
  if (counter != nullptr) track.message(field::track::kCounter, *counter);
  ProtoWriter packet;
  packet.number(field::packet::kSequence, kSequence);
  packet.message(field::packet::kTrackDescriptor, track);
  tracks_.message(field::kTracePacket, packet);
  return id;
}

TrackId PerfettoWriter::add_track(TrackId parent, std::string_view name, std::string_view description) {
  return describe(parent, name, description, nullptr);
}

TrackId PerfettoWriter::add_counter(TrackId parent, std::string_view name, std::string_view axis,
                                    std::string_view description) {
  ProtoWriter counter;
  counter.number(field::counter::kUnit, field::counter::kSizeBytes);
  if (!axis.empty()) counter.text(field::counter::kAxis, axis);
  return describe(parent, name, description, &counter);
}

void PerfettoWriter::add(std::int64_t time_ns, const ProtoWriter& event) {
  packets_.push_back({time_ns, events_.size(), static_cast<std::uint32_t>(event.size())});
  events_ += event.bytes();
}

void PerfettoWriter::count(TrackId counter, std::int64_t time_ns, std::uint64_t bytes) {
  ProtoWriter event = event_on(counter, field::event::kCounter);
  event.number(field::event::kCounterValue, std::min<std::uint64_t>(bytes, INT64_MAX));
  add(time_ns, event);
}

void PerfettoWriter::instant(TrackId track, std::int64_t time_ns, std::string_view name, std::string_view category,
                             const std::vector<Annotation>& annotations) {
  ProtoWriter event = event_on(track, field::event::kInstant);
  event.number(field::event::kName, names_.number(shown(name, kLongestText)));
  event.number(field::event::kCategory, categories_.number(category));
  for (const Annotation& one : annotations) {
    const std::string* text = std::get_if<std::string>(&one.value);
    if (text != nullptr && text->empty()) continue;
    ProtoWriter annotation;
    annotation.number(field::annotation::kName, annotation_names_.number(one.name));
    if (text != nullptr)
      annotation.number(field::annotation::kText, annotation_texts_.number(shown(*text, kLongestText)));
    else
      annotation.number(field::annotation::kNumber, std::get<std::uint64_t>(one.value));
    event.message(field::event::kAnnotation, annotation);
  }
  add(time_ns, event);
}

void PerfettoWriter::slice(TrackId track, std::int64_t begin_ns, std::int64_t end_ns, std::string_view name,
                           std::string_view category) {
  ProtoWriter begin = event_on(track, field::event::kSliceBegin);
  begin.number(field::event::kName, names_.number(shown(name, kLongestText)));
  begin.number(field::event::kCategory, categories_.number(category));
  add(begin_ns, begin);
  add(std::max(end_ns, begin_ns), event_on(track, field::event::kSliceEnd));
}

std::string PerfettoWriter::take() {
  ProtoWriter interned;
  const auto add_strings = [&](std::uint32_t kind, const Interned& strings) {
    for (const auto& [text, number] : strings.all()) {
      ProtoWriter string;
      string.number(field::interned::kNumber, number);
      string.text(field::interned::kText, text);
      interned.message(kind, string);
    }
  };
  add_strings(field::interned::kCategories, categories_);
  add_strings(field::interned::kNames, names_);
  add_strings(field::interned::kAnnotationNames, annotation_names_);
  add_strings(field::interned::kAnnotationTexts, annotation_texts_);
  ProtoWriter first;
  first.number(field::packet::kSequence, kSequence);
  first.number(field::packet::kSequenceFlags, field::packet::kStateCleared);
  first.message(field::packet::kInternedData, interned);
  ProtoWriter file;
  file.message(field::kTracePacket, first);
  std::string out = file.take() + tracks_.take();
  std::stable_sort(packets_.begin(), packets_.end(),
                   [](const Packet& a, const Packet& b) { return a.time_ns < b.time_ns; });
  for (const Packet& at : packets_) {
    ProtoWriter packet;
    packet.number(field::packet::kTimestamp, static_cast<std::uint64_t>(at.time_ns));
    packet.number(field::packet::kSequence, kSequence);
    packet.number(field::packet::kSequenceFlags, field::packet::kNeedsState);
    packet.text(field::packet::kTrackEvent, std::string_view(events_).substr(at.offset, at.size));
    file.message(field::kTracePacket, packet);
    out += file.take();
  }
  packets_.clear();
  events_.clear();
  return out;
}

}  // namespace faultline::view
