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

// Three bytes of text each, and some hundred of memory for what is made of it.
TEST(JsonInput, ObjectsHaveAnEnd) {
  const auto list = [](std::size_t count) {
    std::string text = "[{}";
    for (std::size_t at = 1; at < count; ++at) text += ",{}";
    return text + "]";
  };
  EXPECT_TRUE(check_json(list(kMostJsonListed)).ok());
  EXPECT_EQ(check_json(list(kMostJsonListed + 1)).error().what, "a list of the JSON has more than 65536 objects");
  std::string lists = "[" + list(kMostJsonListed - 1);
  for (int more = 0; more < 4; ++more) lists += "," + list(kMostJsonListed);
  EXPECT_EQ(check_json(lists + "]").error().what, "the JSON has more than 262144 objects");
}

TEST(JsonInput, DepthAloneIsAskedOfLargeDocuments) {
  EXPECT_TRUE(is_json_within(nested(64), 64));
  EXPECT_FALSE(is_json_within(nested(65), 64));
  EXPECT_FALSE(is_json_within("[1", 64));
  std::string wide = "[[]";
  for (int at = 0; at < 200'000; ++at) wide += ",[]";
  EXPECT_TRUE(is_json_within(wide + "]", 2));
}

TEST(JsonInput, WhatIsNoJsonSaysWhere) {
  const Status checked = check_json("{\"a\": }");
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().what, "this is not valid JSON");
  EXPECT_EQ(checked.error().offset, 6u);
}

}  // namespace
}  // namespace faultline
