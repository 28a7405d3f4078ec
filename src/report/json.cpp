#include "report/json.h"

#include <algorithm>
#include <limits>

#include "base/json_input.h"
#include "base/safe_text.h"
#include "plan/plan_fields.h"

namespace faultline {
namespace {

constexpr std::string_view kSchema = "faultline.report/1";

}  // namespace

template <>
inline constexpr std::size_t kValueCount<Severity> = static_cast<std::size_t>(Severity::kNote) + 1;
template <>
inline constexpr std::size_t kValueCount<Confidence> = static_cast<std::size_t>(Confidence::kHint) + 1;

void fields(auto& archive, Try& attempt) {
  archive("what", attempt.what);
  archive("confirmed", attempt.confirmed);
  archive("saves_bytes", attempt.saves_bytes);
  archive("by_dry_run", attempt.by_dry_run);
}

void fields(auto& archive, Holder& holder) {
  archive("bytes", holder.bytes);
  archive("count", holder.count);
  archive("category", holder.category);
  archive("location", holder.location);
  archive("detail", holder.detail);
}

void fields(auto& archive, Related& related) {
  archive("role", related.role);
  archive("what", related.what);
  archive("bytes", related.bytes);
  archive.or_null("location", related.location, related.location.known());
}

// Evidence is an object of numbers and words.
template <>
Json json_of(const std::vector<Evidence>& evidence) {
  Json json = Json::object();
  for (const Evidence& item : evidence) {
    std::visit([&](const auto& value) { json[item.name] = value; }, item.value);
  }
  return json;
}
template <>
void read_json(const Json& json, std::vector<Evidence>& evidence) {
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    Evidence item{name, std::int64_t{0}};
    if (value.is_number_integer()) {
      read_json(value, item.value.emplace<std::int64_t>());
    } else if (value.is_string()) {
      item.value = value.get<std::string>();
    } else {
      // null: not finite
      item.value = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    }
    evidence.push_back(std::move(item));
  }
}

template <class Archive>
void fields(Archive& archive, Finding& finding) {
  if (!Archive::kWrites || finding.id != 0) archive("id", finding.id);
  archive("rule", finding.rule);
  archive("severity", finding.severity);
  archive("confidence", finding.confidence);
  archive("message", finding.message);
  archive.unless_empty("cause", finding.cause);
  archive("device", finding.device);
  archive.unless_empty("process", finding.process);
  archive("location", finding.location);
  archive("call_path", finding.call_path);
  archive("memory", finding.memory);
  archive.or_null("allocated_at", finding.allocated_at, finding.allocated_at.known());
  archive.or_null("freed_at", finding.freed_at, finding.freed_at.known());
  archive("bytes", finding.bytes);
  archive("count", finding.count);
  archive("evidence", finding.evidence);
  archive("holders", finding.holders);
  archive.unless_empty("held_when", finding.held_when);
  archive.unless_empty("related", finding.related);
  archive("tries", finding.tries);
  archive("fingerprint", finding.fingerprint);
}

void fields(auto& archive, NotJudged& item) {
  archive("rule", item.rule);
  archive("why", item.why);
  archive("always", item.always);
}

template <class Archive>
void fields(Archive& archive, Account& account) {
  archive("moment", account.moment);
  archive("capacity", account.capacity);
  archive("capacity_known", account.capacity_known);
  if constexpr (Archive::kWrites) {
    NamedBytes live = account.live;
    for (const char* name : {"parameters", "gradients", "optimizer", "activations", "temporaries", "other"}) {
      if (std::none_of(live.begin(), live.end(), [&](const auto& part) { return part.first == name; }))
        live.emplace_back(name, 0);
    }
    archive("live", live);
  } else {
    archive("live", account.live);
  }
  archive("cached", account.cached);
  archive("outside_framework", account.outside_framework);
  archive("free", account.free);
  archive("unknown", account.unknown);
  archive("has_framework", account.has_framework);
  if (Archive::kWrites && account.outside.empty()) return;
  archive.each("outside", account.outside, [](auto& inside, auto& part) {
    inside("what", part.first);
    inside("bytes", part.second);
  });
}

void fields(auto& archive, ModelReport& model) {
  archive("name", model.name);
  archive("placements", model.placements);
  archive("exact", model.exact);
  archive("segment_events", model.segment_events);
  archive("segment_events_exact", model.segment_events_exact);
  archive("why_not", model.why_not);
  archive("is_source", model.is_source);
}

