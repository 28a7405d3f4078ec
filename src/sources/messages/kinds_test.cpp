// The words of the table have the form in which texts are looked through: others would be found nowhere, and nothing else would tell.
#include "sources/messages/kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "sources/error_text/anchors.h"
#include "sources/messages/xids.h"

namespace faultline {
namespace {

TEST(MessageTable, EachWordingIsOneThatCanBeFound) {
  ASSERT_FALSE(all_known_words().empty());
  for (const KnownWords& known : all_known_words()) {
    const std::string_view text = known.words->text;
    EXPECT_LT(text.size(), 64u) << text;
    EXPECT_FALSE(text.empty() || text.front() == ' ') << '"' << text << '"';
    EXPECT_EQ(text.find("  "), std::string_view::npos) << text;
    EXPECT_TRUE(std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::isupper(c); })) << text;
    const AnchorHits found = find_anchors("run.log: " + std::string(text) + "7");
    EXPECT_FALSE(found.hits.empty()) << '"' << text << '"';
  }
}

TEST(MessageTable, AnXidStandsInItOnceAndHasItsMeaning) {
  EXPECT_EQ(xid_of(std::nullopt), nullptr);
  EXPECT_EQ(xid_of(999), nullptr);
  ASSERT_NE(xid_of(79), nullptr);
  EXPECT_EQ(xid_of(79)->cause, Xid::kHardware);
  for (const std::uint64_t number : {43u, 45u, 154u}) EXPECT_EQ(xid_of(number)->cause, Xid::kConsequence) << number;
}

}  // namespace
}  // namespace faultline
