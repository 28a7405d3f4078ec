#include "sources/error_text/pool_dump.h"

#include <algorithm>

#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"

namespace faultline {

std::string pool_dump(std::string_view text) {
  // "Stats: \nLimit:  7000000000\nInUse:  6900000000\nMaxInUse: …\nLargestFreeBlock: …", each line perhaps behind a prefix.
  const std::size_t at = text.rfind("MaxInUse:");
  if (at == std::string_view::npos) return {};
  const std::size_t from = at > 1200 ? at - 1200 : 0;
  const std::string_view around = text.substr(from, 2400);
  const std::size_t limit = around.substr(0, at - from).rfind("Limit:"),
                    in_use = around.substr(0, at - from).rfind("InUse:"),
                    largest = around.find("LargestFreeBlock:", at - from);
  const auto number = [&](std::size_t label, std::size_t length) -> std::string {
    if (label == std::string_view::npos) return "-";
    const std::size_t digits = around.find_first_not_of(" \t", label + length);
    const auto value = digits == std::string_view::npos ? std::nullopt : number_at(around, digits);
    return value ? std::to_string(*value) : "-";
  };
  const std::string most = number(limit, 6), used = number(in_use, 6);
  return most == "-" || used == "-" ? std::string() : most + " " + used + " " + number(largest, 17);
}

}  // namespace faultline