// Three lists of equal length: a point a line would drown the report.
struct CurveLists {
  std::vector<std::int64_t> time_ns;
  std::vector<std::uint64_t> allocated, reserved;
};
void fields(auto& archive, CurveLists& lists) {
  archive("time_ns", lists.time_ns);
  archive("allocated", lists.allocated);
  archive("reserved", lists.reserved);
}
template <>
Json json_of(const std::vector<CurvePoint>& curve) {
  CurveLists lists;
  for (const CurvePoint& point : curve) {
    lists.time_ns.push_back(point.time_ns);
    lists.allocated.push_back(point.allocated);
    lists.reserved.push_back(point.reserved);
  }
  return json_of(lists);
}
template <>
void read_json(const Json& json, std::vector<CurvePoint>& curve) {
  CurveLists lists;
  read_json(json, lists);
  const std::size_t count = std::min({lists.time_ns.size(), lists.allocated.size(), lists.reserved.size()});
  for (std::size_t at = 0; at < count; ++at)
    curve.push_back({lists.time_ns[at], lists.allocated[at], lists.reserved[at]});
}

void fields(auto& archive, DeviceReport& device) {
  archive("index", device.index);
  archive("name", device.name);
  archive.unless_empty("process", device.process);
  archive("allowed", device.allowed_bytes);
  archive("account", device.account);
  bool is_there = true;
  archive.group("peak", is_there, [&](auto& peak) {
    peak("allocated", device.peak_allocated);
    peak("reserved", device.peak_reserved);
    peak("event", device.peak_event);
  });
  archive("events", device.event_count);
  archive("holders", device.holders);
  archive.unless_empty("lines", device.lines);
  archive("model", device.model);
  archive("curve", device.curve);
}

void fields(auto& archive, PartReport& part) {
  archive("name", part.name);
  archive("path", part.path);
  archive("events", part.events);
}

template <class Archive>
void fields(Archive& archive, Report& report) {
  archive.derived("schema", std::string(kSchema));
  bool is_there = true;
  archive.group("input", is_there, [&](auto& input) {
    input("kind", report.input_kind);
    input("path", report.input_path);
    input("events", report.input_events);
    input("lost", report.lost);
    input.unless_empty("parts", report.parts);
    input.unless_empty("left_out", report.left_out);
    input.unless_empty("notes", report.notes);
    input.unless_empty("unseen", report.unseen);
  });
  archive("findings", report.findings);
  archive("not_judged", report.not_judged);
  archive("devices", report.devices);
  if (!Archive::kWrites || report.plan) archive("plan", report.plan);
}

namespace {

// One value on one line; lists without spaces, they may be long.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void write(const Json& json, std::size_t indent, std::string& out) {
  const bool flat =
      std::none_of(json.begin(), json.end(), [](const Json& child) { return child.is_structured() && !child.empty(); });
  if (!json.is_structured() || (flat && json.is_array())) {
    out += dump(json);
    return;
  }
  const std::string separator = flat ? ", " : ",\n" + std::string(indent + 2, ' ');
  out += json.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, child] : json.items()) {
    out += first ? separator.substr(flat ? 2 : 1) : separator;
    first = false;
    if (json.is_object()) out += dump(key) + ": ";
    write(child, indent + 2, out);
  }
  if (!flat) out += '\n' + std::string(indent, ' ');
  out += json.is_object() ? '}' : ']';
}

}  // namespace

std::string to_json(const Report& report) {
  std::string out;
  write(json_of(report), 0, out);
  return escaped_json(out + '\n');
}

std::optional<Report> report_of(std::string_view json_text) {
  const Result<Json> json = parse_json<Json>(json_text);
  std::string schema;
  if (!json || !json->is_object()) return std::nullopt;
  JsonReader reader(*json);
  reader("schema", schema);
  if (schema != kSchema) return std::nullopt;
  Report report;
  read_json(*json, report);
  return report;
}

std::optional<Plan> plan_of(std::string_view json_text) {
  const Result<Json> json = parse_json<Json>(json_text);
  if (!json || !json->is_object()) return std::nullopt;
  Plan plan;
  read_json(*json, plan);
  return plan;
}

}  // namespace faultline
