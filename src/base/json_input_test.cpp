#include "base/json_input.h"

#include <gtest/gtest.h>

#include <string>

namespace faultline {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(JsonInput, WhatIsWithinBoundsIsParsed) {
  const Result<nlohmann::json> json = parse_json(R"({"a": [1, {"b": null}], "c": "d"})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["c"], "d");
  EXPECT_TRUE(parse_json(nested(kMostJsonDepth)).ok());
}

TEST(JsonInput, DepthValuesMembersAndSizeHaveEnds) {
  EXPECT_EQ(check_json(nested(kMostJsonDepth + 1)).error().what, "the JSON is nested more than 64 deep");
  EXPECT_EQ(check_json(nested(1'000'000)).error().what, "the JSON is nested more than 64 deep");
  std::string values = "[0";
  for (std::size_t i = 0; i <= kMostJsonValues; ++i) values += ",0";
  EXPECT_EQ(check_json(values + "]").error().what, "the JSON has more than 1000000 values");
  std::string members = "{\"a\":0";
  for (std::size_t i = 0; i <= kMostJsonMembers; ++i) members += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_EQ(check_json(members + "}").error().what, "an object of the JSON has more than 512 members");
  EXPECT_FALSE(check_json("\"" + std::string(kMostJsonBytes, 'x') + "\"").ok());
}

TEST(JsonInput, WhatIsNoJsonSaysWhere) {
  const Status checked = check_json("{\"a\": }");
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().what, "this is not valid JSON");
  EXPECT_EQ(checked.error().offset, 6u);
}

}  // namespace
}  // namespace faultline
