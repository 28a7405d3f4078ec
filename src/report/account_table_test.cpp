#include "report/account_table.h"

#include <gtest/gtest.h>

#include <random>

#include "report/sample_reports.h"

namespace faultline {
namespace {

std::uint64_t printed_sum(const AccountTable& table) {
  std::uint64_t sum = 0;
  for (const AccountRow& part : table.parts) sum += part.hundredths;
  return sum;
}

TEST(AccountTable, PrintedPartsSumToThePrintedTotalForAnySizes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    Account account;
    account.capacity_known = true;
    const int shift = static_cast<int>(random() % 40) + 10;
    const auto size = [&] { return random() >> (64 - shift); };
    account.live = {{"parameters", size()},
                    {"gradients", size()},
                    {"optimizer", size()},
                    {"activations", size()},
                    {"other", size()}};
    account.cached = size();
    account.outside_framework = size();
    account.free = size();
    account.unknown = size();
    account.capacity = account.cached + account.outside_framework + account.free + account.unknown;
    for (const auto& [name, size_bytes] : account.live) account.capacity += size_bytes;

    const AccountTable table = account_table(account);
    ASSERT_TRUE(table.adds_up);
    ASSERT_EQ(printed_sum(table), table.total.hundredths);
    const double unit_bytes = table.unit == "GiB" ? kGiB : table.unit == "MiB" ? kMiB : kKiB;
    for (const AccountRow& part : table.parts) {
      ASSERT_NEAR(static_cast<double>(part.hundredths), static_cast<double>(part.size_bytes) * 100 / unit_bytes, 1.0)
          << part.label;
    }
  }
}

TEST(AccountTable, UnknownIsShownEvenWhenZeroIfTheCapacityIsKnown) {
  Account account;
  account.capacity = account.free = kGiB;
  account.capacity_known = true;
  ASSERT_EQ(account_table(account).parts.size(), 2u);
  EXPECT_EQ(account_table(account).parts.back().label, "unknown");
  account.capacity_known = false;
  EXPECT_EQ(account_table(account).parts.size(), 1u);
  EXPECT_EQ(account_table(account).total.label, "known");
}

TEST(AccountTable, PartsThatDoNotMakeTheCapacityAreToldApart) {
  Account account = samples::h100().account;
  EXPECT_TRUE(account_table(account).adds_up);
  account.free += kGiB;
  EXPECT_FALSE(account_table(account).adds_up);
  DeviceReport device = samples::h100();
  device.account = account;
  Page page(TerminalOptions{});
  print_account(page, device);
  EXPECT_NE(page.take().find("This does not add up: 1.00 GiB too much."), std::string::npos);
}

TEST(AccountTable, WhoHoldsWhatIsOutsideIsListedInsteadOfTheSum) {
  Account account;
  account.capacity = 4 * kGiB;
  account.capacity_known = true;
  account.outside_framework = 3 * kGiB;
  account.outside = {{"NCCL", 2 * kGiB}, {"CUDA context and driver", 1 * kGiB}};
  account.free = 1 * kGiB;
  const AccountTable table = account_table(account);
  EXPECT_TRUE(table.adds_up);
  ASSERT_EQ(table.parts.size(), 4u);
  EXPECT_EQ(table.parts[0].label, "NCCL");
  EXPECT_EQ(table.parts[1].label, "CUDA context and driver");
  account.outside.pop_back();  // parts that do not make the sum are not believed
  EXPECT_EQ(account_table(account).parts[0].label, "outside the framework");
}

}  // namespace
}  // namespace faultline
