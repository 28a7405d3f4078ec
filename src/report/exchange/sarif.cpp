// SARIF 2.1.0, as GitHub's code scanning and editors read it: a run for each report, a result for each group of findings.
#include <algorithm>
#include <cctype>

#include "base/json_archive.h"
#include "base/safe_text.h"
#include "report/exchange/exchange.h"
#include "report/exit_status.h"
#include "report/finding_text.h"
#include "report/terminal.h"

namespace faultline {
namespace {

constexpr const char* kRoot = "SRCROOT";

bool stays_in_uri(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-._~/!$'()*+,;=@").find(c) != std::string_view::npos;
}

std::string uri_of(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri;
  for (const char c : path) {
    if (stays_in_uri(c)) {
      uri += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return uri;
}

class SarifRun {
 public:
  SarifRun(const Report& report, const ExchangeOptions& options) : report_(report), options_(options) {}

  Json json() {
    Json results = Json::array();
    for (const FindingGroup& group : group_findings(report_.findings)) results.push_back(result(group));
    Json driver = {{"name", "Faultline"}, {"semanticVersion", options_.version}, {"rules", std::move(rules_)}};
    Json run = {{"tool", {{"driver", std::move(driver)}}}, {"invocations", Json::array({invocation()})}};
    if (!options_.cwd.empty()) run["originalUriBaseIds"][kRoot]["uri"] = "file://" + uri_of(options_.cwd) + "/";
    run["columnKind"] = "utf16CodeUnits";
    run["results"] = std::move(results);
    return run;
  }

 private:
  // Once each, in the order in which they are met.
  std::size_t rule_index(const std::string& rule) {
    const auto known = std::find_if(rules_.begin(), rules_.end(), [&](const Json& item) { return item["id"] == rule; });
    if (known != rules_.end()) return static_cast<std::size_t>(known - rules_.begin());
    Json item = {{"id", shown(rule)}};
    if (const std::string page = options_.rule_page ? options_.rule_page(rule) : std::string(); !page.empty())
      item["help"] = {{"text", page}, {"markdown", page}};
    rules_.push_back(std::move(item));
    return rules_.size() - 1;
  }

  Json artifact(std::string_view file) const {
    const std::string_view relative = below(options_.cwd, file);
    if (file.starts_with('/') && relative == file) return {{"uri", "file://" + uri_of(file)}};
    return {{"uri", uri_of(relative)}, {"uriBaseId", kRoot}};
  }

  Json location(const Location& place, std::string_view words = {}) const {
    Json json = Json::object();
    if (!place.file.empty()) {
      json["physicalLocation"]["artifactLocation"] = artifact(place.file);
      if (place.line != 0) json["physicalLocation"]["region"]["startLine"] = place.line;
    }
    const std::string& name = !place.function.empty() ? place.function : !place.op.empty() ? place.op : place.kernel;
    if (!name.empty()) json["logicalLocations"] = Json::array({{{"name", shown(name)}, {"kind", "function"}}});
    if (!words.empty()) json["message"]["text"] = shown(words);
    return json;
  }

  Json result(const FindingGroup& group) {
    const Finding& finding = group.first();
    Json json = {{"ruleId", shown(finding.rule)},
                 {"ruleIndex", rule_index(finding.rule)},
                 {"level", name_of(finding.severity)},
                 {"message", {{"text", shown(finding.message) + advice(finding)}}}};
    // Code scanning takes no result without a place: where none is known it is the file that was read.
    Location place = place_to_look(finding);
    if (place.file.empty()) place.file = report_.input_path.empty() ? "standard input" : report_.input_path;
    json["locations"] = Json::array({location(place)});
    Json related = Json::array();
    if (finding.allocated_at.known()) related.push_back(location(finding.allocated_at, "allocated here"));
    if (finding.freed_at.known()) related.push_back(location(finding.freed_at, "freed here"));
    for (const Related& item : finding.related) {
      if (item.location.known())
        related.push_back(location(item.location, item.role + (item.what.empty() ? "" : ": " + item.what)));
    }
    for (const Holder& holder : finding.holders) {
      if (holder.location.known())
        related.push_back(location(holder.location, "holds " + std::to_string(holder.bytes) + " bytes"));
    }
    if (!related.empty()) json["relatedLocations"] = std::move(related);
    if (!finding.call_path.empty()) {
      Json frames = Json::array();
      for (const Location& frame : finding.call_path) frames.push_back({{"location", location(frame)}});
      json["stacks"] = Json::array({{{"frames", std::move(frames)}}});
    }
    if (!finding.fingerprint.empty()) json["partialFingerprints"]["faultline/v1"] = shown(finding.fingerprint);
    json["occurrenceCount"] = std::clamp<std::uint64_t>(group.count(), 1, 1u << 30);
    json["properties"] = {{"confidence", name_of(finding.confidence)}, {"bytes", group.size_bytes()}};
    if (!finding.cause.empty()) json["properties"]["cause"] = shown(finding.cause);
    return json;
  }

  // What could not be seen or judged is part of the answer.
  Json invocation() const {
    Json told = Json::array();
    const auto tell = [&](const char* level, std::string_view text) {
      told.push_back({{"level", level}, {"message", {{"text", shown(text)}}}});
    };
    tell("note", summary_of(report_));
    for (const std::string& sentence : report_.unseen) tell("warning", "not seen: " + sentence);
    for (const NotJudged& item : report_.not_judged) tell("note", "not judged: " + item.rule + ": " + item.why);
    return {{"executionSuccessful", exit_status(report_) < 2}, {"toolExecutionNotifications", std::move(told)}};
  }

  const Report& report_;
  const ExchangeOptions& options_;
  Json rules_ = Json::array();
};

}  // namespace

std::string to_sarif(std::span<const Report> reports, const ExchangeOptions& options) {
  Json runs = Json::array();
  for (const Report& report : reports) runs.push_back(SarifRun(report, options).json());
  const Json log = {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}, {"runs", std::move(runs)}};
  return escaped_json(log.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace faultline
