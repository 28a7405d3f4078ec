#include "report/account_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

#include "base/units.h"
#include "trace/host_memory.h"

namespace faultline {
namespace {

using Wide = unsigned __int128;  // sums and hundredths of whatever a broken input claims

constexpr int kBarColumns = 40;

std::uint64_t to_hundredths(Wide size_bytes, std::uint64_t unit_bytes) {
  return static_cast<std::uint64_t>((size_bytes * 100 + unit_bytes / 2) / unit_bytes);
}

std::string hundredths_text(std::uint64_t hundredths) {
  return fmt::format("{}.{:02}", format_count(hundredths / 100), hundredths % 100);
}

// A bar of eighths of a character; at least a sliver for what is there.
std::string bar(std::uint64_t part, std::uint64_t whole, int columns, bool unicode) {
  static constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (part == 0 || whole == 0) return {};
  const double share = std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
  const int eighths = std::max(1, static_cast<int>(share * columns * 8 + 0.5));
  if (!unicode) return std::string(static_cast<std::size_t>(std::max(1, (eighths + 4) / 8)), '#');
  std::string text;
  for (int at = 0; at < eighths / 8; ++at) text += "█";
  return text + std::string(kEighths[static_cast<std::size_t>(eighths % 8)]);
}

// Rounds each part to the nearest hundredth; while the printed parts miss the printed total, the part that was rounded hardest the wrong
// way gives or takes one.
void round_to_total(AccountTable& table, std::uint64_t unit_bytes) {
  auto missing = static_cast<std::int64_t>(table.total.hundredths);
  for (AccountRow& part : table.parts) {
    part.hundredths = to_hundredths(part.size_bytes, unit_bytes);
    missing -= static_cast<std::int64_t>(part.hundredths);
  }
  const auto error = [&](const AccountRow& part) {
    return static_cast<__int128>(part.size_bytes) * 100 - static_cast<__int128>(part.hundredths) * unit_bytes;
  };
  const auto less = [&](const AccountRow& a, const AccountRow& b) { return error(a) < error(b); };
  // rounding does not miss by more: sizes that no memory has do not add up
  if (std::abs(missing) > std::ssize(table.parts)) return;
  for (; missing > 0; --missing) ++std::max_element(table.parts.begin(), table.parts.end(), less)->hundredths;
  for (; missing < 0; ++missing) --std::min_element(table.parts.begin(), table.parts.end(), less)->hundredths;
}

}  // namespace

AccountTable account_table(const Account& account) {
  AccountTable table;
  const auto add = [&](std::string label, std::uint64_t size_bytes) {
    table.parts.push_back({std::move(label), size_bytes, 0});
  };
  for (const auto& [name, size_bytes] : account.live)
    add(name != "other" ? name : account.has_framework ? "other tensors" : "held by the program", size_bytes);
  add("cached, not in use", account.cached);
  std::uint64_t explained = 0;
  for (const auto& [what, size_bytes] : account.outside) explained += size_bytes;
  if (explained == account.outside_framework && explained != 0) {
    for (const auto& [what, size_bytes] : account.outside) add(what, size_bytes);
  } else {
    add("outside the framework", account.outside_framework);
  }
  add("free", account.free);
  add("unknown", account.unknown);

  Wide total = 0;
  for (const AccountRow& part : table.parts) total += part.size_bytes;
  table.adds_up = total == account.capacity;
  const std::uint64_t unit_bytes = total >= kGiB ? kGiB : total >= kMiB ? kMiB : kKiB;
  table.unit = unit_bytes == kGiB ? "GiB" : unit_bytes == kMiB ? "MiB" : "KiB";

  table.total = {account.capacity_known ? "capacity" : "known",
                 static_cast<std::uint64_t>(std::min(total, Wide{UINT64_MAX})), to_hundredths(total, unit_bytes)};
  round_to_total(table, unit_bytes);
  std::erase_if(table.parts, [&](const AccountRow& part) {
    return part.size_bytes == 0 && !(part.label == "unknown" && account.capacity_known);
  });
  return table;
}

std::string device_name(const Page& page, const DeviceReport& device) {
  const std::string name = page.clean(device.name);
  return (is_host_memory(device.name) ? name
                                      : fmt::format("GPU {}", device.index) + (name.empty() ? "" : " (" + name + ")")) +
         (device.process.empty() ? "" : " of " + page.clean(device.process));
}

void print_account(Page& page, const DeviceReport& device) {
  const Account& account = device.account;
  const AccountTable table = account_table(account);
  if (table.total.size_bytes == 0) return;

  const std::string moment = account.moment.empty() ? "" : " " + page.clean(account.moment);
  page.blank();
  page.paragraph(0, fmt::format("Where the memory of {} was{}", device_name(page, device), moment), Style::kStrong);
  if (!account.capacity_known)
    page.paragraph(2, "This input does not say how much memory the GPU has; only known parts are listed.");

  const std::string total = hundredths_text(table.total.hundredths);
  const int number_columns = display_width(total);
  int label_columns = display_width(table.total.label);
  for (const AccountRow& part : table.parts)
    label_columns = std::max(label_columns, display_width(page.clean(part.label)));
  label_columns = std::min(label_columns, page.width() / 2);

  const auto head = [&](std::string_view sign, const std::string& label) {
    return fmt::format("  {} {}  ", sign,
                       pad_right(shorten_middle(page.clean(label), label_columns, page.unicode()), label_columns));
  };
  std::string_view sign = " ";
  for (const AccountRow& part : table.parts) {
    const std::string number = pad_left(hundredths_text(part.hundredths), number_columns) + " " + table.unit + "  ";
    const bool is_outside = std::any_of(account.outside.begin(), account.outside.end(),
                                        [&](const auto& known) { return known.first == part.label; });
    const bool waste = is_outside || part.label == "cached, not in use" || part.label == "outside the framework" ||
                       part.label == "unknown";
    const Style style = part.label == "free" ? Style::kGood : waste ? Style::kReserved : Style::kAllocated;
    const int room = page.width() - display_width(head(sign, "")) - display_width(number);
    // A part too small for the unit says its size in its own.
    const bool tiny = part.size_bytes != 0 && part.hundredths <= 1;
    const std::string own_unit = "(" + format_bytes(part.size_bytes) + ")";
    const std::string picture =
        tiny ? (display_width(own_unit) <= room ? own_unit : "")
             : bar(part.size_bytes, table.total.size_bytes, std::min(kBarColumns, room), page.unicode());
    page.line({{head(sign, part.label)}, {number}, {picture, tiny ? Style::kDim : style}});
    sign = "+";
  }
  page.line({{head("=", table.total.label) + total + " " + table.unit, Style::kStrong}});
  if (!table.adds_up) {
    const bool missing = account.capacity > table.total.size_bytes;
    const std::uint64_t difference =
        missing ? account.capacity - table.total.size_bytes : table.total.size_bytes - account.capacity;
    page.paragraph(2,
                   fmt::format("This does not add up: {} too {}. That is a fault of this report.",
                               format_bytes(difference), missing ? "little" : "much"),
                   Style::kWarning);
  }
}

}  // namespace faultline
