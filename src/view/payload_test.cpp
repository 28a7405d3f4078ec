#include "view/payload.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "base/leb128.h"
#include "view/html.h"
#include "view/html_page.h"
#include "view/treemap.h"

namespace faultline::view {
namespace {

std::string inflated(const std::string& bytes, std::size_t size) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, -MAX_WBITS), Z_OK);
  std::string out(size + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

// As full as a scene can be, of numbers that do not compress.
Scene crowded() {
  std::mt19937_64 random(1);
  Scene scene;
  scene.device_name = "GPU";
  scene.has_times = scene.has_segments = true;
  scene.columns.events = 10'000'000;
  scene.columns.stretch = 611;
  for (const auto& [by, groups] : {std::pair("category", 6), std::pair("line", 12), std::pair("module", 12)}) {
    Grouping grouping{by, {}, std::vector<std::uint8_t>(kMostAllocations + 1)};
    for (int at = 0; at < groups; ++at) grouping.groups.push_back("group " + std::to_string(at));
    for (std::uint8_t& group : grouping.of) group = static_cast<std::uint8_t>(random() % static_cast<unsigned>(groups));
    std::vector<std::uint64_t> bytes(kMostColumns * static_cast<std::size_t>(groups));
    for (std::uint64_t& value : bytes) value = random() % (std::uint64_t{80} << 30);
    scene.groupings.push_back(std::move(grouping));
    scene.columns.by_group.push_back(std::move(bytes));
  }
  for (std::uint32_t at = 0; at < kMostColumns; ++at) {
    scene.columns.peak.push_back(at * 611 + static_cast<std::uint32_t>(random() % 611));
    scene.columns.low.push_back(random() % (std::uint64_t{80} << 30));
    scene.columns.reserved.push_back(random() % (std::uint64_t{80} << 30));
    scene.columns.time_ns.push_back(static_cast<std::int64_t>(random() >> 4));
  }
  scene.allocation_count = 5'000'000;
  for (std::uint32_t at = 0; at < kMostAllocations; ++at) {
    const auto born = static_cast<std::uint32_t>(at * 125 + random() % 125);
    scene.allocations.push_back({AllocationId(at + 1), born, born + static_cast<std::uint32_t>(random() % 100'000),
                                 kNever, random() % (1u << 30), random() % (1u << 30), random() >> 16,
                                 static_cast<std::uint32_t>(random() % kMostStackNodes),
                                 static_cast<std::uint32_t>(random() % 100)});
  }
  for (std::uint32_t at = 0; at < kMostRestStacks; ++at)
    scene.rest.stacks.push_back({static_cast<std::uint32_t>(random() % kMostStackNodes), 0});
  for (std::uint32_t at = 0; at < kMostRestMoments; ++at) {
    scene.rest.columns.push_back(at * 16);
    for (std::size_t stack = 0; stack < kMostRestStacks; ++stack)
      scene.rest.bytes.push_back(random() % (std::uint64_t{80} << 30));
  }
  scene.places.resize(100, {"/home/user/project/train.py", "main", 12});
  scene.texts.resize(100, "float32[8,1024,768]");
  for (std::uint32_t at = 0; at < kMostStackNodes; ++at)
    scene.stacks.push_back(
        {at == 0 ? 0 : static_cast<std::uint32_t>(random() % at), static_cast<std::uint32_t>(random() % 100), 1});
  return scene;
}

TEST(Payload, Base64IsTheUsualOne) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob\xff"), "Zm9vYv8=");
}

TEST(Payload, WhatIsCompressedComesBack) {
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(100'000, 'x'), std::string("\0\xff\0", 3)})
    EXPECT_EQ(inflated(compressed(text), text.size()), text);
}

TEST(Payload, ColumnsStandBehindTheWordsAsDifferences) {
  Scene scene;
  scene.columns.events = 4;
  scene.columns.peak = {0, 1, 2, 3};
  scene.columns.low = {512, 1024, 0, 1536};
  scene.columns.reserved = {2048, 2048, 2048, 4096};
  scene.groupings.push_back({"category", {"a", "b"}, {0}});
  scene.columns.by_group.push_back({512, 0, 512, 512, 0, 0, 1024, 512});
  const std::string bytes = encode({scene}, {}, Snippets());
  std::size_t at = 0;
  const auto next = [&] { return static_cast<std::uint8_t>(bytes[at++]); };
  const auto number = [&] { return read_uleb(next); };
  const auto difference = [&] {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  };
  at += number();
  for (int column = 0; column < 4; ++column) EXPECT_EQ(number(), 0u);
  for (const int low : {1, 1, -2, 3}) EXPECT_EQ(difference(), low);
  for (const int reserved : {4, 0, 0, 4}) EXPECT_EQ(difference(), reserved);
  for (const int first : {1, 0, -1, 2}) EXPECT_EQ(difference(), first);
  for (const int second : {0, 1, -1, 1}) EXPECT_EQ(difference(), second);
}

TEST(Payload, APageOfTenMillionEventsStaysWithinItsBoundWhateverTheyAre) {
  Viewed viewed;
  viewed.scenes.push_back(crowded());
  const std::string page = make_page(std::move(viewed), {});
  EXPECT_LE(page.size(), kMostPageBytes);
  EXPECT_GT(page.size(), kMostPageBytes / 4);  // and is not emptier than it must be
}

TEST(Html, NothingEndsItsElementOrItsAttribute) {
  const std::pair<const char*, const char*> cases[] = {
      {"<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"},
      {"\"onmouseover=\"alert(1)", "&quot;onmouseover=&quot;alert(1)"},
      {"' onload='x", "&#39; onload=&#39;x"},
      {"&lt;b&gt;", "&amp;lt;b&amp;gt;"},
      {"a\nb\tc", "a b c"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {"caf\xc3\xa9", "caf\xc3\xa9"},
      {"bad\xff", "bad\xef\xbf\xbd"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(escaped(text), expected) << text;
  EXPECT_EQ(escaped("\xe2\x80\xae evil").find("\xe2\x80\xae"), std::string::npos);  // right-to-left override
  EXPECT_EQ(escaped("a\xe2\x80\xa8"
                    "b")
                .find("\xe2\x80\xa8"),
            std::string::npos);  // line separator
  EXPECT_EQ(escaped_lines("<a>\n<b>\n"), "&lt;a&gt;\n&lt;b&gt;\n");
}

TEST(Treemap, AreasAreInProportionAndInside) {
  for (const std::vector<std::uint64_t>& weights :
       {std::vector<std::uint64_t>{6, 6, 4, 3, 2, 2, 1}, {1}, {5, 0, 0}, {1000, 1, 1, 1}, {7, 7, 7, 7, 7}}) {
    const std::vector<Rectangle> cells = squarified(weights, 600, 400);
    ASSERT_EQ(cells.size(), weights.size());
    double all = 0;
    for (const std::uint64_t weight : weights) all += static_cast<double>(weight);
    for (std::size_t at = 0; at < cells.size(); ++at) {
      EXPECT_NEAR(cells[at].width * cells[at].height, 600 * 400 * static_cast<double>(weights[at]) / all, 0.01);
      EXPECT_LE(cells[at].x + cells[at].width, 600.001);
      EXPECT_LE(cells[at].y + cells[at].height, 400.001);
      for (std::size_t other = 0; other < at; ++other) {
        const double across = std::min(cells[at].x + cells[at].width, cells[other].x + cells[other].width) -
                              std::max(cells[at].x, cells[other].x);
        const double down = std::min(cells[at].y + cells[at].height, cells[other].y + cells[other].height) -
                            std::max(cells[at].y, cells[other].y);
        EXPECT_FALSE(across > 1e-6 && down > 1e-6) << at << " lies over " << other;
      }
    }
  }
  for (const Rectangle& cell : squarified({0, 0}, 600, 400)) EXPECT_EQ(cell.width * cell.height, 0);
  EXPECT_TRUE(squarified({}, 600, 400).empty());
}

}  // namespace
}  // namespace faultline::view
