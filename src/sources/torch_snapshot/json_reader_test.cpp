// The JSON form: the same trace as the pickle, and the same care with what is no snapshot.
#include "sources/torch_snapshot/json_reader.h"

#include "sources/torch_snapshot/snapshot_test_support.h"

namespace faultline::snapshot_test {
namespace {

Object everything() {
  Object alloc = with(with(entry("alloc", 0x7f1234500000, 1000, 1'700'000'000'000'000), "frames",
                           {frame("train.py", 12, "step"), frame("train.py", 40, "main")}),
                      "stream", 94'000'000'000'000);
  Object pool_alloc = with(with(entry("alloc", 0x7f1234600000, 5, 1'700'000'000'000'100), "pool_id", {0, 1}),
                           "user_metadata", "naïve \"quoted\" name");
  Object object = snapshot(
      {entry("segment_alloc", 0x7f1234500000, 2 << 20),
       alloc,
       pool_alloc,
       entry("free_requested", 0x7f1234500000, 1000),
       entry("free_completed", 0x7f1234500000, 1000),
       {{"action", "oom"}, {"device_free", 512}, {"size", 99}, {"stream", 0}, {"frames", {frame("??", 0, "")}}}},
      {segment(0x7f1234500000, 2 << 20, {block(0x7f1234500000, 1024, "inactive"), block(0x7f1234600000, 512)})});
  object["allocator_settings"] = {
      {"garbage_collection_threshold", 0.25}, {"expandable_segments", false}, {"max_split_size", -1}};
  object["external_annotations"] = Object::array(
      {{{"stage", "START"}, {"name", "ProfilerStep#3"}, {"device", 0}, {"time_us", 1'700'000'000'000'050}}});
  object["odd"] = nullptr;
  return object;
}

TEST(JsonSnapshot, GivesTheTraceOfThePickle) {
  const Trace from_pickle = trace_of(everything());
  for (const int indent : {-1, 2}) {
    const Trace from_json = trace_of((indent < 0 ? "" : " \n\t") + everything().dump(indent));
    EXPECT_EQ(from_json.events, from_pickle.events);
    EXPECT_EQ(from_json.heaps, from_pickle.heaps);
    EXPECT_EQ(from_json.streams, from_pickle.streams);
    EXPECT_EQ(from_json.final_blocks, from_pickle.final_blocks);
    EXPECT_EQ(from_json.final_segments, from_pickle.final_segments);
    EXPECT_EQ(from_json.properties, from_pickle.properties);
    EXPECT_EQ(from_json.lost, from_pickle.lost);
    EXPECT_EQ(from_json.capabilities, from_pickle.capabilities);
    EXPECT_EQ(from_json.strings.size(), from_pickle.strings.size());
  }
}

TEST(JsonSnapshot, SaturatesNumbersBeyondSixtyThreeBits) {
  const Trace trace =
      trace_of(std::string(R"({"device_traces": [[{"action": "alloc", "addr": 18446744073709551615, "size": 512}]]})"));
  EXPECT_EQ(trace.events.at(0).address, 0x7fffffffffffffffu);
  const Error refused = refusal_of(R"({"device_traces": [[{"action": "alloc", "addr": 4096, "size": 1e300}]]})");
  EXPECT_NE(refused.what.find("the size of entry 0 is negative, or no whole number"), std::string::npos)
      << refused.what;
}

TEST(JsonThatIsWrong, IsRefusedWithItsOffset) {
  const struct {
    const char* text;
    std::uint64_t offset;
  } cases[] = {{"{", 1},    {"[1, 2", 5},       {"{\"segments\" 1}", 12}, {"{\"segments\": [}", 14},
               {"[1,]", 3}, {"{} trailing", 5}, {"{\"a\": \"\x01\"}", 7}, {"[\"a\" nul]", 8}};
  for (const auto& wrong : cases) {
    const Error refusal = refusal_of(wrong.text);
    EXPECT_TRUE(refusal.what.starts_with("this is not valid JSON")) << refusal.what;
    ASSERT_TRUE(refusal.offset.has_value()) << wrong.text;
    EXPECT_EQ(*refusal.offset, wrong.offset) << wrong.text << ": " << refusal.what;
  }
}

TEST(JsonThatIsWrong, IsRefusedWhereverARealOneIsCut) {
  const std::string text = everything().dump();
  for (std::size_t size = 1; size < text.size(); ++size) {
    const Error refusal = refusal_of(text.substr(0, size));
    ASSERT_FALSE(refusal.what.empty()) << size;
    ASSERT_TRUE(refusal.offset.has_value()) << size;
    ASSERT_LE(*refusal.offset, size);
  }
}

TEST(JsonThatIsWrong, IsRefusedWhenNestedTooDeep) {
  for (const char* part : {"[", "{\"a\":"}) {
    std::string text = "{\"segments\":";
    for (int depth = 0; depth < 1'000'000; ++depth) text += part;
    EXPECT_EQ(refusal_of(text).what, "the JSON is nested more than 64 deep");
  }
}

TEST(JsonSnapshot, LogsThatBeginWithABracketAreText) {
  const std::string error =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.64 "
      "GiB of which 10.00 MiB is free.\n";
  for (const char* begin :
       {"[rank0]: Traceback (most recent call last):\n", "[2024-05-01 03:00:00] epoch 3\n", "[1/100] loss 3\n",
        "[10] step\n", "{'loss': 2.31}\n", "{\"loss\": 2.31}\n{\"loss\": 2.2}\n", "{\"loss\": 2.31}\nTraceback\n",
        "{\n  \"device\": \"cuda\",\n  \"name\": \"run 1\"\n}\nstep 1\n", "[{\"lr\": 0.1}]\nstarting\n",
        "[\"a\", \"b\"]\n", "[]\n", "{}\n", "[INFO] go\n", "{\"size\": 3}\r\n{\"size\": 4}\r\n"}) {
    const std::string text = begin + error;
    ByteStream stream = ByteStream::from_memory(bytes_of(text));
    const Result<Trace> trace = load(stream, "log");
    ASSERT_TRUE(trace.ok()) << begin << trace.error().message();
    EXPECT_EQ(trace->source_kind, "error-text") << begin;
  }
}

TEST(JsonOfAnotherProgram, IsNoSnapshot) {
  for (const char* text : {"{}", "[1, 2, 3]", "{\"loss\": [0.5, 0.25]}", "{\"segments\": \"none\"}",
                           "[{\"ph\": \"X\", \"name\": \"kernel\", \"ts\": 1}]"}) {
    EXPECT_NE(refusal_of(text).what.find("snapshot"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace faultline::snapshot_test
