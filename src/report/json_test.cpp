#include "report/json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "report/assemble.h"
#include "report/sample_reports.h"
#include "report/terminal.h"
#include "rules/judge.h"
#include "sources/input.h"

namespace faultline {
namespace {

using nlohmann::json;

bool is_of_type(const json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "null") return value.is_null();
  return type == value.type_name();
}

// The part of JSON Schema that docs/report.schema.json uses. A keyword it does not know is a failure, so nothing passes unread.
std::string violation(const json& schema, const json& value, const json& root, const std::string& at) {
  for (const auto& [keyword, rule] : schema.items()) {
    if (keyword == "$schema" || keyword == "title" || keyword == "description" || keyword == "$defs") continue;
    if (keyword == "$ref") {
      const std::string inner =
          violation(root.at(json::json_pointer(rule.get<std::string>().substr(1))), value, root, at);
      if (!inner.empty()) return inner;
    } else if (keyword == "const") {
      if (value != rule) return at + ": not " + rule.dump();
    } else if (keyword == "enum") {
      if (std::find(rule.begin(), rule.end(), value) == rule.end()) return at + ": none of " + rule.dump();
    } else if (keyword == "minimum") {
      if (value.is_number_integer() && !value.is_number_unsigned() && value < rule)
        return at + ": below " + rule.dump();
    } else if (keyword == "type") {
      const json types = rule.is_array() ? rule : json::array({rule});
      if (std::none_of(types.begin(), types.end(), [&](const json& type) { return is_of_type(value, type); }))
        return at + ": not " + rule.dump();
    } else if (keyword == "required") {
      for (const json& name : rule) {
        if (!value.contains(name)) return at + ": lacks " + name.dump();
      }
    } else if (keyword == "anyOf") {
      const auto fits = [&](const json& option) { return violation(option, value, root, at).empty(); };
      if (std::none_of(rule.begin(), rule.end(), fits)) return at + ": fits none of anyOf";
    } else if (keyword == "items") {
      for (std::size_t index = 0; index < value.size(); ++index) {
        const std::string inner = violation(rule, value[index], root, at + "/" + std::to_string(index));
        if (!inner.empty()) return inner;
      }
    } else if (keyword == "properties" || keyword == "additionalProperties") {
      for (const auto& [name, child] : value.items()) {
        if (keyword == "properties" && !rule.contains(name)) return at + "/" + name + ": not in the schema";
        const std::string inner = violation(keyword == "properties" ? rule[name] : rule, child, root, at + "/" + name);
        if (!inner.empty()) return inner;
      }
    } else {
      return "the schema uses " + keyword;
    }
  }
  return {};
}

json schema() { return json::parse(std::ifstream(FAULTLINE_FIXTURES "/../../docs/report.schema.json")); }

json parsed(const Report& report) { return json::parse(to_json(report)); }

TEST(Json, EveryFieldOfTheContractIsThere) {
  const json report = parsed(samples::out_of_memory());
  EXPECT_EQ(report["schema"], "faultline.report/1");
  EXPECT_EQ(report["input"], (json{{"kind", "torch-snapshot"},
                                   {"path", "/home/ada/llm/runs/oom.pickle"},
                                   {"events", 6805},
                                   {"lost", {{"frames_without_file", 0}}}}));

  const json& finding = report["findings"][0];
  EXPECT_EQ(finding["rule"], "memory/out-of-memory");
  EXPECT_EQ(finding["severity"], "error");
  EXPECT_EQ(finding["confidence"], "proved");
  EXPECT_TRUE(finding["message"].get<std::string>().starts_with("GPU 0 ran out of memory"));
  EXPECT_EQ(finding["cause"], "fragmented");
  EXPECT_EQ(finding["location"]["line"], 3494);
  EXPECT_EQ(finding["location"]["function"], "cross_entropy");
  EXPECT_EQ(finding["location"]["op"], "aten::log_softmax");
  EXPECT_EQ(finding["location"]["kernel"], "");
  EXPECT_EQ(finding["call_path"][0]["line"], 83);
  EXPECT_EQ(finding["bytes"], 2 * kGiB);
  EXPECT_EQ(finding["count"], 1);
  EXPECT_EQ(finding["evidence"]["free_pieces"], 1317);
  EXPECT_EQ(finding["evidence"]["settings"], "max_split_size_mb:512");
  EXPECT_EQ(finding["holders"].size(), 5u);
  EXPECT_EQ(finding["allocated_at"], nullptr);
  EXPECT_EQ(finding["fingerprint"], "memory/out-of-memory:train.py:training_step");
  EXPECT_EQ(report["not_judged"][0],
            (json{{"rule", "order/stream-race"}, {"why", "this input records no accesses"}, {"always", false}}));

  const json& device = report["devices"][0];
  EXPECT_EQ(device["index"], 0);
  EXPECT_EQ(device["name"], "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(device["account"]["moment"], "at the failure");
  EXPECT_EQ(device["account"]["capacity_known"], true);
  EXPECT_EQ(device["peak"],
            (json{{"allocated", samples::mib(74029.77)}, {"reserved", samples::mib(78751.3)}, {"event", 6702}}));
  EXPECT_EQ(device["model"]["name"], "torch-native");
  EXPECT_EQ(device["model"]["placements"], 2410);
  EXPECT_EQ(device["model"]["exact"], 2410);
  EXPECT_EQ(device["model"]["segment_events_exact"], 96);
  EXPECT_EQ(device["curve"]["allocated"].size(), 240u);
  EXPECT_EQ(device["curve"]["time_ns"].size(), device["curve"]["reserved"].size());
}

TEST(Json, AccountPartsSumToTheCapacity) {
  for (const Report& report :
       {samples::out_of_memory(), samples::leak(), samples::clean(), samples::unknown_capacity()}) {
    const json document = parsed(report);
    const json& account = document["devices"][0]["account"];
    std::uint64_t sum = 0;
    for (const char* part : {"cached", "outside_framework", "free", "unknown"})
      sum += account[part].get<std::uint64_t>();
    for (const json& part : account["live"]) sum += part.get<std::uint64_t>();
    EXPECT_EQ(sum, account["capacity"].get<std::uint64_t>());
  }
}

TEST(Json, LiveHasAllItsPartsEvenWhenTheAccountNamesNone) {
  Report report;
  report.devices.resize(1);
  const json document = parsed(report);
  const json& live = document["devices"][0]["account"]["live"];
  for (const char* part : {"parameters", "gradients", "optimizer", "activations", "temporaries", "other"})
    EXPECT_EQ(live[part], 0) << part;
}

TEST(Json, LostIsAlwaysThere) { EXPECT_EQ(parsed(Report{})["input"]["lost"], json::object()); }

TEST(Json, AReplaySaidYesNoOrNothing) {
  const json document = parsed(samples::out_of_memory());
  const json& tries = document["findings"][0]["tries"];
  EXPECT_EQ(tries[0]["confirmed"], true);
  EXPECT_EQ(tries[0]["saves_bytes"], samples::mib(4198));
  EXPECT_EQ(tries[1]["confirmed"], nullptr);
  EXPECT_EQ(tries[2]["confirmed"], false);
}

TEST(Json, BytesAreWholeNumbersUpToTheLargest) {
  Report report = samples::leak();
  report.findings[0].bytes = UINT64_MAX;
  EXPECT_NE(to_json(report).find("\"bytes\": 18446744073709551615"), std::string::npos);
}

TEST(Json, EqualFindingsAreNotGrouped) { EXPECT_EQ(parsed(samples::leak())["findings"].size(), 3u); }

TEST(Json, BadUtf8IsReplacedAndDoesNotThrow) {
  const json document = parsed(samples::hostile());
  EXPECT_EQ(document["findings"][0]["location"]["file"], "/home/ada/llm/\x1b[31mred\uFFFD.py");
  EXPECT_EQ(document["findings"][0]["evidence"]["ratio"], nullptr);
  EXPECT_TRUE(document["input"]["lost"].contains("\x1b[2J\uFFFD"));
}

TEST(Json, ReportsFitTheSchema) {
  const json rules = schema();
  for (const Report& report : {samples::out_of_memory(), samples::leak(), samples::fragmentation(), samples::clean(),
                               samples::unknown_capacity(), Report{}}) {
    EXPECT_EQ(violation(rules, parsed(report), rules, ""), "");
  }
}

TEST(Json, TheSchemaRefusesAMissingAndAChangedField) {
  const json rules = schema();
  json report = parsed(samples::leak());
  report["findings"][0]["severity"] = "fatal";
  EXPECT_EQ(violation(rules, report, rules, ""), "/findings/0/severity: none of [\"error\",\"warning\",\"note\"]");
  report = parsed(samples::leak());
  report["devices"][0]["account"].erase("unknown");
  EXPECT_EQ(violation(rules, report, rules, ""), "/devices/0/account: lacks \"unknown\"");
}

TEST(Json, PlainValuesShareALine) {
  const std::string text = to_json(samples::clean());
  EXPECT_NE(text.find("      \"peak\": {\"allocated\": "), std::string::npos);
  EXPECT_EQ(text.substr(0, 2), "{\n");
  EXPECT_EQ(text.substr(text.size() - 3), "\n}\n");
}

TEST(Json, ThePageIsMadeFromTheReportAlone) {
  std::vector<Report> reports = {samples::out_of_memory(),
                                 samples::leak(),
                                 samples::fragmentation(),
                                 samples::clean(),
                                 samples::unknown_capacity(),
                                 samples::hostile(),
                                 Report{}};
  for (const char* name : {"torch/gpt_oom.pickle.xz", "torch/frag.pickle.xz", "coredump/triton_oob.core.xz",
                           "errors/torch28_room_left.txt"}) {
    Result<Input> input = open_input(std::string(FAULTLINE_FIXTURES "/") + name);
    ASSERT_TRUE(input.ok()) << name;
    reports.push_back(make_report(*input));
  }
  for (const Report& report : reports) {
    const std::optional<Report> read = report_of(to_json(report));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(to_json(*read), to_json(report));
    for (const bool verbose : {false, true}) {
      TerminalOptions options;
      options.verbose = verbose;
      EXPECT_EQ(to_terminal(*read, options), to_terminal(report, options));
    }
  }
}

TEST(Json, SeveralProcessesArePartsOfOneReport) {
  Input input;
  for (const char* name : {"process 4", "process 7"}) {
    Result<Trace> trace = load(FAULTLINE_FIXTURES "/torch/gpt_oom.pickle.xz");
    ASSERT_TRUE(trace.ok());
    input.parts.push_back({std::move(*trace), name, {}});
  }
  input.notes = {"a note"};
  const Report report = make_report(input);
  const json document = parsed(report);
  EXPECT_EQ(violation(schema(), document, schema(), ""), "");
  EXPECT_EQ(document["input"]["parts"].size(), 2u);
  EXPECT_EQ(document["input"]["notes"], json::array({"a note"}));
  ASSERT_EQ(document["devices"].size(), 2u);
  EXPECT_EQ(document["devices"][1]["process"], "process 7");
  ASSERT_EQ(document["findings"].size() % 2, 0u);
  const std::string page = to_terminal(report, {});
  EXPECT_NE(page.find("ERROR  memory/out-of-memory  ×2"), std::string::npos) << page;
  EXPECT_NE(page.find("GPU 0 of process 4, GPU 0 of process 7"), std::string::npos) << page;
  EXPECT_EQ(page.find("SUMMARY:"), page.rfind("SUMMARY:"));
}

}  // namespace
}  // namespace faultline
