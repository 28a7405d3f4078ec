#include "base/zip.h"

#include <gtest/gtest.h>

#include <map>

namespace faultline {
namespace {

std::span<const std::uint8_t> zip_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
Status read_all_of(const std::string& archive, std::map<std::string, std::string>& files) {
  return read_zip(zip_bytes(archive), [&](const std::string& name, const std::string& content) -> Status {
    files[name] = content;
    return Ok{};
  });
}
std::string archive_of(const std::map<std::string, std::string>& files) {
  ZipWriter writer;
  for (const auto& [name, content] : files) EXPECT_TRUE(writer.add(name, content, 1794705641).ok());
  return writer.finish();
}
const std::map<std::string, std::string> kFiles = {
    {"a.txt", "hello"}, {"b/empty", ""}, {"b/long", std::string(300000, 'x')}, {"bytes", std::string("\0\1\2\xff", 4)}};

TEST(Zip, GivesBackWhatWasPutIn) {
  std::map<std::string, std::string> files;
  ASSERT_TRUE(read_all_of(archive_of(kFiles), files).ok());
  EXPECT_EQ(files, kFiles);
  EXPECT_LT(archive_of(kFiles).size(), 2000U);
}

TEST(Zip, AnArchiveOfNothingIsOne) {
  std::map<std::string, std::string> files;
  EXPECT_TRUE(read_all_of(archive_of({}), files).ok());
  EXPECT_TRUE(files.empty());
}

// However it is cut or changed, it is refused, or gives back what was put in.
TEST(Zip, DamageIsRefused) {
  const std::string whole = archive_of(kFiles);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::map<std::string, std::string> files;
    EXPECT_FALSE(read_all_of(whole.substr(0, size), files).ok()) << size;
  }
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char mask : {'\x01', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      std::map<std::string, std::string> files;
      if (!read_all_of(changed, files).ok()) {
        ++refused;
        continue;
      }
      for (const auto& [name, content] : files) {
        const auto known = kFiles.find(name);
        if (known != kFiles.end()) {
          EXPECT_EQ(content, known->second) << at;
        }
      }
    }
  }
  EXPECT_GT(refused, whole.size());
}

TEST(Zip, ABombIsRefusedBeforeItIsUnpacked) {
  std::string bomb = archive_of({{"bomb", std::string(1 << 20, '\0')}});
  const std::string size = {0, 0, 0x10, 0};  // 1 MiB
  for (std::size_t at = bomb.find(size); at != std::string::npos; at = bomb.find(size, at))
    bomb.replace(at, 4, std::string("\xf0\xff\xff\xff", 4));
  std::map<std::string, std::string> files;
  const Status status = read_all_of(bomb, files);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().what.find("512 times"), std::string::npos) << status.error().what;
}

}  // namespace
}  // namespace faultline
