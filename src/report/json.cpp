#include "report/json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/safe_text.h"
#include "report/plan_json.h"

namespace faultline {
namespace {

using Json = nlohmann::ordered_json;  // fields in the order the contract lists them

Json location_or_null(const Location& location) {
  return location.known() ? location_json(location) : Json(nullptr);
}

Json evidence_json(const std::vector<Evidence>& evidence) {
  Json json = Json::object();
  for (const Evidence& item : evidence) {
    std::visit([&](const auto& value) { json[item.name] = value; }, item.value);
  }
  return json;
}

Json tries_json(const std::vector<Try>& tries) {
  Json json = Json::array();
  for (const Try& attempt : tries) {
    const Json confirmed = attempt.confirmed ? Json(*attempt.confirmed) : Json(nullptr);
    json.push_back({{"what", attempt.what}, {"confirmed", confirmed}, {"saves_bytes", attempt.saves_bytes}});
  }
  return json;
}

Json holders_json(const std::vector<Holder>& holders) {
  Json json = Json::array();
  for (const Holder& holder : holders) {
    json.push_back({{"bytes", holder.bytes},
                    {"count", holder.count},
                    {"category", holder.category},
                    {"location", location_json(holder.location)},
                    {"detail", holder.detail}});
  }
  return json;
}

Json related_json(const std::vector<Related>& related) {
  Json json = Json::array();
  for (const Related& item : related) {
    json.push_back({{"role", item.role}, {"what", item.what}, {"bytes", item.bytes}, {"location", location_or_null(item.location)}});
  }
  return json;
}

Json finding_json(const Finding& finding) {
  Json call_path = Json::array();
  for (const Location& location : finding.call_path) call_path.push_back(location_json(location));

  Json json = Json::object();
  json["rule"] = finding.rule;
  json["severity"] = name_of(finding.severity);
  json["confidence"] = name_of(finding.confidence);
  json["message"] = finding.message;
  if (!finding.cause.empty()) json["cause"] = finding.cause;
  json["device"] = finding.device;
  json["location"] = location_json(finding.location);
  json["call_path"] = std::move(call_path);
  json["memory"] = finding.memory;
  json["allocated_at"] = location_or_null(finding.allocated_at);
  json["freed_at"] = location_or_null(finding.freed_at);
  json["bytes"] = finding.bytes;
  json["count"] = finding.count;
  json["evidence"] = evidence_json(finding.evidence);
  json["holders"] = holders_json(finding.holders);
  if (!finding.related.empty()) json["related"] = related_json(finding.related);
  json["tries"] = tries_json(finding.tries);
  json["fingerprint"] = finding.fingerprint;
  return json;
}

Json account_json(const Account& account) {
  Json live = {{"parameters", 0u}, {"gradients", 0u}, {"optimizer", 0u}, {"activations", 0u}, {"temporaries", 0u}, {"other", 0u}};
  for (const auto& [name, size_bytes] : account.live) {
    const std::uint64_t before = live.contains(name) ? live[name].get<std::uint64_t>() : 0;
    live[name] = before + size_bytes;
  }
  Json json = {{"moment", account.moment}, {"capacity", account.capacity}, {"capacity_known", account.capacity_known},
          {"live", std::move(live)},  {"cached", account.cached},     {"outside_framework", account.outside_framework},
          {"free", account.free},     {"unknown", account.unknown}};
  if (!account.outside.empty()) {
    json["outside"] = Json::array();
    for (const auto& [what, size_bytes] : account.outside) json["outside"].push_back({{"what", what}, {"bytes", size_bytes}});
  }
  return json;
}

// Three lists of equal length: a point a line would drown the report.
Json curve_json(const std::vector<CurvePoint>& curve) {
  Json times = Json::array(), allocated = Json::array(), reserved = Json::array();
  for (const CurvePoint& point : curve) {
    times.push_back(point.time_ns);
    allocated.push_back(point.allocated);
    reserved.push_back(point.reserved);
  }
  return {{"time_ns", std::move(times)}, {"allocated", std::move(allocated)}, {"reserved", std::move(reserved)}};
}

Json device_json(const DeviceReport& device) {
  const ModelReport& model = device.model;
  return {{"index", device.index},
          {"name", device.name},
          {"account", account_json(device.account)},
          {"peak", {{"allocated", device.peak_allocated}, {"reserved", device.peak_reserved}, {"event", device.peak_event}}},
          {"model",
           {{"name", model.name},
            {"placements", model.placements},
            {"exact", model.exact},
            {"segment_events", model.segment_events},
            {"segment_events_exact", model.segment_events_exact},
            {"why_not", model.why_not},
            {"is_source", model.is_source}}},
          {"curve", curve_json(device.curve)}};
}

Json report_json(const Report& report) {
  Json lost = Json::object();
  for (const auto& [name, count] : report.lost) lost[name] = count;
  Json findings = Json::array(), not_judged = Json::array(), devices = Json::array();
  for (const Finding& finding : report.findings) findings.push_back(finding_json(finding));
  for (const NotJudged& item : report.not_judged) not_judged.push_back({{"rule", item.rule}, {"why", item.why}});
  for (const DeviceReport& device : report.devices) devices.push_back(device_json(device));

  Json json = Json::object();
  json["schema"] = "faultline.report/1";
  json["input"] = {{"kind", report.input_kind}, {"path", report.input_path}, {"events", report.input_events}, {"lost", std::move(lost)}};
  json["findings"] = std::move(findings);
  json["not_judged"] = std::move(not_judged);
  json["devices"] = std::move(devices);
  if (report.plan) json["plan"] = plan_json(*report.plan);
  return json;
}

// One value on one line; lists without spaces, they may be long.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write(const Json& json, std::size_t indent, std::string& out) {
  const bool flat = std::none_of(json.begin(), json.end(), [](const Json& child) { return child.is_structured() && !child.empty(); });
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
  write(report_json(report), 0, out);
  return escaped_json(out + '\n');
}

}  // namespace faultline
