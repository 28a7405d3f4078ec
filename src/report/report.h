// The report: everything that is said about one input, as data. JSON (report/json.h) is its source of truth on the outside, the terminal
// form (report/terminal.h) what a person reads. Nothing is computed here: judging is over when a Report exists.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "rules/finding.h"

namespace faultline {

// Where the bytes of a device were at one moment. live + cached + outside_framework + free + unknown = capacity.
struct Account {
  std::string moment;  // "at the failure", "at the peak"
  std::uint64_t capacity = 0;
  bool capacity_known = false;  // false: capacity is only the sum of the parts that are known
  // parameters, gradients, optimizer, activations, temporaries, other: fixed order
  std::vector<std::pair<std::string, std::uint64_t>> live;
  std::uint64_t cached = 0;  // reserved by the framework and not in use
  std::uint64_t outside_framework = 0;
  // what that is, where it is known; adds up to it, or is empty
  std::vector<std::pair<std::string, std::uint64_t>> outside;
  bool has_framework = true;  // false: live is what the program took from the driver itself
  std::uint64_t free = 0;
  std::uint64_t unknown = 0;
};

struct CurvePoint {
  std::int64_t time_ns = 0;
  std::uint64_t allocated = 0;
  std::uint64_t reserved = 0;
};

struct ModelReport {
  std::string name;  // empty: no model was run
  std::uint64_t placements = 0;
  std::uint64_t exact = 0;
  std::uint64_t segment_events = 0;
  std::uint64_t segment_events_exact = 0;
  std::string why_not;     // a model exists but could not be run: the reason
  bool is_source = false;  // the recording's placements are this model's own (a dry run): they prove nothing about it
};

struct DeviceReport {
  std::uint16_t index = 0;
  std::string process;  // as in Finding
  std::string name;
  Account account;
  std::uint64_t allowed_bytes = 0;  // the limit the program set itself; 0: none known
  std::uint64_t peak_allocated = 0;
  std::uint64_t peak_reserved = 0;
  std::uint64_t peak_event = 0;
  std::uint64_t event_count = 0;  // of the recording it is part of
  std::vector<Holder> holders;    // who held the memory at the peak
  std::vector<Holder> lines;      // the same with more of the lines, to compare with; empty where holders are all
  ModelReport model;
  std::vector<CurvePoint> curve;  // evenly spread over the recording's events, at most a few hundred points
};

// One of several recordings that are reported on together.
struct PartReport {
  std::string name;  // "process 4711"
  std::string path;
  std::uint64_t events = 0;
};

struct Report {
  std::string input_kind;
  std::string input_path;
  std::uint64_t input_events = 0;  // of all parts
  std::map<std::string, std::uint64_t> lost;
  std::vector<PartReport> parts;      // empty where there is one
  std::vector<std::string> notes;     // what the recorded processes had to say
  std::vector<std::string> left_out;  // what could not be recorded
  // how the program ended, where that was not well and nothing here explains it, and what was not seen of it: no verdict of "clean" then
  std::vector<std::string> unseen;
  std::vector<Finding> findings;  // errors, warnings, notes; within one the failure before what explains it
  std::vector<NotJudged> not_judged;
  std::vector<DeviceReport> devices;
  std::optional<Plan> plan;  // of a dry run
};

}  // namespace faultline
