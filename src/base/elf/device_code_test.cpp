#include "base/elf/device_code.h"

#include <gtest/gtest.h>

#include "base/elf/small_cubin.h"

namespace faultline {
namespace {

std::string text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

TEST(DeviceCode, KeepsTheImageAndGivesEachKernelItsCode) {
  const std::string ptx = ".version 8.0\n.entry first(.param .u64 a, .param .u32 b) { ret; }\n.entry second { ret; }\n";
  std::string given = ptx;
  const std::optional<DeviceCode> code = DeviceCode::read(given.c_str());
  given.assign(given.size(), 'x');  // the program may do with its own as it likes
  ASSERT_TRUE(code.has_value());
  ASSERT_EQ(code->kernels().size(), 2u);
  EXPECT_EQ(code->kernels()[0].name, "first");
  EXPECT_EQ(code->kernels()[0].parameters.size(), 2u);
  EXPECT_EQ(text_of(code->kernels()[1].code), ptx);
}

TEST(DeviceCode, ReadsThePartsOfAFatBinaryThatAreNotCompressed) {
  const std::string cubin = small_cubin(), other = "not to be read";
  const auto part = [](std::uint16_t kind, const std::string& payload) {
    std::string entry(16, '\0');
    const std::uint32_t header_bytes = 16;
    const std::uint64_t payload_bytes = payload.size();
    std::memcpy(entry.data(), &kind, sizeof kind);
    std::memcpy(entry.data() + 4, &header_bytes, sizeof header_bytes);
    std::memcpy(entry.data() + 8, &payload_bytes, sizeof payload_bytes);
    return entry + payload;
  };
  const std::string parts = part(1, other) + part(2, cubin);
  std::string binary("\x50\xed\x55\xba\x01\x00\x10\x00", 8);
  const std::uint64_t bytes = parts.size();
  binary.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  const std::optional<DeviceCode> code = DeviceCode::read((binary + parts).data());
  ASSERT_TRUE(code.has_value());
  ASSERT_EQ(code->kernels().size(), 1u);
  EXPECT_EQ(code->kernels()[0].parameters.size(), 2u);
  EXPECT_EQ(text_of(code->kernels()[0].code), cubin);
}

TEST(DeviceCode, RefusesWhatIsNone) {
  EXPECT_FALSE(DeviceCode::read("hello").has_value());
  EXPECT_FALSE(DeviceCode::read("").has_value());
}

TEST(DeviceCode, ACubinThatIsCutShortHasTheKernelsWhoseHeadersAreThereAndNoPlaces) {
  const std::string cubin = small_cubin();
  ASSERT_EQ(kernels_of_cubin({reinterpret_cast<const std::uint8_t*>(cubin.data()), cubin.size()}).size(), 1u);
  for (std::size_t size = 0; size < cubin.size(); ++size) {
    const Bytes part(reinterpret_cast<const std::uint8_t*>(cubin.data()), size);
    // the last header of all is that of its parameters
    EXPECT_EQ(kernels_of_cubin(part).size(), size + 64 >= cubin.size() ? 1u : 0u) << size;
    EXPECT_FALSE(find_in_cubin(part, 0).has_value());
  }
}

}  // namespace
}  // namespace faultline
