// The pickle machine, opcode by opcode: what it understands, what it refuses, and that neither can be made to cost much.
#include "sources/torch_snapshot/pickle_reader.h"

#include "sources/torch_snapshot/snapshot_test_support.h"

namespace faultline::snapshot_test {
namespace {

using namespace std::string_literals;

// A snapshot of one alloc entry whose address is pushed by `opcodes`.
std::string with_address(const std::string& opcodes) {
  const std::string alloc = "}(" + pickled_text("action") + pickled_text("alloc") + pickled_text("addr") + opcodes +
                            pickled_text("size") + "K\x08u";
  return pickle("}(" + pickled_text("segments") + "]" + pickled_text("device_traces") + "](](" + alloc + "eeu");
}

std::uint64_t address_from(const std::string& opcodes) {
  const Trace trace = trace_of(with_address(opcodes));
  EXPECT_EQ(trace.events.size(), 1u);
  return trace.events.empty() ? 0 : trace.events[0].address;
}

TEST(PickleIntegers, AreReadInEveryForm) {
  EXPECT_EQ(address_from("K\x7f"), 127u);
  EXPECT_EQ(address_from("K\xff"), 255u);
  EXPECT_EQ(address_from("M\xff\xff"), 65535u);
  EXPECT_EQ(address_from("J\xff\xff\xff\x7f"), 0x7fffffffu);
  EXPECT_EQ(address_from("\x8a\x00"s), 0u);
  EXPECT_EQ(address_from("\x8a\x01\x05"s), 5u);
  EXPECT_EQ(address_from("\x8a\x05\x00\x00\x00\x00\x7f"s), 0x7f00000000u);
  EXPECT_EQ(address_from("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x7f"s), 0x7f00000000000000u);
  EXPECT_EQ(address_from("\x8b\x03\x00\x00\x00\x01\x02\x03"s), 0x030201u);
  EXPECT_EQ(address_from("\x88"), 1u) << "True is one";
}

TEST(PickleIntegers, SaturateBeyondSixtyThreeBits) {
  const std::string minus_one_unsigned = "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"s;  // 2^64 - 1
  EXPECT_EQ(address_from(minus_one_unsigned), 0x7fffffffffffffffu);
  EXPECT_EQ(address_from("\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"s), 0x7fffffffffffffffu);
  EXPECT_EQ(address_from("\x8a\x0a\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00"s), 7u)
      << "leading zeros do not make a number large";
}

TEST(PickleIntegers, BelowZeroCountAsNone) {
  EXPECT_EQ(address_from("\x8a\x01\xff"s), 0u);
  EXPECT_EQ(address_from("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x80"s), 0u);
  EXPECT_EQ(address_from("J\xff\xff\xff\xff"), 0u);
}

TEST(PickleIntegers, OfAbsurdLengthAreRefused) {
  EXPECT_EQ(refusal_of(with_address("\x8b\x00\x10\x00\x00"s + std::string(4096, 'x'))).what,
            "an integer claims 4096 bytes");
  EXPECT_EQ(refusal_of(with_address("\x8b\xff\xff\xff\xff"s)).what, "an integer has a negative length");
}

TEST(PickleFrames, WithoutALineHaveLineZero) {
  const std::string frame_dict = "}(" + pickled_text("filename") + pickled_text("a.py") + pickled_text("name") +
                                 pickled_text("f") + pickled_text("line") +
                                 "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"s + "u";
  const std::string alloc = "}(" + pickled_text("action") + pickled_text("alloc") + pickled_text("addr") + "K\x10" +
                            pickled_text("frames") + "](" + frame_dict + "eu";
  const Trace trace =
      trace_of(pickle("}(" + pickled_text("segments") + "]" + pickled_text("device_traces") + "](](" + alloc + "eeu"));
  ASSERT_EQ(trace.events.size(), 1u);
  const Frame& read_back = trace.stacks.frame(trace.events[0].stack);
  EXPECT_EQ(read_back.line, 0u);
  EXPECT_EQ(trace.strings.at(read_back.function), "f");
}

TEST(PickleStrings, AreReadInEveryForm) {
  for (const std::string& key : {"\x8c\x06"s + "action", "X"s + little_endian(std::uint32_t{6}) + "action",
                                 "\x8d"s + little_endian(std::uint64_t{6}) + "action"}) {
    const Trace trace = trace_of(pickle("}(" + pickled_text("segments") + "]" + pickled_text("device_traces") +
                                        "](](}(" + key + "\x8c\x05" + "alloc" + pickled_text("addr") + "K\x09ueeu"));
    ASSERT_EQ(trace.events.size(), 1u);
    EXPECT_EQ(trace.events[0].address, 9u);
  }
}

TEST(PickleStrings, LongerThanTheFileAreRefusedAtOnce) {
  const std::string ten_gigabytes = "\x8d"s + little_endian(std::uint64_t{10'000'000'000});
  EXPECT_EQ(refusal_of(with_address(ten_gigabytes)).what, "a string claims 10000000000 bytes, more than the file has");
  EXPECT_EQ(refusal_of(with_address("X\xff\xff\xff\xff"s)).what,
            "a string claims 4294967295 bytes, more than the file has");
  EXPECT_TRUE(refusal_of(with_address("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"s))
                  .what.starts_with("a string claims 18446744073709551615 bytes"));
  EXPECT_EQ(refusal_of(with_address("\x8c\xff"s)).what, "a string claims 255 bytes, more than the file has");
}

TEST(PickleOtherValues, AreReadAndCountAsNoNumber) {
  EXPECT_EQ(address_from("N"), 0u);
  EXPECT_EQ(address_from("\x89"), 0u);
  EXPECT_EQ(address_from(pickled_float(1.5)), 0u);
  EXPECT_EQ(address_from(")"), 0u);
  EXPECT_EQ(address_from("K\x01\x85"), 0u);
  EXPECT_EQ(address_from("K\x01K\x02\x86"), 0u);
  EXPECT_EQ(address_from("K\x01K\x02K\x03\x87"), 0u);
  EXPECT_EQ(address_from("(K\x01K\x02K\x03K\x04t"), 0u);
  EXPECT_EQ(address_from("]"), 0u);
  EXPECT_EQ(address_from("}"), 0u);
}

TEST(PickleMemo, IsFilledAndReadInEveryForm) {
  EXPECT_EQ(address_from("K\x2aq\x00"s), 42u);
  EXPECT_EQ(address_from("](K\x2a\x94K\x07h\x00"s + "e"), 0u);
  // Remembered by number, looked up by number: the entry's size is the remembered 42.
  const auto size_from = [](const std::string& remember, const std::string& recall) {
    const std::string alloc = "}(" + pickled_text("action") + pickled_text("alloc") + pickled_text("addr") + "K\x2a" +
                              remember + pickled_text("size") + recall + "u";
    const Trace trace = trace_of(
        pickle("}(" + pickled_text("segments") + "]" + pickled_text("device_traces") + "](](" + alloc + "eeu"));
    return trace.events.at(0).size_bytes;
  };
  EXPECT_EQ(size_from("\x94", "h\x00"s), 42u);
  EXPECT_EQ(size_from("q\x00"s, "h\x00"s), 42u);
  EXPECT_EQ(size_from("q\x09"s, "h\x09"s), 42u) << "gaps are allowed while small";
  EXPECT_EQ(size_from("r\x00\x00\x00\x00"s, "j\x00\x00\x00\x00"s), 42u);
}

TEST(PickleMemo, UsedBeforeItIsMadeIsRefused) {
  const Error refusal = refusal_of(with_address("h\x05"));
  EXPECT_EQ(refusal.what, "memo entry 5 is used before it is made");
  EXPECT_TRUE(refusal.offset.has_value());
  EXPECT_EQ(refusal_of(with_address("j\xff\xff\xff\xff"s)).what, "memo entry 4294967295 is used before it is made");
  // In a row of look-ups, as stacks are written.
  EXPECT_EQ(refusal_of(with_address("](h\x05h\x06h\x07"s + "e")).what, "memo entry 5 is used before it is made");
}

TEST(PickleMemo, ThatJumpsAheadIsRefused) {
  EXPECT_EQ(refusal_of(with_address("K\x01r\xff\xff\xff\x7f"s)).what, "a memo number jumps ahead");
}

TEST(PickleMemo, OfNothingIsRefused) {
  EXPECT_EQ(refusal_of(pickle("\x94"s)).what, "MEMOIZE finds nothing to remember");
  EXPECT_EQ(refusal_of(pickle("q\x00"s)).what, "PUT finds nothing to remember");
}

TEST(PickleMemo, ReplacedBetweenEqualRowsIsNotMistaken) {
  const auto frame_dict = [](const char* file) { return pickled(frame(file, 3, "f")); };
  const auto alloc = [](const std::string& address, const std::string& stack) {
    return "}(" + pickled_text("action") + pickled_text("alloc") + pickled_text("addr") + address +
           pickled_text("frames") + stack + "u";
  };
  const std::string row = "](h\x00h\x00"s + "e";
  const std::string entries =
      alloc("K\x10", row) + alloc("K\x20", "](" + frame_dict("second.py") + "q\x00"s + "e") + alloc("K\x30", row);
  const Trace trace =
      trace_of(pickle("}(" + pickled_text("kept") + frame_dict("first.py") + "q\x00"s + pickled_text("segments") + "]" +
                      pickled_text("device_traces") + "](](" + entries + "eeu"));
  ASSERT_EQ(trace.events.size(), 3u);
  const auto file_of = [&](std::size_t at) {
    return trace.strings.at(trace.stacks.frame(trace.events[at].stack).file);
  };
  EXPECT_EQ(file_of(0), "first.py");
  EXPECT_EQ(file_of(1), "second.py");
  EXPECT_EQ(file_of(2), "second.py");
}

// Everything that could import, call or build an object: never carried out, named with its place.
TEST(PickleOpcodes, ThatCouldRunCodeAreRefusedByNameAndOffset) {
  const struct {
    std::string opcodes;
    const char* name;
  } cases[] = {{"cos\nsystem\n", "GLOBAL"},
               {"\x93", "STACK_GLOBAL"},
               {"R", "REDUCE"},
               {"b", "BUILD"},
               {"ios\nsystem\n", "INST"},
               {"o", "OBJ"},
               {"\x81", "NEWOBJ"},
               {"\x92", "NEWOBJ_EX"},
               {"P1\n", "PERSID"},
               {"Q", "BINPERSID"},
               {"\x82\x01", "EXT"},
               {"\x83\x01\x01", "EXT"},
               {"\x84\x01\x01\x01\x01", "EXT"},
               {"F1.5\n", "FLOAT"},
               {"I1\n", "INT"},
               {"L1L\n", "LONG"},
               {"S'a'\n", "STRING"},
               {"Va\n", "UNICODE"},
               {"g0\n", "GET"},
               {"p0\n", "PUT"},
               {"d", "DICT"},
               {"l", "LIST"},
               {"0", "POP"},
               {"1", "POP_MARK"},
               {"2", "DUP"},
               {"T\x01\x01\x01\x01", "BINSTRING"},
               {"U\x01x", "SHORT_BINSTRING"},
               {"B\x01\x01\x01\x01", "BINBYTES"},
               {"C\x01x", "SHORT_BINBYTES"},
               {"\x8e", "BINBYTES8"},
               {"\x96", "BYTEARRAY8"},
               {"\x97", "NEXT_BUFFER"},
               {"\x98", "READONLY_BUFFER"},
               {"\x8f", "EMPTY_SET"},
               {"\x90", "ADDITEMS"},
               {"\x91", "FROZENSET"}};
  for (const auto& refused : cases) {
    const std::string before = "](K\x01K\x02";
    const Error refusal = refusal_of(pickle(before + refused.opcodes + "e"));
    EXPECT_NE(refusal.what.find("its opcode "s + refused.name), std::string::npos)
        << refused.name << ": " << refusal.what;
    EXPECT_NE(refusal.next.find("Nothing in it was executed"), std::string::npos);
    EXPECT_EQ(refusal.offset, 2 + before.size()) << refused.name;
  }
}

TEST(PickleOpcodes, ThatDoNotExistAreRefused) {
  for (const int opcode : {0x00, 0x01, 0x7f, 0x99, 0xc3, 0xff}) {
    const Error refusal = refusal_of(pickle("]"s + static_cast<char>(opcode)));
    EXPECT_EQ(refusal.what, "this is not a pickle: there is no opcode " + std::to_string(opcode));
    EXPECT_EQ(refusal.offset, 3u);
  }
  EXPECT_EQ(refusal_of("\x80\x04\x80\x06."s).what, "pickle protocol 6 is unknown; 2 to 5 are read");
}

// Where nothing is on the stack, or something else than the opcode needs.
TEST(PickleBuilding, OnTheWrongThingIsRefused) {
  const std::string frame_dict = pickled(frame("a.py", 1, "f"));
  const struct {
    std::string opcodes;
    const char* what;
  } cases[] = {{"u", "SETITEMS finds no dict"},
               {"(u", "SETITEMS finds no dict"},
               {"](u", nullptr},
               {"](K\x01K\x02u", "a dict changes after it was complete"},
               {"}(K\x01u", "a dict has a key without a value"},
               {"K\x01(K\x01K\x02u", "keys are set on something that is no dict"},
               {"K\x01K\x02s", "SETITEM finds no dict"},
               {"]K\x01K\x02s", "a dict changes after it was complete"},
               {"e", "APPENDS finds no list"},
               {"(e", "APPENDS finds no list"},
               {"}(K\x01"s + "e", "items are appended to something that is no list"},
               {"K\x01(K\x01"s + "e", "items are appended to something that is no list"},
               {"a", "APPEND finds no list"},
               {"K\x01"s + "a", "APPEND finds no list"},
               {"}K\x01"s + "a", "items are appended to something that is no list"},
               {")K\x01"s + "a", "items are appended to something that is no list"},
               {"t", "a tuple is closed that was never begun"},
               {"\x85", nullptr},
               {"K\x01\x86", nullptr},
               {"K\x01K\x02\x87", nullptr},
               {frame_dict + pickled_text("line") + "K\x05s", "a dict changes after it was complete"},
               {"](" + frame_dict + "eK\x01"s + "a", "a list of frames holds something else"}};
  for (const auto& wrong : cases) {
    const Error refusal = refusal_of(pickle(wrong.opcodes));
    EXPECT_FALSE(refusal.what.empty());
    if (wrong.what != nullptr) {
      EXPECT_EQ(refusal.what, wrong.what) << ::testing::PrintToString(wrong.opcodes);
      EXPECT_TRUE(refusal.offset.has_value()) << wrong.what;
    }
  }
}

// An operand from before the last mark would leave the mark pointing above the stack.
TEST(PickleBuilding, CannotReachBelowAMark) {
  for (const std::string& opcodes : {"](K\x01\x86"s, "K\x01K\x02(\x86"s, "]K\x01(a"s, "}K\x01K\x02(s"s, "K\x01(\x85t"s,
                                     "]]((ae"s, "}]((su"s, "K\x01K\x02K\x03((\x87te"s}) {
    const Result<Trace> trace = read(pickle(opcodes + "ttt"));
    EXPECT_FALSE(trace.ok());
  }
}

TEST(PickleEnd, NeedsExactlyOneObject) {
  EXPECT_EQ(refusal_of(pickle(""s)).what, "the pickle stops with 0 objects instead of one");
  EXPECT_EQ(refusal_of(pickle("]]"s)).what, "the pickle stops with 2 objects instead of one");
  EXPECT_EQ(refusal_of(pickle("](K\x01"s)).what, "the pickle stops with 2 objects instead of one");
}

TEST(PickleEnd, HidesWhateverFollows) {
  const std::string bytes = pickle(snapshot({entry("alloc", 0x1000, 512)}));
  const Trace trace = trace_of(bytes + "cos\nsystem\n(S'ls'\ntR.");
  EXPECT_EQ(trace.events.size(), 1u);
}

TEST(PickleOfAnotherProgram, IsNoSnapshot) {
  for (const Object& object :
       {Object{1, 2, 3}, Object{{"loss", 0.5}, {"epoch", 3}}, Object("text"), Object(7), Object(nullptr),
        Object::object(), Object{{"segments", 3}}, Object{{"segments", {1, 2}}}, Object{{"device_traces", {1, 2}}},
        Object{{"segments", Object::array()}, {"device_traces", 5}}}) {
    const Error refusal = refusal_of(pickle(object));
    EXPECT_NE(refusal.what.find("snapshot"), std::string::npos) << object.dump() << ": " << refusal.what;
  }
}

// ---- cost: nothing recurses, and no small file makes large work

std::string repeated(const std::string& part, std::size_t times) {
  std::string all;
  all.reserve(part.size() * times);
  while (times-- > 0) all += part;
  return all;
}

constexpr std::size_t kMany = 1'000'000;

TEST(PickleCost, DeepNestingIsNoRecursion) {
  EXPECT_FALSE(read(pickle(repeated("](", kMany))).ok());
  EXPECT_FALSE(read(pickle(repeated("](", kMany) + repeated("e", kMany))).ok());
  EXPECT_FALSE(read(pickle(repeated("(", kMany))).ok());
  EXPECT_FALSE(read(pickle(repeated("(", kMany) + repeated("t", kMany))).ok());
  EXPECT_FALSE(read(pickle(repeated("}(K\x01", kMany) + "N" + repeated("u", kMany))).ok());
}

TEST(PickleCost, AListInsideItselfIsHarmless) {
  EXPECT_FALSE(read(pickle("]\x94(" + repeated("h\x00"s, kMany) + "e")).ok());
  EXPECT_FALSE(read(pickle("]\x94" + repeated("h\x00"s + "a", kMany))).ok());
  EXPECT_FALSE(read(pickle("}\x94" + pickled_text("segments") + "h\x00s"s)).ok());
  EXPECT_FALSE(read(pickle("}\x94(" + pickled_text("device_traces") + "]\x94h\x01"s + "au")).ok());
}

// Each list holds the one before it twice: two to the power of a million if anything walked it.
TEST(PickleCost, ADoublingChainIsHarmless) {
  std::string chain = "]q\x00"s;
  for (int link = 0; link < 100'000; ++link) chain += "](h\x00h\x00"s + "eq\x00"s;
  EXPECT_FALSE(read(pickle("(" + chain + "t")).ok());
}

// Two lists that grow in turns: each must not be copied whenever the other has grown.
TEST(PickleCost, ListsThatGrowInTurnsStayLinear) {
  const std::string turns = repeated("h\x00N"s + "ah\x01N"s + "a", 200'000);
  EXPECT_FALSE(read(pickle("]\x94]\x94" + turns)).ok());
  const std::string dict_turns = repeated("h\x00NNsh\x01NNs"s, 200'000);
  EXPECT_FALSE(read(pickle("}\x94}\x94" + dict_turns)).ok());
}

// A stack that grows by one frame at a time is a new stack each time.
TEST(PickleCost, AStackThatGrowsByOneFrameAtATimeIsBounded) {
  const std::string one = pickled(frame("a.py", 1, "f")) + "\x94]\x94";
  EXPECT_FALSE(read(pickle(one + repeated("h\x00"s + "a", 300'000))).ok());
}

// Lists are written in parts of a thousand; of a very deep stack the innermost frames are kept.
TEST(PickleCost, AStackInPartsOfAThousandFramesIsReadInOrder) {
  std::string stack = "](";
  for (std::uint32_t line = 1; line <= 5000; ++line) {
    stack += pickled(frame("a.py", line, "f"));
    if (line % 1000 == 0) stack += line == 5000 ? "e" : "e(";
  }
  const std::string alloc = "}(" + pickled_text("action") + pickled_text("alloc") + pickled_text("addr") + "K\x10" +
                            pickled_text("frames") + stack + "u";
  const Trace trace =
      trace_of(pickle("}(" + pickled_text("segments") + "]" + pickled_text("device_traces") + "](](" + alloc + "eeu"));
  ASSERT_EQ(trace.events.size(), 1u);
  StackId at = trace.events[0].stack;
  for (std::uint32_t line = 1; line <= 1024; ++line, at = trace.stacks.parent(at))
    ASSERT_EQ(trace.stacks.frame(at).line, line);
  EXPECT_EQ(at.value, 0u);
}

// Many segments that name one long list of blocks: the list belongs to the first of them.
TEST(PickleCost, BlocksSharedBetweenSegmentsAreTakenOnce) {
  std::string blocks = "]\x94(";
  for (std::uint64_t at = 1; at <= 20'000; ++at)
    blocks += "}(" + pickled_text("state") + pickled_text("active_allocated") + pickled_text("size") + "K\x08u";
  blocks += "e";
  std::string segments = "](";
  for (int device = 0; device < 20'000; ++device) {
    segments += "}(" + pickled_text("device") + pickled_integer(device % 60) + pickled_text("total_size") +
                "J\x00\x71\x02\x00"s + pickled_text("blocks") + (device == 0 ? blocks : "h\x00"s) + "u";
  }
  const Trace trace = trace_of(pickle("}(" + pickled_text("segments") + segments + "eu"));
  EXPECT_EQ(trace.final_segments.size(), 20'000u);
  std::uint64_t held = 0;
  for (const FinalSegment& segment : trace.final_segments) held += segment.block_count;
  EXPECT_EQ(held, 20'000u);
  EXPECT_EQ(counter(trace, "segments whose blocks are scattered"), 19'999u);
}

TEST(PickleCost, MoreHeapsThanATraceCanNameAreCounted) {
  Object traces = Object::array();
  for (int device = 0; device < 20; ++device) {
    Object entries = Object::array();
    for (int pool = 1; pool <= 4000; ++pool)
      entries.push_back({{"action", "alloc"}, {"addr", 4096 * pool}, {"size", 8}, {"pool_id", {0, pool}}});
    traces.push_back(entries);
  }
  const Trace trace = trace_of(Object{{"segments", Object::array()}, {"device_traces", traces}});
  EXPECT_EQ(trace.events.size(), 80'000u);
  EXPECT_LE(trace.heaps.size(), 65'536u);
  EXPECT_GT(counter(trace, "private pools without a heap of their own"), 0u);
}

}  // namespace
}  // namespace faultline::snapshot_test
