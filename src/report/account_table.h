// The account of a device's memory, printed so that a reader can add it up: one unit for all rows, rounded so that the printed parts sum to
// the printed total to the last digit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/page.h"
#include "report/report.h"

namespace faultline {

struct AccountRow {
  std::string label;
  std::uint64_t size_bytes = 0;
  std::uint64_t hundredths = 0;  // of the table's unit, as printed
};

struct AccountTable {
  std::vector<AccountRow> parts;  // those that are not zero; what is unknown always when the capacity is known
  AccountRow total;
  std::string unit;     // "GiB"
  bool adds_up = true;  // the parts make the capacity exactly
};

AccountTable account_table(const Account& account);

// Nothing is printed for an empty account.
void print_account(Page& page, const DeviceReport& device);

std::string device_name(const Page& page, const DeviceReport& device);  // "GPU 0 (NVIDIA H200)"

}  // namespace faultline
