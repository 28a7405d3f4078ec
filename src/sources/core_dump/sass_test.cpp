#include "sources/core_dump/sass.h"

#include <gtest/gtest.h>

#include <random>

#include "sources/core_dump/sass_samples.h"

namespace faultline {
namespace {

TEST(Sass, SaysWhatTheDisassemblerSays) {
  for (const SassSample& sample : kSassSamples) {
    const auto decoded = decode_memory_instruction({sample.low, sample.high}, sample.sm_version);
    ASSERT_TRUE(decoded.has_value()) << "sm_" << sample.sm_version << " " << sample.text;
    EXPECT_EQ(decoded->text, sample.text) << "sm_" << sample.sm_version;
    EXPECT_EQ(decoded->size_bytes, sample.size_bytes) << sample.text;
  }
}

TEST(Sass, TellsLoadsStoresAndAtomicsApart) {
  for (const SassSample& sample : kSassSamples) {
    const auto decoded = decode_memory_instruction({sample.low, sample.high}, sample.sm_version);
    ASSERT_TRUE(decoded.has_value());
    std::string name = sample.text;
    if (name.starts_with('@')) name.erase(0, name.find(' ') + 1);
    EXPECT_EQ(decoded->is_load, name.starts_with("LD") || name.starts_with("ATOM")) << sample.text;
    EXPECT_EQ(decoded->is_store, !name.starts_with("LD")) << sample.text;
    const bool is_shared =
        name.starts_with("LDS ") || name.starts_with("LDS.") || name.starts_with("STS") || name.starts_with("ATOMS");
    EXPECT_EQ(decoded->space == MemorySpace::kShared, is_shared) << sample.text;
    EXPECT_EQ(decoded->space == MemorySpace::kLocal, name.starts_with("LDL") || name.starts_with("STL")) << sample.text;
  }
}

TEST(Sass, ADescriptorAddsNothingToTheAddressButAUniformBaseDoes) {
  // LDG.E R17, desc[UR4][R22.64]
  const auto described = decode_memory_instruction({0x0000000416117981, 0x000ea4000c1e1900}, 90);
  ASSERT_TRUE(described.has_value());
  EXPECT_FALSE(described->uniform_register.has_value());
  EXPECT_EQ(described->address_register, 22);
  EXPECT_TRUE(described->address_is_pair);

  // LDG.E R5, [R2.64+UR4+-0x14]
  const auto based = decode_memory_instruction({0xffffec0402057981, 0x000ea2000c1ee900}, 75);
  ASSERT_TRUE(based.has_value());
  EXPECT_EQ(based->uniform_register, 4);
  EXPECT_EQ(based->offset, -0x14);

  // LDG.E R17, [R16.U32+UR4]
  const auto narrow = decode_memory_instruction({0x0000000410117981, 0x000ea400081e0900}, 90);
  ASSERT_TRUE(narrow.has_value());
  EXPECT_EQ(narrow->text, "LDG.E R17, [R16.U32+UR4]");
  EXPECT_FALSE(narrow->address_is_pair);

  // LDG.E R13, [0xfffffc]
  const auto absolute = decode_memory_instruction({0xfffffc00ff0d7381, 0x000ea200001f6900}, 75);
  ASSERT_TRUE(absolute.has_value());
  EXPECT_EQ(absolute->text, "LDG.E R13, [0xfffffc]");
  EXPECT_EQ(absolute->offset, 0xfffffc);
}

TEST(Sass, OtherInstructionsAreNotMemoryInstructions) {
  EXPECT_FALSE(decode_memory_instruction({0x0000000000007918, 0x000fc00000000000}, 90));  // NOP
  EXPECT_FALSE(decode_memory_instruction({0x000000000000794d, 0x000fea0003800000}, 90));  // EXIT
  EXPECT_FALSE(decode_memory_instruction({0x00000004060678a5, 0x000fe200078e0218}, 90));  // IMAD.WIDE
  EXPECT_FALSE(decode_memory_instruction({0, 0}, 90));
  EXPECT_FALSE(decode_memory_instruction({0x0000000416117981, 0x000ea4000c1e1900}, 61))
      << "before Volta instructions had 64 bits";
}

TEST(Sass, AnyBitsDecodeToSomethingBoundedOrNothing) {
  std::mt19937_64 random(7);
  int decoded_count = 0;
  for (int round = 0; round < 200'000; ++round) {
    SassInstruction instruction{random(), random()};
    if (round % 2 == 0) instruction.low = (instruction.low & ~std::uint64_t{0x1ff}) | (0x17e + random() % 0x32);
    const auto decoded = decode_memory_instruction(instruction, 70 + static_cast<std::uint32_t>(random() % 60));
    if (!decoded) continue;
    ++decoded_count;
    EXPECT_FALSE(decoded->text.empty());
    EXPECT_GE(decoded->size_bytes, 1u);
    EXPECT_LE(decoded->size_bytes, 32u);
    EXPECT_LT(decoded->text.size(), 100u);
  }
  EXPECT_GT(decoded_count, 5'000);
}

TEST(SassWrites, ALoadWritesAsManyRegistersAsItIsWide) {
  const SassWrites wide = writes_of({0xffffb00402087981, 0x000ea2000c1e1d00}, 90);  // LDG.E.128 R8
  EXPECT_FALSE(wide.touches_register(7));
  for (std::uint8_t number = 8; number < 12; ++number) EXPECT_TRUE(wide.touches_register(number));
  EXPECT_FALSE(wide.touches_register(12));
  const SassWrites single = writes_of({0x0000000416007981, 0x000ea4000c1e1900}, 90);  // LDG.E R0
  EXPECT_TRUE(single.touches_register(0));
  EXPECT_FALSE(single.touches_register(1));
}

TEST(SassWrites, AStoreWritesNone) {
  // STG.E desc[UR4][R16.64+-0xc], R13
  const SassWrites store = writes_of({0xfffff40d10007986, 0x004fe8000c101904}, 90);
  EXPECT_FALSE(store.anything);
  for (int number = 0; number < 255; ++number) EXPECT_FALSE(store.touches_register(static_cast<std::uint8_t>(number)));
}

TEST(SassWrites, WhatIsNotKnownMayHaveWrittenAnything) {
  EXPECT_TRUE(writes_of({0x000000000000723c, 0}, 90).anything);                   // a matrix instruction
  EXPECT_TRUE(writes_of({0xfffffff000007947, 0x000fc0000383ffff}, 90).anything);  // BRA
}

TEST(SassWrites, AComparisonWritesItsPredicate) {
  const SassWrites compare = writes_of({0x000000040200720c, 0x000fe20003f04070}, 90);  // ISETP … P0, PT
  EXPECT_FALSE(compare.anything);
  EXPECT_TRUE(compare.touches_predicate(0));
  EXPECT_FALSE(compare.touches_predicate(kTruePredicate));
  EXPECT_EQ(writes_of({0x0000000d00197202, 0x000fe20000000f00}, 90).predicates, 0) << "MOV";
  EXPECT_EQ(writes_of({0x0000000406167825, 0x000fe200078e0218}, 90).predicates, 0) << "IMAD.WIDE";
  EXPECT_TRUE(writes_of({0x0000000410067210, 0x000fe20007f1e0ff}, 90).touches_predicate(0))
      << "IADD3 R6, P0, R16, R4, RZ";
}

}  // namespace
}  // namespace faultline
