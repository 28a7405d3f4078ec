// What Perfetto's own schema says of the result: tests/python/test_perfetto.py.
#include "view/perfetto.h"

#include <gtest/gtest.h>

#include <map>

#include "base/protobuf.h"
#include "base/safe_text.h"
#include "facts/facts_test_support.h"
#include "view/perfetto_writer.h"

namespace faultline::view {
namespace {

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

std::multimap<std::uint32_t, ProtoField> fields_of(Bytes bytes) {
  std::multimap<std::uint32_t, ProtoField> fields;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) fields.emplace(field.number, field);
  EXPECT_TRUE(reader.ok());
  return fields;
}

struct Event64 {
  std::uint64_t time = 0, type = 0, value = 0;
  std::string name;
};
// By the name of the track, in the order of the file.
std::map<std::string, std::vector<Event64>> read_back(const std::string& file) {
  std::map<std::string, std::vector<Event64>> events;
  std::map<std::uint64_t, std::string> tracks, names;
  std::uint64_t last = 0;
  for (const auto& [number, packet_field] : fields_of(bytes_of(file))) {
    const auto packet = fields_of(packet_field.bytes);
    if (const auto strings = packet.find(12); strings != packet.end()) {
      for (const auto& [kind, string_field] : fields_of(strings->second.bytes)) {
        const auto string = fields_of(string_field.bytes);
        const std::string_view text = string.find(2)->second.text();
        for (std::size_t at = 0; at < text.size();) {
          const DecodedCharacter character = decode_utf8(text.substr(at));
          EXPECT_FALSE(is_harmful(character.code)) << text;
          at += character.length;
        }
        if (kind == 2) names[string.find(1)->second.value] = text;
      }
    }
    if (const auto track_field = packet.find(60); track_field != packet.end()) {
      const auto track = fields_of(track_field->second.bytes);
      const std::uint64_t id = track.find(1)->second.value;
      const auto parent = track.find(5);
      const std::string above = parent == track.end() ? "" : tracks[parent->second.value] + "/";
      tracks[id] = above + std::string(track.find(2)->second.text());
      while (events.contains(tracks[id])) tracks[id] += "'";
      events[tracks[id]];
    }
    if (const auto event_field = packet.find(11); event_field != packet.end()) {
      const auto event = fields_of(event_field->second.bytes);
      const auto value_of = [&](std::uint32_t at) { return event.contains(at) ? event.find(at)->second.value : 0; };
      const std::uint64_t time = packet.find(8)->second.value;
      EXPECT_GE(time, last) << "in the order of their time";
      last = time;
      EXPECT_TRUE(tracks.contains(value_of(11)));
      events[tracks[value_of(11)]].push_back({time, value_of(9), value_of(30), names[value_of(10)]});
    }
  }
  return events;
}

std::map<std::string, std::vector<Event64>> drawn(Trace trace) {
  const Input input(std::move(trace));
  const std::vector<Viewed> viewed{look_at(input)};
  return read_back(make_perfetto(viewed));
}

std::uint64_t most(const std::vector<Event64>& values) {
  std::uint64_t highest = 0;
  for (const Event64& event : values) highest = std::max(highest, event.value);
  return highest;
}

TEST(Perfetto, APeakWithinOneTickOfTheClockIsThere) {
  const auto events = drawn(
      traced("alloc #a 1MiB t=5000 at a.py:1 f\nalloc #b 64MiB t=5000 at a.py:2 f\nfree #b t=5000\nfree #a t=4000\n"));
  const std::vector<Event64>& allocated = events.at("GPU 0/allocated");
  ASSERT_EQ(allocated.size(), 4u);
  EXPECT_EQ(allocated[1].value, 65u << 20);
  for (std::size_t at = 1; at < allocated.size(); ++at) EXPECT_GT(allocated[at].time, allocated[at - 1].time);
  EXPECT_EQ(most(events.at("GPU 0/by line/a.py:2")), 64u << 20);
}

TEST(Perfetto, WithoutTimesEventsAreAMicrosecondApart) {
  Trace trace = traced("alloc #a 1MiB\nalloc #b 1MiB\nfree #a\n");
  trace.capabilities &= ~static_cast<std::uint32_t>(kTimes);
  for (Event& event : trace.events) event.time_ns = 0;
  const std::vector<Event64> allocated = drawn(std::move(trace)).at("GPU 0/allocated");
  ASSERT_EQ(allocated.size(), 3u);
  EXPECT_EQ(allocated[1].time - allocated[0].time, 1000u);
}

TEST(Perfetto, CallsStepsAndFailuresHaveTheirTracks) {
  const auto events = drawn(
      traced("stream 1 handle=0x70\ncall k = launch gemm grid=2,1,1 block=32,1,1\ncall c = copy host-to-device\n"
             "alloc #a 1MiB @0x1000 at a.py:1 f\nop-begin forward\nlaunch call=k stream=1 at a.py:2 f\nop-end forward\n"
             "copy #a 4KiB @0x1000 call=c at a.py:3 f\nstep 1\nstep 2\nalloc-failed 8GiB at a.py:9 f\n"));
  ASSERT_EQ(events.at("GPU 0/streams/stream 0x70").size(), 1u);
  EXPECT_EQ(events.at("GPU 0/streams/stream 0x70")[0].name, "gemm on 2×1×1 blocks of 32×1×1 threads");
  EXPECT_EQ(events.at("GPU 0/streams/default stream")[0].name, "copy from host to device");
  EXPECT_EQ(events.at("GPU 0/operations/operations").size(), 2u);
  EXPECT_EQ(events.at("GPU 0/operations/operations")[0].name, "forward");
  EXPECT_EQ(events.at("GPU 0/steps").size(), 4u);
  EXPECT_EQ(events.at("GPU 0/failures").size(), 1u);
  EXPECT_TRUE(events.at("GPU 0/findings")[0].name.starts_with("memory/out-of-memory at "));
}

TEST(Perfetto, OperationsOfTwoThreadsThatCrossAreOnTwoTracks) {
  const auto events = drawn(traced(
      "alloc #a 1MiB\nop-begin one thread=1\nop-begin two thread=2\nop-end one thread=1\nop-end two thread=2\n"));
  EXPECT_EQ(events.at("GPU 0/operations/operations").size(), 2u);
  EXPECT_EQ(events.at("GPU 0/operations/operations'").size(), 2u);
}

TEST(Perfetto, PeaksAreThoseOfTheReport) {
  for (const char* name : {"gpt_oom", "frag", "streams", "state_only", "no_context"}) {
    SCOPED_TRACE(name);
    const Input input(recording(name));
    const std::vector<Viewed> viewed{look_at(input)};
    const auto events = read_back(make_perfetto(viewed));
    const DeviceReport& device = viewed[0].report.devices[0];
    EXPECT_EQ(most(events.at("GPU 0/allocated")), device.peak_allocated);
    EXPECT_EQ(most(events.at("GPU 0/reserved")), device.peak_reserved);
    std::size_t findings = 0;
    for (const auto& [track, all] : events) findings += track.find("findings") == std::string::npos ? 0 : all.size();
    EXPECT_EQ(findings, viewed[0].report.findings.size());
  }
}

TEST(Perfetto, HostileNamesAreHarmless) {
  const auto events =
      drawn(traced("alloc #a 1MiB at \"a\\x1b[31m\\xff\\n.py\":1 \"f\\x00\\xe2\\x80\\xae\"\n"
                   "op-begin \"\\xff\\xfe\"\nop-end \"\\xff\\xfe\"\n"));
  EXPECT_FALSE(events.at("GPU 0/allocated").empty());
}

TEST(Perfetto, ALongRecordingIsBounded) {
  Trace trace = traced("alloc #a 1MiB at a.py:1 f\n");
  const Event first = trace.events.front();
  for (std::uint32_t at = 2; at < 150'000; ++at) {
    Event event = first;
    event.time_ns = first.time_ns + at * 1000;
    event.allocation = AllocationId(at);
    event.size_bytes = 512u * (1 + at % 97);
    trace.events.push_back(event);
    event.kind = EventKind::kFree;
    trace.events.push_back(event);
  }
  trace.allocation_count = 149'999;
  const Input input(std::move(trace));
  const std::vector<Viewed> viewed{look_at(input)};
  const std::string file = make_perfetto(viewed);
  EXPECT_LT(file.size(), 4'000'000u);
  EXPECT_EQ(most(read_back(file).at("GPU 0/allocated")), viewed[0].report.devices[0].peak_allocated);
}

TEST(Perfetto, WhatHasNothingToDrawGivesNothing) { EXPECT_TRUE(make_perfetto(std::vector<Viewed>(2)).empty()); }

}  // namespace
}  // namespace faultline::view
